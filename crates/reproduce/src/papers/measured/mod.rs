//! Measured cells beside ours: throughputs and latencies that others measured in real networks. `published`
//! has their figures and the setting of each, `parts` our runs, `measures` our figures of a run.

mod measures;
mod parts;
mod plan;
mod published;

pub use plan::PAPER;

use crate::{Estimate, Row, Value};
use paceline_sim::{RunResult, Scenario};
use published::{Figure, Published, ROWS};
use std::collections::BTreeMap;

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
        let part = self.parts.get(figure.part);
        let ours = part
            .into_iter()
            .flat_map(|(scenario, runs)| runs.iter().filter_map(|run| figure.measure.of(scenario, run)));
        let value = Value::new(figure.name, figure.unit, figure.value, Estimate::of(ours));
        match figure.spread {
            Some((low, high)) => value.within(low, high),
            None => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::measures::Measure;
    use super::parts::{PARTS, Part};
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
