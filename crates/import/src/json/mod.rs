//! Tables in JSON: iperf3's reports, Rattan's bandwidth traces, arrays of numbers, of rows or of objects,
//! columns as arrays, and one object per line.

mod iperf;
mod rattan;

use super::notes::Notes;
use super::text::table::Table;
use serde_json::{Map, Value};

/// Values, and marks between them, in a file at most. Chosen: the reports of a day with an interval a second
/// have four million; each takes up to 100 bytes of memory.
const MOST_MARKS: usize = 12_000_000;

/// Reads a table; see the module's text.
pub fn read(text: &str, notes: &mut Notes) -> Result<Table, String> {
    let marks = text.bytes().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{' | b'\n')).count();
    if marks > MOST_MARKS {
        return Err(format!("JSON with more than {MOST_MARKS} values: allowed: up to that many; write text"));
    }
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.map_err(|error| format!("not valid JSON: {error}"))?;
    let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
    if let Some(intervals) = iperf::intervals(&value, notes) {
        return intervals;
    }
    if let Some(pattern) = rattan::pattern(&value, notes) {
        return pattern;
    }
    let (path, table) = find(&value, String::new())
        .ok_or("JSON without a list of numbers, rows or objects; allowed: also objects of lists, and iperf3's reports")?;
    notes.push(if path.is_empty() { String::from("JSON") } else { format!("JSON, the list at `{path}`") });
    Ok(table)
}

/// The first table in a value, and the path to it.
fn find(value: &Value, path: String) -> Option<(String, Table)> {
    if let Some(table) = table(value) {
        return Some((path, table));
    }
    // A list of one object, such as one report.
    let object = match value {
        Value::Object(object) => object,
        Value::Array(list) => match &list[..] {
            [Value::Object(object)] => object,
            _ => return None,
        },
        _ => return None,
    };
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    object.iter().find_map(|(key, value)| find(value, inside(key)))
}

fn table(value: &Value) -> Option<Table> {
    match value {
        Value::Array(list) => match list.first()? {
            Value::Number(_) => {
                Some(Table::of_rows(Vec::new(), list.iter().map(|value| vec![cell(value)]).collect()))
            }
            Value::Array(first) => {
                let rows = list.iter().filter_map(Value::as_array);
                let rows: Vec<Vec<String>> = rows.map(|row| row.iter().map(cell).collect()).collect();
                let is_heading = first.iter().all(Value::is_string) && rows.len() > 1;
                let (names, rows) =
                    if is_heading { (rows[0].clone(), rows[1..].to_vec()) } else { (Vec::new(), rows) };
                Some(Table::of_rows(names, rows))
            }
            Value::Object(_) => {
                let flat: Vec<Map<String, Value>> =
                    list.iter().filter_map(Value::as_object).map(flatten).collect();
                // The first object may lack members that others have.
                let mut names: Vec<String> = Vec::new();
                for name in flat.iter().flat_map(Map::keys) {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                // One object with lists is no row.
                if flat.len() == 1 && flat[0].values().any(Value::is_array) {
                    return None;
                }
                let row = |object: &Map<String, Value>| {
                    names.iter().map(|name| object.get(name).map(cell).unwrap_or_default()).collect()
                };
                let rows = flat.iter().map(row).collect();
                Some(Table::of_rows(names, rows))
            }
            _ => None,
        },
        Value::Object(object) => {
            let lists: Vec<(&String, &Vec<Value>)> = object
                .iter()
                .filter_map(|(key, value)| Some((key, value.as_array()?)))
                .filter(|(_, list)| {
                    !list.is_empty() && list.iter().all(|value| !value.is_array() && !value.is_object())
                })
                .collect();
            let rows = lists.first()?.1.len();
            let same = lists.len() > 1 && lists.iter().all(|(_, list)| list.len() == rows);
            let names = lists.iter().map(|(key, _)| (*key).clone()).collect();
            let row = |row: usize| lists.iter().map(|(_, list)| cell(&list[row])).collect();
            same.then(|| Table::of_rows(names, (0..rows).map(row).collect()))
        }
        _ => None,
    }
}

/// An object with the members of inner objects under `outer.inner`.
fn flatten(object: &Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    for (key, value) in object {
        match value {
            Value::Object(inner) => {
                flat.extend(flatten(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            _ => drop(flat.insert(key.clone(), value.clone())),
        }
    }
    flat
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
