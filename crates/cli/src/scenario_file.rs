//! Finds and reads a scenario: a file, or a built-in scenario by its name.

use crate::failure::{Failure, Outcome};
use crate::{output, quantity, similar};
use clap::Args;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::link::generated;
use paceline_sim::scenario::reference;
use paceline_sim::{Scenario, ScenarioError, scenario};
use std::path::Path;

/// Names and texts of the built-in scenarios, the same as the files in `scenarios/`.
const BUILT_IN: [(&str, &str); 19] = [
    ("uplink-limited", include_str!("../../../scenarios/uplink-limited.toml")),
    ("single-station", include_str!("../../../scenarios/single-station.toml")),
    ("ack-filter-paper", include_str!("../../../scenarios/ack-filter-paper.toml")),
    ("accelerator-3g", include_str!("../../../scenarios/accelerator-3g.toml")),
    ("accelerator-lte", include_str!("../../../scenarios/accelerator-lte.toml")),
    ("accelerator-trace", include_str!("../../../scenarios/accelerator-trace.toml")),
    ("private-5g", include_str!("../../../scenarios/private-5g.toml")),
    ("private-5g-n79", include_str!("../../../scenarios/private-5g-n79.toml")),
    ("fwa-5g", include_str!("../../../scenarios/fwa-5g.toml")),
    ("mmwave", include_str!("../../../scenarios/mmwave.toml")),
    ("nr-fdd-20mhz", include_str!("../../../scenarios/nr-fdd-20mhz.toml")),
    ("lte-tdd", include_str!("../../../scenarios/lte-tdd.toml")),
    ("d2d-static", include_str!("../../../scenarios/d2d-static.toml")),
    ("d2d-dynamic", include_str!("../../../scenarios/d2d-dynamic.toml")),
    ("drive", include_str!("../../../scenarios/drive.toml")),
    ("parity-fixed", include_str!("../../../scenarios/parity-fixed.toml")),
    ("parity-loss", include_str!("../../../scenarios/parity-loss.toml")),
    ("parity-trace", include_str!("../../../scenarios/parity-trace.toml")),
    ("parity-cell", include_str!("../../../scenarios/parity-cell.toml")),
];

/// Arguments of every command that reads a scenario.
#[derive(Args)]
pub struct ScenarioArgs {
    /// Scenario file, or the name of a built-in one: uplink-limited, single-station, ack-filter-paper,
    /// accelerator-3g, accelerator-lte, accelerator-trace, private-5g, private-5g-n79, fwa-5g, mmwave,
    /// nr-fdd-20mhz, lte-tdd, d2d-static, d2d-dynamic, drive, parity-fixed, parity-loss, parity-trace,
    /// parity-cell
    pub scenario: String,
    /// Set one value of the scenario, for example --set ack_filter.scheme=hybrid-opt (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Reads and checks the scenario. Returns its name and the scenario.
pub fn load(args: &ScenarioArgs) -> Outcome<(String, Scenario)> {
    let (name, text) = find(&args.scenario)?;
    let scenario = parse(&args.scenario, &text, &args.set).map_err(|e| Failure::Input(e.into()))?;
    Ok((name, scenario))
}

/// Reads and checks the scenario. Returns its name, the scenario, and whether the file or an option `--set`
/// gives a value to the key, a table and a name.
pub fn load_stating(args: &ScenarioArgs, [table, key]: [&str; 2]) -> Outcome<(String, Scenario, bool)> {
    let (name, text) = find(&args.scenario)?;
    let scenario = parse(&args.scenario, &text, &args.set).map_err(|e| Failure::Input(e.into()))?;
    let file: toml::Table = toml::from_str(&text).unwrap_or_default();
    let in_file = file.get(table).and_then(|table| table.get(key)).is_some();
    let path = format!("{table}.{key}");
    let set = args.set.iter().any(|set| set.split('=').next().is_some_and(|set| set.trim() == path));
    Ok((name, scenario, in_file || set))
}

/// Warns on stderr where the ceiling of the accelerator's published rate control is below the rate of the
/// access link.
pub fn warn_of_rate_ceiling(scenario: &Scenario) {
    let ceiling = scenario.accelerator.r_cap.0;
    let limited = scenario.core.path == scenario::Path::Accelerator
        && scenario.accelerator.profile == scenario::AcceleratorProfile::Paper;
    if let Some((name, rate)) = downlink_rate(scenario).filter(|(_, rate)| limited && *rate > ceiling) {
        let (ceiling, rate) = (quantity::bits(ceiling as f64), quantity::bits(rate as f64));
        output::message(&format!(
            "warning: accelerator.r_cap = {ceiling}: accelerator.profile = paper sends no connection faster, and {name} carries up to {rate}; set accelerator.r_cap\n"
        ));
    }
}

/// The access network and its highest downlink rate in b/s, where the scenario states it.
pub fn downlink_rate(scenario: &Scenario) -> Option<(&'static str, u64)> {
    // Bits per second and hertz of one layer: 75376 bits in 1 ms on 20 MHz (TS 36.213 table 7.1.7.2.1-1).
    const CELL_BITS_PER_HERTZ: f64 = 3.77;
    if scenario.sidelink.is_some() {
        return None;
    }
    let Some(link) = &scenario.link else {
        if scenario.cell.nr.is_some() {
            let facts = CellFacts::of(&scenario.cell_plan(), &scenario.cell);
            return Some(("the cell", (1e6 * facts.rates.downlink.ceiling_mbps) as u64));
        }
        return Some(("the cell", (scenario.cell.bandwidth.0 as f64 * CELL_BITS_PER_HERTZ) as u64));
    };
    let fixed = link.fixed.as_ref().map(|fixed| fixed.downlink_rate.0);
    let trace = || link.trace.as_ref()?.downlink.trace.as_ref().map(|trace| trace.rate() as u64);
    let cellular = || link.lte_early.as_ref().map(|cellular| cellular.rate.0);
    Some(("the link", fixed.or_else(trace).or_else(cellular)?))
}

/// Reads a scenario's text and its traces: generated traces, or files with paths relative to the scenario's
/// folder.
pub fn parse(file: &str, text: &str, set: &[String]) -> Result<Scenario, ScenarioError> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let loaded = scenario::load_with(file, text, set, &|name| read_trace(folder, name));
    loaded.map_err(with_suggestions)
}

/// Adds keys or words that resemble a mistyped one to a message.
fn with_suggestions(mut error: ScenarioError) -> ScenarioError {
    let Some(key) = error.key.as_deref().map(similar::without_indices) else { return error };
    let (tables, entries) = (reference::tables(), reference::entries());
    let entries = || entries.iter();
    let found = if error.message.starts_with("unknown field") {
        let known = entries().map(|entry| &entry.path).chain(tables.iter().map(|table| &table.path));
        similar::similar(&key, known.map(String::as_str))
    } else if let Some((entry, value)) = entries().find(|entry| entry.path == key).zip(error.value.as_ref()) {
        let word = value.trim_matches('"');
        let words = entry.values.iter().map(|(known, _)| known.as_str());
        if words.clone().any(|known| known == word) { Vec::new() } else { similar::similar(word, words) }
    } else {
        Vec::new()
    };
    error.message += &similar::hint(&found);
    error
}

/// The file of a trace: a generated trace, or a file with a path relative to `folder`.
pub fn read_trace(folder: &Path, name: &str) -> Result<Vec<u8>, String> {
    if let Some(generated) = generated(name) {
        return generated.map(|trace| trace.to_file());
    }
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| {
        format!("{}: {error}; give a trace in mahimahi's format, or generated:driving", path.display())
    })
}

/// Name and text of a built-in scenario. Panics if there is none of this name.
pub fn built_in(name: &str) -> (String, &'static str) {
    let found = BUILT_IN.iter().find(|(other, _)| *other == name);
    let (name, text) = found.expect("the name of a built-in scenario");
    ((*name).to_owned(), text)
}

/// Name and text of a scenario: a file, or a built-in scenario if there is no file of this name.
pub fn find(given: &str) -> Outcome<(String, String)> {
    let path = Path::new(given);
    if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == given).filter(|_| !path.exists()) {
        return Ok(((*name).to_owned(), (*text).to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::InvalidData {
            return Failure::input(format!("{given}: not a text file in UTF-8"));
        }
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        let hint = similar::hint(&similar::similar(given, names.iter().copied()));
        let names = names.join(", ");
        Failure::input(format!("{given}: {error}; give a scenario file, or a built-in one: {names}{hint}"))
    })?;
    let name = path.file_stem().map_or_else(|| given.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok((name, text))
}
