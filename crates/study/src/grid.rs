//! The grid of a sweep: one checked scenario for every combination of values of some scenario keys.

use crate::error::InputError;
use crate::scenario_file;
use paceline_sim::scenario::present_name;
use paceline_sim::{Scenario, ScenarioError};
use serde::Serialize;

/// Points of a grid at most. Chosen: far above any useful grid, so that a mistake in `--over` is refused.
const MAX_POINTS: usize = 100_000;

/// A scenario key and its values in the grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Dotted key in the notation of `--set`.
    pub key: String,
    /// Its values in the notation of `--set`.
    pub values: Vec<String>,
}

/// A point of a grid.
#[derive(Debug)]
pub struct Point {
    /// A value for each axis.
    pub values: Vec<String>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// All combinations; the value of the last axis changes fastest.
#[derive(Debug)]
pub struct Grid {
    /// Name of the scenario.
    pub name: String,
    /// The swept keys.
    pub axes: Vec<Axis>,
    /// One for each combination of values.
    pub points: Vec<Point>,
}

impl Grid {
    /// Makes and checks every point. `text` is the scenario, `file` its name in messages, `set` are settings
    /// of all points.
    pub fn new(
        name: String,
        file: &str,
        text: &str,
        set: &[String],
        axes: Vec<Axis>,
    ) -> Result<Self, InputError> {
        Self::of(name, axes, &|changes| scenario_file::parse(file, text, &[set, changes].concat()))
    }
    /// Makes and checks every point. `scenario` gives the scenario with the settings of a point.
    pub fn of(
        name: String,
        axes: Vec<Axis>,
        scenario: &dyn Fn(&[String]) -> Result<Scenario, ScenarioError>,
    ) -> Result<Self, InputError> {
        let axes: Vec<Axis> =
            axes.into_iter().map(|axis| Axis { key: present_name(&axis.key), ..axis }).collect();
        let twice = (1..axes.len()).find(|at| axes[..*at].iter().any(|axis| axis.key == axes[*at].key));
        if let Some(at) = twice {
            let key = &axes[at].key;
            return Err(InputError::text(format!("--over {key}: this key is in another --over")));
        }
        let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
        if count.is_none_or(|count| count > MAX_POINTS) {
            return Err(InputError::text(format!(
                "--over: more than {MAX_POINTS} points; give fewer values"
            )));
        }
        let combinations = axes.iter().fold(vec![Vec::new()], |points: Vec<Vec<String>>, axis| {
            let longer = |point: &Vec<String>| {
                let with = |value: &String| [&point[..], std::slice::from_ref(value)].concat();
                axis.values.iter().map(with).collect::<Vec<_>>()
            };
            points.iter().flat_map(longer).collect()
        });
        let checked = |values: Vec<String>| match scenario(&settings(&axes, &values)) {
            Ok(scenario) => Ok(Point { values, scenario }),
            Err(error) => Err(InputError::Point { point: label(&axes, &values), error: error.into() }),
        };
        let points = combinations.into_iter().map(checked).collect::<Result<_, InputError>>()?;
        Ok(Self { name, axes, points })
    }
    /// Name of a point: `key=value, key=value`.
    pub fn label(&self, point: usize) -> String {
        label(&self.axes, &self.points[point].values)
    }
    /// Settings of a point: `key=value` for each axis.
    pub fn settings(&self, point: usize) -> Vec<String> {
        settings(&self.axes, &self.points[point].values)
    }
}

fn settings(axes: &[Axis], values: &[String]) -> Vec<String> {
    axes.iter().zip(values).map(|(axis, value)| format!("{}={value}", axis.key)).collect()
}

fn label(axes: &[Axis], values: &[String]) -> String {
    let pairs = settings(axes, values);
    if pairs.is_empty() { String::from("of no keys") } else { pairs.join(", ") }
}

/// Parses the options `--over key=a,b,c`.
pub fn axes(given: &[String]) -> Result<Vec<Axis>, InputError> {
    let mut axes: Vec<Axis> = Vec::new();
    for text in given {
        let bad = |problem: &str| InputError::text(format!("--over {text}: {problem}"));
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

/// Splits at commas outside of quotes, parentheses, brackets and braces.
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
    fn commas_in_quotes_and_brackets_do_not_separate_values() {
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
