//! Import of traces in other formats: `paceline trace import`.
//!
//! ```text
//! file -> unpack (gzip, xz) -> capture: packets of the largest flow
//!                           -> text -> JSON, log or lines -> table -> columns: opportunities or rates
//! ```
//!
//! Each format gives deliveries over time, which become opportunities of 1504 bytes at whole milliseconds.
//! Notes state the columns and units that were found, which of these the file leaves open, and the mean rate.

pub mod capture;
mod columns;
mod counter;
mod deliveries;
mod json;
mod names;
mod notes;
mod options;
mod plausible;
mod rows;
mod text;
mod time;
mod units;

use deliveries::Deliveries;
use notes::Notes;
pub use options::Options;
use paceline_net::trace::Trace;
use text::table::{self, Table};
use text::{iperf_log, numbers, unpack};

/// A trace, and the statements about the file that it was made from.
pub struct Imported {
    /// The deliveries as opportunities of 1504 bytes.
    pub trace: Trace,
    /// Statements on columns, units, assumptions and the mean rate.
    pub notes: Vec<String>,
}

/// Makes a trace of a file in any of the formats. An error names the place in the file.
pub fn import(file: &[u8], options: &Options) -> Result<Imported, String> {
    let mut notes = Notes::default();
    let file = unpack::unpack(file, &mut notes)?;
    if Trace::is_binary(&file) {
        notes.push("trace in binary form");
        let trace = Trace::read(&file).map_err(|error| error.to_string())?;
        let notes = notes.finish(trace.rate());
        return Ok(Imported { trace, notes });
    }
    let deliveries = if capture::magic::is_capture(&file) {
        capture::largest_flow::read(&file, &mut notes)?
    } else {
        let text = unpack::text(&file, &mut notes)?;
        of_text(&text, options, &mut notes)?
    };
    let trace = deliveries.into_trace(options.trim, &mut notes)?;
    let notes = notes.finish(trace.rate());
    Ok(Imported { trace, notes })
}

fn of_text(text: &str, options: &Options, notes: &mut Notes) -> Result<Deliveries, String> {
    let table = if iperf_log::is_log(text) {
        iperf_log::read(text, notes)?
    } else if text.trim_start().starts_with(['{', '[']) {
        json::read(text, notes)?
    } else {
        Table::read(text, notes)?
    };
    if table.is_one_column() && options.rate.is_none() && options.rate_unit.is_none() {
        if let Some(times) = time::of_clock(&table, options, notes) {
            return times;
        }
        // A heading without numbers below is an error of the column.
        let has_numbers = (0..table.size().0).any(|row| numbers::number(&table.cells(0)[row]).is_some());
        if table.names.is_empty() || has_numbers {
            let values = table.numbers(0)?;
            if time::are_times(&values, &table, options)? {
                return time::read(&values, &table, options, notes);
            }
        }
    }
    columns::read(&table, options, notes)
}

/// The text of a file, packed or not, in any encoding of Unicode.
pub fn plain_text(file: &[u8]) -> Result<String, String> {
    let mut notes = Notes::default();
    let file = unpack::unpack(file, &mut notes)?;
    Ok(unpack::text(&file, &mut notes)?.into_owned())
}

/// Whether a file that is not understood is none of traces: no text, or text of which most lines have neither
/// a number nor a clock time in front, or in half of the words. Such files lie beside traces in a folder.
pub fn is_foreign(file: &[u8]) -> bool {
    let mut notes = Notes::default();
    if file.starts_with(capture::magic::GZIP)
        || file.starts_with(capture::magic::XZ)
        || capture::magic::is_capture(file)
    {
        return false;
    }
    let Ok(text) = unpack::text(file, &mut notes) else { return !Trace::is_binary(file) };
    if iperf_log::is_log(&text) {
        return false;
    }
    if text.trim_start().starts_with(['{', '[']) {
        return json::read(&text, &mut notes).is_err()
            && serde_json::from_str::<serde_json::Value>(&text).is_ok();
    }
    let is_data = |line: &&str| {
        let words = line.split(|c: char| c.is_whitespace() || [',', ';', '"'].contains(&c));
        let are_values: Vec<bool> = words.filter(|word| !word.is_empty()).map(table::is_value).collect();
        are_values.first() == Some(&true)
            || 2 * are_values.iter().filter(|is| **is).count() >= are_values.len()
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    2 * lines.iter().filter(|line| is_data(line)).count() < lines.len() || lines.is_empty()
}

#[cfg(test)]
mod tests;
