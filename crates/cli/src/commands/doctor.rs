//! `paceline doctor`: what this host can do, and what to do about what it cannot.

use crate::failure::Outcome;
use paceline_live::probe;
use std::process::ExitCode;

pub fn run() -> Outcome {
    println!("paceline {} ({})", env!("CARGO_PKG_VERSION"), env!("PACELINE_COMMIT"));
    println!("simulate: yes, on {} cores", std::thread::available_parallelism().map_or(1, usize::from));
    for check in probe::all() {
        match check.problem {
            None => {
                println!("{}: yes{}", check.name, check.detail.map_or(String::new(), |d| format!(" ({d})")))
            }
            Some(problem) => println!("{}: no: {problem}", check.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}
