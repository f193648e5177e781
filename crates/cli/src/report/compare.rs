//! The page of `paceline compare`: totals of results folders side by side, as a table and as pictures, and
//! distributions over their stations.

use super::figures;
use super::over_keys::key::Key;
use super::run::{DISTRIBUTIONS, MIN_STATIONS};
use paceline_report::compare::{self as comparison, Side};
use paceline_report::html;
use paceline_report::picture::{Chart, Kind, Series, steps};
use paceline_report::table;
use paceline_sim::results::StationResult;

/// A results folder.
pub struct Column {
    pub label: String,
    /// The value of the one key that differs; the label where several keys or none differ.
    pub value: String,
    pub side: Side,
    /// Stations of all seeds.
    pub stations: Vec<StationResult>,
}

/// The page; `key` is the key that differs between the folders.
pub fn page(key: &str, columns: &[Column], about: &str, sentences: &[String]) -> String {
    let values = columns.iter().map(|column| column.value.clone()).collect();
    let key = Key { key: key.to_owned(), values };
    let point =
        |column: &Column| (vec![column.value.clone()], column.side.mean.clone(), column.side.ci95.clone());
    let points: Vec<_> = columns.iter().map(point).collect();
    let mut pictures = figures::pictures(&[key], &points);
    let body = html::section("Differences by pairs of equal seeds", &html::answer(sentences, &mut pictures))
        + &html::section("Totals", &totals(columns))
        + &html::section("Pictures", &html::figures(&pictures.concat()))
        + &html::section("Distributions over the stations", &html::figures(&distributions(columns)));
    html::page("comparison", about, &body)
}

fn totals(columns: &[Column]) -> String {
    let sides: Vec<Side> = columns.iter().map(|column| column.side.clone()).collect();
    let labels: Vec<String> = columns.iter().map(|column| column.label.clone()).collect();
    let differences = comparison::differences(&sides);
    let columns = comparison::columns(&sides, &labels, &differences);
    let mut head = vec![String::from("figure"), String::from("unit")];
    head.extend(columns.iter().map(|column| column.name.clone()));
    let shown = table::rows(&columns.iter().map(|column| column.mean).collect::<Vec<_>>());
    let lines = shown.into_iter().map(|row| {
        let names = [row.0.to_owned(), row.1.to_owned()];
        names.into_iter().chain(columns.iter().map(|column| column.cell(row))).collect::<Vec<String>>()
    });
    html::table(&head, &lines.collect::<Vec<_>>(), 2)
}

/// A picture for each figure, with a line for each folder.
fn distributions(columns: &[Column]) -> String {
    if columns.iter().any(|column| column.stations.len() < MIN_STATIONS) {
        return String::new();
    }
    let picture = |(title, unit, value): &super::run::StationFigure| {
        let series = columns.iter().map(|column| Series {
            name: column.label.clone(),
            marks: steps(column.stations.iter().map(value).filter(|value| *value > 0.0)),
            kind: Kind::Ours,
        });
        Chart::of_distributions(title, unit, series.collect()).figure()
    };
    DISTRIBUTIONS.iter().map(picture).collect()
}
