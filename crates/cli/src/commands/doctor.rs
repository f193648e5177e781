//! `paceline doctor`: reports which features work on this host, and how to enable the others.

use crate::failure::Outcome;
use crate::output;
use paceline_live::probe;
use std::fmt::Write;
use std::process::ExitCode;

pub fn run() -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!("paceline {} ({})\n", env!("CARGO_PKG_VERSION"), env!("PACELINE_COMMIT"));
    let _ = writeln!(text, "simulate: yes, on {cores} cores");
    for check in probe::all() {
        let answer = match (check.problem, check.detail) {
            (Some(problem), _) => format!("no: {problem}"),
            (None, Some(detail)) => format!("yes ({detail})"),
            (None, None) => String::from("yes"),
        };
        let _ = writeln!(text, "{}: {answer}", check.name);
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
