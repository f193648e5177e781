//! Files of traces: imported ones, and written ones.

use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use paceline_import::{Imported, Options, import};
use paceline_sim::link::{Trace, TraceError};
use std::path::Path;
use std::process::ExitCode;

/// Form of a written trace
#[derive(Clone, Copy, Default, PartialEq, clap::ValueEnum)]
pub enum Form {
    /// Text up to 4 MB, the binary form beyond; text on stdout
    #[default]
    Auto,
    /// Mahimahi's format
    Text,
    /// A few bytes per millisecond
    Binary,
}

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

/// Writes a trace to a new file, or to stdout.
pub fn write(trace: Result<Trace, TraceError>, out: Option<&Path>, form: Form) -> Outcome {
    let trace = trace.map_err(|error| Failure::input(error.to_string()))?;
    let file = match form {
        Form::Auto if out.is_some() => trace.to_file(),
        Form::Binary => trace.to_binary(),
        _ => trace.to_text().into(),
    };
    match out {
        Some(path) => {
            if path.exists() {
                return Err(Failure::input(format!("--out {}: exists; name another file", path.display())));
            }
            std::fs::write(path, file).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => output::print_bytes(&file)?,
    }
    Ok(ExitCode::SUCCESS)
}
