//! `paceline explain` beside Wireshark's analysis of the same captures, by
//! `scripts/measure/explain_tshark.py`. Needs `tshark`; without it the test says so and ends.

use crate::common::{PACELINE, TestDir, has_program, run};
use std::io::Write as _;
use std::process::Command;

/// Keys of the link and of the station.
const SCENARIOS: [(&str, &str); 5] = [
    ("loss_percent = 2", ""),
    ("queue = \"20 kB\"", ""),
    ("queue = \"300 kB\"", "[station.tcp]\ncongestion_control = \"newreno\""),
    ("burst_loss_percent = 5\nburst_packets = 20", ""),
    ("loss_percent = 1", "[station.tcp]\ntimestamps = false"),
];

#[test]
fn retransmissions_and_round_trips_are_those_of_wireshark() {
    if !has_program("tshark") {
        let _ = writeln!(std::io::stderr(), "skipped: no tshark on this host");
        return;
    }
    let dir = TestDir::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/measure/explain_tshark.py");
    let mut compare = Command::new("python3");
    compare.current_dir(dir.path()).args([script, PACELINE]);
    for (index, (link, station)) in SCENARIOS.into_iter().enumerate() {
        let (scenario, out) = (format!("{index}.toml"), format!("out{index}"));
        dir.write(
            &scenario,
            format!(
                "[run]\nduration = \"4 s\"\nwarmup = \"0 s\"\n[link]\n{link}\n[link.fixed]\ndownlink_rate = \
                 \"10 Mb/s\"\n[[station]]\ncount = 1\n{station}\n"
            ),
        );
        dir.paceline_ok(&["run", &scenario, "--pcap", "--out", &out]);
        for interface in ["servers", "station-0"] {
            // Wireshark takes the copies of a packet at two points for repetitions.
            let file = format!("{out}/{interface}.pcapng");
            let filter = format!("frame.interface_name == \"{interface}\"");
            let mut split = Command::new("tshark");
            split.current_dir(dir.path()).args(["-r", &format!("{out}/seed-1.pcapng"), "-Y", &filter]);
            assert_eq!(run(split.args(["-w", &file])).code, 0);
            compare.arg(file);
        }
    }
    let output = run(&mut compare);
    assert_eq!(output.code, 0, "{}\n{}", output.stdout, output.stderr);
    assert!(output.stdout.lines().all(|line| line.contains(": sent again ")), "{}", output.stdout);
    let counted = output.stdout.lines().filter(|line| !line.contains("sent again 0 ")).count();
    assert!(counted == 2 * SCENARIOS.len(), "every capture has losses: {}", output.stdout);
}
