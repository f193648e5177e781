//! `paceline reproduce accelerator`: the mobile accelerator (Liu and Lee 2011). Several sweeps, each in its
//! own folder, and runs with one seed for pictures over time.

use super::options::Options;
use super::outcome::{conditions, finish};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::results_folder::ResultsFolder;
use crate::scenario_file;
use crate::sweep::{self, Grid};
use paceline_sim::reproduce::accelerator::{Experiment, Part, parts};
use paceline_sim::{RunResult, Summary, simulate};
use serde_json::json;
use std::process::ExitCode;

/// Settings of `--quick`, except for parts that set a duration in which files are completed.
const QUICK: [&str; 2] = ["run.duration=60 s", "run.warmup=5 s"];
/// Folder, scenario and settings of the runs for pictures over time. Chosen: both channels of the paper,
/// without and with the accelerator.
const OVER_TIME: [(&str, &str, &[&str]); 5] = [
    ("time-3g-direct", "accelerator-3g", &["tcp.receive_buffer=64 KiB"]),
    ("time-3g-accelerated", "accelerator-3g", &["core.path=accelerator"]),
    ("time-lte-direct", "accelerator-lte", &[]),
    ("time-lte-accelerated", "accelerator-lte", &["core.path=accelerator"]),
    ("time-lte-adaptive", "accelerator-lte", &["core.path=accelerator", "accelerator.profile=adaptive"]),
];

pub fn run(options: &Options) -> Outcome {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        runs.push(sweep_part(&part, seeds, options)?);
    }
    for (name, scenario, set) in OVER_TIME {
        over_time(name, scenario, set, options)?;
    }
    let rows = Experiment::new(&runs).rows();
    let about = json!({
        "scenario": "accelerator-3g, accelerator-lte",
        "seeds": seeds,
        "set": options.set,
        "parts": parts().iter().map(|part| part.name).collect::<Vec<_>>(),
        "over_time": OVER_TIME.map(|(name, ..)| name),
    });
    finish("accelerator", &conditions(seeds, &options.set), about, &rows, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}

fn sweep_part(part: &Part, seeds: u64, options: &Options) -> Outcome<Vec<Vec<RunResult>>> {
    let (name, text) = scenario_file::built_in(part.scenario);
    let sets_duration = part.set.iter().any(|set| set.starts_with("run.duration"));
    let quick: &[&str] = if options.quick && !sets_duration { &QUICK } else { &[] };
    let mut set: Vec<String> =
        part.set.iter().cloned().chain(quick.iter().map(|s| (*s).to_owned())).collect();
    set.extend(user_set(part.scenario, options));
    let over: Vec<String> =
        part.over.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect();
    let grid = Grid::new(name.clone(), &name, text, &set, sweep::axes(&over)?)?;
    Ok(sweep::run(&grid, seeds, options.jobs, &options.out.join(part.name))?.runs)
}

/// The user's settings, without keys of the other channel, which the scenario does not have.
fn user_set(scenario: &str, options: &Options) -> Vec<String> {
    let other = if scenario == "accelerator-3g" { "link.lte_early." } else { "link.hspa." };
    options.set.iter().filter(|set| !set.starts_with(other)).cloned().collect()
}

fn over_time(name: &str, scenario: &str, set: &[&str], options: &Options) -> Outcome<()> {
    let folder = options.out.join(name);
    if folder.join("summary.json").exists() {
        return Ok(()); // finished before an interruption
    }
    let (_, text) = scenario_file::built_in(scenario);
    let shown = ["run.duration=30 s", "run.warmup=5 s"];
    let mut set: Vec<String> = shown.iter().chain(set).map(|set| (*set).to_owned()).collect();
    set.extend(user_set(scenario, options));
    let resolved = scenario_file::parse(scenario, text, &set).map_err(|e| Failure::Input(e.into()))?;
    let folder = ResultsFolder::create(&folder)?;
    let result = simulate(&resolved, resolved.run.seed, None, &mut |_| {});
    let summary = Summary::new(output::origin(), scenario, "simulated", &resolved, vec![result]);
    Ok(folder.finish(&resolved, &summary)?)
}
