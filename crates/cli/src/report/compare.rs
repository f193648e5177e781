//! The page of `paceline compare`: totals of results folders side by side, as a table and as pictures, and
//! distributions over their stations.

use super::figures;
use super::over_keys::key::Key;
use super::run::{DISTRIBUTIONS, MIN_STATIONS};
use paceline_report::html;
use paceline_report::picture::{Chart, Kind, Series, steps};
use paceline_report::table::ROWS;
use paceline_sim::Totals;
use paceline_sim::results::StationResult;

/// A results folder.
pub struct Column {
    pub label: String,
    /// The value of the one key that differs; the label where several keys or none differ.
    pub value: String,
    pub mean: Totals,
    pub ci95: Option<Totals>,
    /// Stations of all seeds.
    pub stations: Vec<StationResult>,
}

/// The page; `key` is the key that differs between the folders.
pub fn page(key: &str, columns: &[Column], about: &str) -> String {
    let values = columns.iter().map(|column| column.value.clone()).collect();
    let key = Key { key: key.to_owned(), values };
    let point = |column: &Column| (vec![column.value.clone()], column.mean.clone(), column.ci95.clone());
    let points: Vec<_> = columns.iter().map(point).collect();
    let body = html::section("Totals", &table(columns))
        + &html::section("Pictures", &html::figures(&figures::pictures(&[key], &points)))
        + &html::section("Distributions over the stations", &html::figures(&distributions(columns)));
    html::page("comparison", about, &body)
}

fn table(columns: &[Column]) -> String {
    let mut head = vec![String::from("figure"), String::from("unit")];
    head.extend(columns.iter().map(|column| column.label.clone()));
    let shown = ROWS.iter().filter(|row| columns.iter().any(|column| (row.3)(&column.mean) != 0.0));
    let lines = shown.map(|(name, unit, decimals, value)| {
        let cell = |column: &Column| {
            let mean = format!("{:.decimals$}", value(&column.mean));
            column.ci95.as_ref().map_or(mean.clone(), |ci95| format!("{mean} ± {:.decimals$}", value(ci95)))
        };
        let names = [(*name).to_owned(), (*unit).to_owned()];
        names.into_iter().chain(columns.iter().map(cell)).collect::<Vec<String>>()
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
