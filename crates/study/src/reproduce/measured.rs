//! Measured networks beside ours.

use super::plan::{Options, Reproduced, Runner, conditions};
use crate::error::InputError;
use crate::scenario_file::parse_without_files;
use paceline_sim::Scenario;
use paceline_sim::reproduce::measured::{Experiment, PARTS, Part};
use serde_json::json;
use std::collections::BTreeMap;

/// Runs of each part. Chosen: the intervals of the means are a hundredth of the spreads.
const SEEDS: u64 = 5;
/// Drives in place of one run. Chosen: with 5 seeds, quantiles of the rate differ by some percent from those
/// of other seeds.
const DRIVES: u64 = 6;

/// Simulates the cells.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Reproduced, R::Error> {
    let seeds = options.seeds.unwrap_or(if options.quick { options.seeds() } else { SEEDS });
    let mut parts = BTreeMap::new();
    for part in PARTS {
        if options.quick && part.is_drive() {
            continue; // minutes
        }
        let mut scenario = load(&part, 1, options)?;
        let mut runs = Vec::new();
        for seed in 1..=seeds * if part.is_drive() { DRIVES } else { 1 } {
            runner.check()?;
            if part.is_drive() {
                scenario = load(&part, seed, options)?;
            }
            runs.push(runner.simulate(&scenario, seed)?);
        }
        parts.insert(part.name, (scenario, runs));
    }
    let rows = Experiment { parts }.rows();
    let about = json!({"seeds": seeds, "set": options.set});
    Ok(Reproduced { name: "measured", conditions: conditions(seeds, &options.set), about, rows })
}

fn load(part: &Part, seed: u64, options: &Options) -> Result<Scenario, InputError> {
    let (text, mut set) = part.of_seed(seed);
    set.extend(options.set.iter().cloned());
    parse_without_files(part.name, &text, &set).map_err(|error| InputError::text(error.to_string()))
}
