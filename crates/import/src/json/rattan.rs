//! Bandwidth traces of Rattan and netem-trace in JSON: constant rates with durations, lists of rates, and
//! repeated patterns of these. Rates and durations are words ("12Mbps", "1s") or numbers (`{"gbps": 0, "bps":
//! 12000000}`, `{"secs": 1, "nanos": 0}`). Models with random rates give another trace at each use.

use crate::notes::Notes;
use crate::text::table::Table;
use crate::units::RateUnit;
use serde_json::Value;

/// Rows of a trace at most. Chosen: a day of rows of 50 ms.
const MOST_ROWS: usize = 1_728_000;
/// Levels of patterns in patterns at most. Chosen: more than a file written by hand has.
const MOST_LEVELS: usize = 32;

/// Durations in s and rates in b/s.
type Rows = Vec<(f64, f64)>;

/// Reads a trace; none if the file has none of its models.
pub fn pattern(value: &Value, notes: &mut Notes) -> Option<Result<Table, String>> {
    let configs = find(value, 0)?;
    let mut rows = Rows::new();
    let read: Result<(), String> = configs.iter().try_for_each(|config| add(config, 0, &mut rows));
    if let Err(error) = read {
        return Some(Err(format!("Rattan's trace: {error}")));
    }
    notes.push(format!("Rattan's trace of bandwidth, {} rows", rows.len()));
    let row = |(seconds, rate): &(f64, f64)| vec![seconds.to_string(), rate.to_string()];
    let names = vec!["duration_s".into(), "bits_per_second".into()];
    Some(Ok(Table::of_rows(names, rows.iter().map(row).collect())))
}

/// The first model of bandwidth in a value, or a list of such.
fn find(value: &Value, level: usize) -> Option<Vec<&Value>> {
    let is_model = |value: &Value| {
        value
            .as_object()
            .is_some_and(|object| object.keys().any(|key| key.ends_with("BwConfig") || key == REPEATED))
    };
    match value {
        _ if level > MOST_LEVELS => None,
        _ if is_model(value) => Some(vec![value]),
        Value::Array(list) if !list.is_empty() && list.iter().all(is_model) => Some(list.iter().collect()),
        Value::Object(object) => object.values().find_map(|value| find(value, level + 1)),
        _ => None,
    }
}

const REPEATED: &str = "RepeatedBwPatternConfig";

/// Adds the rows of a model.
fn add(config: &Value, level: usize, rows: &mut Rows) -> Result<(), String> {
    let Some((name, inner)) = config.as_object().and_then(|object| object.iter().next()) else {
        return Err(format!("{config} is no model of bandwidth"));
    };
    if level > MOST_LEVELS {
        return Err(format!("more than {MOST_LEVELS} levels of patterns"));
    }
    let list = || {
        let list = inner["pattern"].as_array();
        list.ok_or_else(|| format!("{name} without a list `pattern`"))
    };
    match name.as_str() {
        "StaticBwConfig" | "FixedBwConfig" => {
            let (rate, seconds) = (rate(&inner["bw"])?, duration(&inner["duration"])?);
            rows.push((seconds, rate));
        }
        "TraceBwConfig" => {
            for step in list()? {
                let rates =
                    step[1].as_array().ok_or_else(|| format!("{name}: {step} is no duration and list"))?;
                let seconds = duration(&step[0])?;
                for value in rates {
                    rows.push((seconds, rate(value)?));
                }
            }
        }
        REPEATED => {
            // The outermost pattern repeats as the trace does; inner ones are written out.
            let count = if level == 0 { 1 } else { inner["count"].as_u64().unwrap_or(0) };
            if count == 0 {
                return Err(format!("{name} inside another repeats for ever (`count` = 0)"));
            }
            let start = rows.len();
            for config in list()? {
                add(config, level + 1, rows)?;
            }
            let own = rows[start..].to_vec();
            for _ in 1..count {
                if rows.len() + own.len() > MOST_ROWS || own.is_empty() {
                    break;
                }
                rows.extend_from_slice(&own);
            }
            if own.len() as u64 > 0 && (rows.len() - start) as u64 != own.len() as u64 * count {
                return Err(format!("more than {MOST_ROWS} rows"));
            }
        }
        other => {
            return Err(format!(
                "{other} has random or formed rates; allowed: StaticBwConfig, TraceBwConfig, {REPEATED}"
            ));
        }
    }
    if rows.len() > MOST_ROWS { Err(format!("more than {MOST_ROWS} rows")) } else { Ok(()) }
}

/// A rate in b/s.
fn rate(value: &Value) -> Result<f64, String> {
    let bad = || format!("{value} is no bandwidth such as \"12Mbps\"");
    match value {
        Value::String(text) => {
            let unit = |name: &str| match RateUnit::named(name)? {
                RateUnit::Rate(bits, _) => Some(bits),
                RateUnit::Amount(..) => None,
            };
            sum(text, unit).ok_or_else(bad)
        }
        Value::Object(parts) => {
            let part = |name: &str| parts.get(name).and_then(Value::as_f64);
            let (gbps, bps) = (part("gbps"), part("bps"));
            if gbps.is_none() && bps.is_none() {
                return Err(bad());
            }
            Ok(gbps.unwrap_or(0.0) * 1e9 + bps.unwrap_or(0.0))
        }
        _ => Err(bad()),
    }
}

/// A duration in s.
fn duration(value: &Value) -> Result<f64, String> {
    let bad = || format!("{value} is no duration such as \"1s\"");
    match value {
        Value::String(text) => sum(text, seconds_in).ok_or_else(bad),
        Value::Object(parts) => {
            let part = |name: &str| parts.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            Ok(part("secs") + part("nanos") / 1e9)
        }
        _ => Err(bad()),
    }
}

/// Seconds in a unit of a duration in words, by definition.
fn seconds_in(name: &str) -> Option<f64> {
    Some(match name {
        "ns" | "nsec" => 1e-9,
        "us" | "µs" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3600.0,
        _ => return None,
    })
}

/// The sum of numbers with units: `1m 30s`, `22.7Mbps`, `1Gbps 200Mbps`.
fn sum(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let (mut rest, mut sum) = (text.trim(), None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let behind = rest[end..].trim_start();
        let length = behind.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(behind.len());
        sum = Some(sum.unwrap_or(0.0) + number * unit(&behind[..length])?);
        rest = behind[length..].trim_start();
    }
    sum
}
