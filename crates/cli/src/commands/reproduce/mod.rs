//! `paceline reproduce`: repeats a published experiment and prints the published values beside the simulated
//! ones. [`paceline_reproduce::PAPERS`] has the experiments.

mod args;
mod folders;
mod measure;

pub use args::Args;

use crate::failure::Outcome;
use crate::output;
use crate::results_folder::{check_unused, write_file, write_summary};
use anyhow::Context;
use folders::Folders;
use paceline_reproduce::{Inputs, Reproduced, Row, table};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &Args) -> Outcome {
    let (name, out) = (args.paper.name, args.out.as_deref());
    // Sweeps continue in their folder.
    if let (Some(out), Inputs::Runs | Inputs::Stations) = (out, args.paper.inputs) {
        check_unused(out)?;
    }
    let reproduced = args.paper.reproduce(&args.options, &mut Folders(args))?;
    if let Some(out) = out {
        std::fs::create_dir_all(out)
            .with_context(|| format!("--out {}: cannot be written", out.display()))?;
    }
    finish(name, &reproduced, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes `summary.json` and `rows.csv` into `out` if there is one, and prints the table.
fn finish(name: &str, reproduced: &Reproduced, out: Option<&Path>) -> anyhow::Result<()> {
    let Reproduced { conditions, about, rows } = reproduced;
    if let Some(out) = out {
        let mut summary = Map::new();
        summary.insert("paceline".into(), json!(paceline_study::origin()));
        summary.insert("reproduces".into(), json!(name));
        summary.extend(about.as_object().cloned().unwrap_or_default());
        summary.insert("rows".into(), rows.iter().map(Row::to_json).collect());
        write_summary(out, &Value::Object(summary))?;
        write_file(&out.join("rows.csv"), &table::csv(rows)).context("cannot write rows.csv")?;
    }
    output::print(&table::text(&format!("{name}, published beside ours: {conditions}"), rows))
}
