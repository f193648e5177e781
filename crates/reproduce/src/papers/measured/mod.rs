//! Measured cells beside ours: throughputs and latencies that others measured in real networks. `published`
//! has their figures and the setting of each, `parts` our runs, `measures` our figures of a run.

mod measures;
mod parts;
mod published;

use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions};
use crate::{Estimate, Row, Value};
use paceline_sim::{RunResult, Scenario};
use paceline_study::InputError;
use paceline_study::scenario_file::parse_without_files;
use parts::{PARTS, Part};
use published::{Figure, Published, ROWS};
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

/// Drives in place of one run. Chosen: with 5 seeds, quantiles of the rate differ by some percent from those
/// of other seeds.
const DRIVES: u64 = 6;

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let seeds = PAPER.seeds(options);
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
    let about = json!({"seeds": seeds, "set": options.set});
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: Experiment { parts }.rows() })
}

fn load(part: &Part, seed: u64, options: &Options) -> Result<Scenario, InputError> {
    let (text, set) = part.of_seed(seed);
    let set = [set, options.set.clone()].concat();
    parse_without_files(part.name, &text, &set).map_err(|error| InputError::text(error.to_string()))
}

/// The runs of every part, by its name.
struct Experiment {
    parts: BTreeMap<&'static str, (Scenario, Vec<RunResult>)>,
}

impl Experiment {
    fn rows(&self) -> Vec<Row> {
        ROWS.iter().map(|published| self.row(published)).collect()
    }
    fn row(&self, published: &Published) -> Row {
        let values: Vec<Value> = published.figures.iter().map(|figure| self.value(figure)).collect();
        let holds = |value: &Value| value.within_spread() == Some(true);
        let in_ci95 = |value: &Value| {
            let (low, high) = value.spread().unwrap_or((f64::NAN, f64::NAN));
            value.ours.half.map_or_else(
                || holds(value),
                |_| value.ours.interval_meets(|ours| (low..=high).contains(&ours)),
            )
        };
        Row {
            holds: values.iter().all(holds),
            holds_in_ci95: values.iter().all(|value| holds(value) && in_ci95(value)),
            why: published.cause.to_owned(),
            ..Row::of(published.id, published.setting, published.statement, values)
        }
    }
    fn value(&self, figure: &Figure) -> Value {
        let ours = self.parts.get(figure.part).map_or_else(Estimate::default, |(scenario, runs)| {
            let of_all = figure.measure.of_all(scenario, runs);
            Estimate::of(
                of_all.into_iter().chain(runs.iter().filter_map(|run| figure.measure.of(scenario, run))),
            )
        });
        let value = Value::new(figure.name, figure.unit, figure.value, ours);
        match figure.spread {
            Some((low, high)) => value.within(low, high),
            None => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::measures::Measure;
    use super::*;

    #[test]
    fn every_figure_names_a_part_or_none() {
        for figure in ROWS.iter().flat_map(|row| row.figures) {
            let known = PARTS.iter().any(|part| part.name == figure.part);
            assert_eq!(known, figure.measure != Measure::Nothing, "{}", figure.name);
        }
        let used = |part: &Part| ROWS.iter().flat_map(|row| row.figures).any(|f| f.part == part.name);
        assert!(PARTS.iter().all(used));
    }
}
