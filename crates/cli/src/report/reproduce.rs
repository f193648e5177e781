//! What was published beside ours.

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
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    quantity: String,
    published: String,
    ours: Map<String, Value>,
    ci95: Map<String, Value>,
    unit: String,
    holds: bool,
    holds_in_ci95: bool,
    why: String,
}

impl Reproduced {
    /// The page: the rows, and below them the pictures of the sweep.
    pub fn page(&self, about: &str, pictures: &str) -> String {
        let set = if self.set.is_empty() { String::new() } else { format!(" Set: {}.", self.set.join(", ")) };
        let title = format!("{}, reproduced: {}", self.reproduces, self.scenario);
        html::page(
            &title,
            &format!("{about}{set}"),
            &(html::section("Published beside ours", &self.rows()) + pictures),
        )
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
                (true, false) => ("yes", "✓ yes, unsure"),
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
            + "</tbody></table></div>\n<p class=\"about\">Unsure: not in the whole of the confidence interval.</p>\n"
    }
}

impl Row {
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
