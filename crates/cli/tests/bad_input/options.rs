//! Bad options, results folders that cannot be used, and standard output that cannot be written to.

use crate::bad_input::{assert_message, refused};
use crate::common::{GOOD, TestDir};

#[test]
fn bad_options_are_refused() {
    let dir = TestDir::new();
    let radio = ["run", "emulate"];
    for (commands, args, parts) in [
        (&radio[..1], &["--seeds", "0"][..], &["--seeds", "'0'", "1..=10000"][..]),
        (&radio[..1], &["--seeds", "10001"], &["--seeds", "'10001'", "1..=10000"]),
        (&radio[..1], &["--seeds", "-1"], &["-1"]),
        (&radio[..1], &["--seeds", "many"], &["--seeds", "'many'"]),
        (&radio[..1], &["--jobs", "0"], &["--jobs", "'0'", "1..=1024"]),
        (&radio[..1], &["--jobs", "100000"], &["--jobs", "'100000'", "1..=1024"]),
        (&radio[..1], &["--out", ""], &["--out"]),
        (&radio, &["--nothing"], &["--nothing"]),
        (&radio[1..], &["--station", "1"], &["--station 1", "0 to 0"]),
        (&radio[1..], &["--station", ""], &["--station ", "0 to 0"]),
        (&radio[1..], &["--station", "0,,0"], &["--station ", "0 to 0"]),
        (&radio[1..], &["--station", "one"], &["--station one", "0 to 0"]),
        (&radio[1..], &["--station", "0-1"], &["--station 0-1", "0 to 0"]),
        (&radio[1..], &["--station", "1-0"], &["--station 1-0", "0 to 0"]),
        (&radio[1..], &["--station", "99999999999999999999"], &["--station 99999999999999999999"]),
    ] {
        refused(&dir, commands, &[&["good.toml"], args].concat(), parts);
    }
    for args in [&["run", "good.toml", "--pcap"][..], &["emulate", "good.toml", "--pcap", "--", "true"]] {
        assert_message(&dir.paceline(args), args, &["--out"]);
    }
    let several = ["emulate", "good.toml", "--set", "station.count=10", "--station", "0-9", "--out", "new"];
    assert_message(&dir.paceline(&several), &several, &["COMMAND"]);
    let beyond = ["emulate", "good.toml", "--set", "station.count=3", "--station", "0,2-3", "--", "true"];
    assert_message(&dir.paceline(&beyond), &beyond, &["--station 2-3", "0 to 2", "0-2"]);
    for args in [&[][..], &["run"], &["check"], &["emulate"], &["compare"], &["simulate"]] {
        let output = dir.paceline(args);
        assert!(
            output.code == 2 && output.stdout.is_empty() && !output.stderr.is_empty(),
            "{args:?}: {output:?}"
        );
    }
}

#[test]
fn unusable_results_folders_are_refused() {
    let dir = TestDir::new();
    std::fs::create_dir_all(dir.join("full/inner")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
    let cases = [
        ("full", "not empty"),
        ("good.toml", "is a file"),
        ("good.toml/below", "cannot be written"),
        (".", "not empty"),
        ("full/..", "not empty"),
        ("full/inner/..", "not empty"),
        ("/", "not empty"),
        ("/proc/out", "cannot be written"),
        ("dangling", "--out dangling"),
    ];
    for (out, part) in cases {
        refused(&dir, &["run"], &["good.toml", "--out", out], &["--out", part]);
    }
    let long = "x".repeat(300);
    refused(&dir, &["run"], &["good.toml", "--out", &long], &["--out", "cannot be written"]);
    assert_eq!(dir.read("good.toml"), GOOD);
}

#[test]
fn folders_without_results_are_not_compared() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("empty")).unwrap();
    std::fs::create_dir(dir.join("bad")).unwrap();
    for (text, part) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("[]", "run or emulate"),
        ("{}", "run or emulate"),
        ("3", "run or emulate"),
        ("{\"mean\": 3}", "mean"),
        ("{\"mean\": {\"goodput_mbps\": \"1\"}}", "mean"),
        ("\u{0}", "line 1"),
    ] {
        dir.write("bad/summary.json", text);
        let args = ["compare", "bad"];
        assert_message(&dir.paceline(&args), &args, &["bad/summary.json", part]);
    }
    for folder in ["empty", "missing", "good.toml"] {
        let args = ["compare", folder];
        assert_message(&dir.paceline(&args), &args, &[&format!("{folder}/summary.json")]);
    }
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_device_is() {
    let dir = TestDir::new();
    for args in ["check good.toml", "run good.toml", "run good.toml --json", "doctor"] {
        let closed = dir.shell(&format!("(sleep 0.2; $PACELINE {args}; echo $? >&2) | true"));
        assert_eq!(closed.stderr, "0\n", "{args}: a closed pipe is no error");
        let full = dir.shell(&format!("$PACELINE {args} > /dev/full"));
        assert_eq!(full.code, 1, "{args}: {full:?}");
        assert!(full.stderr.starts_with("paceline: cannot write to standard output: "), "{full:?}");
    }
    assert_eq!(dir.shell("$PACELINE check missing.toml 2> /dev/full").code, 2);
}
