//! The learners of one connection or interface, and the period that they agree on for longest.
//!
//! Near the sender the ACKs and their round-trip times show the cell; near the receiver the arrivals of data
//! do. A capture does not say at which end it was made, so both are tried, each by a learner of its own.

use paceline_net::pacing::{Learned, Learner};
use paceline_net::{Duration, Instant};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The signals: names of the learners.
const SIGNALS: [&str; 2] = ["ACKs", "data"];

/// A found period.
pub struct Finding {
    learned: Learned,
    pub seen_in: &'static str,
    changes: u64,
}

/// Both learners with the periods that each knew, and for how many packets.
#[derive(Default)]
pub struct Findings {
    learners: [Learner; 2],
    known: [BTreeMap<u64, (u64, Option<Learned>)>; 2],
}

impl Findings {
    /// An ACK of data that left `rtt` earlier, if that is known.
    pub fn on_ack(&mut self, at_ns: u64, rtt: Option<Duration>) {
        self.learn(0, at_ns, rtt);
    }
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
    /// The period that was known for most packets, by the signal in which noise is less probable.
    pub fn best(&self) -> Option<Finding> {
        let found = (0..SIGNALS.len()).filter_map(|signal| {
            let (_, learned) = self.known[signal].values().max_by_key(|(packets, _)| *packets)?;
            let (seen_in, changes) = (SIGNALS[signal], self.learners[signal].changes());
            learned.map(|learned| Finding { learned, seen_in, changes })
        });
        found.min_by(|a, b| a.learned.log10_chance.total_cmp(&b.learned.log10_chance))
    }
}

impl Finding {
    pub fn period(&self) -> String {
        format!("{} ms", self.learned.strong_period.as_millis_f64())
    }
    pub fn phase(&self) -> String {
        let error = self.learned.error.as_millis_f64();
        self.learned
            .phase
            .map_or(String::new(), |phase| format!("{:.2} ± {error:.2} ms", phase.as_millis_f64()))
    }
    pub fn chance(&self) -> String {
        format!("1e{:.0}", self.learned.log10_chance)
    }
    pub fn json(&self) -> Value {
        let Learned { period, strong_period, phase, error, log10_chance } = self.learned;
        json!({
            "period_ms": strong_period.as_millis_f64(),
            "period_of_all_lines_ms": period.as_millis_f64(),
            "phase_ms": phase.map(Duration::as_millis_f64),
            "phase_error_ms": phase.map(|_| error.as_millis_f64()),
            "log10_chance_of_noise": log10_chance,
            "seen_in": self.seen_in,
            "changes": self.changes,
        })
    }
}
