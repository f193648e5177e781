//! The scenario that a command's arguments name, and its rate on the access network.

use crate::failure::{Failure, Outcome};
use crate::imported::imported;
use crate::{output, quantity};
use clap::Args;
use paceline_import::Options;
use paceline_net::Duration;
use paceline_sim::cell_facts::CellFacts;
use paceline_sim::link::{Trace, generated};
use paceline_sim::scenario::Access;
use paceline_sim::{Scenario, ScenarioError, scenario};
use paceline_study::scenario_file::{self, read_trace};
use std::path::Path;

/// Arguments of every command that reads a scenario.
#[derive(Args)]
pub struct ScenarioArgs {
    /// Scenario file, a trace of a link (a file in any format of `paceline trace import`, or
    /// generated:KIND), or the name of a built-in scenario: uplink-limited, single-station, ack-filter-paper,
    /// accelerator-3g, accelerator-lte, accelerator-trace, private-5g, private-5g-n79, fwa-5g, mmwave,
    /// nr-fdd-20mhz, lte-tdd, d2d-static, d2d-dynamic, d2d-nr, drive, parity-fixed, parity-loss,
    /// parity-trace, parity-cell
    pub scenario: String,
    /// Set one value of the scenario, for example --set ack_filter.scheme=hybrid-opt (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of the commands that run a scenario.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Seed of the first run: run.seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Simulated time, the warm-up included, for example "30 s": run.duration
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
}

impl RunArgs {
    /// The scenario with these settings.
    pub fn scenario(&self) -> ScenarioArgs {
        let seed = self.seed.map(|seed| format!("run.seed={seed}"));
        let duration = self.duration.map(|duration| format!("run.duration={duration}"));
        let ScenarioArgs { scenario, set } = &self.scenario;
        let set = set.iter().cloned().chain(seed).chain(duration).collect();
        ScenarioArgs { scenario: scenario.clone(), set }
    }
}

/// The text of a scenario, before it is read.
pub struct Source {
    /// Its name.
    pub name: String,
    /// The file in messages; paths of traces are relative to its folder.
    file: String,
    text: String,
    /// The content of the file itself, where that is a trace.
    trace: Option<Vec<u8>>,
}

impl Source {
    /// The scenario of a file or a built-in one; of a trace, in any format that is imported or a generated
    /// one, the link that follows it.
    pub fn find(given: &str) -> Outcome<Self> {
        let file = given.to_owned();
        let (path, generated) = (Path::new(given), generated(given).is_some());
        let trace = if generated { None } else { trace_of(path)? };
        if generated || trace.is_some() {
            let [name, file_name] = [path.file_stem(), path.file_name()]
                .map(|part| part.map_or_else(|| file.clone(), |part| part.to_string_lossy().into()));
            let downlink = toml::Value::String(file_name);
            let text = format!("[link.trace]\ndownlink = {downlink}\n\n[[station]]\n");
            return Ok(Self { name, file, text, trace });
        }
        let (name, text) = scenario_file::find(given)?;
        Ok(Self { name, file, text, trace: None })
    }
    /// Reads and checks it.
    pub fn parse(&self, set: &[String]) -> Result<Scenario, ScenarioError> {
        let path = Path::new(&self.file);
        let own = path.file_name().map(|name| name.to_string_lossy());
        let read = |name: &str| match &self.trace {
            Some(trace) if Some(name) == own.as_deref() => Ok(trace.clone()),
            _ => read_trace(path.parent().unwrap_or(Path::new("")), name),
        };
        scenario_file::parse_with(&self.file, &self.text, set, &read)
    }
}

/// Endings of the names of traces, beside which `.gz` and `.xz` may stand. A file of another name that is no
/// scenario is a trace too if it can be read as one.
const TRACE_ENDINGS: [&str; 11] =
    [".trace", ".csv", ".tsv", ".json", ".log", ".up", ".down", ".pcap", ".pcapng", ".pps", ".dat"];

/// The content of a file that is a trace, in the form of scenarios; none of a scenario.
fn trace_of(path: &Path) -> Outcome<Option<Vec<u8>>> {
    let name = path.to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".xz")).unwrap_or(&name);
    let named = TRACE_ENDINGS.iter().any(|ending| plain.ends_with(ending));
    let Ok(file) = std::fs::read(path) else { return Ok(None) };
    let is_toml = || std::str::from_utf8(&file).is_ok_and(|text| text.parse::<toml::Table>().is_ok());
    if plain.ends_with(".toml") || !named && is_toml() {
        return Ok(None);
    }
    if Trace::read(&file).is_ok() {
        return Ok(Some(file));
    }
    match imported(path, &Options::default()) {
        Ok((trace, notes)) => {
            output::message(&notes);
            Ok(Some(trace.to_file()))
        }
        Err(error) if named => Err(Failure::input(error)),
        Err(_) => Ok(None),
    }
}

/// Reads and checks the scenario. Returns its name and the scenario.
pub fn load(args: &ScenarioArgs) -> Outcome<(String, Scenario)> {
    let source = Source::find(&args.scenario)?;
    let scenario = source.parse(&args.set)?;
    Ok((source.name, scenario))
}

/// Reads and checks the scenario. Returns its name, the scenario, and whether the file or an option `--set`
/// gives a value to the key, a table and a name.
pub fn load_stating(args: &ScenarioArgs, [table, key]: [&str; 2]) -> Outcome<(String, Scenario, bool)> {
    let source = Source::find(&args.scenario)?;
    let scenario = source.parse(&args.set)?;
    let file: toml::Table = toml::from_str(&source.text).unwrap_or_default();
    let in_file = file.get(table).and_then(|table| table.get(key)).is_some();
    let path = format!("{table}.{key}");
    let set = args.set.iter().any(|set| set.split('=').next().is_some_and(|set| set.trim() == path));
    Ok((source.name, scenario, in_file || set))
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
    let limited = scenario.core.proxy == scenario::Proxy::Accelerator
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
