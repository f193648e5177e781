//! Output of `run`, `check` and `compare`: the files, equal bytes for equal input, captures that tshark
//! reads.

use crate::common::{TestDir, has_program, parse_json, tshark};
use insta::assert_snapshot;
use serde_json::Value;
use std::io::Write;

/// Ten stations, three of which download small files; half a second is measured.
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

fn mixed() -> TestDir {
    let dir = TestDir::new();
    dir.write("mixed.toml", MIXED);
    dir
}

#[test]
fn run_writes_its_files() {
    let dir = mixed();
    let table = dir.paceline_ok(&["run", "mixed.toml", "--out", "a/b", "--seeds", "2"]);
    assert_snapshot!("run", table);
    let mut names: Vec<_> = dir.paths().iter().map(|p| p.file_name().unwrap().to_owned()).collect();
    names.retain(|name| !["a", "b", "good.toml", "mixed.toml"].iter().any(|other| name == other));
    names.sort();
    let tables =
        ["flows.csv", "groups.csv", "resolved.toml", "stations.csv", "summary.json", "timeseries.csv"];
    assert_eq!(names, tables);

    let summary = dir.json("a/b/summary.json");
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
        let csv = dir.read(&format!("a/b/{file}"));
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
fn equal_input_gives_equal_files() {
    let dir = mixed();
    for (out, jobs) in [("one", "1"), ("two", "2"), ("again", "2")] {
        dir.paceline_ok(&["run", "mixed.toml", "--seeds", "4", "--jobs", jobs, "--out", out]);
    }
    for file in ["summary.json", "stations.csv", "flows.csv", "timeseries.csv", "resolved.toml"] {
        let one = dir.read(&format!("one/{file}"));
        assert!(one == dir.read(&format!("two/{file}")), "{file} depends on --jobs");
        assert!(one == dir.read(&format!("again/{file}")), "{file} differs between runs");
    }
    let printed = dir.paceline_ok(&["run", "mixed.toml", "--seeds", "4", "--json"]);
    assert!(printed == dir.read("one/summary.json"), "--json prints the file");
    let other = dir.paceline_ok(&["run", "mixed.toml", "--seeds", "4", "--json", "--set", "run.seed=2"]);
    assert_ne!(printed, other, "another seed is another run");
    assert_eq!(
        parse_json(&printed)["runs"][1],
        parse_json(&other)["runs"][0],
        "a seed does not depend on the others"
    );
}

#[test]
fn the_resolved_scenario_gives_the_same_results() {
    let dir = mixed();
    let sets = ["--set", "cell.bandwidth=10 MHz", "--set", "station.1.count=1", "--set", "tcp.hystart=off"];
    let run = [&["run", "mixed.toml", "--out", "first"][..], &sets].concat();
    dir.paceline_ok(&run);
    // The name of the file is part of the results: the copy has the same name.
    let resolved = dir.read("first/resolved.toml");
    std::fs::create_dir(dir.join("copy")).unwrap();
    dir.write("copy/mixed.toml", &resolved);
    dir.paceline_ok(&["run", "copy/mixed.toml", "--out", "second"]);
    assert!(dir.read("first/summary.json") == dir.read("second/summary.json"), "other results");
    assert_eq!(resolved, dir.read("second/resolved.toml"));

    assert_eq!(dir.paceline_ok(&["check", "first/resolved.toml"]), resolved);
    assert_eq!(dir.paceline_ok(&[&["check", "mixed.toml"][..], &sets].concat()), resolved);
    assert!(
        resolved.contains("bandwidth = \"10 MHz\"") && resolved.contains("hystart = \"off\""),
        "{resolved}"
    );
}

#[test]
fn built_in_scenarios() {
    let dir = TestDir::new();
    for name in ["uplink-limited", "single-station"] {
        let resolved = dir.paceline_ok(&["check", name]);
        dir.write("resolved.toml", &resolved);
        assert_eq!(dir.paceline_ok(&["check", "resolved.toml"]), resolved);
        let short = ["run", name, "--set", "run.duration=1 s", "--set", "run.warmup=200 ms"];
        let table = dir.paceline_ok(&short);
        assert!(table.starts_with(&format!("{name}, simulated: ")), "{table}");
    }
    // A file in the folder takes precedence over a built-in scenario.
    dir.write("single-station", crate::common::GOOD);
    assert!(dir.paceline_ok(&["check", "single-station"]).contains("duration = \"300 ms\""));
}

#[test]
fn compare_shows_results_side_by_side() {
    let dir = mixed();
    for (out, scheme) in [("plain", "basic"), ("filtered", "hybrid(6)")] {
        let scheme = format!("ack_filter.scheme={scheme}");
        dir.paceline_ok(&["run", "mixed.toml", "--set", &scheme, "--out", out, "--seeds", "2"]);
    }
    let table = dir.paceline_ok(&["compare", "plain", "filtered"]);
    assert_snapshot!("compare", table);
    // Rows that are zero in every column are left out.
    let alone = dir.paceline_ok(&["compare", "plain"]);
    assert!(alone.contains("ACKs sent") && !alone.contains("ACKs discarded"), "{alone}");
}

#[test]
fn empty_folders_and_links_are_accepted_as_results_folders() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join("empty")).unwrap();
    std::fs::create_dir(dir.join("aim")).unwrap();
    std::os::unix::fs::symlink("aim", dir.join("link")).unwrap();
    for (out, summary) in
        [("empty", "empty/summary.json"), ("link", "aim/summary.json"), ("x/", "x/summary.json")]
    {
        dir.paceline_ok(&["run", "good.toml", "--out", out]);
        assert!(dir.join(summary).is_file(), "{out}");
    }
    assert!(dir.join("link").is_symlink());
    let hidden: Vec<_> =
        dir.paths().into_iter().filter(|p| p.to_string_lossy().contains(".partial")).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.join(".out.partial")).unwrap();
    dir.write(".out.partial/summary.json", "left by an interrupted run");
    // The first run is killed after the second one has been refused.
    let output = dir.shell(
        "$PACELINE run good.toml --set 'run.duration=10000 s' --out out & first=$!\n\
         while test -e .out.partial/summary.json; do sleep 0.1; done\n\
         $PACELINE run good.toml --out out; echo $? > code; kill $first; wait $first",
    );
    assert_eq!((dir.read("code").as_str(), output.stdout.as_str()), ("2\n", ""), "{output:?}");
    assert!(output.stderr.contains("--out out: ") && output.stderr.contains("another run"), "{output:?}");
    dir.paceline_ok(&["run", "good.toml", "--out", "out"]);
    assert!(!dir.join(".out.partial").exists() && dir.join("out/summary.json").is_file());
}

#[test]
fn captures_are_read_by_tshark() {
    if !has_program("tshark") {
        let _ = writeln!(std::io::stderr(), "skipped: no tshark on this host");
        return;
    }
    let dir = mixed();
    dir.paceline_ok(&["run", "mixed.toml", "--out", "out", "--pcap", "--seeds", "2"]);
    assert!(dir.join("out/seed-2.pcapng").is_file());
    let file = dir.join("out/seed-1.pcapng").display().to_string();
    // Severity 8388608 is an error; lost and reordered segments have a lower one.
    let bad =
        tshark(&file, "_ws.malformed || _ws.expert.severity >= 8388608", &["frame.number", "_ws.expert"]);
    assert!(bad.is_empty(), "{} bad packets, such as {:?}", bad.len(), bad[0]);

    let fields =
        ["frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len", "tcp.checksum.status"];
    let all = tshark(&file, "ip", &[&fields[..], &["ip.checksum.status"]].concat());
    assert!(all.len() > 1000, "{} packets", all.len());
    let times: Vec<f64> = all.iter().map(|packet| packet[0].parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 0.0 && *times.last().unwrap() <= 1.0, "{times:?}");
    let mut complete_packets = 0;
    for packet in &all {
        // 1 is good, 2 unverified.
        assert_eq!(packet[5], "1", "IP checksum: {packet:?}");
        let complete = packet[2] == packet[3];
        complete_packets += usize::from(complete);
        assert_eq!(packet[4], if complete { "1" } else { "2" }, "TCP checksum: {packet:?}");
    }
    assert!(
        complete_packets > 200 && complete_packets < all.len(),
        "{complete_packets} of {} packets are complete",
        all.len()
    );
    for name in (0..10).map(|station| format!("station-{station}")).chain(["servers".into()]) {
        assert!(all.iter().any(|packet| packet[1] == name), "nothing on {name}");
    }
    assert!(tshark(&file, "!tcp", &["frame.number"]).is_empty());
}

#[test]
fn a_capture_does_not_change_the_results() {
    let dir = mixed();
    dir.paceline_ok(&["run", "mixed.toml", "--out", "with", "--pcap"]);
    dir.paceline_ok(&["run", "mixed.toml", "--out", "without"]);
    assert!(dir.read("with/summary.json") == dir.read("without/summary.json"));
}

#[test]
fn compare_labels_columns_by_the_keys_that_differ() {
    let dir = TestDir::new();
    for (out, set) in [
        ("a", "station.count=1"),
        ("b", "station.count=2"),
        ("c", "ack_filter.scheme=hybrid(6)"),
        ("again", "station.count=1"),
    ] {
        dir.paceline_ok(&["run", "good.toml", "--set", set, "--out", out]);
    }
    let labels = |folders: &[&str]| {
        let json = parse_json(&dir.paceline_ok(&[&["compare", "--json"], folders].concat()));
        let columns = json["columns"].as_array().unwrap().iter();
        columns.map(|column| column["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(labels(&["a", "b"]), "count=1, count=2");
    assert_eq!(labels(&["a", "c"]), "scheme=basic, scheme=hybrid(6)");
    assert_eq!(
        labels(&["a", "b", "c"]),
        "scheme=basic count=1, scheme=basic count=2, scheme=hybrid(6) count=1"
    );
    // Folders of the same scenario have their names, also beside others.
    assert_eq!(labels(&["a", "again"]), "a, again");
    assert_eq!(labels(&["a", "again", "b"]), "count=1 in a, count=1 in again, count=2");
    let json = parse_json(&dir.paceline_ok(&["compare", "a", "b", "--json"]));
    assert_eq!(json["columns"][1]["label"], "count=2");
    assert_eq!(json["columns"][0]["differing"]["station.0.count"], "1");
    assert_eq!(json["columns"][0]["mean"], dir.json("a/summary.json")["mean"]);
}

#[test]
fn run_says_where_its_results_are() {
    let dir = TestDir::new();
    let output = dir.paceline(&["run", "good.toml", "--out", "x/y"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, "results: x/y\n"));
    assert!(output.stdout.starts_with("good, simulated: 1 station, "), "{}", output.stdout);
    assert_eq!(dir.paceline(&["run", "good.toml"]).stderr, "");
}

#[test]
fn large_captures_are_announced_and_can_be_limited() {
    let dir = TestDir::new();
    let args = ["run", "good.toml", "--pcap", "--out"];
    dir.paceline_ok(&[&args[..], &["complete"]].concat());
    dir.paceline_ok(&[&args[..], &["limited", "--pcap-limit", "20 kB"]].concat());
    let size = |out: &str| std::fs::metadata(dir.join(&format!("{out}/seed-1.pcapng"))).unwrap().len();
    assert!(
        size("complete") > 100_000 && (10_000..=21_000).contains(&size("limited")),
        "{}",
        size("limited")
    );
    assert_eq!(dir.read("complete/summary.json"), dir.read("limited/summary.json"));
    let long = ["--seeds", "300", "--set", "link.fixed.downlink_rate=1 Gb/s"];
    let long = [&args[..], &["long"], &long[..], &["--set", "run.duration=100 ms"]].concat();
    let output = dir.paceline(&long);
    assert!(output.stderr.starts_with("warning: --pcap: the captures may take up to "), "{output:?}");
    for size in ["0 B", "many"] {
        let output = dir.paceline(&[&args[..], &["none", "--pcap-limit", size]].concat());
        assert!(output.code == 2 && output.stderr.contains("--pcap-limit"), "{output:?}");
    }
}

#[test]
fn a_rate_ceiling_below_the_link_is_announced() {
    let dir = TestDir::new();
    let paper = ["--set", "core.proxy=accelerator", "--set", "accelerator.profile=paper"];
    for command in ["run", "check"] {
        let args = [&[command, "good.toml"][..], &paper[..]].concat();
        let output = dir.paceline(&args);
        let parts = ["warning: accelerator.r_cap = 5.6 Mb/s: ", "accelerator.profile = paper", "75"];
        assert!(output.code == 0 && output.stderr.lines().count() == 1, "{output:?}");
        assert!(parts.iter().all(|part| output.stderr.contains(part)), "{output:?}");
        let raised = [&args[..], &["--set", "accelerator.r_cap=100 Mb/s"]].concat();
        assert_eq!(dir.paceline(&raised).stderr, "");
    }
    assert_eq!(dir.paceline(&["check", "accelerator-lte"]).stderr, "");
    assert_eq!(dir.paceline(&["check", "accelerator-3g"]).stderr, "");
}
