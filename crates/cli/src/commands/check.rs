//! `paceline check`: validates a scenario and prints it with all defaults, or prints the reference of
//! scenario keys: one entry, the whole document, or the JSON schema; or lists the built-in scenarios.

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::scenario_args::{self, ScenarioArgs};
use paceline_report::table::align;
use paceline_sim::scenario::reference::{self, Default, Entry, Table};
use paceline_study::{scenario_file, similar};
use std::fmt::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    scenario: Option<ScenarioArgs>,
    #[command(flatten)]
    reference: ReferenceArgs,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct ReferenceArgs {
    /// Print the entry of a scenario key, for example cell.uplink_bandwidth, or the keys of a table
    #[arg(long, value_name = "KEY", conflicts_with = "ScenarioArgs")]
    explain: Option<String>,
    /// Print the built-in scenarios
    #[arg(long, conflicts_with = "ScenarioArgs")]
    list: bool,
    /// Print the JSON schema of scenario files, for editors
    #[arg(long, conflicts_with = "ScenarioArgs")]
    schema: bool,
    /// Print the reference of scenario files, a Markdown document
    #[arg(long, conflicts_with = "ScenarioArgs")]
    reference: bool,
}

pub fn run(args: &Args) -> Outcome {
    let text = match (&args.reference, &args.scenario) {
        (ReferenceArgs { explain: Some(key), .. }, _) => explain(key)?,
        (ReferenceArgs { list: true, .. }, _) => list(),
        (ReferenceArgs { schema: true, .. }, _) => {
            serde_json::to_string_pretty(&reference::schema()).expect("a schema is plain data") + "\n"
        }
        (ReferenceArgs { reference: true, .. }, _) => reference::markdown(),
        (_, Some(scenario)) => {
            let scenario = scenario_args::load(scenario)?.1;
            scenario_args::warn(&scenario);
            scenario.to_toml()
        }
        (_, None) => {
            return Err(Failure::input("give a scenario, or --explain KEY, --list, --schema or --reference"));
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The built-in scenarios with the first sentences of their descriptions.
fn list() -> String {
    let line = |name: &str| {
        let (name, text) = scenario_file::built_in(name);
        let about = scenario_file::description(text);
        let first = about.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned();
        vec![name, first]
    };
    align(&scenario_file::built_in_names().map(line).collect::<Vec<_>>(), 2)
}

/// The entry of a key, or the keys of a table.
fn explain(asked: &str) -> Outcome<String> {
    let path = similar::without_indices(asked);
    let (tables, entries) = (reference::tables(), reference::entries());
    if let Some(table) = tables.iter().find(|table| table.path == path) {
        return Ok(describe_table(table, &tables, &entries));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.path == path) {
        return Ok(describe_entry(entry));
    }
    let known = similar::known_paths();
    let hint = similar::hint(&similar::similar(&path, known.iter().map(String::as_str)));
    Err(Failure::input(format!("--explain {asked}: no key of a scenario{hint}")))
}

fn describe_table(table: &Table, tables: &[Table], entries: &[Entry]) -> String {
    let mut text = format!("{}\n  {}\n", heading(table), table.meaning);
    let of_table = |entry: &&Entry| entry.path.rsplit_once('.').is_some_and(|(of, _)| of == table.path);
    let entries: Vec<&Entry> = entries.iter().filter(of_table).collect();
    if !entries.is_empty() {
        let mut lines = vec![["key", "default", "meaning"].map(str::to_owned).to_vec()];
        lines.extend(entries.iter().map(|entry| {
            let first = entry.meaning.split_inclusive(". ").next().unwrap_or_default();
            vec![entry.path.clone(), default(entry), first.trim_end().to_owned()]
        }));
        let _ = write!(text, "\n{}", align(&lines, 3));
    }
    let inner = format!("{}.", table.path);
    let inner = tables.iter().filter(|other| other.path.starts_with(&inner));
    inner.for_each(|other| {
        let _ = write!(text, "\n{}\n  {}\n", heading(other), other.meaning);
    });
    text
}

fn heading(table: &Table) -> String {
    if table.repeated { format!("[[{}]]", table.path) } else { format!("[{}]", table.path) }
}

fn describe_entry(entry: &Entry) -> String {
    let Entry { path, kind, unit, allowed, meaning, values, .. } = entry;
    let mut text = format!("{path}\n  {meaning}\n\n  type:    {kind}\n");
    if !unit.is_empty() {
        let _ = writeln!(text, "  unit:    {unit}");
    }
    let _ = writeln!(text, "  default: {}\n  allowed: {allowed}", default(entry));
    let width = values.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    for (word, meaning) in values {
        let _ = writeln!(text, "    {word:width$}  {meaning}");
    }
    text
}

fn default(entry: &Entry) -> String {
    match &entry.default {
        Default::Value(text) | Default::Computed(text) => text.clone(),
        Default::LeftOut => "left out".to_owned(),
        Default::Required => "required".to_owned(),
    }
}
