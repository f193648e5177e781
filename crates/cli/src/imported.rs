//! Traces of files in any format that is imported.

use paceline_import::{Imported, Options, import};
use paceline_sim::link::Trace;
use std::path::Path;

/// A file's trace, and the statements about it, one per line.
pub fn imported(input: &Path, options: &Options) -> Result<(Trace, String), String> {
    let name = input.display();
    let file = std::fs::read(input).map_err(|error| format!("{name}: {error}"))?;
    let Imported { trace, notes } = import(&file, options).map_err(|error| format!("{name}: {error}"))?;
    let (length, mean) = (trace.length_ms() as f64 / 1000.0, trace.rate() / 1e6);
    let result = format!("{} opportunities in {length:.3} s, mean {mean:.3} Mb/s", trace.count_all());
    let text = notes.iter().chain([&result]).map(|note| format!("{name}: {note}\n")).collect();
    Ok((trace, text))
}
