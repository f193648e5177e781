//! Names of columns: their words, and the unit that they state.

use super::units::{RateUnit, TimeUnit};

/// Words in names of columns of times, of durations, of rates, and of either direction, in lower case.
/// Chosen: those of published traces and of measurement tools.
pub const TIMES: [&str; 12] = [
    "time",
    "timestamp",
    "timestamps",
    "ts",
    "t",
    "epoch",
    "date",
    "datetime",
    "elapsed",
    "at",
    "start",
    "when",
];
pub const DURATIONS: [&str; 4] = ["duration", "interval", "dt", "delta"];
pub const RATES: [&str; 13] = [
    "throughput",
    "rate",
    "bitrate",
    "bandwidth",
    "bw",
    "capacity",
    "goodput",
    "speed",
    "tput",
    "thrpt",
    "datarate",
    "download",
    "bits",
];
pub const DOWN: [&str; 6] = ["dl", "down", "downlink", "download", "rx", "received"];
pub const UP: [&str; 6] = ["ul", "up", "uplink", "upload", "tx", "sent"];

/// The lower-case words of a column's name.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    for c in name.chars() {
        // "dlBitrate"
        if c.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(c);
        before = c;
    }
    spaced
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether one of a name's words is known.
pub fn has(name: &str, known: &[&str]) -> bool {
    words(name).iter().any(|word| known.contains(&word.as_str()))
}

/// Whether a column's name is that of a time.
pub fn is_time(name: &str) -> bool {
    let words = words(name);
    has(name, &TIMES) || (!words.is_empty() && words.iter().all(|word| TimeUnit::named(word).is_some()))
}

/// Whether a column's name is that of a rate.
pub fn is_rate(name: &str) -> bool {
    unit_in(name, RateUnit::named).is_some() || has(name, &RATES)
}

/// Whether a name is that of a time, of a duration or of a rate.
pub fn is_known(name: &str) -> bool {
    is_time(name) || is_rate(name) || has(name, &DURATIONS)
}

/// The parts of a name that may be a unit: its end behind each separator, and the text in brackets.
pub fn unit_in<U>(name: &str, named: impl Fn(&str) -> Option<U>) -> Option<U> {
    let bracket = name.split(['(', '[', '{']).nth(1).and_then(|rest| rest.split([')', ']', '}']).next());
    let starts = name.char_indices().filter(|(_, c)| !c.is_alphanumeric()).map(|(at, c)| at + c.len_utf8());
    let camel = name.char_indices().zip(name.chars().skip(1));
    let camel = camel
        .filter(|((_, a), b)| a.is_lowercase() && b.is_uppercase())
        .map(|((at, a), _)| at + a.len_utf8());
    let mut ends: Vec<usize> = starts.chain(camel).chain([0]).collect();
    ends.sort_unstable();
    bracket
        .and_then(|text| named(text.trim()))
        .or_else(|| ends.iter().find_map(|at| named(name[*at..].trim())))
}
