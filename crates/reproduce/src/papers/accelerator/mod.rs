//! K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP Performance in Mobile Data
//! Networks" (2011): the probes' tables and the published quantities 2a to 2g from runs on the two channels
//! that the probes calibrated.
//!
//! A row holds if our figures agree with the published ones in the way that the row states: within a
//! tolerance, in order, or by a share. Accelerated rows exist for the published rate control and for the
//! adaptive one. Data moves from `parts` (the runs to make, and the published values) through the
//! runs to `rows`.

mod parts;
mod rows;

use crate::plan::{
    Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, grid, scenario, strings,
};
use parts::parts;
use rows::Experiment;
use serde_json::json;

/// The experiment.
pub static PAPER: Paper = Paper {
    name: "accelerator",
    about: "The mobile accelerator (2011): probes of two mobile channels, and TCP on them with and without it",
    inputs: Inputs::Sweeps,
    counts: SEEDS,
    part_tables: true,
    plan,
};

/// Settings of a quick reproduction, except for parts that set a duration in which files are completed.
const QUICK: [&str; 2] = ["run.duration=60 s", "run.warmup=5 s"];
/// Folder, scenario and settings of the runs for pictures over time. Chosen: both channels of the paper,
/// without and with the accelerator.
const OVER_TIME: [(&str, &str, &[&str]); 5] = [
    ("time-3g-direct", "accelerator-3g", &["tcp.receive_buffer=64 KiB"]),
    ("time-3g-accelerated", "accelerator-3g", &["core.proxy=accelerator"]),
    ("time-lte-direct", "accelerator-lte", &[]),
    ("time-lte-accelerated", "accelerator-lte", &["core.proxy=accelerator"]),
    ("time-lte-adaptive", "accelerator-lte", &["core.proxy=accelerator", "accelerator.profile=adaptive"]),
];

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let seeds = PAPER.seeds(options);
    let mut runs = Vec::new();
    for part in parts() {
        let sets_duration = part.set.iter().any(|set| set.starts_with("run.duration"));
        let quick = if options.quick && !sets_duration { strings(&QUICK) } else { Vec::new() };
        let set = [part.set, quick, user_set(part.scenario, &options.set)].concat();
        runs.push(runner.sweep(&part.name, &grid(part.scenario, &set, &part.over)?, seeds)?);
    }
    if let Some(folder) = runner.folder() {
        for (name, own, set) in OVER_TIME {
            let shown = strings(&["run.duration=30 s", "run.warmup=5 s"]);
            let set = [shown, strings(set), user_set(own, &options.set)].concat();
            folder.run(name, own, &scenario(own, &set)?)?;
        }
    }
    let about = json!({
        "scenario": "accelerator-3g, accelerator-lte",
        "seeds": seeds,
        "set": options.set,
        "parts": parts().into_iter().map(|part| part.name).collect::<Vec<_>>(),
        "over_time": OVER_TIME.map(|(name, ..)| name),
    });
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: Experiment::new(&runs).rows() })
}

/// The user's settings, without keys of the other channel, which the scenario does not have.
fn user_set(scenario: &str, set: &[String]) -> Vec<String> {
    let other = if scenario == "accelerator-3g" { "link.lte_early." } else { "link.hspa." };
    set.iter().filter(|set| !set.starts_with(other)).cloned().collect()
}
