//! Loads a scenario: parses the text, applies `key=value` overrides, reads the types, checks the values, and
//! reads the traces. An error names file, line, key, value and allowed values.

use super::checks::{in_force, tables};
use super::file::File;
use super::former;
use super::{Core, Scenario};
use paceline_net::trace::Trace;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// An error in a scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioError {
    /// The scenario's file.
    pub file: String,
    /// The line, from 1; `None` if an override may have the value.
    pub line: Option<usize>,
    /// Dotted path of the key, if one is known.
    pub key: Option<String>,
    /// The value of the key, if one is known.
    pub value: Option<String>,
    /// The problem, or the allowed values.
    pub message: String,
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// The allowed values, where the message states them.
    pub fn allowed(&self) -> Option<&str> {
        let message = self.message.split("; did you mean ").next().unwrap_or_default();
        message.strip_prefix("allowed: ").or_else(|| Some(message.split_once(", expected ")?.1))
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        if let Some(value) = &self.value {
            write!(f, " = {value}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Loads the scenario `text` of `file`, with `overrides` of the form `key=value`. A scenario that names
/// traces is an error: see [`load_with`].
pub fn load(file: &str, text: &str, overrides: &[String]) -> Result<Scenario, ScenarioError> {
    load_with(file, text, overrides, &|_| Err("files of scenarios are not read here".into()))
}

/// Loads a scenario as [`load`] does. `read` gives the file of a trace by its name, or an error message.
pub fn load_with(
    file: &str,
    text: &str,
    overrides: &[String],
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Scenario, ScenarioError> {
    let error =
        |message: String| ScenarioError { file: file.into(), line: None, key: None, value: None, message };
    if text.trim().is_empty() {
        return Err(error("the file is empty; a scenario needs at least one [[station]] table".into()));
    }
    let mut document: DocumentMut = text.parse().map_err(|parse: toml_edit::TomlError| {
        let line = parse.span().map(|span| line_of(text, span.start));
        let shown = line.and_then(|line| text.lines().nth(line - 1)).unwrap_or_default().trim();
        let message = format!("not valid TOML: {} in `{shown}`", parse.message().trim().replace('\n', ", "));
        // The parser states a duplicate key only by its place.
        let duplicate = parse.span().filter(|_| parse.message() == "duplicate key");
        let key = duplicate.and_then(|span| text.get(span)).map(str::to_owned);
        ScenarioError { line, key, ..error(message) }
    })?;
    let mut renamed = former::rename_keys(&mut document).map_err(&error)?;
    for text in overrides {
        let (setting, notes) = former::rename_setting(text);
        apply(&mut document, &setting).map_err(|message| error(format!("--set {text}: {message}")))?;
        for note in notes {
            if !renamed.contains(&note) {
                renamed.push(note);
            }
        }
    }
    let resolved = document.to_string();
    let changed = !overrides.is_empty();
    let parsed: File = toml::from_str(&resolved).map_err(|parse| {
        let start = parse.span().map_or(0, |span| span.start);
        let (key, value) = key_at(&resolved, start);
        let line = (!changed).then(|| line_of(&resolved, start));
        let (file, message) = (file.to_owned(), with_toml_types(parse.message()));
        ScenarioError { file, line, key, value, message }
    })?;
    let lines = lines_of_keys(&resolved);
    let given = |key: &str| lines.contains_key(key);
    let place = |key: &str| if changed { None } else { lines.get(key).copied() };
    let loaded = parsed.into_scenario(&given).and_then(|scenario| {
        tables::check(&scenario)?;
        in_force::check(&File::table_of(&scenario), &given)?;
        Ok(scenario)
    });
    let mut scenario = loaded.map_err(|problem| ScenarioError {
        file: file.to_owned(),
        line: place(&problem.key),
        message: problem.message(),
        key: Some(problem.key),
        value: Some(problem.value).filter(|value| !value.is_empty()),
    })?;
    scenario.renamed = renamed;
    for (key, trace) in scenario.traces_mut() {
        let bad = |message: String| ScenarioError {
            file: file.to_owned(),
            line: place(key),
            key: Some(key.to_owned()),
            value: Some(format!("{:?}", trace.name)),
            message,
        };
        let file = read(&trace.name).map_err(bad)?;
        let parsed = Trace::read(&file).map_err(|error| bad(format!("{}: {error}", trace.name)))?;
        trace.trace = Some(Arc::new(parsed));
    }
    Ok(scenario)
}

/// Replaces Rust types in messages of the deserializer by TOML types.
fn with_toml_types(message: &str) -> String {
    // Words of serde's messages, and of the TOML specification. Chosen: the types that keys have.
    const WORDS: [(&str, &str); 8] = [
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected a sequence", "expected an array"),
        ("expected a boolean", "expected true or false"),
        ("invalid type: map", "invalid type: table"),
    ];
    let mut text = message.trim().replace('\n', " ");
    // A type stands at the end of the message or before a comma. This keeps "u8" from matching a longer name.
    for (from, to) in WORDS {
        if text.ends_with(from) || text.contains(&format!("{from},")) || from.starts_with("invalid") {
            text = text.replace(from, to);
        }
    }
    match text.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => text,
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Sets one dotted key. Creates missing tables; an index selects an element of an array.
fn apply(document: &mut DocumentMut, text: &str) -> Result<(), String> {
    let (path, value) =
        text.split_once('=').ok_or("write key=value, for example cell.bandwidth=\"10 MHz\"")?;
    let value = value.trim();
    // On a command line, words and quantities need no quotes.
    let value = value.parse().or_else(|_| format!("{value:?}").parse());
    let mut value: Value = value.map_err(|_| "not a value")?;
    let keys: Vec<&str> = path.trim().split('.').collect();
    let (last, tables) = keys.split_last().ok_or("no key")?;
    if keys.iter().any(|key| key.is_empty()) {
        return Err("a part of the key is empty".into());
    }
    let mut at: &mut Item = document.as_item_mut();
    let mut rest = tables;
    while let Some((key, after)) = rest.split_first() {
        rest = after;
        let table = at.as_table_like_mut().ok_or_else(|| format!("`{key}` is not inside a table"))?;
        let missing = if tables[..tables.len() - rest.len()] == ["core", "hops"] {
            default_hops
        } else {
            toml_edit::table
        };
        at = table.entry(key).or_insert_with(missing);
        if at.is_array_of_tables() || at.as_array().is_some() {
            at = element(at, &mut rest, key)?;
        }
    }
    let table = at.as_table_like_mut().ok_or_else(|| format!("`{last}` is not inside a table"))?;
    // A comment behind the former value stays.
    if let Some(former) = table.get(last).and_then(Item::as_value) {
        *value.decor_mut() = former.decor().clone();
    }
    table.insert(last, Item::Value(value));
    Ok(())
}

/// The hops of a file that states none, as `core.hops`.
fn default_hops() -> Item {
    let core = toml_edit::ser::to_document(&Core::default()).expect("a table of numbers and words");
    let mut hops = core.get("hops").cloned().unwrap_or_default();
    hops.make_value();
    hops
}

/// The text of a scenario with one setting `key=value`; comments and the order of the keys stay.
pub fn with_setting(text: &str, setting: &str) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|_| "the text is not valid TOML")?;
    former::rename_keys(&mut document)?;
    apply(&mut document, &former::rename_setting(setting).0)?;
    Ok(document.to_string())
}

/// The element of an array whose index is the next key; without an index, the only element.
fn element<'a>(array: &'a mut Item, rest: &mut &[&str], key: &str) -> Result<&'a mut Item, String> {
    let len = array
        .as_array_of_tables()
        .map_or_else(|| array.as_array().map_or(0, toml_edit::Array::len), |a| a.len());
    let named = rest.first().and_then(|index| index.parse::<usize>().ok());
    let index = match named {
        Some(index) => {
            *rest = &rest[1..];
            index
        }
        None if len == 1 => 0,
        None => {
            return Err(format!(
                "there are {len} of `{key}`: write {key}.0 to {key}.{}",
                len.saturating_sub(1)
            ));
        }
    };
    array.get_mut(index).ok_or_else(|| format!("`{key}` has {len} elements, there is no {key}.{index}"))
}

/// The dotted key at a byte offset, and the text of its value.
fn key_at(text: &str, offset: usize) -> (Option<String>, Option<String>) {
    let Ok(document) = toml_edit::Document::parse(text) else { return (None, None) };
    let mut best = None;
    visit(document.as_table(), "", &mut |path, key_span, item_span| {
        let span = item_span.clone().unwrap_or_default();
        let inside = |span: &std::ops::Range<usize>| span.contains(&offset);
        if inside(&span) || key_span.as_ref().is_some_and(inside) {
            let value = text.get(span).filter(|value| !value.contains('\n') && !value.starts_with('['));
            best = Some((path.to_owned(), value.map(str::to_owned)));
        }
    });
    best.map_or((None, None), |(key, value)| (Some(key), value))
}

/// The line of every dotted key.
fn lines_of_keys(text: &str) -> BTreeMap<String, usize> {
    let Ok(document) = toml_edit::Document::parse(text) else { return BTreeMap::new() };
    // Offsets at which lines end: a file may have a hundred thousand keys.
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    let mut lines = BTreeMap::new();
    visit(document.as_table(), "", &mut |path, key_span, item_span| {
        if let Some(span) = key_span.or(item_span) {
            lines.insert(path.to_owned(), ends.partition_point(|end| *end < span.start) + 1);
        }
    });
    lines
}

type Span = Option<std::ops::Range<usize>>;

/// Calls `f(path, span of the key, span of the value)` for every key, outer ones first.
fn visit(table: &dyn TableLike, prefix: &str, f: &mut dyn FnMut(&str, Span, Span)) {
    for (name, item) in table.iter() {
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        let key_span = table.key(name).and_then(toml_edit::Key::span);
        f(&path, key_span, item.span());
        if let Some(inner) = item.as_table_like() {
            visit(inner, &path, f);
        }
        for (index, inner) in item.as_array_of_tables().into_iter().flatten().enumerate() {
            let path = format!("{path}.{index}");
            f(&path, None, inner.span());
            visit(inner, &path, f);
        }
        let values = item.as_array().into_iter().flat_map(toml_edit::Array::iter).enumerate();
        for (index, value) in values {
            let path = format!("{path}.{index}");
            f(&path, None, value.span());
            if let Some(inner) = value.as_inline_table() {
                visit(inner, &path, f);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[cell]\nbandwidth = \"20 MHz\"\n\n[[station]]\ncount = 2\n";

    fn fails(text: &str, overrides: &[&str]) -> String {
        let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
        load("test.toml", text, &overrides).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_short_file_gets_defaults_and_its_resolved_form_loads_again() {
        let scenario = load("test.toml", GOOD, &[]).unwrap();
        assert_eq!(scenario.station_count(), 2);
        assert_eq!(load("resolved.toml", &scenario.to_toml(), &[]).unwrap(), scenario);
    }

    #[test]
    fn errors_name_file_line_key_value_and_what_is_allowed() {
        for (text, parts) in [
            (
                "[cell]\nbandwith = \"20 MHz\"\n[[station]]\n",
                ["test.toml:2", "cell.bandwith", "unknown field", "`bandwidth`"],
            ),
            (
                "[cell]\nbandwidth = \"20 MB\"\n[[station]]\n",
                ["test.toml:2", "cell.bandwidth = \"20 MB\"", "MHz", "frequency"],
            ),
            (
                "[cell]\nbandwidth = 20\n[[station]]\n",
                ["test.toml:2", "cell.bandwidth = 20", "unit", "quotes"],
            ),
            (
                "[cell]\nbandwidth = \"21 MHz\"\n[[station]]\n",
                ["test.toml:2", "cell.bandwidth = 21 MHz", "1.4, 3, 5", "allowed"],
            ),
            ("[[station]]\ncount = 0\n", ["test.toml", "station", "0", "1 to 1000"]),
            ("[[station]]\ncount = 100000\n", ["test.toml", "station", "100000", "1 to 1000"]),
            ("[[station]]\ncount = -1\n", ["test.toml:2", "station.0.count", "-1", "0 or more"]),
            (
                "[run]\nseed = 1\n",
                ["test.toml: station: ", "a scenario needs", "at least one", "[[station]]"],
            ),
            (
                "[[station]]\n[run]\nwarmup = \"30 s\"\n",
                ["test.toml:3", "run.warmup = 30 s", "less than", "run.duration"],
            ),
            (
                "[[station]]\n[ack_filter]\nscheme = \"hybird\"\n",
                ["test.toml:3", "ack_filter.scheme", "hybird", "hybrid"],
            ),
            ("[[station]]\ncount = 1\ncount = 2\n", ["test.toml:3", "duplicate", "key", "count"]),
            (
                "[[station]]\nuplink_sinr = [\"9 dB\", \"3 dB\"]\n",
                ["test.toml:2", "station.0.uplink_sinr", "9 dB", "lower end"],
            ),
        ] {
            let error = fails(text, &[]);
            for part in parts {
                assert!(error.contains(part), "{part:?} is missing in: {error}");
            }
        }
        assert!(fails("  \n", &[]).contains("empty"));
    }

    #[test]
    fn an_override_reaches_a_hop_of_a_file_that_states_none() {
        let scenario = load("test.toml", GOOD, &["core.hops.0.delay=25 ms".to_owned()]).unwrap();
        assert_eq!(scenario.core.hops[0].delay, paceline_net::Duration::from_millis(25));
        assert_eq!(scenario.core.hops[0].rate, Core::default().hops[0].rate);
    }

    #[test]
    fn overrides_reach_every_key() {
        let set = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
            load("test.toml", GOOD, &overrides).unwrap()
        };
        assert_eq!(set(&["cell.bandwidth=10 MHz"]).cells().unwrap().cell.bandwidth.0, 10_000_000);
        assert_eq!(set(&["cell.bandwidth=\"10 MHz\""]).cells().unwrap().cell.bandwidth.0, 10_000_000);
        assert_eq!(set(&["station.0.count=7"]).stations[0].count, 7);
        assert_eq!(set(&["station.count=7"]).stations[0].count, 7);
        assert_eq!(
            set(&["ack_filter.scheme=hybrid(6)"]).access.ack_filter().unwrap().scheme.to_string(),
            "hybrid(6)"
        );
        assert_eq!(set(&["station.uplink_sinr=[\"1 dB\", \"2 dB\"]"]).stations[0].uplink_sinr.high.0, 2.0);
    }

    #[test]
    fn a_setting_leaves_comments_and_other_keys_as_they_are() {
        let text = "# head\n[cell]\nbandwidth = \"20 MHz\"  # wide\n\n[[station]]\ncount = 2\n";
        let changed = with_setting(text, "cell.bandwidth=5 MHz").unwrap();
        assert_eq!(changed, text.replace("20 MHz", "5 MHz"));
        let added = with_setting(text, "ack_filter.scheme=none").unwrap();
        assert!(added.starts_with(text) && added.ends_with("[ack_filter]\nscheme = \"none\"\n"), "{added}");
        assert!(with_setting("[[", "cell.x=1").unwrap_err().contains("TOML"));
    }

    #[test]
    fn bad_overrides_are_named() {
        for (text, part) in [
            ("cell.bandwidth", "key=value"),
            ("cell..x=1", "empty"),
            ("station.3.count=1", "no station.3"),
            ("cell.bandwidth.x=1", "not inside a table"),
            ("cell.nothing=1", "unknown field"),
        ] {
            let error = fails(GOOD, &[text]);
            assert!(error.contains(part), "{error}");
        }
    }
}
