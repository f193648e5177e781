//! A scheduler of one's own: the station that was served least comes first, so that all get the same rate
//! whatever their radio, beside proportional fair.

use paceline_ran::{Candidate, Policy, Priority, Slot};
use paceline_sim::{Run, scenario};

const CELL: &str = r#"
[run]
duration = "8 s"
warmup = "1 s"

[cell]
bandwidth = "10 MHz"
scheduler = "proportional-fair"

[[station]]
count = 6
downlink_sinr = ["0 dB", "25 dB"]
"#;

fn served_least(_slot: Slot, candidate: &Candidate) -> f64 {
    -candidate.served_bits
}

pub fn main() {
    let scenario = scenario::load("cell.toml", CELL, &[]).unwrap_or_else(|error| panic!("{error}"));
    for (name, policy) in
        [("proportional fair", None), ("equal rates", Some(Policy::Own(Priority(served_least))))]
    {
        let mut run = Run::new(&scenario, 1, None);
        if let Some(policy) = policy {
            assert!(run.schedule_by(policy), "the scenario has a cell");
        }
        while !run.is_over() {
            run.step();
        }
        let totals = run.finish().totals;
        println!("{name}: {:.1} Mb/s, Jain's index {:.2}", totals.goodput_mbps, totals.jain_index);
    }
}
