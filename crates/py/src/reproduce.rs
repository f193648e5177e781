//! Reproduced experiments: the rows of published values beside ours.

use crate::error::input_error;
use crate::run::{Job, Jobs, stopped};
use crate::table::Table;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use paceline_sim::reproduce::{Row, Value};
use paceline_sim::{RunResult, scenario::Scenario};
use paceline_study::reproduce::{Options, Runner, run};
use paceline_study::{Grid, InputError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs grids on threads, and keeps the results in memory.
struct InMemory {
    threads: usize,
    /// Called with the simulated and the whole time of the present sweep.
    progress: Option<Py<PyAny>>,
}

/// The end of an experiment without rows.
enum Failure {
    Input(InputError),
    Python(PyErr),
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl InMemory {
    fn run(&self, jobs: Vec<Job<'_>>) -> Result<Vec<RunResult>, Failure> {
        let stop = AtomicBool::new(false);
        let without_samples = |result: RunResult| RunResult { samples: Vec::new(), ..result };
        let runs = Jobs::new(jobs, &stop).run(self.threads, self.progress.as_ref(), &without_samples);
        runs.map_err(Failure::Python)?.ok_or_else(|| Failure::Python(stopped()))
    }
}

impl Runner for InMemory {
    type Error = Failure;
    fn sweep(&mut self, _part: &str, grid: &Grid, seeds: u64) -> Result<Vec<Vec<RunResult>>, Failure> {
        let of_point = |scenario: &'_ Scenario| {
            let first = scenario.run.seed;
            (first..first.saturating_add(seeds)).collect::<Vec<_>>()
        };
        let jobs = grid.points.iter().flat_map(|point| {
            of_point(&point.scenario).into_iter().map(|seed| Job {
                scenario: &point.scenario,
                seed,
                control: None,
            })
        });
        let mut runs = self.run(jobs.collect())?.into_iter();
        Ok(grid.points.iter().map(|_| runs.by_ref().take(seeds as usize).collect()).collect())
    }
    fn simulate(&mut self, scenario: &Scenario, seed: u64) -> Result<RunResult, Failure> {
        Ok(self.run(vec![Job { scenario, seed, control: None }])?.remove(0))
    }
    fn check(&mut self) -> Result<(), Failure> {
        Python::attach(|py| py.check_signals()).map_err(Failure::Python)
    }
}

/// Simulates a published experiment. Gives its conditions, the values and the statements.
#[pyfunction]
#[pyo3(signature = (name, quick, seeds, set, parts, jobs, progress=None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub fn reproduce(
    py: Python<'_>,
    name: &str,
    quick: bool,
    seeds: Option<u64>,
    set: Vec<String>,
    parts: Vec<String>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Table, Table)> {
    let options = Options { quick, seeds, set };
    let mut runner = InMemory { threads: jobs, progress };
    let reproduced =
        py.detach(|| run(name, &options, &parts, &mut runner)).map_err(|failure| match failure {
            Failure::Input(error) => input_error(py, &error),
            Failure::Python(error) => error,
        })?;
    Ok((reproduced.conditions, values(&reproduced.rows), statements(&reproduced.rows)))
}

fn table<const N: usize>(columns: [(&str, ArrayRef); N]) -> Table {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("the columns are equally long");
    Table::of_batches(batch.schema(), vec![batch])
}

/// The columns of `rows.csv`.
fn values(rows: &[Row]) -> Table {
    let all: Vec<(&Row, &Value)> =
        rows.iter().flat_map(|row| row.values.iter().map(move |v| (row, v))).collect();
    let text = |of: &dyn Fn(&Row, &Value) -> String| -> ArrayRef {
        Arc::new(all.iter().map(|(row, value)| Some(of(row, value))).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&Value) -> Option<f64>| -> ArrayRef {
        Arc::new(all.iter().map(|(_, value)| of(value)).collect::<Float64Array>())
    };
    let truth = |of: &dyn Fn(&Row, &Value) -> Option<bool>| -> ArrayRef {
        Arc::new(all.iter().map(|(row, value)| of(row, value)).collect::<BooleanArray>())
    };
    table([
        ("row", text(&|row, _| row.id.to_owned())),
        ("quantity", text(&|row, _| row.quantity.clone())),
        ("value", text(&|_, value| value.name.clone())),
        ("unit", text(&|_, value| value.unit.to_owned())),
        ("published", number(&|value| value.published)),
        ("ours", number(&|value| value.ours.mean)),
        ("ci95", number(&|value| value.ours.half)),
        ("difference", number(&Value::difference)),
        ("difference_percent", number(&Value::difference_percent)),
        ("spread_low", number(&|value| value.spread.map(|(low, _)| low))),
        ("spread_high", number(&|value| value.spread.map(|(_, high)| high))),
        ("within_spread", truth(&|_, value| value.within_spread())),
        ("holds", truth(&|row, _| row.verdict().map(|(holds, _)| holds))),
        ("holds_in_ci95", truth(&|row, _| row.verdict().map(|(_, in_ci95)| in_ci95))),
    ])
}

/// The published statement and our finding of each row in words.
fn statements(rows: &[Row]) -> Table {
    let text = |of: fn(&Row) -> &str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>())
    };
    let truth = |of: fn((bool, bool)) -> bool| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.verdict().map(of)).collect::<BooleanArray>())
    };
    table([
        ("row", text(|row| row.id)),
        ("quantity", text(|row| &row.quantity)),
        ("published", text(|row| row.published)),
        ("ours", text(|row| &row.why)),
        ("holds", truth(|(holds, _)| holds)),
        ("holds_in_ci95", truth(|(_, in_ci95)| in_ci95)),
    ])
}
