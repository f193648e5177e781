//! A scenario: its text, the changes to it, the files that it names, and what follows from them.

use crate::error::{input_error, scenario_error};
use paceline_sim::{ScenarioError, scenario};
use paceline_study::scenario_file::{built_in_names as names, find, parse_with, read_trace};
use pyo3::exceptions::PyFutureWarning;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

/// Text, changes and files of a scenario.
#[derive(Clone)]
pub struct Source {
    pub name: String,
    /// The file in messages; paths of traces are relative to its folder.
    file: String,
    text: String,
    /// Changes in the notation of `--set`.
    set: Vec<String>,
    /// Whether lines in messages are those of a text that the user has written.
    has_lines: bool,
    /// Contents of the traces by their names.
    traces: BTreeMap<String, Vec<u8>>,
}

impl Source {
    /// Reads and checks the scenario with further changes; adds the traces that it names.
    pub fn read(&self, changes: &[String]) -> Result<(Self, paceline_sim::Scenario), ScenarioError> {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        let set = [&self.set[..], changes].concat();
        let traces = RefCell::new(BTreeMap::new());
        let read = |name: &str| {
            let content = match self.traces.get(name) {
                Some(content) => content.clone(),
                None => read_trace(folder, name)?,
            };
            if scenario_names_a_file(name) {
                traces.borrow_mut().insert(name.to_owned(), content.clone());
            }
            Ok(content)
        };
        let scenario = parse_with(&self.file, &self.text, &set, &read)
            .map_err(|error| ScenarioError { line: error.line.filter(|_| self.has_lines), ..error })?;
        Ok((Self { set, traces: traces.into_inner(), ..self.clone() }, scenario))
    }
}

fn scenario_names_a_file(trace: &str) -> bool {
    paceline_sim::link::generated(trace).is_none()
}

/// A checked scenario. It does not change.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Scenario {
    pub source: Source,
    pub scenario: Arc<scenario::Scenario>,
}

impl Scenario {
    pub fn of(py: Python<'_>, source: &Source, changes: &[String]) -> PyResult<Self> {
        let read = py.detach(|| source.read(changes));
        let (source, scenario) =
            read.map_err(|error| scenario_error(py, &error.to_string(), Some(&error)))?;
        let category = py.get_type::<PyFutureWarning>();
        for note in scenario.renamed.iter().filter_map(|note| CString::new(note.as_str()).ok()) {
            PyErr::warn(py, &category, &note, 2)?;
        }
        Ok(Self { source, scenario: Arc::new(scenario) })
    }
}

type State<'py> = (String, String, String, Vec<String>, bool, Vec<(String, Bound<'py, PyBytes>)>);

#[pymethods]
impl Scenario {
    /// The scenario of a file, or a built-in one.
    #[staticmethod]
    fn load(py: Python<'_>, given: &str) -> PyResult<Self> {
        let (name, text) = find(given).map_err(|error| input_error(py, &error))?;
        Self::from_text(py, text, given.to_owned(), name, true)
    }
    /// The scenario of a text; `file` is its name in messages.
    #[staticmethod]
    fn from_text(
        py: Python<'_>,
        text: String,
        file: String,
        name: String,
        has_lines: bool,
    ) -> PyResult<Self> {
        let source = Source { name, file, text, set: Vec::new(), has_lines, traces: BTreeMap::new() };
        Self::of(py, &source, &[])
    }
    /// The scenario of a pickle.
    #[staticmethod]
    fn from_state(py: Python<'_>, state: State<'_>) -> PyResult<Self> {
        let (name, file, text, set, has_lines, traces) = state;
        let traces = traces.into_iter().map(|(name, content)| (name, content.as_bytes().to_vec())).collect();
        Self::of(py, &Source { name, file, text, set, has_lines, traces }, &[])
    }
    fn state<'py>(&self, py: Python<'py>) -> State<'py> {
        let Source { name, file, text, set, has_lines, traces } = self.source.clone();
        let traces = traces.iter().map(|(name, content)| (name.clone(), PyBytes::new(py, content)));
        (name, file, text, set, has_lines, traces.collect())
    }
    /// The scenario with changes in the notation of `--set`.
    fn edit(&self, py: Python<'_>, changes: Vec<String>) -> PyResult<Self> {
        Self::of(py, &self.source, &changes)
    }
    #[getter]
    fn name(&self) -> &str {
        &self.source.name
    }
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.run.seed
    }
    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.run.duration.as_secs_f64()
    }
    #[getter]
    fn station_count(&self) -> u64 {
        self.scenario.station_count()
    }
    /// The text with every key.
    fn to_toml(&self) -> String {
        self.scenario.to_toml()
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().scenario == self.scenario)
    }
}

/// Names of the built-in scenarios.
#[pyfunction]
pub fn built_in_names() -> Vec<&'static str> {
    names().collect()
}
