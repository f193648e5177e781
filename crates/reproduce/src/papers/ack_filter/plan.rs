//! One sweep over schemes and numbers of stations.

use super::experiment::{Experiment, SCHEMES, STATIONS};
use super::network::Network;
use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions};
use paceline_study::grid::{Grid, axes};
use paceline_study::scenario_file;
use serde_json::json;

/// The experiment.
pub static PAPER: Paper = Paper {
    name: "ack-filter",
    about: "ACK filtering in the uplink buffer (IEEE CSCN 2018): four schemes, 10 to 60 stations",
    inputs: Inputs::Sweeps,
    counts: SEEDS,
    part_tables: false,
    plan,
};

const SCENARIO: &str = "ack-filter-paper";
/// Settings of a quick reproduction. Chosen for a first look within minutes; the results list them under
/// `set`.
const QUICK: [&str; 2] = ["run.duration=10 s", "run.warmup=4 s"];

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let (name, text) = scenario_file::built_in(SCENARIO);
    let quick: &[&str] = if options.quick { &QUICK } else { &[] };
    let set: Vec<String> = quick.iter().map(|set| (*set).to_owned()).chain(options.set.clone()).collect();
    let stations: Vec<String> = STATIONS.iter().map(u64::to_string).collect();
    let over =
        [format!("ack_filter.scheme={}", SCHEMES.join(",")), format!("station.count={}", stations.join(","))];
    let grid = Grid::new(name.clone(), &name, text, &set, axes(&over)?)?;
    let seeds = PAPER.seeds(options);
    let runs = runner.sweep("", &grid, seeds)?;
    let rows = Experiment::new(Network::of(&grid.points[0].scenario), &runs).rows();
    let about = json!({"scenario": name, "seeds": seeds, "set": set});
    Ok(Reproduced { conditions: conditions(seeds, &set), about, rows })
}
