//! The page of `paceline reproduce`: published values beside ours, in a table and in pictures.

use super::chart::{Chart, Mark, Series, Style};
use super::html::{self, escape};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;

/// `summary.json` of `paceline reproduce`.
#[derive(Deserialize)]
pub struct Reproduced {
    reproduces: String,
    scenario: String,
    set: Vec<String>,
    #[serde(default)]
    seeds: usize,
    /// Folders of the experiment's sweeps.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Folders of the experiment's runs for pictures over time.
    #[serde(default)]
    pub over_time: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    quantity: String,
    published: String,
    #[serde(default)]
    published_values: Map<String, Value>,
    ours: Map<String, Value>,
    ci95: Map<String, Value>,
    unit: String,
    holds: bool,
    holds_in_ci95: bool,
    why: String,
}

impl Reproduced {
    /// The page: the table of the rows, and below it `pictures`, which are HTML.
    pub fn page(&self, about: &str, pictures: &str) -> String {
        let set = if self.set.is_empty() { String::new() } else { format!(" Set: {}.", self.set.join(", ")) };
        let title = format!("{}, reproduced: {}", self.reproduces, self.scenario);
        html::page(
            &title,
            &format!("{about}{set}"),
            &(html::section("Published beside ours", &self.rows()) + pictures),
        )
    }

    /// A sentence that describes the results.
    pub fn about(&self) -> String {
        format!("{} seeds each, mean ± 95% confidence interval.", self.seeds)
    }
    /// A picture for each row: published values beside ours.
    pub fn pictures(&self) -> String {
        let pictures: String = self.rows.iter().map(Row::picture).collect();
        html::section("Pictures", &html::figures(&pictures))
    }

    fn rows(&self) -> String {
        let mut table = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for head in ["", "quantity", "published", "ours", "holds", "why"] {
            let _ = write!(table, "<th class=\"text\">{head}</th>");
        }
        table += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            let (class, holds) = match (row.holds, row.holds_in_ci95) {
                (true, true) => ("yes", "✓ yes"),
                (true, false) => ("yes", "✓ yes, uncertain"),
                (false, _) => ("no", "✗ no"),
            };
            let _ = writeln!(
                table,
                "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"values\">{}</td><td class=\"text {class}\">{holds}</td><td class=\"wide\">{}</td></tr>",
                escape(&row.id),
                escape(&row.quantity),
                escape(&row.published),
                row.ours(),
                escape(&row.why)
            );
        }
        table
            + "</tbody></table></div>\n<p class=\"about\">Uncertain: does not hold everywhere in the confidence interval.</p>\n"
    }
}

/// The number in the name of a value, by which bars are ordered: rates in Mb/s, sizes in MiB.
fn number_in(name: &str) -> f64 {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    if name.starts_with('(') {
        return 0.0; // conditions of a radio keep the order of the results
    }
    let digits = name[start..].split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let unit = if name.contains("KiB") { 1024.0 } else { 1.0 };
    digits.parse().unwrap_or(0.0) / unit
}

impl Row {
    /// Bars of the published values and ours.
    fn picture(&self) -> String {
        let mut names: Vec<&String> = self.ours.keys().filter(|name| !name.contains("% of UDP")).collect();
        names.sort_by(|a, b| number_in(a).total_cmp(&number_in(b)));
        let marks = |of: &dyn Fn(&str) -> Option<f64>, half: bool| {
            let mark = |(index, name): (usize, &&String)| {
                let half = self.ci95.get(name.as_str()).and_then(Value::as_f64).filter(|_| half);
                Some(Mark { x: index as f64, y: of(name.as_str())?, half })
            };
            names.iter().enumerate().filter_map(mark).collect::<Vec<Mark>>()
        };
        let published = marks(&|name| self.published_values.get(name)?.as_f64(), false);
        let ours = marks(&|name| self.ours.get(name)?.as_f64(), true);
        let series = |name: &str, marks| Series { name: name.into(), marks, faint: false };
        let mut all = Vec::new();
        if !published.is_empty() {
            all.push(series("published", published));
        }
        all.push(series("ours", ours));
        let chart = Chart {
            title: format!("{}: {}", self.id, self.quantity),
            x: String::new(),
            y: self.unit.clone(),
            categories: names.into_iter().map(|name| name.replace("source ", "")).collect(),
            series: all,
            style: Style::Bars,
            most: f64::INFINITY,
            from_zero: true,
            counts_from: None,
        };
        chart.figure()
    }
    fn ours(&self) -> String {
        let decimals = match self.unit.as_str() {
            "" => 4,
            "Mb/s" => 2,
            _ => 1,
        };
        let lines = self.ours.iter().map(|(name, mean)| {
            let Some(mean) = mean.as_f64() else { return format!("{}: not measured", escape(name)) };
            let half = self.ci95.get(name).and_then(Value::as_f64);
            let half = half.map_or(String::new(), |half| format!(" ± {half:.decimals$}"));
            format!("{}: {mean:.decimals$}{half} {}", escape(name), escape(&self.unit))
        });
        lines.collect::<Vec<_>>().join("<br>")
    }
}
