//! Files of traces that are written.

use crate::failure::{Failure, Outcome};
use crate::output;
use anyhow::Context;
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
