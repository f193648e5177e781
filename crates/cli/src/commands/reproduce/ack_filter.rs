//! `paceline reproduce ack-filter`: ACK filtering in the uplink buffer (Ohta et al., IEEE CSCN 2018).

use super::options::Options;
use super::outcome::{conditions, finish};
use crate::failure::Outcome;
use crate::scenario_file;
use crate::sweep::{self, Grid};
use paceline_sim::reproduce::ack_filter::{Experiment, Network, SCHEMES, STATIONS};
use serde_json::json;
use std::process::ExitCode;

const SCENARIO: &str = "ack-filter-paper";
/// Settings of `--quick`. Chosen for a first look within minutes; the results list them under `set`.
const QUICK: [&str; 2] = ["run.duration=10 s", "run.warmup=4 s"];

pub fn run(options: &Options) -> Outcome {
    let (name, text) = scenario_file::built_in(SCENARIO);
    let quick: &[&str] = if options.quick { &QUICK } else { &[] };
    let set: Vec<String> = quick.iter().map(|set| (*set).to_owned()).chain(options.set.clone()).collect();
    let stations: Vec<String> = STATIONS.iter().map(u64::to_string).collect();
    let over =
        [format!("ack_filter.scheme={}", SCHEMES.join(",")), format!("station.count={}", stations.join(","))];
    let grid = Grid::new(name.clone(), &name, text, &set, sweep::axes(&over)?)?;
    let seeds = options.seeds();
    let runs = sweep::run(&grid, seeds, options.jobs, &options.out)?.runs;
    let rows = Experiment::new(Network::of(&grid.points[0].scenario), &runs).rows();
    let about = json!({"scenario": name, "seeds": seeds, "set": set});
    finish("ack-filter", &conditions(seeds, &set), about, &rows, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}
