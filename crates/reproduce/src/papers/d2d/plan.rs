//! Several sweeps, and runs that record a sender around one change of path.

use super::parts::{Part, TCPS, parts, switch_settings, timeline_settings};
use super::pictures::pictures;
use super::rows::Experiment;
use super::switch::{SwitchTrace, timeline, trace};
use crate::plan::{Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, over};
use paceline_sim::{RunResult, Scenario};
use paceline_study::grid::{Grid, axes};
use paceline_study::{InputError, scenario_file};
use serde_json::json;
use std::fmt::Write;

/// The experiment.
pub static PAPER: Paper = Paper {
    name: "d2d",
    about: "TCP over direct links with mode switches (IEEE VTC Spring 2016): round trips, windows, throughputs",
    inputs: Inputs::Sweeps,
    counts: SEEDS,
    part_tables: true,
    plan,
};

/// Settings of a quick reproduction. Chosen for a first look within a minute; the results list them under
/// `set`.
const QUICK: [&str; 1] = ["run.duration=60 s"];

fn plan(options: &Options, runner: &mut dyn Runner) -> Result<Reproduced, Failure> {
    let seeds = PAPER.seeds(options);
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
    if let Some(folder) = runner.folder() {
        folder.write("switches.csv", &csv(&traces))?;
        for (name, picture) in pictures(&traces, &messages) {
            folder.write(&name, &picture)?;
        }
    }
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
    Ok(Reproduced { conditions: conditions(seeds, &options.set), about, rows: experiment.rows() })
}

fn sweep_part(
    part: &Part,
    seeds: u64,
    options: &Options,
    runner: &mut dyn Runner,
) -> Result<Vec<Vec<RunResult>>, Failure> {
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

/// `switches.csv`: a line for every traced change of path.
fn csv(traces: &[Vec<SwitchTrace>]) -> String {
    let mut text = String::from(
        "tcp,trace,timeouts,first_timeout_s,fast_recoveries,silence_s,least_window,segments_per_rtt,before_mbps,after_mbps,back_at_s,lost_packets,lost_bytes\n",
    );
    for (tcp, traces) in TCPS.iter().zip(traces) {
        for (index, t) in traces.iter().enumerate() {
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
            let _ = writeln!(
                text,
                "{},{index},{},{},{},{:.3},{:.1},{:.2},{:.3},{:.3},{},{},{}",
                tcp.name,
                t.timeouts_s.len(),
                optional(t.timeouts_s.first().copied()),
                t.recoveries_s.len(),
                t.silence_s,
                t.least_window,
                t.segments_per_rtt,
                t.goodput_mbps[0],
                t.goodput_mbps[1],
                optional(t.back_at_s),
                t.dropped.0,
                t.dropped.1,
            );
        }
    }
    text
}
