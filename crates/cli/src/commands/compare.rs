//! `paceline compare`: prints the totals of results folders side by side.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::table::{Column, render};
use paceline_sim::Totals;
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
}

struct Loaded {
    folder: String,
    mode: String,
    mean: Totals,
    ci95: Option<Totals>,
    /// The resolved scenario: values by dotted keys. Empty without a readable `resolved.toml`.
    scenario: BTreeMap<String, String>,
}

pub fn run(args: &Args) -> Outcome {
    let loaded: Vec<Loaded> = args.folders.iter().map(|folder| load(folder)).collect::<Outcome<_>>()?;
    let differing = differing_keys(&loaded);
    let labels = labels(&loaded, &differing);
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
    let columns: Vec<Column<'_>> = loaded
        .iter()
        .zip(labels)
        .map(|(l, name)| Column { name, mean: &l.mean, ci95: l.ci95.as_ref() })
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
        scenario,
    })
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
