//! A sweep of one point for each part, and the settings that the host measures.

use super::measured::{Measured, settings};
use super::parts::parts;
use super::pictures;
use super::rows::Experiment;
use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions};
use paceline_study::grid::Grid;
use serde_json::json;

/// The experiment.
pub static PAPER: Paper = Paper {
    name: "router",
    about: "ACK rate control in front of a router (2010): rates, collapse, router's load, shares; also measured",
    inputs: Inputs::Measured,
    counts: SEEDS,
    part_tables: false,
    plan,
};

/// Length of the runs of a quick reproduction, except for those of the first 3 s.
const QUICK: &str = "run.duration=4 s";

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let mut reproduced = if options.only_measure {
        let about = json!({ "scenario": "router", "seeds": 0, "set": [] });
        Reproduced { conditions: String::from("measured"), about, rows: Vec::new() }
    } else {
        simulate(options, runner)?
    };
    if let Some(all) = runner.measure(&settings(options.quick))? {
        let measured = Measured(&all);
        if let Some(folder) = runner.folder() {
            for (name, picture) in pictures::measured(&measured) {
                folder.write(&name, &picture)?;
            }
        }
        reproduced.rows.extend(measured.rows());
    }
    Ok(reproduced)
}

fn simulate(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let seeds = PAPER.seeds(options);
    let mut runs = Vec::new();
    for part in parts() {
        let quick = (options.quick && !part.name.starts_with("start")).then(|| QUICK.to_owned());
        let set: Vec<String> = quick.into_iter().chain(options.set.clone()).collect();
        let grid = Grid::new(part.name.clone(), "router.toml", &part.scenario, &set, Vec::new())?;
        let mut own = runner.sweep(&format!("runs/{}", part.name), &grid, seeds)?;
        runs.push((part.name, own.remove(0)));
    }
    if let Some(folder) = runner.folder() {
        folder.write("rates.svg", &pictures::simulated(&options.set)?)?;
    }
    let experiment =
        Experiment { parts: runs.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect() };
    let about = json!({ "scenario": "router", "seeds": seeds, "set": options.set });
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: experiment.rows() })
}
