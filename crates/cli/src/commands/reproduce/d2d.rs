//! `paceline reproduce d2d`: TCP over direct links with mode switches (IEEE VTC Spring 2016). Several sweeps,
//! each in its own folder, and runs that record a sender around one change of path.

use super::options::Options;
use super::outcome::finish;
use crate::failure::Outcome;
use crate::report::path_switch;
use crate::results_folder::write_file;
use anyhow::Context;
use paceline_sim::reproduce::d2d::{SwitchTrace, TCPS};
use paceline_study::reproduce::d2d;
use std::fmt::Write;
use std::process::ExitCode;

pub fn run(options: &Options) -> Outcome {
    let d2d::Outcome { reproduced, traces, messages } = d2d::run(&options.plan(), &mut options.folders())?;
    let mut files = vec![(String::from("switches.csv"), csv(&traces))];
    files.extend(path_switch::pictures(&traces, &messages));
    for (name, text) in files {
        write_file(&options.out.join(&name), &text).with_context(|| format!("cannot write {name}"))?;
    }
    finish(&reproduced, Some(&options.out))?;
    Ok(ExitCode::SUCCESS)
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
