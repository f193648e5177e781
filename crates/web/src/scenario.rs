//! Scenarios: the built-in ones, the check of a text, its controls, and edits.

use paceline_report::{html, picture};
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::{Scenario, ScenarioError};
use paceline_study::controls::{self, Control};
use paceline_study::scenario_file;
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;

/// Version and commit of the simulator.
#[wasm_bindgen]
pub fn version() -> String {
    paceline_study::VERSION.to_owned()
}

#[derive(Serialize)]
struct BuiltIn {
    name: String,
    about: String,
    text: &'static str,
}

/// The built-in scenarios as JSON: a list of name, description and text.
#[wasm_bindgen]
pub fn scenarios() -> String {
    let all = scenario_file::built_in_names().map(|name| {
        let (name, text) = scenario_file::built_in(name);
        BuiltIn { name, about: scenario_file::description(text), text }
    });
    json(&all.collect::<Vec<_>>())
}

#[derive(Serialize, Default)]
struct Checked {
    error: Option<BadInput>,
    controls: Vec<Control>,
    /// The slots of the cell, SVG; none without a cell.
    slots: Option<String>,
    seed: u64,
    stations: u64,
    /// Names of the groups of stations.
    groups: Vec<String>,
    /// The group of each station.
    group_of_stations: Vec<usize>,
    duration_s: f64,
    warmup_s: f64,
    /// Interval of the time series.
    sample_s: f64,
}

#[derive(Serialize)]
struct BadInput {
    /// The message of the command line.
    message: String,
    line: Option<usize>,
    key: Option<String>,
    value: Option<String>,
    allowed: Option<String>,
}

impl From<ScenarioError> for BadInput {
    fn from(error: ScenarioError) -> Self {
        let (message, allowed) = (error.to_string(), error.allowed().map(str::to_owned));
        Self { message, line: error.line, key: error.key, value: error.value, allowed }
    }
}

/// The text of a scenario as the command line reads it.
pub(crate) fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
    scenario_file::parse_without_files(&format!("{name}.toml"), text, &[])
}

/// Checks the text of a scenario. JSON: the error with its line, or the controls, the slots of the cell as
/// SVG, and the length of the run.
#[wasm_bindgen]
pub fn check(name: &str, text: &str) -> String {
    let scenario = match parse(name, text) {
        Ok(scenario) => scenario,
        Err(error) => return json(&Checked { error: Some(error.into()), ..Checked::default() }),
    };
    let slots = scenario.cell().map(|cell| html::standalone(&picture::slot_map(name, &CellFacts::of(cell))));
    json(&Checked {
        error: None,
        controls: controls::controls(text, &scenario),
        slots,
        seed: scenario.run.seed,
        stations: scenario.station_count(),
        groups: scenario.group_names(),
        group_of_stations: scenario.group_of_stations(),
        duration_s: scenario.run.duration.as_secs_f64(),
        warmup_s: scenario.run.warmup.as_secs_f64(),
        sample_s: scenario.run.sample.as_secs_f64(),
    })
}

/// The text with one value changed; comments stay.
#[wasm_bindgen]
pub fn edit(text: &str, key: &str, value: &str) -> Result<String, String> {
    controls::edit(text, key, value)
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}
