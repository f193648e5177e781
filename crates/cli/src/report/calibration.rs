//! The page of `paceline reproduce calibration`: percentiles of each deployment beside 3GPP's.

use super::chart::{Chart, Mark, Series, Style};
use super::html;
use serde::Deserialize;

/// `summary.json` of `paceline reproduce calibration`.
#[derive(Deserialize)]
pub struct Calibration {
    stations: u64,
    seed: u64,
    rows: Vec<Row>,
}

/// A percentile; values in dB.
#[derive(Deserialize)]
struct Row {
    /// Deployment.
    scenario: String,
    quantity: String,
    /// Share of the stations below the value.
    share: f64,
    published: Option<f64>,
    ours: f64,
}

impl Calibration {
    pub fn page(&self) -> String {
        let about = format!(
            "{} stations dropped in each deployment, seed {}; published: TR 38.901 section 7.8.1.",
            self.stations, self.seed
        );
        let mut quantities: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !quantities.contains(&row.quantity.as_str()) {
                quantities.push(&row.quantity);
            }
        }
        let pictures: String = quantities.iter().map(|quantity| self.picture(quantity)).collect();
        let body = html::section("Published beside ours", &self.table())
            + &html::section("Pictures", &html::figures(&pictures));
        html::page("calibration, reproduced", &about, &body)
    }

    fn table(&self) -> String {
        let head = ["deployment", "quantity", "share below", "published, dB", "ours, dB", "difference, dB"];
        let line = |row: &Row| {
            vec![
                row.scenario.clone(),
                row.quantity.clone(),
                percent(row.share),
                row.published.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}")),
                format!("{:.2}", row.ours),
                row.published.map_or_else(String::new, |value| format!("{:+.2}", row.ours - value)),
            ]
        };
        let lines: Vec<Vec<String>> = self.rows.iter().map(line).collect();
        html::table(&head.map(str::to_owned), &lines, 2)
    }

    /// Bars of the published values and ours, for one quantity.
    fn picture(&self, quantity: &str) -> String {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.quantity == quantity).collect();
        let series = |name: &str, value: &dyn Fn(&Row) -> Option<f64>| {
            let mark =
                |(index, row): (usize, &&Row)| Some(Mark { x: index as f64, y: value(row)?, half: None });
            Series {
                name: name.into(),
                marks: rows.iter().enumerate().filter_map(mark).collect(),
                faint: false,
            }
        };
        let chart = Chart {
            title: quantity.to_owned(),
            x: String::from("deployment, share of the stations below"),
            y: String::from("dB"),
            categories: rows.iter().map(|row| format!("{} {}", row.scenario, percent(row.share))).collect(),
            series: vec![series("published", &|row| row.published), series("ours", &|row| Some(row.ours))],
            style: Style::Bars,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        chart.figure()
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}
