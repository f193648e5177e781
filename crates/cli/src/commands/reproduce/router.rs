//! `paceline reproduce router`: ACK rate control in front of a router (Pavilanskas and Statkus 2010). Every
//! part has a folder of its own.

use super::options::Options;
use super::outcome::{conditions, finish};
use crate::failure::Outcome;
use crate::output;
use crate::sweep::{self, Grid};
use paceline_sim::reproduce::router::{Experiment, parts};
use serde_json::json;
use std::process::ExitCode;

/// Length of the runs of `--quick`, except for those of the first 3 s.
const QUICK: &str = "run.duration=4 s";

pub fn run(options: &Options) -> Outcome {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        let quick = (options.quick && !part.name.starts_with("start")).then(|| QUICK.to_owned());
        let set: Vec<String> = quick.into_iter().chain(options.set.clone()).collect();
        let grid = Grid::new(part.name.clone(), "router.toml", &part.scenario, &set, Vec::new())?;
        let mut own =
            sweep::run(&grid, seeds, options.jobs, &options.out.join("runs").join(&part.name))?.runs;
        runs.push((part.name, own.remove(0)));
    }
    let experiment =
        Experiment { parts: runs.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect() };
    let about = json!({ "scenario": "router", "seeds": seeds, "set": options.set });
    finish("router", &conditions(seeds, &options.set), about, &experiment.rows(), Some(&options.out))?;
    output::print("Where privileged, `make police-router` measures the same rows with the kernel's TCP.\n")?;
    Ok(ExitCode::SUCCESS)
}
