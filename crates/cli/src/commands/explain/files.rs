//! The results folder: the JSON, a table of the connections and the page.

use super::page::page;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_explain::report::Explanation;
use paceline_gain::Gain;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Columns in front of the others, which are in the order of their names: they name a row.
const FIRST: [&str; 4] = ["client", "server", "interface", "data_from"];

/// Writes the folder under a hidden name and renames it when it is complete.
pub fn write(
    folder: &Path,
    explanation: &Explanation,
    gain: Option<&Gain>,
    json: &str,
) -> anyhow::Result<()> {
    let context = || format!("--out {}: cannot be written", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    write_file(&folder.join("connections.csv"), &csv(explanation)?).with_context(context)?;
    write_file(&folder.join("explain.json"), json).with_context(context)?;
    if let Some(gain) = gain {
        write_file(&folder.join("gain.csv"), &super::gain::csv(gain)?).with_context(context)?;
    }
    write_file(&folder.join("report.html"), &page(explanation, gain)).with_context(context)
}

/// The connections as a table: the figures of the JSON, those of tables and lists left out.
fn csv(explanation: &Explanation) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut has_heading = false;
    for connection in &explanation.connections {
        let value = serde_json::to_value(connection)?;
        let mut cells = Vec::new();
        flatten("", &value, &mut cells);
        cells.sort_by_key(|(name, _)| FIRST.iter().position(|first| name == first).unwrap_or(FIRST.len()));
        if !has_heading {
            writer.write_record(cells.iter().map(|(name, _)| name))?;
            has_heading = true;
        }
        writer.write_record(cells.iter().map(|(_, cell)| cell))?;
    }
    Ok(String::from_utf8(writer.into_inner().context("the table is in memory")?)?)
}

/// The cells of an object, with the names of nested ones in front. Options of SYNs and
/// figures over time are in the JSON alone.
fn flatten(prefix: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let name = format!("{prefix}{key}");
        match value {
            _ if key.ends_with("_offer") || key == "over_time" => {}
            Value::Object(_) => flatten(&format!("{name}."), value, cells),
            Value::Array(list) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                cells.push((name, words.join("; ")));
            }
            Value::Null => cells.push((name, String::new())),
            Value::String(text) => cells.push((name, text.clone())),
            other => cells.push((name, other.to_string())),
        }
    }
}
