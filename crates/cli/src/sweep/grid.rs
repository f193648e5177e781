//! The grid of a sweep: every combination of the values of some scenario keys, each a checked scenario.

use crate::failure::{Failure, Outcome};
use crate::scenario_file;
use paceline_sim::Scenario;
use serde::Serialize;

/// Most points of a grid.
const MAX_POINTS: usize = 100_000;

/// A scenario key and the values that it takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Dotted key, as `--set` takes it.
    pub key: String,
    /// Its values, as given.
    pub values: Vec<String>,
}

/// One combination of values.
#[derive(Debug)]
pub struct Point {
    /// One value per axis.
    pub values: Vec<String>,
    /// What they make of the scenario.
    pub scenario: Scenario,
}

/// All combinations of a scenario; the last axis changes fastest.
#[derive(Debug)]
pub struct Grid {
    /// The scenario's name.
    pub name: String,
    /// What changes.
    pub axes: Vec<Axis>,
    /// The points.
    pub points: Vec<Point>,
}

impl Grid {
    /// Checks every point of `text`, the scenario `file`.
    pub fn new(name: String, file: &str, text: &str, set: &[String], axes: Vec<Axis>) -> Outcome<Self> {
        let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
        if count.is_none_or(|count| count > MAX_POINTS) {
            return Err(Failure::input(format!("--over: more than {MAX_POINTS} points; give fewer values")));
        }
        let combinations = axes.iter().fold(vec![Vec::new()], |points: Vec<Vec<String>>, axis| {
            let longer = |point: &Vec<String>| {
                let with = |value: &String| [&point[..], std::slice::from_ref(value)].concat();
                axis.values.iter().map(with).collect::<Vec<_>>()
            };
            points.iter().flat_map(longer).collect()
        });
        let checked = |values: Vec<String>| {
            let sets = axes.iter().zip(&values).map(|(axis, value)| format!("{}={value}", axis.key));
            let all: Vec<String> = set.iter().cloned().chain(sets).collect();
            match scenario_file::parse(file, text, &all) {
                Ok(scenario) => Ok(Point { values, scenario }),
                Err(error) => Err(Failure::input(format!("point {}: {error}", label(&axes, &values)))),
            }
        };
        let points = combinations.into_iter().map(checked).collect::<Outcome<_>>()?;
        Ok(Self { name, axes, points })
    }
    /// What a point is called: `key=value, key=value`.
    pub fn label(&self, point: usize) -> String {
        label(&self.axes, &self.points[point].values)
    }
}

fn label(axes: &[Axis], values: &[String]) -> String {
    let pairs: Vec<String> =
        axes.iter().zip(values).map(|(axis, value)| format!("{}={value}", axis.key)).collect();
    if pairs.is_empty() { String::from("of no keys") } else { pairs.join(", ") }
}

/// Reads `key=a,b,c` of every `--over`.
pub fn axes(given: &[String]) -> Outcome<Vec<Axis>> {
    let mut axes: Vec<Axis> = Vec::new();
    for text in given {
        let bad = |what: &str| Failure::input(format!("--over {text}: {what}"));
        let (key, list) =
            text.split_once('=').ok_or_else(|| bad("write key=a,b,c, for example station.count=10,20,30"))?;
        let key = key.trim().to_owned();
        let values: Vec<String> = split(list).iter().map(|value| value.trim().to_owned()).collect();
        if key.is_empty() {
            return Err(bad("the key is empty"));
        }
        if values.iter().any(String::is_empty) {
            return Err(bad("a value is empty"));
        }
        if let Some((index, twice)) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
            return Err(bad(&format!("value {} is {twice} again", index + 1)));
        }
        if axes.iter().any(|axis| axis.key == key) {
            return Err(bad("this key is in another --over; give all its values in one"));
        }
        axes.push(Axis { key, values });
    }
    Ok(axes)
}

/// Splits at commas that stand outside of quotes, parentheses, brackets and braces.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0i32);
    let mut quote = None;
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ',') if depth <= 0 => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_and_brackets_do_not_separate() {
        assert_eq!(split("basic,hybrid(6),\"a,b\""), ["basic", "hybrid(6)", "\"a,b\""]);
        assert_eq!(split("[\"5 dB\", \"9 dB\"],3 dB"), ["[\"5 dB\", \"9 dB\"]", "3 dB"]);
        assert_eq!(split("a)),b"), ["a))", "b"]);
        assert_eq!(split(""), [""]);
    }

    #[test]
    fn the_last_key_changes_fastest() {
        let over = [String::from("station.count=1,2"), String::from("ack_filter.scheme=basic,hybrid(6)")];
        let grid = Grid::new("x".into(), "x.toml", "[[station]]\n", &[], axes(&over).unwrap()).unwrap();
        let labels: Vec<String> = (0..grid.points.len()).map(|point| grid.label(point)).collect();
        assert_eq!(labels[1], "station.count=1, ack_filter.scheme=hybrid(6)");
        assert_eq!(labels[2], "station.count=2, ack_filter.scheme=basic");
        assert_eq!(grid.points[3].scenario.station_count(), 2);
    }
}
