//! `paceline doctor`: reports which features work on this host, and how to enable the others.

use crate::failure::Outcome;
use crate::output;
use paceline_live::linux::kernel::Kernel;
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
    let kernel = Kernel::running().map(|kernel| kernel.version.to_string());
    if args.json {
        let features = checks.iter().map(|check| {
            json!({
                "name": check.name, "works": check.problem.is_none(),
                "problem": check.problem, "detail": check.detail, "least_kernel": check.least_kernel,
            })
        });
        let json = json!({
            "paceline": paceline_study::origin(), "cores": cores, "kernel": kernel,
            "features": features.collect::<Value>(),
        });
        output::print(&output::json(&json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("paceline {}\n", paceline_study::VERSION);
    let _ = writeln!(text, "simulate: yes, on {}", paceline_report::count(cores as u64, "core"));
    let needs: Vec<String> = checks
        .iter()
        .filter_map(|check| Some(format!("{} {}", check.name, check.least_kernel.as_ref()?)))
        .collect();
    let kernel = kernel.as_deref().unwrap_or("unknown");
    let _ = writeln!(text, "kernel: Linux {kernel}; needed: {}", needs.join(", "));
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
