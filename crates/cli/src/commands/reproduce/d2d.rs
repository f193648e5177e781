//! `paceline reproduce d2d`: TCP over direct links with mode switches (IEEE VTC Spring 2016). Several sweeps,
//! each in its own folder, and runs that record a sender around one change of path.

use super::options::Options;
use super::outcome::{conditions, finish};
use crate::failure::{Failure, Outcome};
use crate::report::path_switch;
use crate::results_folder::write_file;
use crate::scenario_file;
use crate::sweep::{self, Grid};
use anyhow::Context;
use paceline_sim::reproduce::d2d::{
    Experiment, Part, SwitchTrace, TCPS, parts, switch_settings, timeline, timeline_settings, trace,
};
use paceline_sim::{RunResult, Scenario};
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// Settings of `--quick`. Chosen for a first look within a minute; the results list them under `set`.
const QUICK: [&str; 1] = ["run.duration=60 s"];

pub fn run(options: &Options) -> Outcome {
    let seeds = options.seeds();
    let mut runs = Vec::new();
    for part in parts() {
        let own = sweep_part(&part, seeds, options)?;
        runs.push((part.name, own));
    }
    let traces = TCPS
        .iter()
        .map(|tcp| {
            let scenario = scenario(switch_settings(tcp), options)?;
            Ok((0..seeds).map(|seed| trace(&scenario, scenario.run.seed + seed)).collect())
        })
        .collect::<Outcome<Vec<Vec<SwitchTrace>>>>()?;
    let one_packet = scenario(timeline_settings(), options)?;
    let messages = timeline(&one_packet, one_packet.run.seed);
    let experiment = Experiment {
        parts: runs.iter().map(|(name, runs)| (name.clone(), runs.as_slice())).collect(),
        traces: &traces,
        timeline: &messages,
    };
    let rows = experiment.rows();
    let mut files = vec![(String::from("switches.csv"), csv(&traces))];
    files.extend(path_switch::pictures(&traces, &messages));
    for (name, text) in files {
        write_file(&options.out.join(&name), &text).with_context(|| format!("cannot write {name}"))?;
    }
    let about = json!({
        "scenario": "d2d-static, d2d-dynamic",
        "seeds": seeds,
        "set": options.set,
        "parts": runs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
    });
    finish("d2d", &conditions(seeds, &options.set), about, &rows, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
}

fn sweep_part(part: &Part, seeds: u64, options: &Options) -> Outcome<Vec<Vec<RunResult>>> {
    let (name, text) = scenario_file::built_in(part.scenario);
    let quick: &[&str] = if options.quick && part.over.is_empty() { &QUICK } else { &[] };
    let quick = quick.iter().map(|set| (*set).to_owned());
    let set: Vec<String> = part.set.iter().cloned().chain(quick).chain(options.set.clone()).collect();
    let over: Vec<String> =
        part.over.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect();
    let grid = Grid::new(name.clone(), &name, text, &set, sweep::axes(&over)?)?;
    Ok(sweep::run(&grid, seeds, options.jobs, &options.out.join(&part.name))?.runs)
}

/// The static scenario with these settings and the user's.
fn scenario(settings: Vec<String>, options: &Options) -> Outcome<Scenario> {
    let (name, text) = scenario_file::built_in("d2d-static");
    let set: Vec<String> = settings.into_iter().chain(options.set.clone()).collect();
    scenario_file::parse(&name, text, &set).map_err(|error| Failure::Input(error.into()))
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
