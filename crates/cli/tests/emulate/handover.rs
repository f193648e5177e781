//! A station of real programs that drives from cell to cell.

use super::common::emulation::EmulationHost;
use super::common::namespace::random_bytes;
use super::{assert_good, summary};

/// Three handovers within 7 s, of a station that also drives.
const DRIVE: &str = r#"
[run]
warmup = "0 s"

[core]
hops = [{ rate = "1 Gb/s", delay = "5 ms" }]

[cell]
bandwidth = "10 MHz"
rlc = "am"

[deployment]
served_sites = 7
speed_kmh = 60.0
fading = "eva"

[handover]
trigger = "scripted"
times = ["2 s", "4 s", "6 s"]

[[station]]
direction = "none"
path = [{ x_m = -120.0, y_m = 40.0 }, { x_m = 300.0, y_m = 60.0 }]
"#;

#[test]
fn curl_stays_connected_over_handovers_and_gets_every_byte() {
    for fate in ["forward", "drop", "duplicate"] {
        let Some(host) = EmulationHost::new(&["curl", "python3"]) else { return };
        host.dir.write("file", random_bytes(8_000_000));
        let _server = host.serve_files();
        let script = "curl -sSf --limit-rate 1M -o got http://$PACELINE_HOST:8000/file";
        let set = format!("handover.fate={fate}");
        let output = host.emulate(DRIVE, &["--set", &set, "--out", "out", "--", "sh", "-c", script]);
        assert_good(&output);
        host.dir.assert_same("file", "got");
        let handovers = summary(&host, "out")["runs"][0]["handovers"].as_array().cloned().unwrap_or_default();
        println!("{fate}: {handovers:?}");
        assert!(handovers.iter().filter(|handover| handover["outcome"] == "served").count() >= 3);
        let rows = host.dir.read("out/handovers.csv");
        assert_eq!(rows.lines().count(), handovers.len() + 1);
    }
}
