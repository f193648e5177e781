//! The results of a scenario's runs: the summary, and tables.

use crate::pickle;
use crate::scenario::Scenario;
use crate::table::{Table, batch, schema};
use arrow_array::RecordBatch;
use paceline_sim::results::{GroupResult, Origin, Table as Kind, Totals};
use paceline_sim::{RunResult, Summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

/// Takes the samples out of a run, as a batch.
pub fn series(run: &mut RunResult) -> RecordBatch {
    let columns = Kind::Series.columns(std::slice::from_ref(run));
    run.samples = Vec::new();
    batch(&schema(&columns), columns)
}

/// The results of a scenario's runs.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Results {
    summary: Summary,
    /// A batch of samples for each run.
    series: Vec<RecordBatch>,
}

impl Results {
    pub fn new(scenario: &Scenario, runs: Vec<RunResult>, series: Vec<RecordBatch>) -> Self {
        let (name, origin) = (&scenario.source.name, paceline_study::origin());
        Self { summary: Summary::new(origin, name, "simulated", &scenario.scenario, runs), series }
    }
}

/// A summary as JSON has it.
#[derive(Deserialize)]
struct Stored {
    paceline: Origin,
    scenario: String,
    scheme: String,
    stations: u64,
    measured_s: f64,
    mean: Totals,
    ci95: Option<Totals>,
    groups: Vec<GroupResult>,
    #[serde(default)]
    connections_never_opened: usize,
    #[serde(default)]
    scenario_warnings: Vec<String>,
    runs: Vec<RunResult>,
}

type State<'py> = (String, pickle::State<'py>);

#[pymethods]
impl Results {
    /// The text of summary.json.
    fn summary_json(&self) -> String {
        self.summary.to_json()
    }
    /// The summary without single runs, as JSON.
    fn header_json(&self) -> String {
        let header = Summary { runs: Vec::new(), ..self.summary.clone() };
        serde_json::to_string(&header).expect("results are plain data")
    }
    #[getter]
    fn warning(&self) -> Option<String> {
        self.summary.warnings()
    }
    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.summary.runs.iter().map(|run| run.seed).collect()
    }
    /// Seeds with the values of all totals.
    fn totals(&self) -> Vec<(u64, Vec<f64>)> {
        self.summary.runs.iter().map(|run| (run.seed, run.totals.values())).collect()
    }
    /// The table of this name.
    fn table(&self, name: &str) -> PyResult<Table> {
        let kind = Kind::ALL.iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| PyValueError::new_err(format!("{name}: no such table")))?;
        if *kind == Kind::Series {
            return Ok(Table::of_batches(schema(&kind.columns(&[])), self.series.clone()));
        }
        Ok(Table::of(kind.columns(&self.summary.runs)))
    }
    /// The content for a pickle.
    fn state<'py>(&self, py: Python<'py>) -> State<'py> {
        let series = pickle::state(py, &schema(&Kind::Series.columns(&[])), &self.series);
        (serde_json::to_string(&self.summary).expect("results are plain data"), series)
    }
    /// The results of a pickle.
    #[staticmethod]
    fn from_state(state: State<'_>) -> PyResult<Self> {
        let damaged = |problem: String| PyValueError::new_err(format!("a damaged pickle: {problem}"));
        let (summary, series) = state;
        let stored: Stored = serde_json::from_str(&summary).map_err(|error| damaged(error.to_string()))?;
        let summary = Summary {
            paceline: stored.paceline,
            scenario: stored.scenario,
            mode: "simulated",
            scheme: stored.scheme,
            stations: stored.stations,
            measured_s: stored.measured_s,
            mean: stored.mean,
            ci95: stored.ci95,
            groups: stored.groups,
            connections_never_opened: stored.connections_never_opened,
            scenario_warnings: stored.scenario_warnings,
            runs: stored.runs,
        };
        let (_, series) = pickle::from_state(series).map_err(damaged)?;
        Ok(Self { summary, series })
    }
}
