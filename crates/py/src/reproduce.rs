//! Reproduced experiments: the rows of published values beside ours.

use crate::error::input_error;
use crate::run::{Job, Jobs, stopped};
use crate::table::Table;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use paceline_reproduce::host::{Figures, Setting};
use paceline_reproduce::table::{COLUMNS, Column};
use paceline_reproduce::{Failure, Folder, Options, Row, Runner, Value, find};
use paceline_sim::{RunResult, scenario::Scenario};
use paceline_study::Grid;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs grids on threads, and keeps the results in memory.
struct InMemory {
    threads: usize,
    /// Called with the simulated and the whole time of the present sweep.
    progress: Option<Py<PyAny>>,
}

fn ended(error: PyErr) -> Failure {
    Failure::Ended(Box::new(error))
}

impl InMemory {
    fn run(&self, jobs: Vec<Job<'_>>) -> Result<Vec<RunResult>, Failure> {
        let stop = AtomicBool::new(false);
        let without_samples = |result: RunResult| RunResult { samples: Vec::new(), ..result };
        let runs = Jobs::new(jobs, &stop, crate::control::Failure::default()).run(
            self.threads,
            self.progress.as_ref(),
            &without_samples,
        );
        runs.map_err(ended)?.ok_or_else(|| ended(stopped()))
    }
}

impl Runner for InMemory {
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
        Python::attach(|py| py.check_signals()).map_err(ended)
    }
    fn folder(&mut self) -> Option<&mut dyn Folder> {
        None
    }
    fn measure(&mut self, _: &[Setting]) -> Result<Option<Vec<(Setting, Figures)>>, Failure> {
        Ok(None)
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
    let options = Options { quick, seeds, set, parts, ..Options::default() };
    let mut runner = InMemory { threads: jobs, progress };
    let reproduced = py.detach(|| find(name)?.reproduce(&options, &mut runner));
    let reproduced = reproduced.map_err(|failure| match failure {
        Failure::Input(error) => input_error(py, &error),
        Failure::Ended(error) => match error.downcast::<PyErr>() {
            Ok(error) => *error,
            Err(error) => PyRuntimeError::new_err(error.to_string()),
        },
    })?;
    Ok((reproduced.conditions, values(&reproduced.rows), statements(&reproduced.rows)))
}

fn table(columns: impl IntoIterator<Item = (&'static str, ArrayRef)>) -> Table {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("the columns are equally long");
    Table::of_batches(batch.schema(), vec![batch])
}

/// The columns of `rows.csv`.
fn values(rows: &[Row]) -> Table {
    let all: Vec<(&Row, &Value)> =
        rows.iter().flat_map(|row| row.values.iter().map(move |v| (row, v))).collect();
    let all = || all.iter().copied();
    table(COLUMNS.iter().map(|column| -> (&str, ArrayRef) {
        match column {
            Column::Text(name, of) => {
                (name, Arc::new(all().map(|(row, value)| Some(of(row, value))).collect::<StringArray>()))
            }
            Column::Number(name, of) => {
                (name, Arc::new(all().map(|(_, value)| of(value)).collect::<Float64Array>()))
            }
            Column::Truth(name, of) => {
                (name, Arc::new(all().map(|(row, value)| of(row, value)).collect::<BooleanArray>()))
            }
        }
    }))
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
        ("row", text(|row| &row.id)),
        ("quantity", text(|row| &row.quantity)),
        ("published", text(|row| &row.published)),
        ("ours", text(|row| &row.why)),
        ("holds", truth(|(holds, _)| holds)),
        ("holds_in_ci95", truth(|(_, in_ci95)| in_ci95)),
    ])
}
