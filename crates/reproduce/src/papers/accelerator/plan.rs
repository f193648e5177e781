//! Several sweeps, and runs with one seed for pictures over time.

use super::parts::{Part, parts};
use super::rows::Experiment;
use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, over};
use paceline_sim::RunResult;
use paceline_study::grid::{Grid, axes};
use paceline_study::{InputError, scenario_file};
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
        runs.push(sweep_part(&part, seeds, options, runner)?);
    }
    if let Some(folder) = runner.folder() {
        for (name, scenario, set) in OVER_TIME {
            let set: Vec<String> = ["run.duration=30 s", "run.warmup=5 s"]
                .iter()
                .chain(set)
                .map(|set| (*set).to_owned())
                .collect();
            let (_, text) = scenario_file::built_in(scenario);
            let set = [set, user_set(scenario, &options.set)].concat();
            let resolved = scenario_file::parse(scenario, text, &set).map_err(InputError::from)?;
            folder.run(name, scenario, &resolved)?;
        }
    }
    let about = json!({
        "scenario": "accelerator-3g, accelerator-lte",
        "seeds": seeds,
        "set": options.set,
        "parts": parts().iter().map(|part| part.name).collect::<Vec<_>>(),
        "over_time": OVER_TIME.map(|(name, ..)| name),
    });
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: Experiment::new(&runs).rows() })
}

fn sweep_part(
    part: &Part,
    seeds: u64,
    options: &Options,
    runner: &mut dyn Runner,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let (name, text) = scenario_file::built_in(part.scenario);
    let sets_duration = part.set.iter().any(|set| set.starts_with("run.duration"));
    let quick: &[&str] = if options.quick && !sets_duration { &QUICK } else { &[] };
    let mut set: Vec<String> =
        part.set.iter().cloned().chain(quick.iter().map(|s| (*s).to_owned())).collect();
    set.extend(user_set(part.scenario, &options.set));
    let grid = Grid::new(name.clone(), &name, text, &set, axes(&over(&part.over))?)?;
    runner.sweep(part.name, &grid, seeds)
}

/// The user's settings, without keys of the other channel, which the scenario does not have.
fn user_set(scenario: &str, set: &[String]) -> Vec<String> {
    let other = if scenario == "accelerator-3g" { "link.lte_early." } else { "link.hspa." };
    set.iter().filter(|set| !set.starts_with(other)).cloned().collect()
}
