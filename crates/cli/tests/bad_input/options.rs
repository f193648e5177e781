//! Options, results folders, and standard output that cannot be written to.

use crate::common::{GOOD, Place};
use crate::{assert_message, refused};

#[test]
fn options() {
    let place = Place::new();
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
        refused(&place, commands, &[&["good.toml"], args].concat(), parts);
    }
    for args in [&["run", "good.toml", "--pcap"][..], &["emulate", "good.toml", "--pcap", "--", "true"]] {
        assert_message(&place.paceline(args), args, &["--out"]);
    }
    let several = ["emulate", "good.toml", "--set", "station.count=10", "--station", "0-9", "--out", "new"];
    assert_message(&place.paceline(&several), &several, &["COMMAND"]);
    let beyond = ["emulate", "good.toml", "--set", "station.count=3", "--station", "0,2-3", "--", "true"];
    assert_message(&place.paceline(&beyond), &beyond, &["--station 2-3", "0 to 2", "0-2"]);
    for args in [&[][..], &["run"], &["check"], &["emulate"], &["compare"], &["simulate"]] {
        let said = place.paceline(args);
        assert!(said.code == 2 && said.stdout.is_empty() && !said.stderr.is_empty(), "{args:?}: {said:?}");
    }
}

#[test]
fn results_folders() {
    let place = Place::new();
    std::fs::create_dir_all(place.join("full/inner")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.join("dangling")).unwrap();
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
        refused(&place, &["run"], &["good.toml", "--out", out], &["--out", part]);
    }
    let long = "x".repeat(300);
    refused(&place, &["run"], &["good.toml", "--out", &long], &["--out", "cannot be written"]);
    assert_eq!(place.read("good.toml"), GOOD);
}

#[test]
fn compare_of_no_results() {
    let place = Place::new();
    std::fs::create_dir(place.join("empty")).unwrap();
    std::fs::create_dir(place.join("bad")).unwrap();
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
        place.write("bad/summary.json", text);
        let args = ["compare", "bad"];
        assert_message(&place.paceline(&args), &args, &["bad/summary.json", part]);
    }
    for folder in ["empty", "missing", "good.toml"] {
        let args = ["compare", folder];
        assert_message(&place.paceline(&args), &args, &[&format!("{folder}/summary.json")]);
    }
}

#[test]
fn a_file_that_cannot_be_written_to() {
    let place = Place::new();
    for args in ["check good.toml", "run good.toml", "run good.toml --json", "doctor"] {
        let closed = place.shell(&format!("(sleep 0.2; $PACELINE {args}; echo $? >&2) | true"));
        assert_eq!(closed.stderr, "0\n", "{args}: a reader that has gone is no failure");
        let full = place.shell(&format!("$PACELINE {args} > /dev/full"));
        assert_eq!(full.code, 1, "{args}: {full:?}");
        assert!(full.stderr.starts_with("paceline: cannot write to standard output: "), "{full:?}");
    }
    assert_eq!(place.shell("$PACELINE check missing.toml 2> /dev/full").code, 2);
}
