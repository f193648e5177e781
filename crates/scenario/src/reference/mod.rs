//! The reference of the scenario file, made from the definitions of its keys: the tables and keys as data
//! ([`tables`]), a Markdown document ([`markdown`]), and a JSON schema for editors ([`schema`]).

mod markdown;
mod schema;

pub use markdown::markdown;
pub use schema::schema;

use serde_json::{Map, Value};

/// A table of the scenario file.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Dotted path, such as `link.fixed`; empty for the file itself.
    pub path: String,
    /// Whether the file may have several of it.
    pub repeated: bool,
    /// The meaning of the table.
    pub meaning: String,
    /// The keys, in the order of their definition.
    pub entries: Vec<Entry>,
    /// The table with the same keys, which are described there alone.
    pub same_keys: Option<String>,
}

/// A key of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Dotted path without indices, such as `core.hops.rate`.
    pub path: String,
    /// Type of the value.
    pub kind: String,
    /// Units of a quantity, or the unit of a plain number; empty where there is none.
    pub unit: String,
    /// The value of a key that is left out.
    pub default: Default,
    /// The allowed values.
    pub allowed: String,
    /// The meaning.
    pub meaning: String,
    /// The words that the value may be, each with its meaning; empty where it is no word.
    pub values: Vec<(String, String)>,
}

/// The value of a key that is left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Default {
    /// A constant, as TOML.
    Value(String),
    /// A value that depends on other keys, in words.
    Computed(String),
    /// No value; the meaning states the effect.
    LeftOut,
    /// The key must not be left out.
    Required,
}

/// All tables of the scenario file, in the order of their definition.
pub fn tables() -> Vec<Table> {
    let mut tables = Vec::new();
    collect(&mut tables, "", false, &schema::described());
    tables.retain(|table| !table.path.is_empty());
    tables
}

/// All entries, with those of tables that repeat another table's keys: such a key defaults to the other
/// table's.
pub fn entries() -> Vec<Entry> {
    let tables = tables();
    let repeated = |table: &Table| {
        let same = table.same_keys.clone()?;
        let keys = tables.iter().find(|other| other.path == same)?.entries.iter();
        let of = |entry: &Entry| {
            let key = entry.path.rsplit('.').next().unwrap_or(&entry.path);
            let default = Default::Computed(format!("that of {}", entry.path));
            Entry { path: format!("{}.{key}", table.path), default, ..entry.clone() }
        };
        Some(keys.map(of).collect::<Vec<Entry>>())
    };
    let own = |table: &Table| repeated(table).unwrap_or_else(|| table.entries.clone());
    tables.iter().flat_map(own).collect()
}

/// Settings `key=value` with which the key at a dotted path, without indices, acts; none of a key that always
/// does.
pub fn acts_with(path: &str) -> Vec<String> {
    crate::checks::in_force::settings(path)
}

/// Adds the table of a schema and the tables in it.
fn collect(tables: &mut Vec<Table>, path: &str, repeated: bool, schema: &Value) {
    let text = |keyword: &str| schema[keyword].as_str().unwrap_or_default().to_owned();
    if schema["x-same-keys"].is_string() {
        tables.push(Table {
            path: path.to_owned(),
            repeated,
            meaning: text("description"),
            entries: Vec::new(),
            same_keys: Some(text("x-same-keys")),
        });
        return;
    }
    let keys = schema["x-order"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let inner = keys.map(|key| {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        (key, path, &schema["properties"][key])
    });
    let mut entries = Vec::new();
    let mut later = Vec::new();
    for (key, path, of) in inner {
        match (&of["properties"], &of["items"]["properties"]) {
            (Value::Object(_), _) => later.push((path, false, of.clone())),
            (_, Value::Object(_)) => {
                let mut table = of["items"].clone();
                table["description"] = of["description"].clone();
                if !of["default"].as_array().is_none_or(Vec::is_empty) {
                    entries.push(entry(path.clone(), of, false));
                }
                later.push((path, true, table));
            }
            _ => {
                let required = schema["required"].as_array().is_some_and(|keys| keys.contains(&key.into()));
                entries.push(entry(path, of, required));
            }
        }
    }
    let (path, meaning) = (path.to_owned(), text("description"));
    tables.push(Table { path, repeated, meaning, entries, same_keys: None });
    later.iter().for_each(|(path, repeated, schema)| collect(tables, path, *repeated, schema));
}

fn entry(path: String, schema: &Value, required: bool) -> Entry {
    let text = |keyword: &str| schema[keyword].as_str().map(str::to_owned);
    let values = values(schema);
    let kind = match (text("x-quantity"), schema["type"].as_str()) {
        (Some(quantity), _) => quantity.trim_start_matches("a ").to_owned(),
        (_, Some("integer")) => "whole number".to_owned(),
        (_, Some(kind @ ("number" | "boolean"))) => kind.to_owned(),
        (_, Some("array")) if schema["items"]["type"] == "integer" => "array of whole numbers".to_owned(),
        (_, Some("array")) if schema["items"]["x-quantity"].is_string() => {
            let quantity = schema["items"]["x-quantity"].as_str().unwrap_or_default();
            format!("array of {}s", quantity.trim_start_matches("a "))
        }
        (_, Some("array")) => "array of tables".to_owned(),
        _ => "string".to_owned(),
    };
    let words: Vec<String> = values.iter().map(|(word, _)| word.clone()).collect();
    let allowed = match text("x-limits") {
        Some(limits) => limits,
        None if kind == "boolean" => "true, false".to_owned(),
        None if words.is_empty() => "any".to_owned(),
        None => words.join(", "),
    };
    let default = match (text("x-default"), schema.get("default")) {
        (Some(words), _) => Default::Computed(words),
        (_, Some(value)) => Default::Value(toml(value)),
        _ if required => Default::Required,
        _ => Default::LeftOut,
    };
    let unit = text("x-units").or(text("x-unit")).unwrap_or_default();
    Entry { path, kind, unit, default, allowed, meaning: text("description").unwrap_or_default(), values }
}

/// The words that a string may be: constants, and forms with a title.
fn values(schema: &Value) -> Vec<(String, String)> {
    let alternatives = ["oneOf", "anyOf"].iter().filter_map(|keyword| schema[*keyword].as_array()).flatten();
    let described = alternatives.filter_map(|of| {
        let word = of["const"].as_str().or(of["title"].as_str())?;
        Some((word.to_owned(), of["description"].as_str().unwrap_or_default().to_owned()))
    });
    described.collect()
}

/// A value as TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(table) => {
            let pairs: Vec<String> = pairs(table).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn pairs(table: &Map<String, Value>) -> impl Iterator<Item = String> {
    table.iter().map(|(key, value)| format!("{key} = {}", toml(value)))
}
