//! TCP over direct links with mode switches (IEEE VTC Spring 2016): several sweeps, and runs that record a
//! sender around one change of path.

use super::plan::{Options, Reproduced, Runner, conditions, over};
use crate::error::InputError;
use crate::grid::{Grid, axes};
use crate::scenario_file;
use paceline_ran::sidelink::Message;
use paceline_sim::reproduce::d2d::{
    Experiment, Part, SwitchTrace, TCPS, parts, switch_settings, timeline, timeline_settings, trace,
};
use paceline_sim::{RunResult, Scenario};
use serde_json::json;

/// Settings of a quick reproduction. Chosen for a first look within a minute; the results list them under
/// `set`.
const QUICK: [&str; 1] = ["run.duration=60 s"];

/// The rows, and the records for pictures.
pub struct Outcome {
    /// The rows.
    pub reproduced: Reproduced,
    /// Per TCP in the order of [`TCPS`], the traces of all seeds.
    pub traces: Vec<Vec<SwitchTrace>>,
    /// Messages of a datagram and its answer with their times in ms.
    pub messages: Vec<(f64, Message)>,
}

/// Simulates the experiment.
pub fn run<R: Runner>(options: &Options, runner: &mut R) -> Result<Outcome, R::Error> {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        let own = sweep_part(&part, seeds, options, runner)?;
        runs.push((part.name, own));
    }
    let mut traces = Vec::new();
    for tcp in TCPS {
        let scenario = scenario(switch_settings(&tcp), options)?;
        let mut own = Vec::new();
        for seed in 0..seeds {
            runner.check()?;
            own.push(trace(&scenario, scenario.run.seed + seed));
        }
        traces.push(own);
    }
    let one_packet = scenario(timeline_settings(), options)?;
    let messages = timeline(&one_packet, one_packet.run.seed);
    let experiment = Experiment {
        parts: runs.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect(),
        traces: &traces,
        timeline: &messages,
    };
    let about = json!({
        "scenario": "d2d-static, d2d-dynamic",
        "seeds": seeds,
        "set": options.set,
        "parts": runs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
    });
    let (conditions, rows) = (conditions(seeds, &options.set), experiment.rows());
    Ok(Outcome { reproduced: Reproduced { name: "d2d", conditions, about, rows }, traces, messages })
}

fn sweep_part<R: Runner>(
    part: &Part,
    seeds: u64,
    options: &Options,
    runner: &mut R,
) -> Result<Vec<Vec<RunResult>>, R::Error> {
    let (name, text) = scenario_file::built_in(part.scenario);
    let quick: &[&str] = if options.quick && part.over.is_empty() { &QUICK } else { &[] };
    let quick = quick.iter().map(|set| (*set).to_owned());
    let set: Vec<String> = part.set.iter().cloned().chain(quick).chain(options.set.clone()).collect();
    let grid = Grid::new(name.clone(), &name, text, &set, axes(&over(&part.over))?)?;
    runner.sweep(&part.name, &grid, seeds)
}

/// The static scenario with these settings and the user's.
fn scenario(settings: Vec<String>, options: &Options) -> Result<Scenario, InputError> {
    let (name, text) = scenario_file::built_in("d2d-static");
    let set: Vec<String> = settings.into_iter().chain(options.set.clone()).collect();
    Ok(scenario_file::parse(&name, text, &set)?)
}
