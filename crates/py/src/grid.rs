//! The points of a sweep.

use crate::error::input_error;
use crate::scenario::Scenario;
use paceline_study::{Axis, Grid};
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
