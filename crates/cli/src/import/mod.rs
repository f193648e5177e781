//! Import of traces in other formats: `paceline trace import`.
//!
//! ```text
//! file -> unpack (gzip, xz) -> capture: packets of the largest flow
//!                           -> text -> JSON or lines -> table -> columns: opportunities or rates
//! ```
//!
//! Each format gives deliveries over time, which become opportunities of 1504 bytes at whole milliseconds.
//! Notes state the columns and units that were found, and which of these the file leaves open.

mod capture;
mod columns;
mod deliveries;
mod json;
mod names;
mod options;
mod table;
mod times;
mod units;
mod unpack;

use deliveries::Deliveries;
pub use options::Options;
use paceline_sim::link::Trace;
use table::Table;

/// A trace, and the statements about the file that it was made from.
pub struct Imported {
    pub trace: Trace,
    pub notes: Vec<String>,
}

/// Makes a trace of a file in any of the formats. An error names the place in the file.
pub fn import(file: &[u8], options: &Options) -> Result<Imported, String> {
    let mut notes = Vec::new();
    let file = unpack::unpack(file, &mut notes)?;
    if Trace::is_binary(&file) {
        notes.push("trace in binary form".into());
        let trace = Trace::read(&file).map_err(|error| error.to_string())?;
        return Ok(Imported { trace, notes });
    }
    let deliveries = if crate::capture_file::is_capture(&file) {
        capture::read(&file, &mut notes)?
    } else {
        let text = unpack::text(&file, &mut notes)?;
        of_text(&text, options, &mut notes)?
    };
    deliveries.into_trace(options.trim, &mut notes).map(|trace| Imported { trace, notes })
}

fn of_text(text: &str, options: &Options, notes: &mut Vec<String>) -> Result<Deliveries, String> {
    let table = if text.trim_start().starts_with(['{', '[']) {
        json::read(text, notes)?
    } else {
        Table::read(text, notes)?
    };
    if table.is_one_column() && options.rate.is_none() && options.rate_unit.is_none() {
        let values = table.numbers(0)?;
        if times::are_times(&values, &table, options) {
            return times::read(&values, options.time_unit, notes);
        }
    }
    columns::read(&table, options, notes)
}

#[cfg(test)]
mod tests;
