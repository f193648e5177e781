//! The points of a sweep.

use crate::error::input_error;
use crate::scenario::Scenario;
use paceline_sim::Totals;
use paceline_study::{Axis, Grid, Paired, paired};
use pyo3::prelude::*;

/// Keys and values of options `--over key=a,b,c`.
#[pyfunction]
pub fn axes(py: Python<'_>, over: Vec<String>) -> PyResult<Vec<(String, Vec<String>)>> {
    let axes = paceline_study::grid::axes(&over).map_err(|error| input_error(py, &error))?;
    Ok(axes.into_iter().map(|axis| (axis.key, axis.values)).collect())
}

/// Label, values and scenario of every combination of values in the notation of `--set`; the values of the
/// last key change fastest.
#[pyfunction]
pub fn points(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    over: Vec<(String, Vec<String>)>,
) -> PyResult<Vec<(String, Vec<String>, Scenario)>> {
    let source = &scenario.get().source;
    let axes = over.into_iter().map(|(key, values)| Axis { key, values }).collect();
    let read = |changes: &[String]| source.read(changes).map(|(_, scenario)| scenario);
    let grid = Grid::of(source.name.clone(), axes, &read).map_err(|error| input_error(py, &error))?;
    let point = |index: usize| {
        let scenario = Scenario::of(py, source, &grid.settings(index))?;
        Ok((grid.label(index), grid.points[index].values.clone(), scenario))
    };
    (0..grid.points.len()).map(point).collect()
}

/// Mean of values and half width of its 95% confidence interval (Student's t); no half width of a single one.
#[pyfunction]
pub fn mean_and_half(values: Vec<f64>) -> (f64, Option<f64>) {
    paceline_sim::results::mean_and_half(&values)
}

/// Seeds of the pairs, mean differences of all totals, half widths of their intervals, and a sentence.
pub type Differences = (Vec<u64>, Vec<f64>, Option<Vec<f64>>, String);

fn of_paired(paired: &Paired) -> Differences {
    let halves = paired.ci95.as_ref().map(Totals::values);
    (paired.seeds.clone(), paired.mean.values(), halves, paired.sentence())
}

/// Seeds with their totals, in the order of the columns of the table of runs.
type Runs = Vec<(u64, Vec<f64>)>;

fn totals(runs: Runs) -> Vec<(u64, Totals)> {
    runs.into_iter().map(|(seed, values)| (seed, Totals::from_values(&values))).collect()
}

/// Differences of the second runs from the first, by pairs of equal seeds; None without pairs.
#[pyfunction]
pub fn paired_differences(first: Runs, second: Runs) -> Option<Differences> {
    Paired::of(&totals(first), &totals(second)).as_ref().map(of_paired)
}

/// Point, value of the compared key, differences and sentence with the keys, of every point of a grid that is
/// compared with another.
#[pyfunction]
pub fn differences_of_grid(
    axes: Vec<(String, Vec<String>)>,
    runs: Vec<Runs>,
) -> Vec<(usize, String, Differences, String)> {
    let axes: Vec<Axis> = axes.into_iter().map(|(key, values)| Axis { key, values }).collect();
    let runs: Vec<Vec<(u64, Totals)>> = runs.into_iter().map(totals).collect();
    let found = paired::of_grid(&axes, &runs).into_iter();
    found.map(|own| (own.point, own.against, of_paired(&own.paired), own.sentence)).collect()
}
