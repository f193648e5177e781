//! TCP over direct links and changes of path: G. Nardini, G. Stea, A. Virdis, "Performance evaluation of
//! TCP-based traffic over direct communications in LTE-Advanced" (IEEE VTC Spring 2016).
//!
//! `parts` has the settings of the sweeps and the published TCPs, `switch` runs one change of path and
//! records the sender around it, `rows` sets both beside the published statements.

mod parts;
mod pictures;
mod rows;
mod switch;
#[cfg(test)]
mod tests;

use crate::plan::{
    Failure, Inputs, Options, Paper, Reproduced, Runner, SEEDS, conditions, grid, scenario, strings,
};
use parts::{TCPS, parts, switch_settings, timeline_settings};
use pictures::pictures;
use rows::Experiment;
use serde_json::json;
use std::fmt::Write;
use switch::{SwitchTrace, timeline, trace};

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
        let quick = if options.quick && part.over.is_empty() { strings(&QUICK) } else { Vec::new() };
        let set = [part.set, quick, options.set.clone()].concat();
        let own = runner.sweep(&part.name, &grid(part.scenario, &set, &part.over)?, seeds)?;
        runs.push((part.name, own));
    }
    let of_static = |own: Vec<String>| scenario("d2d-static", &[own, options.set.clone()].concat());
    let mut traces = Vec::new();
    for tcp in TCPS {
        let scenario = of_static(switch_settings(&tcp))?;
        let mut own = Vec::new();
        for seed in 0..seeds {
            runner.check()?;
            own.push(trace(&scenario, scenario.run.seed + seed));
        }
        traces.push(own);
    }
    let one_packet = of_static(timeline_settings())?;
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
