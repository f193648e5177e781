//! A cell of one's own: four stations of a private 5G cell, two with CUBIC and two with BBR.

use paceline_sim::{scenario, simulate};

const CELL: &str = r#"
[run]
duration = "8 s"

[cell]
rat = "nr"
bandwidth = "40 MHz"
pattern = "DDDSU"
downlink_buffer = "2 MB"

[[station]]
count = 2
downlink_sinr = ["15 dB", "25 dB"]

[station.tcp]
congestion_control = "cubic"

[[station]]
count = 2
downlink_sinr = ["15 dB", "25 dB"]

[station.tcp]
congestion_control = "bbr"
"#;

pub fn main() {
    let scenario = scenario::load("cell.toml", CELL, &[]).unwrap_or_else(|error| panic!("{error}"));
    for seed in 1..=3 {
        let run = simulate(&scenario, seed, None, &mut |_| ());
        for (group, name) in run.groups.iter().zip(["cubic", "bbr"]) {
            let figures = &group.figures;
            println!(
                "seed {seed}: {name}: {:.1} Mb/s, round trip {:.0} ms",
                figures.goodput_mbps, figures.rtt_mean_ms
            );
        }
    }
}
