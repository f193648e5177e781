//! The outcome of a reproduced experiment: `summary.json`, `rows.csv`, and the table on stdout.

use crate::output;
use crate::published;
use crate::results_folder::{write_file, write_summary};
use anyhow::Context;
use paceline_sim::reproduce::Row;
use paceline_study::reproduce::Reproduced;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Writes both files into `out` if there is one, and prints the table.
pub fn finish(reproduced: &Reproduced, out: Option<&Path>) -> anyhow::Result<()> {
    let Reproduced { name, conditions, about, rows } = reproduced;
    let rows: Value = rows.iter().map(Row::to_json).collect();
    let shown: Vec<published::Row> = serde_json::from_value(rows.clone()).expect("rows have these fields");
    if let Some(out) = out {
        let mut summary = Map::new();
        summary.insert("paceline".into(), json!(paceline_study::origin()));
        summary.insert("reproduces".into(), json!(name));
        summary.extend(about.as_object().cloned().unwrap_or_default());
        summary.insert("rows".into(), rows);
        write_summary(out, &Value::Object(summary))?;
        write_file(&out.join("rows.csv"), &published::csv(&shown)).context("cannot write rows.csv")?;
    }
    output::print(&published::text(&format!("{name}, published beside ours: {conditions}"), &shown))
}
