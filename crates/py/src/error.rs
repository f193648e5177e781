//! Errors as exceptions of the package.

use paceline_sim::ScenarioError;
use paceline_study::InputError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `paceline.ScenarioError` of a mistake in a scenario; `text` is the message of the command line.
pub fn scenario_error(py: Python<'_>, text: &str, error: Option<&ScenarioError>) -> PyErr {
    let exception = || -> PyResult<Bound<'_, PyAny>> {
        let fields = PyDict::new(py);
        if let Some(error) = error {
            fields.set_item("key", error.key.as_deref())?;
            fields.set_item("value", error.value.as_deref())?;
            fields.set_item("line", error.line)?;
            fields.set_item("allowed", error.allowed())?;
            fields.set_item("file", &error.file)?;
        }
        py.import("paceline._errors")?.getattr("ScenarioError")?.call((text,), Some(&fields))
    };
    exception().map_or_else(|failure| failure, PyErr::from_value)
}

/// The exception of bad input.
pub fn input_error(py: Python<'_>, error: &InputError) -> PyErr {
    let mistake = match error {
        InputError::Scenario(error) | InputError::Point { error, .. } => Some(&**error),
        InputError::Text(_) => None,
    };
    scenario_error(py, &error.to_string(), mistake)
}
