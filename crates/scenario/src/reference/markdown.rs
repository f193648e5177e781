//! The reference as a Markdown document, docs/scenario.md.

use super::{Default, Entry, Table, tables};
use std::fmt::Write;

/// The text ahead of the tables.
const HEAD: &str = include_str!("head.md");

/// The document.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    let tables = tables();
    for (index, table) in tables.iter().enumerate() {
        section(&mut text, table, &tables[..index]);
    }
    text
}

/// The section of a table, after those of the tables `earlier`, whose keys and values it does not repeat.
fn section(text: &mut String, table: &Table, earlier: &[Table]) {
    let _ = write!(text, "\n## {}\n\n{}", heading(table), wrapped("", &table.meaning));
    if table.entries.is_empty() {
        return;
    }
    if let Some(other) = earlier.iter().find(|other| same_keys(other, table)) {
        repeated_keys(text, table, other);
        return;
    }
    text.push_str("\n| key | values | default | meaning |\n|---|---|---|---|\n");
    for entry in &table.entries {
        let cells = [&allowed(entry), &default(entry), &entry.meaning].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| `{}` | {} |", last_part(&entry.path), cells.join(" | "));
    }
    let mut described: Vec<&[(String, String)]> = vec![&[]];
    for Entry { values, .. } in &table.entries {
        if described.contains(&&values[..]) {
            continue;
        }
        described.push(values);
        let keys = table.entries.iter().filter(|entry| entry.values == *values);
        let keys: Vec<String> = keys.map(|entry| format!("`{}`", last_part(&entry.path))).collect();
        let keys = keys.join(" and ");
        let same = |other: &&Table| other.entries.iter().any(|entry| entry.values == *values);
        if let Some(other) = earlier.iter().find(same) {
            let _ = writeln!(text, "\nValues of {keys}: as in {}.", heading(other));
            continue;
        }
        let _ = writeln!(text, "\nValues of {keys}:\n");
        for (word, meaning) in values {
            text.push_str(&wrapped("- ", &format!("`{word}`: {meaning}")));
        }
    }
}

fn heading(Table { path, repeated, .. }: &Table) -> String {
    if *repeated { format!("`[[{path}]]`") } else { format!("`[{path}]`") }
}

/// Whether both tables have the same keys, apart from their defaults.
fn same_keys(one: &Table, other: &Table) -> bool {
    let keys = |table: &Table| -> Vec<Entry> {
        let bare = |entry: &Entry| Entry {
            path: last_part(&entry.path).to_owned(),
            default: Default::LeftOut,
            ..entry.clone()
        };
        table.entries.iter().map(bare).collect()
    };
    keys(one) == keys(other)
}

/// A reference to the table `other` with the same keys, and the defaults that differ from those there.
fn repeated_keys(text: &mut String, table: &Table, other: &Table) {
    let pairs = table.entries.iter().zip(&other.entries);
    let rows: Vec<String> = pairs
        .filter(|(own, there)| own.default != there.default)
        .map(|(own, _)| format!("| `{}` | {} |\n", last_part(&own.path), default(own)))
        .collect();
    if rows.is_empty() {
        let _ = writeln!(text, "\nKeys and defaults as in {}.", heading(other));
    } else {
        let _ = write!(text, "\nKeys as in {}, with other defaults:\n\n", heading(other));
        let _ = write!(text, "| key | default |\n|---|---|\n{}", rows.concat());
    }
}

/// Type and allowed values of a key in one cell. The allowed values have the unit of a plain number in them,
/// and the text ahead of the tables states the units of quantities.
fn allowed(Entry { kind, allowed, values, .. }: &Entry) -> String {
    let words: Vec<&str> = values.iter().map(|(word, _)| word.as_str()).collect();
    let kind = if kind == "whole number" { "integer" } else { kind };
    match (kind, allowed.as_str()) {
        (_, allowed) if !words.is_empty() && allowed == words.join(", ") => "below".to_owned(),
        ("boolean", "true, false") | (_, "any") => kind.to_owned(),
        ("string", allowed) => allowed.to_owned(),
        (kind, allowed) => format!("{kind}, {allowed}"),
    }
}

fn default(entry: &Entry) -> String {
    match &entry.default {
        Default::Value(value) => format!("`{value}`"),
        Default::Computed(words) => words.clone(),
        Default::LeftOut => "left out".to_owned(),
        Default::Required => "required".to_owned(),
    }
}

/// Columns of the document's lines, except in tables. Chosen: the limit of this repository's documents.
const WIDTH: usize = 110;

/// A paragraph or list item in lines of at most [`WIDTH`] columns.
fn wrapped(marker: &str, paragraph: &str) -> String {
    let (mut text, mut line) = (String::new(), marker.to_owned());
    for word in paragraph.split(' ') {
        if line.chars().count() + word.chars().count() > WIDTH {
            text += &format!("{}\n", line.trim_end());
            line = " ".repeat(marker.len());
        }
        line += &format!("{word} ");
    }
    format!("{text}{}\n", line.trim_end())
}

fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
