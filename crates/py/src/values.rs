//! Python's values as TOML.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::Value;

/// Tables in tables at most. Chosen: far above the depth of a scenario, so that a dict that holds itself is
/// refused.
const MAX_DEPTH: usize = 16;

/// A value as TOML; `key` is its place in messages.
fn value_of(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Value> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("{key}: more than {MAX_DEPTH} tables in each other")));
    }
    if let Ok(value) = value.cast::<PyBool>() {
        Ok(Value::Boolean(value.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        Ok(Value::Integer(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Ok(Value::Float(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Ok(Value::String(value.extract()?))
    } else if let Ok(table) = value.cast::<PyDict>() {
        Ok(Value::Table(table_of(table, key, depth + 1)?))
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let element = |(index, value): (usize, PyResult<Bound<'_, PyAny>>)| {
            value_of(&value?, &format!("{key}.{index}"), depth + 1)
        };
        Ok(Value::Array(value.try_iter()?.enumerate().map(element).collect::<PyResult<_>>()?))
    } else if value.hasattr("item")? && value.getattr("shape")?.len().is_ok_and(|axes| axes == 0) {
        value_of(&value.call_method0("item")?, key, depth + 1) // a number of numpy
    } else {
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "{key}: a value is a str, bool, int, float, list, tuple or dict, not {kind}"
        )))
    }
}

fn table_of(table: &Bound<'_, PyDict>, key: &str, depth: usize) -> PyResult<toml::Table> {
    let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String =
            name.extract().map_err(|_| PyTypeError::new_err(format!("{key}: a key is a str")))?;
        let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        Ok((name, value_of(&value, &path, depth)?))
    };
    table.iter().map(entry).collect()
}

/// The change `key=value` in the notation of `--set`.
#[pyfunction]
pub fn setting(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(format!("{key}={}", value_of(value, key, 0)?))
}

/// A dict as the text of a scenario.
#[pyfunction]
pub fn toml_of(table: &Bound<'_, PyDict>) -> PyResult<String> {
    toml::to_string(&table_of(table, "", 0)?).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A value in the notation of `--set` as a bool, int, float or str: a string without quotes, other values as
/// their text.
#[pyfunction]
pub fn plain<'py>(py: Python<'py>, value: &str) -> PyResult<Bound<'py, PyAny>> {
    let table: toml::Table = format!("value = {value}").parse().unwrap_or_default();
    match table.get("value").filter(|_| table.len() == 1) {
        Some(Value::Boolean(value)) => value.into_bound_py_any(py),
        Some(Value::Integer(value)) => value.into_bound_py_any(py),
        Some(Value::Float(value)) => value.into_bound_py_any(py),
        Some(Value::String(value)) => value.into_bound_py_any(py),
        _ => value.into_bound_py_any(py),
    }
}
