//! Tables in JSON: iperf3's reports, arrays of numbers, of rows or of objects, columns as arrays, and one
//! object per line.

use super::table::Table;
use serde_json::{Map, Value};

/// Reads a table; see the module's text.
pub fn read(text: &str, notes: &mut Vec<String>) -> Result<Table, String> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.map_err(|error| format!("not valid JSON: {error}"))?;
    let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
    if let Some(intervals) = iperf_intervals(&value, notes) {
        return intervals;
    }
    let (path, table) = find(&value, String::new())
        .ok_or("JSON without a list of numbers, rows or objects; allowed: also objects of lists, and iperf3's reports")?;
    notes.push(if path.is_empty() { "JSON".into() } else { format!("JSON, the list at `{path}`") });
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

/// The intervals of an iperf3 report (`-J` or `--json-stream`), the receiver's if it has them. Of a list of
/// reports, the intervals follow one another.
fn iperf_intervals(value: &Value, notes: &mut Vec<String>) -> Option<Result<Table, String>> {
    let streamed = || {
        let events = value.as_array()?.iter().filter(|event| event["event"] == "interval");
        let events: Vec<&Value> = events.map(|event| &event["data"]).collect();
        (!events.is_empty()).then_some(events)
    };
    let listed = |value: &Value| {
        let list = value["intervals"].as_array()?;
        list.first()?.get("sum")?.get("bits_per_second")?;
        Some(list.clone())
    };
    if let (Some(error), Some(_)) = (value["error"].as_str(), value["intervals"].as_array())
        && listed(value).is_none()
    {
        return Some(Err(format!("iperf3's report without intervals: {error}")));
    }
    let reports = || {
        let list = value.as_array()?;
        let reports: Option<Vec<Vec<Value>>> = list.iter().map(listed).collect();
        let reports = reports.filter(|reports| !reports.is_empty())?;
        Some((reports.len(), reports.concat()))
    };
    let is_sender = |list: &Vec<Value>| list.first().is_some_and(|first| first["sum"]["sender"] == true);
    let servers = listed(&value["server_output_json"]);
    let own = streamed().map(|events| events.into_iter().cloned().collect()).or_else(|| listed(value));
    let (count, own) = match own {
        Some(own) => (1, own),
        None => reports()?,
    };
    let (intervals, side) = match servers {
        Some(servers) if is_sender(&own) => (servers, "the server's, which received"),
        _ if is_sender(&own) => (own, "the sender's, which count data given to its socket"),
        _ => (own, "the receiver's"),
    };
    let sums = intervals.iter().map(|interval| &interval["sum"]).filter(|sum| sum["omitted"] != true);
    let row = |sum: &Value| {
        let (start, end) = (sum["start"].as_f64()?, sum["end"].as_f64()?);
        Some(vec![(end - start).to_string(), sum["bits_per_second"].as_f64()?.to_string()])
    };
    let rows: Option<Vec<Vec<String>>> = sums.map(row).collect();
    Some(match rows.filter(|rows| !rows.is_empty()) {
        Some(rows) => {
            let reports = match count {
                1 => "iperf3's report".to_owned(),
                _ => format!("{count} of iperf3's reports, one after another"),
            };
            notes.push(format!("{reports}, {} intervals: {side}", rows.len()));
            Ok(Table::of_rows(vec!["duration_s".into(), "bits_per_second".into()], rows))
        }
        None => Err("iperf3's report without intervals: run iperf3 with -J and -i".into()),
    })
}
