//! The JSON schema of the scenario file (draft 2020-12), derived from the tables' structs by `schemars`.

use crate::file::File;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The JSON schema for editors. Descriptions state units, defaults and allowed values. The schema cannot
/// express limits of quantities and limits that depend on other keys: the loader refuses more than the
/// schema.
pub fn schema() -> Value {
    let mut schema = described();
    for_editors(&mut schema);
    schema["title"] = json!("Paceline scenario");
    schema["description"] = json!("A scenario of Paceline; `paceline check FILE` checks all values.");
    schema
}

/// The JSON schema with the keywords for the reference (`x-...`), without `null`, which TOML does not have.
pub(super) fn described() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<File>().to_value();
    without_null(&mut schema);
    schema
}

fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            if let Some(Value::Array(types)) = keywords.get_mut("type") {
                types.retain(|name| *name != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    keywords.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(mut alternatives)) = keywords.remove("anyOf") {
                alternatives.retain(|schema| schema["type"] != "null");
                if let [Value::Object(one)] = &alternatives[..] {
                    one.iter().for_each(|(name, value)| {
                        keywords.entry(name).or_insert_with(|| value.clone());
                    });
                } else {
                    keywords.insert("anyOf".to_owned(), alternatives.into());
                }
            }
            if keywords.get("default") == Some(&Value::Null) {
                keywords.remove("default");
            }
            if let Some(Value::String(text)) = keywords.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            keywords.values_mut().for_each(without_null);
        }
        Value::Array(values) => values.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Moves the keywords for the reference into the descriptions, and removes the numbers' sizes in memory and
/// the defaults of tables, which the defaults of their keys repeat.
fn for_editors(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            let text = |keywords: &Map<String, Value>, name: &str| {
                keywords.get(name).and_then(Value::as_str).map(str::to_owned)
            };
            let notes = [("Allowed: ", "x-limits"), ("Default: ", "x-default")];
            for (what, name) in notes {
                if let Some(note) = text(keywords, name) {
                    let before = text(keywords, "description").unwrap_or_default();
                    keywords.insert("description".to_owned(), format!("{before} {what}{note}.").into());
                }
            }
            let table = keywords.contains_key("properties");
            let unused =
                |name: &str| name.starts_with("x-") || name == "format" || (table && name == "default");
            keywords.retain(|name, _| !unused(name));
            keywords.values_mut().for_each(for_editors);
        }
        Value::Array(values) => values.iter_mut().for_each(for_editors),
        _ => {}
    }
}
