//! Facts that follow from a cell's configuration alone.

use crate::error::scenario_error;
use crate::scenario::Scenario;
use paceline_sim::ScenarioError;
use paceline_sim::cell_facts::CellFacts;
use pyo3::prelude::*;

/// The slots, overheads, peak rates and latencies of a scenario's cell as JSON, as `paceline cell show
/// --json` prints them.
#[pyfunction]
pub fn cell_facts(py: Python<'_>, scenario: &Bound<'_, Scenario>) -> PyResult<String> {
    let scenario = &scenario.get().scenario;
    let Some(cell) = scenario.cell() else {
        let error = ScenarioError {
            file: String::from("cell"),
            line: None,
            key: Some(scenario.access.table().to_owned()),
            value: None,
            message: String::from("left out: the scenario has another access in place of a cell"),
        };
        return Err(scenario_error(py, &error.to_string(), Some(&error)));
    };
    let facts = CellFacts::of(cell).with_path(scenario);
    Ok(serde_json::to_string(&facts).expect("facts are plain data"))
}
