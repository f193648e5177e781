//! Y. Ohta et al., "Controlling TCP ACK Transmission", IEEE CSCN 2018: the published quantities 1a to 1i from
//! runs of four schemes with 10 to 60 stations.
//!
//! Ratios are computed per seed, where both schemes have the same stations in the same places, and then
//! averaged. A row holds if our means have the published direction. Data moves from the runs through
//! `experiment` (comparisons between them) to `rows`; `facts` words the explanations from counters and the
//! capacities in `network`.

mod experiment;
mod facts;
mod network;
mod rows;
#[cfg(test)]
mod tests;

use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, grid, strings};
use experiment::{Experiment, SCHEMES, STATIONS};
use network::Network;
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
    let quick = if options.quick { strings(&QUICK) } else { Vec::new() };
    let set = [quick, options.set.clone()].concat();
    let stations = STATIONS.iter().map(u64::to_string).collect();
    let over = [("ack_filter.scheme", strings(&SCHEMES)), ("station.count", stations)];
    let grid = grid(SCENARIO, &set, &over)?;
    let seeds = PAPER.seeds(options);
    let runs = runner.sweep("", &grid, seeds)?;
    let rows = Experiment::new(Network::of(&grid.points[0].scenario), &runs).rows();
    let about = json!({"scenario": SCENARIO, "seeds": seeds, "set": set});
    Ok(Reproduced { conditions: conditions(seeds, &set), about, rows })
}
