//! Rows as CSV. A row is a flat struct: its field names are the columns.

use serde::{Serialize, Serializer};

/// A number that is written with `N` decimals; empty if it is NaN.
#[derive(Default)]
pub(super) struct Decimals<const N: usize>(pub(super) f64);

impl<const N: usize> Serialize for Decimals<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_nan() {
            return serializer.serialize_none();
        }
        serializer.collect_str(&format_args!("{:.N$}", self.0))
    }
}

/// The header and the rows. The crate writes the header with the first row: an empty table takes it from a
/// default row.
pub(super) fn text<Row: Serialize + Default>(rows: impl Iterator<Item = Row>) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        let header = text(std::iter::once(Row::default()));
        return header.lines().take(1).map(|line| format!("{line}\n")).collect();
    }
    let mut csv = csv::Writer::from_writer(Vec::new());
    rows.for_each(|row| csv.serialize(row).expect("a row is a flat struct, and a vector takes every write"));
    let bytes = csv.into_inner().expect("a vector takes every write");
    String::from_utf8(bytes).expect("a string is serialized as UTF-8")
}
