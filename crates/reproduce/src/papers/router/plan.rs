//! ACK rate control in front of a router (Pavilanskas and Statkus 2010). Every part is a sweep of one point.

use super::plan::{Options, Reproduced, Runner, conditions};
use crate::grid::Grid;
use paceline_sim::reproduce::router::{Experiment, parts};
use serde_json::json;

/// Length of the runs of a quick reproduction, except for those of the first 3 s.
const QUICK: &str = "run.duration=4 s";

/// Simulates the experiment.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Reproduced, R::Error> {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        let quick = (options.quick && !part.name.starts_with("start")).then(|| QUICK.to_owned());
        let set: Vec<String> = quick.into_iter().chain(options.set.clone()).collect();
        let grid = Grid::new(part.name.clone(), "router.toml", &part.scenario, &set, Vec::new())?;
        let mut own = runner.sweep(&format!("runs/{}", part.name), &grid, seeds)?;
        runs.push((part.name, own.remove(0)));
    }
    let experiment =
        Experiment { parts: runs.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect() };
    let about = json!({ "scenario": "router", "seeds": seeds, "set": options.set });
    let (conditions, rows) = (conditions(seeds, &options.set), experiment.rows());
    Ok(Reproduced { name: "router", conditions, about, rows })
}
