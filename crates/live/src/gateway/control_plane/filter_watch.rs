//! Whether the ACK filter does harm, on live traffic: deals connections anew every period, reads what the kernel's part
//! saw their servers send, and takes the filter out of use where [`Comparison`] finds that servers send more again.

use crate::gateway::config::Filter;
use crate::gateway::datapath::steering::Steering;
use paceline_net::{Duration, Instant};
use paceline_pep::ack_filter::{Comparison, Finding, Group, Holdout, Sent};

/// A filter that is watched.
pub struct FilterWatch {
    comparison: Comparison,
    share: f64,
    period: Duration,
    began: Option<Instant>,
    /// What had been sent to both groups when the period began: filtered, held out.
    before: [Sent; 2],
    found: Option<Finding>,
}

impl FilterWatch {
    /// Of a filter that is to be compared with nothing there is none.
    pub fn new(filter: &Filter) -> Option<Self> {
        (filter.rate.is_some() && filter.holdout > 0.0).then(|| Self {
            comparison: Comparison::default(),
            share: filter.holdout,
            period: filter.period,
            began: None,
            before: [Sent::default(); 2],
            found: None,
        })
    }
    /// Whether a period is over.
    pub fn is_due(&self, now: Instant) -> bool {
        self.found.is_none() && self.began.is_none_or(|began| now.since(began) >= self.period)
    }
    /// What speaks against the filter, which is out of use since.
    pub fn finding(&self) -> Option<Finding> {
        self.found
    }
    /// A period is over, and the next one begins. Whose ACKs are not filtered in it.
    pub fn next_period(&mut self, now: Instant, steering: &Steering, salt: u32) -> anyhow::Result<Holdout> {
        let sent = [steering.sent_to(Group::Matched)?, steering.sent_to(Group::HeldOut)?];
        let [filtered, held_out] = [0, 1].map(|group| difference(sent[group], self.before[group]));
        if self.began.is_some() {
            self.found = self.comparison.add(filtered, held_out);
        }
        (self.began, self.before) = (Some(now), sent);
        let stopped = self.found.is_some();
        let (compared, spared) = match Holdout::new(salt, self.share) {
            _ if stopped => (Holdout::default(), Holdout::ALL),
            holdout => (holdout, holdout),
        };
        steering.set_holdout(compared)?;
        Ok(spared)
    }
}

fn difference(now: Sent, before: Sent) -> Sent {
    Sent {
        bytes: now.bytes - before.bytes,
        retransmitted: now.retransmitted - before.retransmitted,
        timeouts: now.timeouts - before.timeouts,
    }
}
