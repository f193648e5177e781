//! The mobile accelerator (Liu and Lee 2011): several sweeps.

use super::plan::{Options, Reproduced, Runner, conditions, over};
use crate::grid::{Grid, axes};
use crate::scenario_file;
use paceline_sim::RunResult;
use paceline_sim::reproduce::accelerator::{Experiment, Part, parts};
use serde_json::json;

/// Settings of a quick reproduction, except for parts that set a duration in which files are completed.
const QUICK: [&str; 2] = ["run.duration=60 s", "run.warmup=5 s"];

/// Simulates the experiment.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Reproduced, R::Error> {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        runs.push(sweep_part(&part, seeds, options, runner)?);
    }
    let about = json!({
        "scenario": "accelerator-3g, accelerator-lte",
        "seeds": seeds,
        "set": options.set,
        "parts": parts().iter().map(|part| part.name).collect::<Vec<_>>(),
    });
    let rows = Experiment::new(&runs).rows();
    Ok(Reproduced { name: "accelerator", conditions: conditions(seeds, &options.set), about, rows })
}

fn sweep_part<R: Runner>(
    part: &Part,
    seeds: u64,
    options: &Options,
    runner: &mut R,
) -> Result<Vec<Vec<RunResult>>, R::Error> {
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
pub fn user_set(scenario: &str, set: &[String]) -> Vec<String> {
    let other = if scenario == "accelerator-3g" { "link.lte_early." } else { "link.hspa." };
    set.iter().filter(|set| !set.starts_with(other)).cloned().collect()
}
