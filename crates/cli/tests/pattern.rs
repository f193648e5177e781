//! `paceline pattern`: captures of simulated cells at both ends, and mistakes.

use crate::common::{TestDir, parse_json};
use std::fmt::Write;

/// A cell with one download; the path's delay is that of an edge server.
fn scenario(cell: &str) -> String {
    let mut text = String::from("[run]\nduration = \"3 s\"\nwarmup = \"1 s\"\n[core]\n");
    let _ = write!(text, "hops = [{{ rate = \"10 Gb/s\", delay = \"3 ms\" }}]\n[cell]\n{cell}\n");
    text + "[[station]]\ndownlink_sinr = \"15 dB\"\nuplink_sinr = \"12 dB\"\n"
}

/// Periods in ms at the server and at the station, 0 for none, from a capture of the cell.
fn periods(cell: &str) -> [f64; 2] {
    let dir = TestDir::new();
    dir.write("cell.toml", scenario(cell));
    dir.paceline_ok(&["run", "cell.toml", "--pcap", "--out", "out"]);
    let json = parse_json(&dir.paceline_ok(&["pattern", "out/seed-1.pcapng", "--json"]));
    let text = dir.paceline_ok(&["pattern", "out/seed-1.pcapng"]);
    assert!(text.contains("interface station-0:") && text.contains("all connections"), "{text}");
    let flows = json["flows"].as_array().unwrap();
    ["servers", "station-0"].map(|interface| {
        let all = flows.iter().find(|flow| flow["interface"] == interface && flow["from"].is_null()).unwrap();
        all["pattern"]["period_ms"].as_f64().unwrap_or(0.0)
    })
}

/// The station's side shows the pattern; the server's side shows the pattern or the period of scheduling
/// requests, a multiple of it.
#[test]
fn captures_of_tdd_cells_show_their_periods_and_fdd_shows_none() {
    let nr = |pattern| {
        format!(
            "rat = \"nr\"\nbandwidth = \"20 MHz\"\nsubcarrier_spacing = \"30 kHz\"\npattern = \"{pattern}\""
        )
    };
    let lte = "duplex = \"tdd\"\ntdd_configuration = 1";
    for (cell, period) in [(nr("DDDSU"), 2.5), (nr("DDDDDDDSUU 6:4:4"), 5.0), (lte.into(), 5.0)] {
        let [server, station] = periods(&cell);
        assert!(station == period && server > 0.0 && server % period == 0.0, "{cell}: {server} {station}");
    }
    // At the server the ACKs have the period of the uplink's grants.
    assert_eq!(periods("rat = \"lte\"")[1], 0.0);
}

#[test]
fn files_that_are_no_captures_of_tcp_are_refused() {
    let dir = TestDir::new();
    // A pcap file of Ethernet without packets.
    let mut empty = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    empty.extend([0; 8]);
    empty.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    dir.write("empty.pcap", &empty);
    dir.write("cut.pcap", &empty[..20]);
    for (file, part) in [
        ("good.toml", "good.toml: is no capture; allowed: pcap, pcapng"),
        ("missing.pcap", "missing.pcap: cannot be read"),
        ("empty.pcap", "empty.pcap: has no TCP segments"),
        ("cut.pcap", "cut.pcap: damaged capture"),
    ] {
        let output = dir.paceline(&["pattern", file]);
        assert!(output.code == 2 && output.stderr.contains(part), "{file}: {output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
}
