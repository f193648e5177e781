//! Help beside the options: suggestions for mistyped names, completions, manual pages, and `doctor`.

use crate::common::{TestDir, parse_json};

#[test]
fn mistyped_names_have_suggestions() {
    let dir = TestDir::new();
    dir.write("bad.toml", "[cell]\nbandwith = \"20 MHz\"\n[[station]]\n");
    for (args, part) in [
        (&["check", "bad.toml"][..], "did you mean cell.bandwidth"),
        (&["check", "good.toml", "--set", "station.cuont=2"], "did you mean station.count"),
        (&["check", "good.toml", "--set", "ack_filter.sheme=basic"], "did you mean ack_filter.scheme?"),
        (&["check", "good.toml", "--set", "ack_filter.scheme=hybird-opt"], "did you mean hybrid-opt?"),
        (&["check", "good.toml", "--set", "tcp.congestion_control=cubik"], "did you mean cubic?"),
        (&["run", "uplink-limted"], "did you mean uplink-limited?"),
        (&["sweep", "good.toml", "--over", "station.cuont=1", "--out", "x"], "did you mean station.count"),
        (&["swep"], "'sweep'"),
    ] {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
    let output = dir.paceline(&["check", "good.toml", "--set", "cell.zzzz=1"]);
    assert!(output.code == 2 && !output.stderr.contains("did you mean"), "{output:?}");
}

#[test]
fn completions_name_the_commands() {
    let dir = TestDir::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = dir.paceline_ok(&["completions", shell]);
        assert!(
            text.contains("paceline") && text.contains("sweep") && text.contains("pcap-limit"),
            "{shell}"
        );
    }
    let bash = dir.shell("$PACELINE completions bash > c && bash -n c");
    assert_eq!(bash.code, 0, "{bash:?}");
    assert_eq!(dir.paceline(&["completions", "tcsh"]).code, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = TestDir::new();
    let output = dir.paceline(&["man", "pages"]);
    assert!(output.code == 0 && output.stderr.ends_with("pages in pages\n"), "{output:?}");
    let page = dir.read("pages/paceline-run.1");
    assert!(page.contains("pcap") && page.contains(".TH paceline-run 1"), "{page}");
    for name in ["paceline", "paceline-gateway-status", "paceline-trace-info", "paceline-man"] {
        assert!(dir.join(&format!("pages/{name}.1")).is_file(), "{name}");
    }
    assert!(!dir.join("pages/paceline-receive.1").exists());
    assert_eq!(dir.paceline(&["man", "good.toml"]).code, 2);
}

#[test]
fn doctor_prints_json() {
    let json = parse_json(&TestDir::new().paceline_ok(&["doctor", "--json"]));
    assert!(json["cores"].as_u64().unwrap() >= 1);
    let names: Vec<_> =
        json["features"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"emulate"), "{names:?}");
}
