//! The report of a failed script: its place, the expectation, the actual event, and the last packets before
//! it.

use crate::script::check::Observed;
use crate::script::parser::{Line, Script};
use paceline_net::Instant;
use std::fmt::Write;

/// Number of packets shown before the failure.
const SHOWN: usize = 12;

/// The failure of a line.
#[derive(Clone, Debug)]
pub struct Failure {
    pub expected: String,
    pub got: String,
}

/// One packet that arrived or left.
#[derive(Clone, Debug)]
pub struct Traced {
    pub at: Instant,
    pub arrives: bool,
    pub segment: String,
}

/// A time since the script's first line.
pub fn time(at: Instant, start: Instant) -> String {
    let ms = at.as_nanos() as f64 / 1e6 - start.as_nanos() as f64 / 1e6;
    format!("{ms:.3}ms")
}

/// The report; `line` is `None` for a failure before or after all lines.
pub fn write(
    script: &Script,
    line: Option<&Line>,
    failure: &Failure,
    (start, trace): (Instant, &[Traced]),
    observed: &Observed,
) -> String {
    let mut text = match line {
        Some(line) => format!("{}:{}: failed\n  line      {}\n", script.name, line.number, line.text),
        None => format!("{}: failed\n", script.name),
    };
    let _ = writeln!(text, "  expected  {}\n  got       {}\n  last packets:", failure.expected, failure.got);
    for packet in &trace[trace.len().saturating_sub(SHOWN)..] {
        let sign = if packet.arrives { '<' } else { '>' };
        let _ = writeln!(text, "    {:>12} {sign} {}", time(packet.at, start), packet.segment);
    }
    let _ = writeln!(text, "  {:?}\n  {:?}", observed.snapshot, observed.stats);
    text
}
