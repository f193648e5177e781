//! Measured networks beside ours.

use super::plan::{Options, Reproduced, Runner, conditions};
use crate::error::InputError;
use paceline_sim::reproduce::measured::{Experiment, PARTS, Part};
use paceline_sim::{Scenario, scenario};
use serde_json::json;
use std::collections::BTreeMap;

/// Runs of each part. Chosen: the intervals of the means are a hundredth of the spreads.
const SEEDS: u64 = 5;

/// Simulates the cells.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Reproduced, R::Error> {
    let seeds = options.seeds.unwrap_or(if options.quick { options.seeds() } else { SEEDS });
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
    let rows = Experiment { parts }.rows();
    let about = json!({"seeds": seeds, "set": options.set});
    Ok(Reproduced { name: "measured", conditions: conditions(seeds, &options.set), about, rows })
}

fn load(part: &Part, options: &Options) -> Result<Scenario, InputError> {
    let set = part.set.iter().map(|set| (*set).to_owned()).chain(options.set.iter().cloned());
    let set: Vec<String> = set.collect();
    scenario::load(part.name, part.text, &set).map_err(|error| InputError::text(error.to_string()))
}
