//! Columns as Arrow, by the PyCapsule interface: `__arrow_c_stream__` and `__arrow_c_schema__`.

use crate::pickle;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use paceline_sim::results::{Column, Values};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table as batches of columns.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// The schema of columns.
pub fn schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| {
        let kind = match column.values {
            Values::Integers(_) => DataType::Int64,
            Values::Numbers(_) => DataType::Float64,
            Values::Texts(_) => DataType::Utf8,
        };
        Field::new(column.name, kind, column.present.is_some())
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Columns as a batch. Numbers are moved, not copied.
pub fn batch(schema: &SchemaRef, columns: Vec<Column>) -> RecordBatch {
    let array = |Column { values, present, .. }: Column| -> ArrayRef {
        let nulls = present.map(NullBuffer::from).filter(|nulls| nulls.null_count() > 0);
        match values {
            Values::Integers(values) => Arc::new(Int64Array::new(ScalarBuffer::from(values), nulls)),
            Values::Numbers(values) => Arc::new(Float64Array::new(ScalarBuffer::from(values), nulls)),
            Values::Texts(values) => {
                let present = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                let values = values.iter().enumerate().map(|(row, text)| present(row).then_some(text));
                Arc::new(values.collect::<StringArray>())
            }
        }
    };
    let arrays = columns.into_iter().map(array).collect();
    RecordBatch::try_new(schema.clone(), arrays).expect("the columns have the rows and types of the schema")
}

impl Table {
    /// A table of columns.
    pub fn of(columns: Vec<Column>) -> Self {
        let schema = schema(&columns);
        let batches = vec![batch(&schema, columns)];
        Self { schema, batches }
    }
    /// A table of several batches with this schema.
    pub fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// A capsule with the stream of the batches. The columns are shared, not copied, and live as long as the
    /// consumer needs them.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // A wish: the interface lets the producer answer with its own types.
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
    /// A capsule with the names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| failed(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
    /// The content for a pickle.
    fn state<'py>(&self, py: Python<'py>) -> pickle::State<'py> {
        pickle::state(py, &self.schema, &self.batches)
    }
    /// The table of a pickle.
    #[staticmethod]
    fn from_state(state: pickle::State<'_>) -> PyResult<Self> {
        let damaged = |problem: String| PyValueError::new_err(format!("a damaged pickle: {problem}"));
        let (schema, batches) = pickle::from_state(state).map_err(damaged)?;
        Ok(Self { schema, batches })
    }
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
    /// Bytes of the columns.
    #[getter]
    fn nbytes(&self) -> usize {
        let columns = self.batches.iter().flat_map(RecordBatch::columns);
        columns.map(|column| column.get_array_memory_size()).sum()
    }
    /// Names and types of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields.map(|field| (field.name().clone(), field.data_type().to_string().to_lowercase())).collect()
    }
}
