//! Measured cells beside ours: throughputs and latencies that others measured in real networks. `published`
//! has their figures and the setting of each, `parts` our runs, `measures` our figures of a run.

mod measures;
mod parts;
mod published;

pub use measures::Measure;
pub use parts::{PARTS, Part};
pub use published::{Figure, Published, ROWS};

use super::{Estimate, Row, Value};
use crate::results::RunResult;
use crate::scenario::Scenario;
use std::collections::BTreeMap;

/// The runs of every part, by its name.
pub struct Experiment {
    /// Scenario and runs.
    pub parts: BTreeMap<&'static str, (Scenario, Vec<RunResult>)>,
}

impl Experiment {
    /// All rows.
    pub fn rows(&self) -> Vec<Row> {
        ROWS.iter().map(|published| self.row(published)).collect()
    }
    fn row(&self, published: &Published) -> Row {
        let values: Vec<Value> = published.figures.iter().map(|figure| self.value(figure)).collect();
        let holds = |value: &Value| value.within_spread() == Some(true);
        let in_ci95 = |value: &Value| {
            let (low, high) = value.spread.unwrap_or((f64::NAN, f64::NAN));
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
