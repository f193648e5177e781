//! `paceline reproduce accelerator`: the mobile accelerator (Liu and Lee 2011). Several sweeps, each in its
//! own folder, and runs with one seed for pictures over time.

use super::options::Options;
use super::outcome::finish;
use crate::failure::Outcome;
use crate::results_folder::ResultsFolder;
use paceline_sim::{Summary, simulate};
use paceline_study::reproduce::accelerator::{self, user_set};
use paceline_study::scenario_file;
use serde_json::json;
use std::process::ExitCode;

/// Folder, scenario and settings of the runs for pictures over time. Chosen: both channels of the paper,
/// without and with the accelerator.
const OVER_TIME: [(&str, &str, &[&str]); 5] = [
    ("time-3g-direct", "accelerator-3g", &["tcp.receive_buffer=64 KiB"]),
    ("time-3g-accelerated", "accelerator-3g", &["core.proxy=accelerator"]),
    ("time-lte-direct", "accelerator-lte", &[]),
    ("time-lte-accelerated", "accelerator-lte", &["core.proxy=accelerator"]),
    ("time-lte-adaptive", "accelerator-lte", &["core.proxy=accelerator", "accelerator.profile=adaptive"]),
];

pub fn run(options: &Options) -> Outcome {
    let mut reproduced = accelerator::run(&options.plan(), &mut options.folders())?;
    for (name, scenario, set) in OVER_TIME {
        over_time(name, scenario, set, options)?;
    }
    reproduced.about["over_time"] = json!(OVER_TIME.map(|(name, ..)| name));
    finish(&reproduced, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}

fn over_time(name: &str, scenario: &str, set: &[&str], options: &Options) -> Outcome<()> {
    let folder = options.out.join(name);
    if folder.join("summary.json").exists() {
        return Ok(()); // finished before an interruption
    }
    let (_, text) = scenario_file::built_in(scenario);
    let shown = ["run.duration=30 s", "run.warmup=5 s"];
    let mut set: Vec<String> = shown.iter().chain(set).map(|set| (*set).to_owned()).collect();
    set.extend(user_set(scenario, &options.set));
    let resolved = scenario_file::parse(scenario, text, &set)?;
    let folder = ResultsFolder::create(&folder)?;
    let result = simulate(&resolved, resolved.run.seed, None, &mut |_| {});
    let summary = Summary::new(paceline_study::origin(), scenario, "simulated", &resolved, vec![result]);
    Ok(folder.finish(&resolved, &summary)?)
}
