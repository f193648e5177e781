//! `paceline compare`: prints the totals of results folders side by side, and draws them.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::report::compare::{self, Column};
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_report::compare::{Side, columns, differences, differing_keys, labels, sentences, values};
use paceline_report::table::render;
use paceline_sim::results::StationResult;
use paceline_sim::{Origin, Totals};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    /// Results folders
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Write an HTML page with the table and pictures
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// A results folder.
struct Loaded {
    side: Side,
    /// Stations of all seeds.
    stations: Vec<StationResult>,
}

pub fn run(args: &Args) -> Outcome {
    let loaded: Vec<Loaded> = args.folders.iter().map(|folder| load(folder)).collect::<Outcome<_>>()?;
    let sides: Vec<Side> = loaded.iter().map(|l| l.side.clone()).collect();
    let differing = differing_keys(&sides);
    let labels = labels(&sides, &differing);
    let differences = differences(&sides);
    let sentences = sentences(&labels, &differences);
    if let Some(file) = &args.report {
        let page = page(&loaded, &labels, &differing, &sentences);
        if file.file_name().is_none() || file.is_dir() {
            return Err(Failure::input(format!("--report {}: is a folder; name a file", file.display())));
        }
        write_file(file, &page).with_context(|| format!("--report {}: cannot be written", file.display()))?;
    }
    if args.json {
        let columns = sides.iter().zip(&labels).zip(&differences).map(|((l, label), paired)| {
            let paired = paired.as_ref().map(|paired| {
                let sentence = paired.sentence();
                json!({"seeds": paired.seeds, "mean": paired.mean, "ci95": paired.ci95, "sentence": sentence})
            });
            let differing: BTreeMap<&String, Option<&String>> =
                differing.iter().map(|key| (key, l.scenario.get(key))).collect();
            json!({
                "folder": l.name, "label": label, "mode": l.mode, "differing": differing,
                "mean": l.mean, "ci95": l.ci95, "difference": paired,
            })
        });
        let json = json!({"paceline": paceline_study::origin(), "columns": columns.collect::<Value>()});
        output::print(&output::json(&json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = if sentences.is_empty() {
        String::from("No run of the others has a seed of the first: there are no pairs to compare.")
    } else {
        sentences.join("\n")
    };
    let table = render(&columns(&sides, &labels, &differences));
    output::print(&if sides.len() > 1 { format!("{table}\n{said}\n") } else { table })?;
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
    let ci95 = if json["ci95"].is_null() { None } else { Some(totals("ci95")?) };
    let runs = || json["runs"].as_array().into_iter().flatten();
    let totals_of = |run: &Value| serde_json::from_value::<Totals>(run["totals"].clone()).ok();
    let seeds = runs().filter_map(|run| Some((run["seed"].as_u64()?, totals_of(run)?)));
    let stations = runs().filter_map(|run| serde_json::from_value(run["stations"].clone()).ok());
    let stations = stations.flat_map(|stations: Vec<StationResult>| stations).collect();
    let resolved = std::fs::read_to_string(folder.join("resolved.toml")).unwrap_or_default();
    let side = Side {
        name: folder.display().to_string(),
        mode: json["mode"].as_str().unwrap_or("?").to_owned(),
        mean: totals("mean")?,
        ci95,
        scenario: values(&resolved),
        runs: seeds.collect(),
    };
    Ok(Loaded { side, stations })
}

/// The page with pictures: over the key that differs if it is one, else over the folders.
fn page(loaded: &[Loaded], labels: &[String], differing: &[String], sentences: &[String]) -> String {
    let mut key = (String::from("folder"), labels.to_vec());
    if let [one] = differing {
        let values: Vec<String> = loaded.iter().filter_map(|l| l.side.scenario.get(one).cloned()).collect();
        let distinct: BTreeSet<&String> = values.iter().collect();
        if distinct.len() == loaded.len() {
            key = (one.clone(), values);
        }
    }
    let columns = loaded.iter().zip(labels).zip(&key.1).map(|((l, label), value)| Column {
        label: label.clone(),
        value: value.clone(),
        side: l.side.clone(),
        stations: l.stations.clone(),
    });
    let folders: Vec<&str> = loaded.iter().map(|l| l.side.name.as_str()).collect();
    let Origin { version, commit } = paceline_study::origin();
    let about = format!("{}. Paceline {version} ({commit}).", folders.join(", "));
    compare::page(&key.0, &columns.collect::<Vec<_>>(), &about, sentences)
}
