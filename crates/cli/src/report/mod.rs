//! `paceline report`: a results folder as one self-contained HTML page with pictures.

pub mod compare;
mod drive;
mod figures;
pub mod fit;
pub mod groups;
mod kernel;
mod map;
mod over_keys;
mod run;
mod sweep;

use crate::failure::{Failure, Outcome};
use crate::scenario_args::{self, ScenarioArgs};
use paceline_report::{html, picture};
use paceline_reproduce::page::Stored;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::link::Trace;
use serde::de::DeserializeOwned;
use std::path::Path;

pub fn page(folder: &Path) -> Outcome<String> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let swept =
        text("sweep.json").map(|text| parse::<sweep::Sweep>(folder, "sweep.json", &text)).transpose()?;
    match (text("summary.json"), swept) {
        (Some(summary), Some(swept)) => {
            let rows: Stored = parse(folder, "summary.json", &summary)?;
            Ok(rows.page(&swept.about(), &(rows.pictures() + &swept.body(folder))))
        }
        (Some(summary), None) if summary.contains("\"reproduces\": ") => {
            parts(folder, &parse(folder, "summary.json", &summary)?)
        }
        (Some(summary), None) => {
            let run: run::Run = parse(folder, "summary.json", &summary)?;
            let scenario = scenario_of(folder);
            Ok(run.page(
                text("timeseries.csv").as_deref(),
                text("resolved.toml").as_deref(),
                scenario.as_ref(),
            ))
        }
        (None, Some(swept)) => Ok(swept.page(folder)),
        (None, None) => {
            let problem = "holds no results; name a folder that run, emulate, sweep or reproduce has written";
            Err(Failure::input(format!("{}: {problem}", folder.display())))
        }
    }
}

/// The page of an experiment; its sweeps and runs each have a folder of their own.
fn parts(folder: &Path, rows: &Stored) -> Outcome<String> {
    let mut body = rows.pictures();
    for name in &rows.over_time {
        let folder = folder.join(name);
        let Ok(summary) = std::fs::read_to_string(folder.join("summary.json")) else { continue };
        let run: run::Run = parse(&folder, "summary.json", &summary)?;
        let timeseries = std::fs::read_to_string(folder.join("timeseries.csv")).ok();
        let pictures = run.over_time(timeseries.as_deref(), scenario_of(&folder).as_ref());
        body += &html::section(name, &html::figures(&pictures.concat()));
    }
    for name in rows.tables() {
        let folder = folder.join(name);
        let Ok(text) = std::fs::read_to_string(folder.join("sweep.json")) else { continue };
        let swept: sweep::Sweep = parse(&folder, "sweep.json", &text)?;
        body += &html::section(name, &swept.table());
    }
    Ok(rows.page(&rows.about(), &body))
}

/// The slots of a cell as an SVG file.
pub fn slot_map(name: &str, facts: &CellFacts) -> String {
    html::standalone(&picture::slot_map(name, facts))
}

/// The picture of a trace, a file of its own.
pub fn trace_picture(name: &str, trace: &Trace) -> String {
    html::standalone(&picture::trace_picture(name, trace))
}

fn scenario_of(folder: &Path) -> Option<paceline_sim::Scenario> {
    let scenario = folder.join("resolved.toml").display().to_string();
    scenario_args::load(&ScenarioArgs { scenario, set: Vec::new() }).ok().map(|(_, scenario)| scenario)
}

fn parse<T: DeserializeOwned>(folder: &Path, name: &str, text: &str) -> Outcome<T> {
    let bad = |error| Failure::input(format!("{}: {error}", folder.join(name).display()));
    serde_json::from_str(text).map_err(bad)
}
