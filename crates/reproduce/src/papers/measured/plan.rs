//! Single runs of each cell.

use super::Experiment;
use super::parts::{PARTS, Part};
use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions};
use paceline_sim::{Scenario, scenario};
use paceline_study::InputError;
use serde_json::json;
use std::collections::BTreeMap;

/// The experiment. Chosen: the intervals of the means of five runs are a hundredth of the spreads.
pub static PAPER: Paper = Paper {
    name: "measured",
    about: "Measured cells: throughputs and latencies of real networks beside ours",
    inputs: Inputs::Runs,
    counts: (5, SEEDS.1),
    part_tables: false,
    plan,
};

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let seeds = PAPER.seeds(options);
    let mut parts = BTreeMap::new();
    for part in PARTS {
        let scenario = load(&part, options)?;
        let mut runs = Vec::new();
        for seed in 0..seeds {
            runner.check()?;
            runs.push(runner.simulate(&scenario, scenario.run.seed + seed)?);
        }
        parts.insert(part.name, (scenario, runs));
    }
    let about = json!({"seeds": seeds, "set": options.set});
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: Experiment { parts }.rows() })
}

fn load(part: &Part, options: &Options) -> Result<Scenario, InputError> {
    let set = part.set.iter().map(|set| (*set).to_owned()).chain(options.set.iter().cloned());
    let set: Vec<String> = set.collect();
    scenario::load(part.name, part.text, &set).map_err(|error| InputError::text(error.to_string()))
}
