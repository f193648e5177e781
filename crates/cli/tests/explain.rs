//! `paceline explain`: its causes beside those that the simulator knows, its output, and bad input.

use crate::common::emulation::EmulationHost;
use crate::common::{PACELINE, TestDir, parse_json};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Name, keys of the link, tables of the link, and keys of the station.
type Scenario = (&'static str, &'static str, &'static str, &'static str);

const LINK: &str = "[link.fixed]\ndownlink_rate = \"20 Mb/s\"";

/// Scenarios with one flow, in which one cause limits.
const SCENARIOS: [Scenario; 15] = [
    ("deep queue", "queue = \"1 MB\"", LINK, ""),
    ("deep queue, upload", "queue = \"1 MB\"", LINK, "direction = \"upload\""),
    ("deep queue, BBR", "queue = \"1 MB\"", LINK, "[station.tcp]\ncongestion_control = \"bbr\""),
    (
        "deep queue, no timestamps",
        "queue = \"1 MB\"",
        LINK,
        "[station.tcp]\ntimestamps = false\nautotune = false",
    ),
    ("reordering", "reorder_percent = 2", LINK, ""),
    ("receive buffer", "", LINK, "[station.tcp]\nreceive_buffer = \"64 KiB\"\nautotune = false"),
    (
        "slow reader",
        "",
        LINK,
        "[station.tcp]\nread_rate = \"3 Mb/s\"\nreceive_buffer = \"200 kB\"\nautotune = false",
    ),
    ("slow writer", "", LINK, "chunk = \"30 kB\"\nchunk_interval = \"200 ms\""),
    ("slow writer, large pieces", "", LINK, "chunk = \"1 MB\"\nchunk_interval = \"1 s\""),
    ("slow writer, whole segments", "", LINK, "chunk = \"14480 B\"\nchunk_interval = \"100 ms\""),
    ("losses", "loss_percent = 2", LINK, ""),
    ("shallow queue", "queue = \"20 kB\"", LINK, ""),
    (
        "send buffer",
        "",
        "[link.fixed]\ndownlink_rate = \"200 Mb/s\"",
        "[station.tcp]\nsend_buffer = \"100 kB\"",
    ),
    ("bursts of losses", "burst_loss_percent = 10\nburst_packets = 60", LINK, ""),
    ("slow start", "", "[link.fixed]\ndownlink_rate = \"1 Gb/s\"", "file = \"400 kB\""),
];

/// The cause that the simulator knows, in the terms of `explain`: a sender that fills its congestion window,
/// its send buffer or its pacing rate fills a queue, if the verdict names a part of the path.
fn truth(summary: &Value) -> String {
    let limits = summary["runs"][0]["flows"][0]["limits"].as_object().unwrap();
    let share = |name: &str| limits[name].as_f64().unwrap();
    let largest = limits.keys().max_by(|a, b| share(a).total_cmp(&share(b))).unwrap();
    let verdict = summary["groups"][0]["verdict"].as_str().unwrap();
    let names_path =
        ["limited by the downlink", "limited by the uplink"].iter().any(|p| verdict.starts_with(p));
    match largest.as_str() {
        "congestion_window" | "send_buffer" | "pacing" if names_path => "queue",
        "send_buffer" | "pacing" => "congestion_window",
        other => other,
    }
    .to_owned()
}

#[test]
fn causes_agree_with_the_simulator() {
    let dir = TestDir::new();
    let mut confusion: BTreeMap<(String, String), u32> = BTreeMap::new();
    let (mut wrong, mut rows) = (Vec::new(), String::new());
    for (index, (name, link, tables, station)) in SCENARIOS.into_iter().enumerate() {
        let (scenario, out) = (format!("{index}.toml"), format!("out{index}"));
        dir.write(
            &scenario,
            format!(
                "[run]\nduration = \"10 s\"\nwarmup = \"1 s\"\n[core]\nhops = [{{ rate = \"1 Gb/s\", delay = \
                 \"10 ms\" }}]\n[link]\n{link}\n{tables}\n[[station]]\ncount = 1\n{station}\n"
            ),
        );
        dir.paceline_ok(&["run", &scenario, "--pcap", "--pcap-limit", "100 MB", "--out", &out]);
        let truth = truth(&dir.json(&format!("{out}/summary.json")));
        for interface in ["servers", "station-0"] {
            let file = format!("{out}/seed-1.pcapng");
            let found = parse_json(&dir.paceline_ok(&["explain", &file, "--json", "--interface", interface]));
            let connection = &found["explanation"]["connections"][0];
            let cause = connection["cause"].as_str().unwrap().to_owned();
            let share = connection["cause_shares"][&cause].as_f64().unwrap();
            let _ = writeln!(rows, "{name:28} {interface:10} {truth:18} {cause:18} {:3.0}%", 100.0 * share);
            let place = if interface == "servers" { "near_server" } else { "near_client" };
            assert_eq!(connection["position"], place, "{name}: {connection}");
            if truth != cause {
                wrong.push((name, interface));
            }
            *confusion.entry((truth.clone(), cause)).or_default() += 1;
        }
    }
    for ((truth, cause), count) in &confusion {
        let _ = writeln!(rows, "{truth:18} explained as {cause:18} {count:2} times");
    }
    let _ = writeln!(std::io::stderr(), "{rows}");
    // Near the receiver, timeouts whose segments are all lost before the capture point are not seen, and
    // without timestamps a queue before it is not: the cause is unknown.
    let not_seen = ["bursts of losses", "deep queue, no timestamps"];
    wrong.retain(|(name, interface)| !(*interface == "station-0" && not_seen.contains(name)));
    let unknown = confusion.get(&("queue".to_owned(), "unknown".to_owned()));
    assert_eq!(unknown, Some(&1), "{rows}");
    assert!(wrong.is_empty(), "{wrong:?}\n{rows}");
}

#[test]
fn a_capture_is_explained_as_text_json_and_files() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--pcap", "--out", "run"]);
    let text = dir.paceline_ok(&["explain", "run/seed-1.pcapng"]);
    assert!(text.starts_with("1 connection, ") && text.contains(" MB: TCP is "), "{text}");
    assert!(text.contains("Captured near the server; the round trip takes "), "{text}");
    let printed = dir.paceline_ok(&["explain", "run/seed-1.pcapng", "--json", "--out", "a/b"]);
    assert_eq!(printed, dir.read("a/b/explain.json"));
    let json = parse_json(&printed);
    let connection = &json["explanation"]["connections"][0];
    assert_eq!((&connection["capture_points"], &connection["data_from"]), (&2.into(), &"server".into()));
    assert_eq!(json["explanation"]["network"]["bytes"], connection["to_client"]["bytes"]);
    let csv = dir.read("a/b/connections.csv");
    assert!(csv.starts_with("client,server,interface,") && csv.lines().count() == 2, "{csv}");
    assert_eq!(
        dir.paceline_ok(&["explain", "run/seed-1.pcapng", "--json"]),
        printed,
        "equal input, equal bytes"
    );

    // Packed, and cut in the middle.
    let whole = std::fs::read(dir.join("run/seed-1.pcapng")).unwrap();
    dir.write("cut.pcapng", &whole[..whole.len() / 2 + 3]);
    let cut = dir.paceline_ok(&["explain", "cut.pcapng"]);
    assert!(cut.contains("note: cut.pcapng: damaged capture"), "{cut}");
    dir.shell("gzip -k run/seed-1.pcapng && xz -k run/seed-1.pcapng");
    for packed in ["run/seed-1.pcapng.gz", "run/seed-1.pcapng.xz"] {
        assert_eq!(dir.paceline_ok(&["explain", packed]), text, "{packed}");
    }
    let server = dir.paceline_ok(&["explain", "run/seed-1.pcapng", "--interface", "station-0", "--server"]);
    assert!(server.contains("Captured near the server"), "{server}");
}

#[test]
fn the_page_has_the_answer_first_and_no_address_with_pseudonyms() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--pcap", "--out", "run"]);
    let args =
        ["explain", "run/seed-1.pcapng", "--out", "out", "--html", "page.html", "--pseudonymise", "a key"];
    let text = dir.paceline_ok(&args);
    let page = dir.read("page.html");
    assert_eq!(page, dir.read("out/report.html"));
    let places =
        ["The answer", "<strong>TCP is ", "What TCP waited for", "Over time", "<h2>Connections</h2>"];
    let at: Vec<usize> = places.iter().map(|part| page.find(part).expect(part)).collect();
    assert!(at.is_sorted(), "{places:?}: {at:?}");
    assert_eq!(page.matches("<svg").count(), 3, "causes, goodput and round trip");
    let [csv, json] = ["out/connections.csv", "out/explain.json"].map(|file| dir.read(file));
    for (name, content) in [("text", &text), ("page", &page), ("CSV", &csv), ("JSON", &json)] {
        assert!(!content.contains("198.18."), "{name}: {content}");
    }
    let plain = parse_json(&dir.paceline_ok(&["explain", "run/seed-1.pcapng", "--json"]));
    let verdict = plain["explanation"]["network"]["verdict"].as_str().unwrap();
    assert!(text.contains(verdict), "{text}");
    let points = plain["explanation"]["connections"][0]["over_time"].as_array().unwrap();
    assert!(
        points.len() > 5 && points.iter().any(|point| point["rtt_ms"].as_f64() > Some(5.0)),
        "{points:?}"
    );
}

/// Needs root. A download over the loopback device is explained while it passes.
#[test]
fn an_interface_is_explained_live() {
    let Some(host) = EmulationHost::new(&["python3", "curl"]) else { return };
    host.dir.write("file", vec![0; 3_000_000]);
    let _server = host.serve_files();
    let json = ["explain", "--live", "--interface", "lo", "--for", "4 s", "--json", "--client"];
    let mut explained = host.spawn("explain", &[&[PACELINE], &json[..]].concat());
    for _ in 0..8 {
        let got = host.run(&["curl", "-sS", "-o", "got", "http://127.0.0.1:8000/file"]);
        assert_eq!(got.code, 0, "{got:?}");
        host.run(&["sleep", "0.5"]);
    }
    let output = explained.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let found = &parse_json(&output.stdout)["explanation"];
    let connections = found["connections"].as_array().unwrap();
    let whole = connections.iter().find(|c| c["closing"] == "fin" && c["mid_stream"] == false).unwrap();
    assert_eq!((&whole["interface"], &whole["server"]), (&"lo".into(), &"127.0.0.1:8000".into()));
    let bytes = whole["to_client"]["bytes"].as_u64().unwrap();
    assert!((3_000_000..3_002_000).contains(&bytes), "the file and its header: {whole}");
    assert_eq!(whole["to_client"]["losses"]["retransmissions"], 0, "{whole}");
    let refused = host.run(&[PACELINE, "explain", "--live", "--interface", "nothing"]);
    assert!(refused.code == 2 && refused.stderr.contains("--interface nothing: "), "{refused:?}");
}

#[test]
fn bad_input_is_refused() {
    let dir = TestDir::new();
    dir.write("text.pcap", "no capture");
    dir.write(
        "empty.pcap",
        [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 10], &[1, 0, 1, 0, 0, 0]].concat(),
    );
    dir.paceline_ok(&["run", "good.toml", "--pcap", "--out", "run"]);
    for (args, part) in [
        (&["missing.pcap"][..], "missing.pcap: cannot be read"),
        (&["text.pcap"], "text.pcap: is no capture; allowed: pcap, pcapng"),
        (&["empty.pcap"], "empty.pcap: no TCP segments in 0 packets"),
        (&["run/seed-1.pcapng", "--interface", "eth7"], "allowed: servers, station-0"),
        (&["run/seed-1.pcapng", "--out", "run"], "--out run: exists and is not empty"),
        (&["run/seed-1.pcapng", "--server", "--client"], "cannot be used with"),
        (&[], "<FILE>"),
        (&["--live"], "--interface"),
        (&["--live", "--interface", "lo", "--for", "0 s"], "allowed: a time with its unit"),
    ] {
        let output = dir.paceline(&[&["explain"], args].concat());
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
}
