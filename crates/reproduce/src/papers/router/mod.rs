//! ACK rate control in front of a router: L. Pavilanskas, A. Statkus, "TCP acknowledgment mechanism's
//! influence on router performance" (Elektronika ir Elektrotechnika 7(103), 2010).
//!
//! `parts` has the path and the settings of the simulated runs, `rows` sets their figures beside the
//! published ones, and `measured` does both for runs with the kernel's TCP and forwarding.

pub mod measured;
mod parts;
mod pictures;
mod rows;

use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, strings};
use measured::{Measured, settings};
use paceline_study::grid::Grid;
use parts::parts;
use rows::Experiment;
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
        let quick = options.quick && !part.name.starts_with("start");
        let set = [strings(if quick { &[QUICK] } else { &[] }), options.set.clone()].concat();
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
