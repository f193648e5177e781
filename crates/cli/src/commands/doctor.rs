//! `paceline doctor`: reports which features work on this host, and how to enable the others.

use crate::failure::Outcome;
use crate::output;
use paceline_live::probe;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let checks = probe::all();
    if args.json {
        let features = checks.iter().map(|check| {
            json!({
                "name": check.name, "works": check.problem.is_none(),
                "problem": check.problem, "detail": check.detail,
            })
        });
        let json =
            json!({"paceline": output::origin(), "cores": cores, "features": features.collect::<Value>()});
        output::print(&output::json(&json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("paceline {} ({})\n", env!("CARGO_PKG_VERSION"), env!("PACELINE_COMMIT"));
    let _ = writeln!(text, "simulate: yes, on {}", output::count(cores as u64, "core"));
    for check in checks {
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
