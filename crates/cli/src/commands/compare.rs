//! `paceline compare`: prints the totals of results folders side by side.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::table::{Column, render};
use paceline_sim::Totals;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Results folders
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

struct Loaded {
    name: String,
    mean: Totals,
    ci95: Option<Totals>,
}

pub fn run(args: &Args) -> Outcome {
    let loaded: Vec<Loaded> = args.folders.iter().map(|folder| load(folder)).collect::<Outcome<_>>()?;
    let columns: Vec<Column<'_>> = loaded
        .iter()
        .map(|l| Column { name: l.name.clone(), mean: &l.mean, ci95: l.ci95.as_ref() })
        .collect();
    output::print(&render(&columns))?;
    Ok(ExitCode::SUCCESS)
}

fn load(folder: &Path) -> Outcome<Loaded> {
    let file = folder.join("summary.json");
    let bad = |problem: String| Failure::input(format!("{}: {problem}", file.display()));
    let missing = "no results of run or emulate here";
    let text = std::fs::read_to_string(&file).map_err(|error| bad(format!("{missing}: {error}")))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let totals =
        |key: &str| serde_json::from_value(json[key].clone()).map_err(|e| bad(format!("{key}: {e}")));
    if json["mean"].is_null() {
        return Err(bad(String::from("holds no single run to compare; name folders of run or emulate")));
    }
    let text = |key: &str| json[key].as_str().unwrap_or("?").to_owned();
    let name = match text("mode").as_str() {
        "simulated" => text("scheme"),
        mode => format!("{} ({mode})", text("scheme")),
    };
    let ci95 = if json["ci95"].is_null() { None } else { Some(totals("ci95")?) };
    Ok(Loaded { name, mean: totals("mean")?, ci95 })
}
