//! The page of `paceline reproduce`: published values beside ours, in one table for all experiments and in
//! pictures.

use crate::table::{self, HEADINGS};
use crate::{Paper, Row, Value, find};
use paceline_report::count;
use paceline_report::html::{self, Cell};
use paceline_report::picture::{Chart, Kind, Mark, Series, Style};
use serde::Deserialize;

/// `summary.json` of `paceline reproduce`.
#[derive(Deserialize)]
pub struct Stored {
    reproduces: String,
    /// Empty without simulated scenarios.
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    seeds: usize,
    /// Stations dropped in each deployment, and the seed of the drops; calibration only.
    stations: Option<u64>,
    seed: Option<u64>,
    /// Folders of the experiment's sweeps.
    #[serde(default)]
    parts: Vec<String>,
    /// Folders of the experiment's runs for pictures over time.
    #[serde(default)]
    pub over_time: Vec<String>,
    rows: Vec<Row>,
}

impl Stored {
    /// The page: the tables of the rows, and below them `pictures`, which are HTML.
    pub fn page(&self, about: &str, pictures: &str) -> String {
        let set = if self.set.is_empty() { String::new() } else { format!(" Set: {}.", self.set.join(", ")) };
        let mut title = format!("{}, reproduced", self.reproduces);
        if !self.scenario.is_empty() {
            title += &format!(": {}", self.scenario);
        }
        let body = html::section("Published beside ours", &self.values())
            + pictures
            + &html::section("Statements and explanations", &self.statements());
        html::page(&title, &format!("{about}{set}"), &body)
    }

    /// Folders of the sweeps whose tables the page has.
    pub fn tables(&self) -> &[String] {
        let shown = find(&self.reproduces).is_ok_and(|paper: &Paper| paper.part_tables);
        if shown { &self.parts } else { &[] }
    }
    /// A sentence that describes the results.
    pub fn about(&self) -> String {
        match (self.stations, self.seed) {
            (Some(stations), Some(seed)) => {
                format!("{stations} stations dropped in each deployment, seed {seed}.")
            }
            _ => format!("{} each, mean ± 95% confidence interval.", count(self.seeds as u64, "seed")),
        }
    }
    /// A picture for each row and unit: published values beside ours.
    pub fn pictures(&self) -> String {
        let pictures: String = self.rows.iter().map(pictures).collect();
        html::section("Pictures", &html::figures(&pictures))
    }

    /// The columns of [`HEADINGS`], with a line for each value.
    fn values(&self) -> String {
        let line = |row: &Row, value: &Value| {
            let [name, rest @ ..] = table::cells(value);
            let mut line = vec![Cell::from(&*row.id), row.quantity.as_str().into()];
            line[1].class = "wide";
            line.push(Cell { text: name, key: value.at, class: "" });
            line.extend(rest.into_iter().map(Cell::from));
            line.push(verdict(row));
            line
        };
        let lines = self.rows.iter().flat_map(|row| row.values.iter().map(move |value| line(row, value)));
        html::table(&HEADINGS.map(str::to_owned), &lines.collect::<Vec<_>>(), 3)
    }

    fn statements(&self) -> String {
        let head = ["row", "quantity", "published", "holds", "why"].map(str::to_owned);
        let line = |row: &Row| {
            let published = if row.published.is_empty() { "-" } else { &row.published };
            let mut line: Vec<Cell> =
                [&*row.id, &row.quantity, published, "", &row.why].map(Cell::from).to_vec();
            (line[1].class, line[2].class, line[4].class) = ("wide", "wide", "wide");
            line[3] = verdict(row);
            line
        };
        let lines: Vec<Vec<Cell>> = self.rows.iter().map(line).collect();
        html::table(&head, &lines, head.len())
            + "<p class=\"about\">Uncertain: does not hold everywhere in the confidence interval.</p>\n"
    }
}

fn verdict(row: &Row) -> Cell {
    let (class, mark) = match row.verdict() {
        Some((true, _)) => ("yes", "✓ "),
        Some((false, _)) => ("no", "✗ "),
        None => ("", ""),
    };
    Cell { text: format!("{mark}{}", table::verdict(row)), key: None, class }
}

/// The published values and ours: a picture for each unit of the row.
fn pictures(row: &Row) -> String {
    let mut units: Vec<&str> = Vec::new();
    for value in &row.values {
        if !units.contains(&&*value.unit) {
            units.push(&value.unit);
        }
    }
    units.into_iter().map(|unit| picture(row, unit)).collect()
}

/// Lines over the row's axis, or bars without one. Published values have one colour in all pictures, and so
/// have ours where a row has one line.
fn picture(row: &Row, unit: &str) -> String {
    let values: Vec<&Value> = row.values.iter().filter(|value| value.unit == unit).collect();
    let over = row.axis.as_ref().filter(|_| values.iter().all(|value| value.at.is_some()));
    let mut series: Vec<Series> = Vec::new();
    let mut add = |name: &str, mark: Mark| match series.iter_mut().find(|series| series.name == name) {
        Some(series) => series.marks.push(mark),
        None => {
            let kind = if name == "published" { Kind::Published } else { Kind::Ours };
            series.push(Series { name: name.to_owned(), marks: vec![mark], kind });
        }
    };
    for (index, value) in values.iter().enumerate() {
        let x = value.at.filter(|_| over.is_some()).unwrap_or(index as f64);
        let name = if value.line.is_empty() { String::from("ours") } else { format!("ours, {}", value.line) };
        if let Some(y) = value.ours.mean {
            add(&name, Mark { x, y, half: value.ours.half });
        }
    }
    for (index, value) in values.iter().enumerate() {
        let x = value.at.filter(|_| over.is_some()).unwrap_or(index as f64);
        let spread = value.spread();
        let middle = spread.map(|(low, high)| (low + high) / 2.0);
        if let Some(y) = value.published.or(middle) {
            let half = spread.map(|(low, high)| (high - low) / 2.0);
            add("published", Mark { x, y, half });
        }
    }
    let names = values.iter().map(|value| value.name.replace("source ", ""));
    let chart = Chart {
        title: format!("{}: {}", row.id, row.quantity),
        x: over.map_or_else(String::new, |axis| axis.to_string()),
        y: unit.to_owned(),
        categories: if over.is_some() { Vec::new() } else { names.collect() },
        series,
        style: if over.is_some() { Style::Points } else { Style::Bars },
        most: f64::INFINITY,
        // Zero decibels are a ratio like any other.
        from_zero: unit != "dB",
        counts_from: None,
    };
    chart.figure()
}
