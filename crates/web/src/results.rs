//! Results of a scenario: its files, its text, and the comparison with other results.

use crate::scenario::json;
use paceline_report::compare::{self as comparison, Side};
use paceline_report::files::files;
use paceline_report::table;
use paceline_report::text;
use paceline_report::{html, journey};
use paceline_sim::journey::Journey;
use paceline_sim::{Scenario, Summary};
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;

/// Results of all seeds.
#[wasm_bindgen]
pub struct Results {
    scenario: Scenario,
    summary: Summary,
    journeys: Vec<Journey>,
}

#[derive(Serialize)]
struct Overview {
    /// Name, unit and value of each total.
    figures: Vec<(&'static str, &'static str, String)>,
    /// Why TCP is not faster: a sentence for each group of stations.
    verdicts: Vec<String>,
    warning: Option<String>,
    seeds: Vec<u64>,
    /// Names of the files of a results folder.
    files: Vec<String>,
    /// Number of packets whose way was recorded.
    ladders: usize,
}

impl Results {
    pub(crate) fn new(scenario: Scenario, summary: Summary, journeys: Vec<Journey>) -> Self {
        Self { scenario, summary, journeys }
    }
    fn side(&self, name: &str) -> Side {
        Side {
            name: name.to_owned(),
            mode: self.summary.mode.to_owned(),
            mean: self.summary.mean.clone(),
            ci95: self.summary.ci95.clone(),
            scenario: comparison::values(&self.scenario.to_toml()),
            runs: self.summary.runs.iter().map(|run| (run.seed, run.totals.clone())).collect(),
        }
    }
}

#[wasm_bindgen]
impl Results {
    /// The text of `summary.json`, as `paceline run` writes it.
    pub fn summary_json(&self) -> String {
        self.summary.to_json()
    }
    /// Tables and verdicts, as `paceline run` prints them.
    pub fn text(&self) -> String {
        text::describe(&self.summary)
    }
    /// JSON: figures, verdicts, warning, seeds, names of the files.
    pub fn overview(&self) -> String {
        let summary = &self.summary;
        let figures = table::rows(&[&summary.mean]).into_iter();
        let figures = figures.map(|(name, unit, decimals, value)| {
            let mean = format!("{:.decimals$}", value(&summary.mean));
            let half = summary.ci95.as_ref().map(|ci95| format!(" ± {:.decimals$}", value(ci95)));
            (*name, *unit, mean + &half.unwrap_or_default())
        });
        json(&Overview {
            figures: figures.collect(),
            verdicts: text::verdict_sentences(&summary.groups),
            warning: summary.warnings(),
            seeds: summary.runs.iter().map(|run| run.seed).collect(),
            files: files(&self.scenario, summary).into_iter().map(|(name, _)| name).collect(),
            ladders: self.journeys.len(),
        })
    }
    /// The way of a packet of the first station: its ladder as SVG, and in words; none beyond the last.
    pub fn ladder(&self, index: usize) -> Option<Vec<String>> {
        let journey = self.journeys.get(index)?;
        Some(vec![html::standalone(&journey::ladder(journey)), journey::words(journey)])
    }
    /// The content of a file of the results folder; none for another name.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        files(&self.scenario, &self.summary)
            .into_iter()
            .find(|(other, _)| other == name)
            .map(|(_, file)| file)
    }
}

#[derive(Serialize)]
struct Comparison {
    /// The differences in words.
    words: Vec<String>,
    /// Labels of both sides.
    labels: Vec<String>,
    /// The totals side by side, as `paceline compare` prints them.
    text: String,
    /// Name, unit, and both values of each total.
    rows: Vec<(&'static str, &'static str, [f64; 2])>,
}

/// Compares two results; JSON.
#[wasm_bindgen]
pub fn compare(first: &Results, second: &Results) -> String {
    let sides = [first.side("A"), second.side("B")];
    let labels = comparison::labels(&sides, &comparison::differing_keys(&sides));
    let differences = comparison::differences(&sides);
    let columns = comparison::columns(&sides, &labels, &differences);
    let values = |row: &table::Row| sides.each_ref().map(|side| (row.3)(&side.mean));
    let rows = table::rows(&sides.each_ref().map(|side| &side.mean));
    json(&Comparison {
        words: comparison::words(&sides[0], &sides[1]),
        text: table::render(&columns),
        rows: rows.into_iter().map(|row| (row.0, row.1, values(row))).collect(),
        labels,
    })
}
