//! Finds and reads a scenario: a file, or a built-in scenario by its name.

use crate::error::InputError;
use crate::similar;
use paceline_sim::link::{PREFIX, generated, generated_kinds};
use paceline_sim::scenario::reference;
use paceline_sim::{Scenario, ScenarioError, scenario};
use std::path::Path;

/// Names and texts of the built-in scenarios, the same as the files in `scenarios/`.
const BUILT_IN: [(&str, &str); 20] = [
    ("uplink-limited", include_str!("../../../scenarios/uplink-limited.toml")),
    ("single-station", include_str!("../../../scenarios/single-station.toml")),
    ("ack-filter-paper", include_str!("../../../scenarios/ack-filter-paper.toml")),
    ("accelerator-3g", include_str!("../../../scenarios/accelerator-3g.toml")),
    ("accelerator-lte", include_str!("../../../scenarios/accelerator-lte.toml")),
    ("accelerator-trace", include_str!("../../../scenarios/accelerator-trace.toml")),
    ("private-5g", include_str!("../../../scenarios/private-5g.toml")),
    ("private-5g-n79", include_str!("../../../scenarios/private-5g-n79.toml")),
    ("fwa-5g", include_str!("../../../scenarios/fwa-5g.toml")),
    ("mmwave", include_str!("../../../scenarios/mmwave.toml")),
    ("nr-fdd-20mhz", include_str!("../../../scenarios/nr-fdd-20mhz.toml")),
    ("lte-tdd", include_str!("../../../scenarios/lte-tdd.toml")),
    ("d2d-static", include_str!("../../../scenarios/d2d-static.toml")),
    ("d2d-dynamic", include_str!("../../../scenarios/d2d-dynamic.toml")),
    ("d2d-nr", include_str!("../../../scenarios/d2d-nr.toml")),
    ("drive", include_str!("../../../scenarios/drive.toml")),
    ("parity-fixed", include_str!("../../../scenarios/parity-fixed.toml")),
    ("parity-loss", include_str!("../../../scenarios/parity-loss.toml")),
    ("parity-trace", include_str!("../../../scenarios/parity-trace.toml")),
    ("parity-cell", include_str!("../../../scenarios/parity-cell.toml")),
];

/// Reads a scenario's text and its traces: generated traces, or files with paths relative to the scenario's
/// folder.
pub fn parse(file: &str, text: &str, set: &[String]) -> Result<Scenario, ScenarioError> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    parse_with(file, text, set, &|name| read_trace(folder, name))
}

/// Reads a scenario's text; `read` gives the file of a trace by its name.
pub fn parse_with(
    file: &str,
    text: &str,
    set: &[String],
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Scenario, ScenarioError> {
    scenario::load_with(file, text, set, read).map_err(with_suggestions)
}

/// Reads a scenario's text where no files are, as in a browser: traces are generated ones.
pub fn parse_without_files(file: &str, text: &str, set: &[String]) -> Result<Scenario, ScenarioError> {
    parse_with(file, text, set, &generated_trace)
}

/// The file of a generated trace; an error for other names.
pub fn generated_trace(name: &str) -> Result<Vec<u8>, String> {
    match generated(name) {
        Some(generated) => generated.map(|trace| trace.to_file()),
        None => {
            Err(format!("{name}: a file, of which there are none here; give for example generated:driving"))
        }
    }
}

/// A trace of one packet in place of a generated one, which takes long: for the check of keys that do not
/// depend on it.
pub(crate) fn short_trace(name: &str) -> Result<Vec<u8>, String> {
    let kind = name.strip_prefix(PREFIX).and_then(|rest| rest.split(':').next());
    if generated_kinds().any(|known| Some(known) == kind) {
        Ok(b"1\n".to_vec())
    } else {
        generated_trace(name)
    }
}

/// The comment at the head of a built-in scenario: its description, in sentences.
pub fn description(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Names of the built-in scenarios.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Names that a message lists at most. Chosen: two lines of a terminal, with all tables of a scenario; more
/// are printed by `check`.
const MOST_LISTED: usize = 12;

/// Adds keys or words that resemble a mistyped one to a message, and the form of a table that is written in
/// another; long lists of names are left to `paceline check`.
fn with_suggestions(mut error: ScenarioError) -> ScenarioError {
    let Some(key) = error.key.as_deref().map(similar::without_indices) else { return error };
    let (tables, entries) = (reference::tables(), reference::entries());
    let entry = || entries.iter().find(|entry| entry.path == key);
    let mut rest = String::new();
    let found = if error.message.starts_with("unknown field") {
        let table = key.rsplit_once('.').map_or("", |(table, _)| table);
        rest = format!("`paceline check --explain {table}` lists the keys of [{table}]");
        similar::similar(&key, similar::known_paths().iter().map(String::as_str))
    } else if let Some((entry, value)) = entry().zip(error.value.as_ref()) {
        let word = value.trim_matches('"');
        let words = entry.values.iter().map(|(known, _)| known.as_str());
        rest = format!("`paceline check --explain {key}` lists the values");
        if words.clone().any(|known| known == word) { Vec::new() } else { similar::similar(word, words) }
    } else {
        let wrong_type = error.message.starts_with("invalid type");
        if let Some(table) = tables.iter().find(|table| table.path == key && wrong_type) {
            error.message += &format!("; write {}", similar::as_written(table, error.value.as_deref()));
        }
        Vec::new()
    };
    let listed = error
        .message
        .split_once(", expected one of ")
        .filter(|(_, list)| list.split(", ").count() > MOST_LISTED);
    error.message = match listed {
        Some((problem, _)) if found.is_empty() => format!("{problem}; {rest}"),
        Some((problem, _)) => format!("{problem}{} {rest}", similar::hint(&found)),
        None => format!("{}{}", error.message, similar::hint(&found)),
    };
    error
}

/// The file of a trace: a generated trace, or a file with a path relative to `folder`.
pub fn read_trace(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    if let Some(generated) = generated(name) {
        return generated.map(|trace| trace.to_file());
    }
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| {
        format!("{}: {error}; give a trace in mahimahi's format, or generated:driving", path.display())
    })
}

/// Name and text of a built-in scenario. Panics if there is none of this name.
pub fn built_in(name: &str) -> (String, &'static str) {
    let found = BUILT_IN.iter().find(|(other, _)| *other == name);
    let (name, text) = found.expect("the name of a built-in scenario");
    ((*name).to_owned(), text)
}

/// Name and text of a scenario: a file, or a built-in scenario if there is no file of this name.
pub fn find(given: &str) -> Result<(String, String), InputError> {
    let path = Path::new(given);
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == given).filter(|_| !path.exists()) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidData {
            return InputError::text(format!("{given}: not a text file in UTF-8"));
        }
        let hint = similar::hint(&similar_files(path, given));
        let known = "give a scenario file, or the name of a built-in one (`paceline check --list`)";
        InputError::text(format!("{given}: {error}; {known}{hint}"))
    })?;
    let name = path.file_stem().map_or_else(|| given.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok((name, text))
}

/// Built-in scenarios, and scenario files in the folder of a file that does not exist, with names like it.
fn similar_files(path: &Path, given: &str) -> Vec<String> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut known: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    known.sort_unstable();
    if let Some(folder) = folder {
        known.iter_mut().for_each(|name| *name = folder.join(&*name).display().to_string());
    }
    known.extend(built_in_names().map(str::to_owned));
    similar::similar_names(given, known.iter().map(String::as_str))
}
