//! `paceline cell show`: text, JSON and picture of a cell's configuration.

use crate::common::{TestDir, has_program, parse_json};
use insta::assert_snapshot;
use std::io::Write;
use std::process::Command;

#[test]
fn a_cell_is_shown_as_text_json_and_picture() {
    let dir = TestDir::new();
    let text = dir.paceline_ok(&["cell", "show", "single-station", "--svg", "slots.svg"]);
    assert_snapshot!("lte", text);
    let picture = dir.read("slots.svg");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture}");
    let json = parse_json(&dir.paceline_ok(&["cell", "show", "single-station", "--json"]));
    assert_eq!(json["rat"], "lte");
    assert_eq!(json["slots"][0]["k1"], 4);
    assert_eq!(json["latency"]["downlink"]["mean_ms"], 6.5); // with the 3 subframes of cell.gnb
}

#[test]
fn a_scenario_without_a_cell_and_a_bad_file_name_are_refused() {
    let dir = TestDir::new();
    for (args, part) in [
        (&["cell", "show", "accelerator-3g"][..], "has a [link] and no cell"),
        (&["cell", "show", "single-station", "--svg", "."], "--svg .: is a folder"),
        (&["cell", "show", "single-staton"], "did you mean single-station"),
    ] {
        let output = dir.paceline(args);
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
}

#[test]
fn a_cell_of_nr_is_shown_and_runs() {
    let dir = TestDir::new();
    let cell = "[cell]\nrat = \"nr\"\nbandwidth = \"100 MHz\"\npattern = \"DDDSU\"\n[[station]]\n";
    dir.write("nr.toml", cell);
    let text = dir.paceline_ok(&["cell", "show", "nr.toml", "--svg", "nr.svg"]);
    assert_snapshot!("nr", text);
    assert!(dir.read("nr.svg").matches("class=\"l thin l3\"").count() == 4, "four acknowledgments");
    let run = ["run", "nr.toml", "--set", "run.duration=90 ms", "--set", "station.start_spread=0 s"];
    let run = parse_json(&dir.paceline_ok(&[&run[..], &["--set", "run.warmup=40 ms", "--json"]].concat()));
    assert!(run["mean"]["goodput_mbps"].as_f64().unwrap() > 1.0, "{run}");
}

/// Needs `tshark`; without it the test says so and ends.
#[test]
fn wireshark_dissects_the_blocks_of_a_capture_without_a_malformed_frame() {
    if !has_program("tshark") {
        let _ = writeln!(std::io::stderr(), "skipped: no tshark on this host");
        return;
    }
    let dir = TestDir::new();
    for (mode, bearer) in [("um", "UM, SN Len=12"), ("am", "AM, SN Len=18")] {
        let rlc = format!("cell.rlc={mode}");
        let sets = [
            &rlc[..],
            "station.count=2",
            "station.downlink_sinr=45 dB",
            "station.start_spread=0 s",
            "run.duration=200 ms",
            "run.warmup=50 ms",
        ];
        let run = ["run", "private-5g", "--pcap", "--out", mode].into_iter();
        dir.paceline_ok(&run.chain(sets.iter().flat_map(|set| ["--set", *set])).collect::<Vec<_>>());
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(dir.join(&format!("{mode}/seed-1.pcapng")));
        tshark.args(["--enable-heuristic", "mac_nr_udp", "-T", "fields"]);
        for option in [
            format!("uat:drb_bearerconfig:\"LCID 4\",\"1\",\"{bearer}\",\"{bearer}\""),
            "rlc-nr.call_pdcp_for_ul_drb:18-bit SN".into(),
            "rlc-nr.call_pdcp_for_dl_drb:18-bit SN".into(),
        ] {
            tshark.args(["-o", &option]);
        }
        for field in ["frame.interface_name", "frame.protocols", "frame.len", "_ws.malformed", "_ws.expert"] {
            tshark.args(["-e", field]);
        }
        let output = tshark.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("bug"), "{mode}: {errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        let frames: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        for frame in &frames {
            assert!(!frame[3..].iter().any(|field| field.contains("alformed")), "{mode}: {frame:?}");
        }
        let radio = frames.iter().filter(|frame| frame[0] == "radio (MAC-NR)");
        let (mut blocks, mut parts) = (0, 0);
        for frame in radio {
            assert!(frame[1].starts_with("raw:ip:udp:mac-nr"), "{mode}: {frame:?}");
            blocks += 1;
            parts += usize::from(frame[2].parse::<usize>().unwrap() > 31_000);
        }
        let with_tcp = frames.iter().filter(|frame| frame[1].contains("mac-nr:rlc-nr:pdcp-nr:ip:tcp"));
        assert!(with_tcp.count() > 50 && blocks > 100, "{mode}: {blocks} datagrams");
        assert!(parts > 5, "{mode}: no block was longer than a datagram");
        assert!(frames.iter().any(|frame| frame[0] == "station-1"), "{mode}");
    }
}
