//! What `run`, `check` and `compare` write: files, the same bytes every time, captures that other programs read.

mod common;

use common::{Place, has, tshark};
use serde_json::Value;
use std::io::Write;

/// Ten stations, three of which fetch small files; half a second counts.
const MIXED: &str = r#"
[run]
duration = "1 s"
warmup = "500 ms"

[cell]
uplink_bandwidth = "3 MHz"

[ack_filter]
scheme = "hybrid-opt"

[[station]]
count = 5
downlink_sinr = ["5 dB", "22 dB"]
uplink_sinr = ["-5 dB", "5 dB"]
fading = "2 dB"
flows = 2

[[station]]
count = 2
direction = "upload"

[[station]]
count = 3
file = "30 kB"
"#;

fn mixed() -> Place {
    let place = Place::new();
    place.write("mixed.toml", MIXED);
    place
}

/// Runs a command that must do its work without a word on stderr; gives stdout.
fn ok(place: &Place, args: &[&str]) -> String {
    let said = place.paceline(args);
    assert!(said.code == 0 && said.stderr.is_empty(), "{args:?}: {said:?}");
    said.stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn run_writes_its_files() {
    let place = mixed();
    let table = ok(&place, &["run", "mixed.toml", "--out", "a/b", "--seeds", "2"]);
    assert!(table.starts_with("mixed, simulated: 10 stations, 0.5 s measured, 2 runs"), "{table}");
    assert!(table.contains("station.0, ") && table.contains(": TCP is "), "{table}");
    assert!(table.contains("goodput") && table.contains("hybrid-opt") && table.contains(" ± "), "{table}");
    let mut names: Vec<_> = place.names().iter().map(|p| p.file_name().unwrap().to_owned()).collect();
    names.retain(|name| !["a", "b", "good.toml", "mixed.toml"].iter().any(|other| name == other));
    names.sort();
    assert_eq!(names, ["flows.csv", "resolved.toml", "stations.csv", "summary.json", "timeseries.csv"]);

    let summary = json(&place.read("a/b/summary.json"));
    assert_eq!(summary["mode"], "simulated");
    assert_eq!(summary["scenario"], "mixed");
    assert_eq!(summary["scheme"], "hybrid-opt");
    assert_eq!(summary["stations"], 10);
    assert_eq!(summary["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!((&summary["runs"][0]["seed"], &summary["runs"][1]["seed"]), (&1.into(), &2.into()));
    let mean = summary["mean"]["goodput_mbps"].as_f64().unwrap();
    assert!(mean > 0.1 && summary["mean"]["upload_mbps"].as_f64().unwrap() > 0.1, "{summary}");
    assert!(summary["ci95"]["goodput_mbps"].as_f64().unwrap() >= 0.0);

    // Rows: 2 seeds of 10 stations; 5 * 2 + 2 + 3 connections; 10 samples.
    for (file, rows, first) in [
        ("stations.csv", 20, "seed,station,goodput_mbps"),
        ("flows.csv", 30, "seed,station,flow,bytes"),
        ("timeseries.csv", 200, "seed,time_s,station,downloaded"),
    ] {
        let csv = place.read(&format!("a/b/{file}"));
        let mut lines = csv.lines();
        let header = lines.next().unwrap();
        assert!(header.starts_with(first), "{file}: {header}");
        let columns = header.split(',').count();
        assert!(lines.clone().all(|line| line.split(',').count() == columns), "{file}");
        assert!(!csv.contains("NaN") && !csv.contains("inf"), "{file}");
        assert_eq!(lines.count(), rows, "{file}");
    }
    for flow in summary["runs"][0]["flows"].as_array().unwrap() {
        let shares = flow["limits"].as_object().unwrap().values().map(|share| share.as_f64().unwrap());
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9, "{flow}");
    }
    assert!(summary["groups"][0]["verdict"].as_str().is_some_and(|text| !text.is_empty()), "{summary}");
    let goodput: f64 = summary["runs"][0]["stations"].as_array().unwrap().iter().map(goodput).sum();
    let total = summary["runs"][0]["totals"]["goodput_mbps"].as_f64().unwrap();
    assert!((goodput - total).abs() < 1e-6, "stations sum up to the cell: {goodput} and {total}");
}

fn goodput(station: &Value) -> f64 {
    station["goodput_mbps"].as_f64().unwrap()
}

#[test]
fn equal_input_gives_equal_bytes() {
    let place = mixed();
    for (out, jobs) in [("one", "1"), ("two", "2"), ("again", "2")] {
        ok(&place, &["run", "mixed.toml", "--seeds", "4", "--jobs", jobs, "--out", out]);
    }
    for file in ["summary.json", "stations.csv", "flows.csv", "timeseries.csv", "resolved.toml"] {
        let one = place.read(&format!("one/{file}"));
        assert!(one == place.read(&format!("two/{file}")), "{file} depends on --jobs");
        assert!(one == place.read(&format!("again/{file}")), "{file} differs between runs");
    }
    let printed = ok(&place, &["run", "mixed.toml", "--seeds", "4", "--json"]);
    assert!(printed == place.read("one/summary.json"), "--json prints the file");
    let other = ok(&place, &["run", "mixed.toml", "--seeds", "4", "--json", "--set", "run.seed=2"]);
    assert_ne!(printed, other, "another seed is another run");
    assert_eq!(json(&printed)["runs"][1], json(&other)["runs"][0], "a seed does not depend on the others");
}

#[test]
fn the_resolved_scenario_is_the_same_scenario() {
    let place = mixed();
    let sets = ["--set", "cell.bandwidth=10 MHz", "--set", "station.1.count=1", "--set", "tcp.hystart=off"];
    let run = [&["run", "mixed.toml", "--out", "first"][..], &sets].concat();
    ok(&place, &run);
    // The scenario's name is its file's: the same name gives the same bytes.
    let resolved = place.read("first/resolved.toml");
    std::fs::create_dir(place.join("copy")).unwrap();
    place.write("copy/mixed.toml", &resolved);
    ok(&place, &["run", "copy/mixed.toml", "--out", "second"]);
    assert!(place.read("first/summary.json") == place.read("second/summary.json"), "other results");
    assert_eq!(resolved, place.read("second/resolved.toml"));

    assert_eq!(ok(&place, &["check", "first/resolved.toml"]), resolved);
    assert_eq!(ok(&place, &[&["check", "mixed.toml"][..], &sets].concat()), resolved);
    assert!(
        resolved.contains("bandwidth = \"10 MHz\"") && resolved.contains("hystart = \"off\""),
        "{resolved}"
    );
}

#[test]
fn built_in_scenarios() {
    let place = Place::new();
    for name in ["uplink-limited", "single-station"] {
        let resolved = ok(&place, &["check", name]);
        place.write("resolved.toml", &resolved);
        assert_eq!(ok(&place, &["check", "resolved.toml"]), resolved);
        let short = ["run", name, "--set", "run.duration=1 s", "--set", "run.warmup=200 ms"];
        let table = ok(&place, &short);
        assert!(table.starts_with(&format!("{name}, simulated: ")), "{table}");
    }
    // A file of that name comes first.
    place.write("single-station", common::GOOD);
    assert!(ok(&place, &["check", "single-station"]).contains("duration = \"300 ms\""));
}

#[test]
fn compare_shows_results_side_by_side() {
    let place = mixed();
    for (out, scheme) in [("plain", "basic"), ("filtered", "hybrid(6)")] {
        let scheme = format!("ack_filter.scheme={scheme}");
        ok(&place, &["run", "mixed.toml", "--set", &scheme, "--out", out, "--seeds", "2"]);
    }
    let table = ok(&place, &["compare", "plain", "filtered"]);
    let line =
        |name: &str| table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{table}"));
    let heading = line("basic");
    assert!(heading.find("basic") < heading.find("hybrid(6)"), "{table}");
    for (out, column) in [("plain", 0), ("filtered", 1)] {
        let mean =
            json(&place.read(&format!("{out}/summary.json")))["mean"]["goodput_mbps"].as_f64().unwrap();
        let shown: Vec<&str> = line("goodput").split_whitespace().filter(|word| word.contains('.')).collect();
        assert_eq!(shown[2 * column], format!("{mean:.2}"), "{table}");
    }
    // What is zero everywhere is left out.
    assert!(line("ACKs discarded").contains(" 0 ± 0 "), "{table}");
    let alone = ok(&place, &["compare", "plain"]);
    assert!(alone.contains("ACKs sent") && !alone.contains("ACKs discarded"), "{alone}");
}

#[test]
fn results_folders_that_exist() {
    let place = Place::new();
    std::fs::create_dir(place.join("empty")).unwrap();
    std::fs::create_dir(place.join("aim")).unwrap();
    std::os::unix::fs::symlink("aim", place.join("link")).unwrap();
    for (out, summary) in
        [("empty", "empty/summary.json"), ("link", "aim/summary.json"), ("x/", "x/summary.json")]
    {
        ok(&place, &["run", "good.toml", "--out", out]);
        assert!(place.join(summary).is_file(), "{out}");
    }
    assert!(place.join("link").is_symlink());
    let hidden: Vec<_> =
        place.names().into_iter().filter(|p| p.to_string_lossy().contains(".partial")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let place = Place::new();
    std::fs::create_dir(place.join(".out.partial")).unwrap();
    place.write(".out.partial/summary.json", "left by an interrupted run");
    // The first is stopped in the middle while the second tries.
    let said = place.shell(
        "$PACELINE run good.toml --set 'run.duration=10000 s' --out out & first=$!\n\
         for n in 1 2 3 4 5 6 7 8 9; do test -e .out.partial/summary.json || break; sleep 0.1; done\n\
         $PACELINE run good.toml --out out; echo $? > code; kill $first; wait $first",
    );
    assert_eq!((place.read("code").as_str(), said.stdout.as_str()), ("2\n", ""), "{said:?}");
    assert!(said.stderr.contains("--out out: ") && said.stderr.contains("another run"), "{said:?}");
    ok(&place, &["run", "good.toml", "--out", "out"]);
    assert!(!place.join(".out.partial").exists() && place.join("out/summary.json").is_file());
}

#[test]
fn captures_are_read_by_tshark() {
    if !has("tshark") {
        let _ = writeln!(std::io::stderr(), "skipped: no tshark on this host");
        return;
    }
    let place = mixed();
    ok(&place, &["run", "mixed.toml", "--out", "out", "--pcap", "--seeds", "2"]);
    assert!(place.join("out/seed-2.pcapng").is_file());
    let file = place.join("out/seed-1.pcapng").display().to_string();
    // Severity: 8388608 is an error. What is lost or late on a radio is reported below that.
    let bad =
        tshark(&file, "_ws.malformed || _ws.expert.severity >= 8388608", &["frame.number", "_ws.expert"]);
    assert!(bad.is_empty(), "{} bad packets, such as {:?}", bad.len(), bad[0]);

    let fields =
        ["frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len", "tcp.checksum.status"];
    let all = tshark(&file, "ip", &[&fields[..], &["ip.checksum.status"]].concat());
    assert!(all.len() > 1000, "{} packets", all.len());
    let times: Vec<f64> = all.iter().map(|packet| packet[0].parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 0.0 && *times.last().unwrap() <= 1.0, "{times:?}");
    let mut whole = 0;
    for packet in &all {
        // 1 is good, 2 unverified.
        assert_eq!(packet[5], "1", "IP checksum: {packet:?}");
        let complete = packet[2] == packet[3];
        whole += usize::from(complete);
        assert_eq!(packet[4], if complete { "1" } else { "2" }, "TCP checksum: {packet:?}");
    }
    assert!(whole > 200 && whole < all.len(), "{whole} of {} packets are whole", all.len());
    for name in (0..10).map(|station| format!("station-{station}")).chain(["servers".into()]) {
        assert!(all.iter().any(|packet| packet[1] == name), "nothing on {name}");
    }
    assert!(tshark(&file, "!tcp", &["frame.number"]).is_empty());
}

#[test]
fn a_capture_changes_nothing() {
    let place = mixed();
    ok(&place, &["run", "mixed.toml", "--out", "with", "--pcap"]);
    ok(&place, &["run", "mixed.toml", "--out", "without"]);
    assert!(place.read("with/summary.json") == place.read("without/summary.json"));
}
