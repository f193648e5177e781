//! `paceline fit`: its output, its files, and bad input.

use crate::common::{TestDir, parse_json};

#[test]
fn a_capture_becomes_a_scenario_a_page_and_json() {
    let dir = TestDir::new();
    dir.paceline_ok(&["run", "good.toml", "--pcap", "--out", "run"]);
    let text = dir.paceline_ok(&["fit", "run/seed-1.pcapng", "--interface", "servers"]);
    assert!(text.contains("base round trip") && text.contains("Not known:"), "{text}");
    let printed = dir.paceline_ok(&["fit", "run/seed-1.pcapng", "--json", "--out", "a/b"]);
    assert_eq!(printed, dir.read("a/b/fit.json"));
    let json = parse_json(&printed);
    assert!(json["fit"]["base_rtt_ms"]["value"].is_number(), "{printed}");
    assert_eq!(json["scenario"], dir.read("a/b/scenario.toml"));
    dir.paceline_ok(&["check", "a/b/scenario.toml"]);
    let page = dir.read("a/b/page.html");
    assert!(page.contains("Distribution of the round trip") && page.contains("simulated"), "{}", page.len());
    assert!(!page.contains("<script"));
    assert_eq!(dir.paceline_ok(&["fit", "run/seed-1.pcapng", "--json"]), printed, "equal input, equal bytes");

    // Packed, and cut in the middle.
    let whole = std::fs::read(dir.join("run/seed-1.pcapng")).unwrap();
    dir.write("cut.pcapng", &whole[..whole.len() / 2 + 3]);
    let cut = dir.paceline_ok(&["fit", "cut.pcapng"]);
    assert!(cut.contains("cut.pcapng: damaged capture"), "{cut}");
    dir.shell("gzip -k run/seed-1.pcapng && printf '64 bytes from a: seq=1 time=3 ms\\n' | gzip > ping.gz");
    let both = dir.paceline_ok(&["fit", "run/seed-1.pcapng.gz", "ping.gz"]);
    assert!(both.contains("ping.gz: ping: 1 answers of 1 pings"), "{both}");
}

#[test]
fn bad_input_is_refused() {
    let dir = TestDir::new();
    dir.write("text.txt", "no numbers here\n");
    dir.write("none.json", "{\"ue_list\": []}");
    dir.paceline_ok(&["run", "good.toml", "--pcap", "--out", "run"]);
    for (args, part) in [
        (&["missing.pcap"][..], "missing.pcap: cannot be read"),
        (&["text.txt"], "text.txt: "),
        (&["none.json"], "none.json: srsRAN: no UE"),
        (&["text.txt", "--as", "capture"], "text.txt: is no capture; allowed: pcap, pcapng"),
        (&["text.txt", "--as", "pcap"], "allowed: capture, ping, iperf3, srsran, oai, radio, trace"),
        (&["run/seed-1.pcapng", "--interface", "eth7"], "allowed: servers, station-0"),
        (&["run/seed-1.pcapng", "--out", "run"], "--out run: exists and is not empty"),
        (&[], "<FILE>"),
    ] {
        let output = dir.paceline(&[&["fit"], args].concat());
        assert!(output.code == 2 && output.stderr.contains(part), "{args:?}: {output:?}");
    }
}
