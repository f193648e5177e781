//! ACK filtering in the uplink buffer (Ohta et al., IEEE CSCN 2018).

use super::plan::{Options, Reproduced, Runner, conditions};
use crate::grid::{Grid, axes};
use crate::scenario_file;
use paceline_sim::reproduce::ack_filter::{Experiment, Network, SCHEMES, STATIONS};
use serde_json::json;

const SCENARIO: &str = "ack-filter-paper";
/// Settings of a quick reproduction. Chosen for a first look within minutes; the results list them under
/// `set`.
const QUICK: [&str; 2] = ["run.duration=10 s", "run.warmup=4 s"];

/// Simulates the experiment.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Reproduced, R::Error> {
    let (name, text) = scenario_file::built_in(SCENARIO);
    let quick: &[&str] = if options.quick { &QUICK } else { &[] };
    let set: Vec<String> = quick.iter().map(|set| (*set).to_owned()).chain(options.set.clone()).collect();
    let stations: Vec<String> = STATIONS.iter().map(u64::to_string).collect();
    let over =
        [format!("ack_filter.scheme={}", SCHEMES.join(",")), format!("station.count={}", stations.join(","))];
    let grid = Grid::new(name.clone(), &name, text, &set, axes(&over)?)?;
    let seeds = options.seeds();
    let runs = runner.sweep("", &grid, seeds)?;
    let rows = Experiment::new(Network::of(&grid.points[0].scenario), &runs).rows();
    let about = json!({"scenario": name, "seeds": seeds, "set": set});
    Ok(Reproduced { name: "ack-filter", conditions: conditions(seeds, &set), about, rows })
}
