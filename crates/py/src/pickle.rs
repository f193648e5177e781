//! Columns as bytes, for pickles.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Values and, where some are missing, the bits of the present ones.
type Buffers<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);
/// The buffers of a column, and the ends of its texts.
type Column<'py> = (Buffers<'py>, Option<Bound<'py, PyBytes>>);
/// Name, type, and whether values may be missing, of each column; then the rows and columns of each batch.
pub type State<'py> = (Vec<(String, String, bool)>, Vec<(usize, Vec<Column<'py>>)>);

/// The types of columns. Must match those of `table.rs` and `reproduce.rs`.
const TYPES: [DataType; 4] = [DataType::Int64, DataType::Float64, DataType::Boolean, DataType::Utf8];

/// The buffers of a column of numbers.
fn numbers<'py>(py: Python<'py>, array: &ArrayRef) -> Buffers<'py> {
    let data = array.to_data();
    let width = size_of::<u64>();
    let values = &data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width];
    (PyBytes::new(py, values), present(py, array))
}

fn present<'py>(py: Python<'py>, array: &ArrayRef) -> Option<Bound<'py, PyBytes>> {
    array.nulls().map(|nulls| PyBytes::new(py, nulls.inner().sliced().as_slice()))
}

/// The content of a table for a pickle.
pub fn state<'py>(py: Python<'py>, schema: &SchemaRef, batches: &[RecordBatch]) -> State<'py> {
    let field =
        |field: &Arc<Field>| (field.name().clone(), field.data_type().to_string(), field.is_nullable());
    let column = |array: &ArrayRef| -> Column<'py> {
        if let Some(texts) = array.as_string_opt::<i32>() {
            let ends: Vec<u8> = (0..texts.len())
                .scan(0, |end, row| {
                    *end += texts.value(row).len() as u64;
                    Some(end.to_le_bytes())
                })
                .flatten()
                .collect();
            let values: String = (0..texts.len()).map(|row| texts.value(row)).collect();
            return (
                (PyBytes::new(py, values.as_bytes()), present(py, array)),
                Some(PyBytes::new(py, &ends)),
            );
        }
        if let Some(truths) = array.as_boolean_opt() {
            return ((PyBytes::new(py, truths.values().sliced().as_slice()), present(py, array)), None);
        }
        (numbers(py, array), None)
    };
    let batch = |batch: &RecordBatch| (batch.num_rows(), batch.columns().iter().map(column).collect());
    (schema.fields().iter().map(field).collect(), batches.iter().map(batch).collect())
}

/// Schema and batches of a pickle.
pub fn from_state((fields, batches): State<'_>) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let field = |(name, kind, nullable): (String, String, bool)| {
        let kind = TYPES.iter().find(|known| known.to_string() == kind);
        let kind = kind.ok_or_else(|| format!("column {name} has an unknown type"))?;
        Ok(Field::new(name, kind.clone(), nullable))
    };
    let fields: Vec<Field> = fields.into_iter().map(field).collect::<Result<_, String>>()?;
    let schema = Arc::new(Schema::new(fields));
    let batch = |(rows, columns): (usize, Vec<Column<'_>>)| {
        let arrays = schema.fields().iter().zip(&columns);
        let arrays = arrays.map(|(field, column)| array_of(field.data_type(), rows, column));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, String>>()?;
        RecordBatch::try_new(schema.clone(), arrays).map_err(|error| error.to_string())
    };
    let batches = batches.into_iter().map(batch).collect::<Result<_, String>>()?;
    Ok((schema, batches))
}

fn array_of(kind: &DataType, rows: usize, (buffers, ends): &Column<'_>) -> Result<ArrayRef, String> {
    let nulls = nulls(rows, buffers)?;
    let values = buffers.0.as_bytes();
    match kind {
        DataType::Int64 => Ok(Arc::new(array::<Int64Type>(rows, buffers)?)),
        DataType::Float64 => Ok(Arc::new(array::<Float64Type>(rows, buffers)?)),
        DataType::Boolean if values.len() >= rows.div_ceil(8) => {
            Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(Buffer::from(values), 0, rows), nulls)))
        }
        DataType::Utf8 => {
            let ends = ends.as_ref().map_or(&[][..], |ends| ends.as_bytes());
            let ends = ends.as_chunks::<8>().0.iter().map(|end| u64::from_le_bytes(*end) as usize);
            let offsets: Vec<usize> = std::iter::once(0).chain(ends).collect();
            let whole = offsets.len() == rows + 1 && offsets[rows] == values.len() && offsets.is_sorted();
            if !whole || i32::try_from(values.len()).is_err() {
                return Err(String::from("a column of texts has another length"));
            }
            let offsets =
                OffsetBuffer::new(offsets.iter().map(|end| *end as i32).collect::<ScalarBuffer<i32>>());
            let texts = StringArray::try_new(offsets, Buffer::from(values), nulls);
            Ok(Arc::new(texts.map_err(|error| error.to_string())?))
        }
        _ => Err(String::from("a column has another length")),
    }
}

fn nulls(rows: usize, (_, present): &Buffers<'_>) -> Result<Option<NullBuffer>, String> {
    let Some(bits) = present.as_ref().map(|present| present.as_bytes()) else { return Ok(None) };
    if bits.len() < rows.div_ceil(8) {
        return Err(String::from("a column has another length"));
    }
    Ok(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, rows))))
}

/// An array of numbers of a pickle.
fn array<T: ArrowPrimitiveType>(rows: usize, buffers: &Buffers<'_>) -> Result<PrimitiveArray<T>, String> {
    let values = buffers.0.as_bytes();
    if values.len() != rows * size_of::<T::Native>() {
        return Err(String::from("a column has another length"));
    }
    Ok(PrimitiveArray::new(ScalarBuffer::new(Buffer::from(values), 0, rows), nulls(rows, buffers)?))
}
