//! The results of a scenario's runs: the summary, and tables.

use crate::scenario::Scenario;
use crate::table::{self, Table, batch, schema};
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, PrimitiveArray, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use paceline_sim::results::{GroupResult, Origin, Table as Kind, Totals};
use paceline_sim::{RunResult, Summary};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use std::sync::Arc;

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

/// Values and, where some are missing, the bits of the present ones.
type Buffers<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);
type State<'py> = (String, Vec<(usize, Vec<Buffers<'py>>)>);

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
        let bytes = |buffer: &[u8]| PyBytes::new(py, buffer);
        let column = |array: &ArrayRef| -> Buffers<'py> {
            let data = array.to_data();
            let width = size_of::<u64>();
            let values = &data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width];
            let present = data.nulls().map(|nulls| bytes(nulls.inner().sliced().as_slice()));
            (bytes(values), present)
        };
        let batches = self
            .series
            .iter()
            .map(|batch| (batch.num_rows(), batch.columns().iter().map(column).collect::<Vec<_>>()));
        (serde_json::to_string(&self.summary).expect("results are plain data"), batches.collect())
    }
    /// The results of a pickle.
    #[staticmethod]
    fn from_state(state: State<'_>) -> PyResult<Self> {
        let damaged = |problem: String| PyValueError::new_err(format!("a damaged pickle: {problem}"));
        let (summary, batches) = state;
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
        let schema = table::schema(&Kind::Series.columns(&[]));
        let series = batches.into_iter().map(|(rows, columns)| {
            let arrays = schema.fields().iter().zip(columns).map(|(field, column)| match field.data_type() {
                DataType::Int64 => Ok(Arc::new(array::<_>(rows, &column, Int64Array::new)?) as ArrayRef),
                _ => Ok(Arc::new(array::<_>(rows, &column, Float64Array::new)?) as ArrayRef),
            });
            let arrays = arrays.collect::<Result<Vec<_>, String>>()?;
            RecordBatch::try_new(schema.clone(), arrays).map_err(|error| error.to_string())
        });
        let series = series.collect::<Result<_, String>>().map_err(damaged)?;
        Ok(Self { summary, series })
    }
}

/// An array of a pickle.
fn array<T: ArrowPrimitiveType>(
    rows: usize,
    (values, present): &Buffers<'_>,
    new: fn(ScalarBuffer<T::Native>, Option<NullBuffer>) -> PrimitiveArray<T>,
) -> Result<PrimitiveArray<T>, String> {
    let (values, present) = (values.as_bytes(), present.as_ref().map(|present| present.as_bytes()));
    let short = present.is_some_and(|present| present.len() < rows.div_ceil(8));
    if values.len() != rows * size_of::<T::Native>() || short {
        return Err(String::from("a column has another length"));
    }
    let nulls = present.map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, rows)));
    Ok(new(ScalarBuffer::new(Buffer::from(values), 0, rows), nulls))
}
