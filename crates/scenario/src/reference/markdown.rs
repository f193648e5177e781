//! The reference as a Markdown document, docs/scenario.md.

use super::{Default, Entry, Table, tables};
use std::fmt::Write;

/// The text ahead of the tables.
const HEAD: &str = include_str!("head.md");

/// The document.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    tables().iter().for_each(|table| section(&mut text, table));
    text
}

fn section(text: &mut String, table: &Table) {
    let Table { path, repeated, meaning, entries, .. } = table;
    let name = if *repeated { format!("[[{path}]]") } else { format!("[{path}]") };
    let _ = write!(text, "\n## `{name}`\n\n{}", wrapped("", meaning));
    if entries.is_empty() {
        return;
    }
    text.push_str("\n| key | type | unit | default | allowed | meaning |\n|---|---|---|---|---|---|\n");
    for entry in entries {
        let Entry { path, kind, unit, default, allowed, meaning, .. } = entry;
        let key = last_part(path);
        let default = match default {
            Default::Value(value) => format!("`{value}`"),
            Default::Computed(words) => words.clone(),
            Default::LeftOut => "left out".to_owned(),
            Default::Required => "required".to_owned(),
        };
        let cells = [kind, unit, &default, allowed, meaning].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| `{key}` | {} |", cells.join(" | "));
    }
    let mut described: Vec<&[(String, String)]> = vec![&[]];
    for Entry { values, .. } in entries {
        if described.contains(&&values[..]) {
            continue;
        }
        described.push(values);
        let keys = entries.iter().filter(|entry| entry.values == *values);
        let keys: Vec<String> = keys.map(|entry| format!("`{}`", last_part(&entry.path))).collect();
        let _ = writeln!(text, "\nValues of {}:\n", keys.join(" and "));
        for (word, meaning) in values {
            text.push_str(&wrapped("- ", &format!("`{word}`: {meaning}")));
        }
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
