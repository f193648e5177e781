//! `paceline compare`: prints the totals of results folders side by side, and draws them.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::report::compare::{self, Column};
use crate::results_folder::write_file;
use crate::table::{self, render};
use anyhow::Context;
use paceline_sim::results::StationResult;
use paceline_sim::{Origin, Totals};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keys in the label of a column at most; folders that differ in more keys are labelled by their names.
/// Chosen: longer labels make the columns wider than the figures in them.
const MAX_LABEL_KEYS: usize = 3;

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

struct Loaded {
    folder: String,
    mode: String,
    mean: Totals,
    ci95: Option<Totals>,
    /// Stations of all seeds.
    stations: Vec<StationResult>,
    /// The resolved scenario: values by dotted keys. Empty without a readable `resolved.toml`.
    scenario: BTreeMap<String, String>,
}

pub fn run(args: &Args) -> Outcome {
    let loaded: Vec<Loaded> = args.folders.iter().map(|folder| load(folder)).collect::<Outcome<_>>()?;
    let differing = differing_keys(&loaded);
    let labels = labels(&loaded, &differing);
    if let Some(file) = &args.report {
        let page = page(&loaded, &labels, &differing);
        if file.file_name().is_none() || file.is_dir() {
            return Err(Failure::input(format!("--report {}: is a folder; name a file", file.display())));
        }
        write_file(file, &page).with_context(|| format!("--report {}: cannot be written", file.display()))?;
    }
    if args.json {
        let columns = loaded.iter().zip(&labels).map(|(l, label)| {
            let differing: BTreeMap<&String, Option<&String>> =
                differing.iter().map(|key| (key, l.scenario.get(key))).collect();
            json!({
                "folder": l.folder, "label": label, "mode": l.mode, "differing": differing,
                "mean": l.mean, "ci95": l.ci95,
            })
        });
        let json = json!({"paceline": output::origin(), "columns": columns.collect::<Value>()});
        output::print(&output::json(&json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns: Vec<table::Column<'_>> = loaded
        .iter()
        .zip(labels)
        .map(|(l, name)| table::Column { name, mean: &l.mean, ci95: l.ci95.as_ref() })
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
    let ci95 = if json["ci95"].is_null() { None } else { Some(totals("ci95")?) };
    let runs = json["runs"].as_array().into_iter().flatten();
    let stations = runs.filter_map(|run| serde_json::from_value(run["stations"].clone()).ok());
    let stations = stations.flat_map(|stations: Vec<StationResult>| stations).collect();
    let resolved = std::fs::read_to_string(folder.join("resolved.toml")).unwrap_or_default();
    let mut scenario = BTreeMap::new();
    if let Ok(table) = resolved.parse::<toml::Table>() {
        flatten(&toml::Value::Table(table), String::new(), &mut scenario);
    }
    Ok(Loaded {
        folder: folder.display().to_string(),
        mode: json["mode"].as_str().unwrap_or("?").to_owned(),
        mean: totals("mean")?,
        ci95,
        stations,
        scenario,
    })
}

/// The page with pictures: over the key that differs if it is one, else over the folders.
fn page(loaded: &[Loaded], labels: &[String], differing: &[String]) -> String {
    let mut key = (String::from("folder"), labels.to_vec());
    if let [one] = differing {
        let values: Vec<String> = loaded.iter().filter_map(|l| l.scenario.get(one).cloned()).collect();
        let distinct: BTreeSet<&String> = values.iter().collect();
        if distinct.len() == loaded.len() {
            key = (one.clone(), values);
        }
    }
    let columns = loaded.iter().zip(labels).zip(&key.1).map(|((l, label), value)| Column {
        label: label.clone(),
        value: value.clone(),
        mean: l.mean.clone(),
        ci95: l.ci95.clone(),
        stations: l.stations.clone(),
    });
    let folders: Vec<&str> = loaded.iter().map(|l| l.folder.as_str()).collect();
    let Origin { version, commit } = output::origin();
    let about = format!("{}. Paceline {version} ({commit}).", folders.join(", "));
    compare::page(&key.0, &columns.collect::<Vec<_>>(), &about)
}

/// The values of a document by their dotted keys; tables in an array are numbered, other arrays are values.
fn flatten(value: &toml::Value, path: String, flat: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        toml::Value::Table(table) => {
            table.iter().for_each(|(name, value)| flatten(value, below(name), flat));
        }
        toml::Value::Array(values) if values.iter().any(toml::Value::is_table) => {
            values.iter().enumerate().for_each(|(i, value)| flatten(value, below(&i.to_string()), flat));
        }
        toml::Value::String(text) => drop(flat.insert(path, text.clone())),
        other => drop(flat.insert(path, other.to_string())),
    }
}

/// The scenario keys whose values are not the same in all folders.
fn differing_keys(loaded: &[Loaded]) -> Vec<String> {
    let keys: BTreeSet<&String> = loaded.iter().flat_map(|l| l.scenario.keys()).collect();
    let differs = |key: &&String| loaded.iter().any(|l| l.scenario.get(*key) != loaded[0].scenario.get(*key));
    keys.into_iter().filter(differs).cloned().collect()
}

/// The labels of the columns: the values of the keys that differ, or the folders' names where none or too
/// many differ. A folder's name is added where two labels would be the same.
fn labels(loaded: &[Loaded], differing: &[String]) -> Vec<String> {
    let by_folder = differing.is_empty()
        || differing.len() > MAX_LABEL_KEYS
        || loaded.iter().any(|l| l.scenario.is_empty());
    let one_mode = loaded.iter().all(|l| l.mode == loaded[0].mode);
    let label = |l: &Loaded| {
        let mut label = if by_folder {
            l.folder.clone()
        } else {
            let part = |key: &String| {
                format!("{}={}", short(key, differing), l.scenario.get(key).map_or("-", |v| v))
            };
            differing.iter().map(part).collect::<Vec<_>>().join(" ")
        };
        if !one_mode || l.mode != "simulated" {
            label += &format!(" ({})", l.mode);
        }
        label
    };
    let labels: Vec<String> = loaded.iter().map(label).collect();
    let same = |label: &String| labels.iter().filter(|other| *other == label).count() > 1;
    let unique = |(label, l): (&String, &Loaded)| {
        if same(label) && !by_folder { format!("{label} in {}", l.folder) } else { label.clone() }
    };
    labels.iter().zip(loaded).map(unique).collect()
}

/// The last part of a key, or the whole key if another one ends in the same part.
fn short<'a>(key: &'a str, all: &[String]) -> &'a str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let same = all.iter().filter(|other| last(other) == last(key)).count();
    if same > 1 { key } else { &key[key.rfind('.').map_or(0, |at| at + 1)..] }
}
