//! The period of a TDD pattern or of scheduling requests, learned from all connections of a capture point.
//!
//! Near the sender the ACKs and their round-trip times show the cell; near the receiver the arrivals of data
//! do. A capture does not say at which end it was made, so both are tried, each by a learner of its own.

use paceline_net::pacing::{Learned, Learner};
use paceline_net::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// The signals: names of the learners.
const SIGNALS: [&str; 2] = ["ACKs", "data"];
/// Longest period of a pattern, ms: two concatenated patterns of 10 ms (TS 38.331 TDD-UL-DL-ConfigCommon).
const LONGEST_PATTERN_MS: f64 = 20.0;

/// A found period.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The period of the strong lines, ms.
    pub period_ms: f64,
    /// That of all lines, a multiple of it, ms.
    pub period_of_all_lines_ms: f64,
    /// A send time of the least round-trip time, modulo the period, ms.
    pub phase_ms: Option<f64>,
    /// Its standard deviation, ms.
    pub phase_error_ms: Option<f64>,
    /// Common logarithm of the probability that noise has the strongest line.
    pub log10_chance_of_noise: f64,
    /// `ACKs` or `data`.
    pub seen_in: &'static str,
    /// Number of times that the period was given up.
    pub changes: u64,
}

/// Both learners with the periods that each knew, and for how many packets.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    learners: [Learner; 2],
    known: [BTreeMap<u64, (u64, Option<Learned>)>; 2],
}

impl Findings {
    /// An ACK of data that left `rtt` earlier, if that is known.
    pub fn on_ack(&mut self, at_ns: u64, rtt: Option<Duration>) {
        self.learn(0, at_ns, rtt);
    }
    /// A segment with data.
    pub fn on_data(&mut self, at_ns: u64) {
        self.learn(1, at_ns, None);
    }
    fn learn(&mut self, signal: usize, at_ns: u64, rtt: Option<Duration>) {
        self.learners[signal].on_ack(Instant::from_nanos(at_ns), rtt);
        if let Some(learned) = self.learners[signal].learned() {
            let entry = self.known[signal].entry(learned.strong_period.as_nanos()).or_default();
            *entry = (entry.0 + 1, Some(learned));
        }
    }
    /// The period of a signal that was known for most packets.
    fn of(&self, signal: usize) -> Option<Finding> {
        let (_, learned) = self.known[signal].values().max_by_key(|(packets, _)| *packets)?;
        let Learned { period, strong_period, phase, error, log10_chance } = (*learned)?;
        Some(Finding {
            period_ms: strong_period.as_millis_f64(),
            period_of_all_lines_ms: period.as_millis_f64(),
            phase_ms: phase.map(Duration::as_millis_f64),
            phase_error_ms: phase.map(|_| error.as_millis_f64()),
            log10_chance_of_noise: log10_chance,
            seen_in: SIGNALS[signal],
            changes: self.learners[signal].changes(),
        })
    }
    /// The period by the signal in which noise is less probable.
    pub fn best(&self) -> Option<Finding> {
        let found = (0..SIGNALS.len()).filter_map(|signal| self.of(signal));
        found.min_by(|a, b| a.log10_chance_of_noise.total_cmp(&b.log10_chance_of_noise))
    }
    /// The periods of the pattern and of scheduling requests, ms. Data arrive in downlink slots, and ACKs
    /// leave in uplink slots, or in those that a scheduling request asked for: a period of the ACKs alone
    /// is either.
    pub fn cell(&self) -> CellPeriods {
        let [acks, data] = [0, 1].map(|signal| self.of(signal).map(|finding| finding.period_ms));
        let is_request = |acks: f64| data.is_some_and(|data| acks > data) || acks > LONGEST_PATTERN_MS;
        let (requests, either) = (acks.filter(|ms| is_request(*ms)), acks.filter(|ms| !is_request(*ms)));
        CellPeriods {
            tdd_period_ms: data,
            scheduling_request_period_ms: requests,
            uplink_period_ms: if data.is_none() { either } else { None },
        }
    }
}

/// The periods of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CellPeriods {
    /// Of the TDD pattern: data arrive with it, ms.
    pub tdd_period_ms: Option<f64>,
    /// Of scheduling requests: ACKs arrive with it, and it is longer than a pattern, ms.
    pub scheduling_request_period_ms: Option<f64>,
    /// Of ACKs alone: of the pattern or of scheduling requests, ms.
    pub uplink_period_ms: Option<f64>,
}

impl Finding {
    /// The period with its unit.
    pub fn period(&self) -> String {
        format!("{} ms", self.period_ms)
    }
    /// The phase with its error.
    pub fn phase(&self) -> String {
        let error = self.phase_error_ms.unwrap_or_default();
        self.phase_ms.map_or(String::new(), |phase| format!("{phase:.2} ± {error:.2} ms"))
    }
    /// The chance that noise has the period.
    pub fn chance(&self) -> String {
        format!("1e{:.0}", self.log10_chance_of_noise)
    }
}
