//! The scenario that a command's arguments name, and its rate on the access network.

use crate::failure::Outcome;
use crate::{output, quantity};
use clap::Args;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::scenario::Access;
use paceline_sim::{Scenario, scenario};
use paceline_study::scenario_file;

/// Arguments of every command that reads a scenario.
#[derive(Args)]
pub struct ScenarioArgs {
    /// Scenario file, or the name of a built-in one: uplink-limited, single-station, ack-filter-paper,
    /// accelerator-3g, accelerator-lte, accelerator-trace, private-5g, private-5g-n79, fwa-5g, mmwave,
    /// nr-fdd-20mhz, lte-tdd, d2d-static, d2d-dynamic, d2d-nr, drive, parity-fixed, parity-loss,
    /// parity-trace, parity-cell
    pub scenario: String,
    /// Set one value of the scenario, for example --set ack_filter.scheme=hybrid-opt (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Reads and checks the scenario. Returns its name and the scenario.
pub fn load(args: &ScenarioArgs) -> Outcome<(String, Scenario)> {
    let (name, text) = scenario_file::find(&args.scenario)?;
    let scenario = scenario_file::parse(&args.scenario, &text, &args.set)?;
    Ok((name, scenario))
}

/// Reads and checks the scenario. Returns its name, the scenario, and whether the file or an option `--set`
/// gives a value to the key, a table and a name.
pub fn load_stating(args: &ScenarioArgs, [table, key]: [&str; 2]) -> Outcome<(String, Scenario, bool)> {
    let (name, text) = scenario_file::find(&args.scenario)?;
    let scenario = scenario_file::parse(&args.scenario, &text, &args.set)?;
    let file: toml::Table = toml::from_str(&text).unwrap_or_default();
    let in_file = file.get(table).and_then(|table| table.get(key)).is_some();
    let path = format!("{table}.{key}");
    let set = args.set.iter().any(|set| set.split('=').next().is_some_and(|set| set.trim() == path));
    Ok((name, scenario, in_file || set))
}

/// Says on stderr which keys have another effect than they say.
pub fn warn(scenario: &Scenario) {
    warn_of_rate_ceiling(scenario);
    scenario.warnings().iter().for_each(|text| output::message(&format!("warning: {text}\n")));
}

/// Warns on stderr where the ceiling of the accelerator's published rate control is below the rate of the
/// access link.
fn warn_of_rate_ceiling(scenario: &Scenario) {
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
    let link = match &scenario.access {
        Access::Link(link) => link,
        Access::Pairs(_) => return None,
        Access::Cells(cells) if cells.cell.nr.is_some() => {
            let facts = CellFacts::of(&cells.cell);
            return Some(("the cell", (1e6 * facts.rates.downlink.ceiling_mbps) as u64));
        }
        Access::Cells(cells) => {
            return Some(("the cell", (cells.cell.bandwidth.0 as f64 * CELL_BITS_PER_HERTZ) as u64));
        }
    };
    let fixed = link.fixed.as_ref().map(|fixed| fixed.downlink_rate.0);
    let trace = || link.trace.as_ref()?.downlink.trace.as_ref().map(|trace| trace.rate() as u64);
    let cellular = || link.lte_early.as_ref().map(|cellular| cellular.rate.0);
    Some(("the link", fixed.or_else(trace).or_else(cellular)?))
}
