//! The outcome of a reproduced experiment: `summary.json`, `rows.csv`, and the table on stdout.

use crate::output;
use crate::published;
use crate::results_folder::{write_file, write_summary};
use anyhow::Context;
use paceline_sim::reproduce::Row;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Writes both files into `out` if there is one, and prints the table. `about` are keys of `summary.json`
/// beside the rows, `conditions` the conditions of the runs in words.
pub fn finish(
    name: &str,
    conditions: &str,
    about: Value,
    rows: &[Row],
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let rows: Value = rows.iter().map(Row::to_json).collect();
    let shown: Vec<published::Row> = serde_json::from_value(rows.clone()).expect("rows have these fields");
    if let Some(out) = out {
        let mut summary = Map::new();
        summary.insert("paceline".into(), json!(output::origin()));
        summary.insert("reproduces".into(), json!(name));
        summary.extend(about.as_object().cloned().unwrap_or_default());
        summary.insert("rows".into(), rows);
        write_summary(out, &Value::Object(summary))?;
        write_file(&out.join("rows.csv"), &published::csv(&shown)).context("cannot write rows.csv")?;
    }
    output::print(&published::text(&format!("{name}, published beside ours: {conditions}"), &shown))
}

/// Seeds and settings of simulated runs in words.
pub fn conditions(seeds: u64, set: &[String]) -> String {
    let runs = if seeds == 1 {
        String::from("1 seed")
    } else {
        format!("{seeds} seeds, mean ± 95% confidence interval")
    };
    let set = if set.is_empty() { String::new() } else { format!("; set: {}", set.join(", ")) };
    runs + &set
}
