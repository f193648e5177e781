//! Detects on live traffic whether the ACK filter does harm. Every period it draws new groups of filtered and
//! unfiltered connections, and reads from the kernel program how much their servers sent and retransmitted.
//! If [`Comparison`] finds more retransmissions with the filter, the filter is switched off.

use crate::config::Filter;
use crate::datapath::steering::Steering;
use paceline_net::{Duration, Instant};
use paceline_pep::ack_filter::{Comparison, Finding, Group, Holdout, Sent};

/// The comparison of one filter.
pub struct FilterWatch {
    comparison: Comparison,
    share: f64,
    period: Duration,
    began: Option<Instant>,
    /// Totals at the beginning of the period: filtered, held out.
    before: [Sent; 2],
    found: Option<Finding>,
}

impl FilterWatch {
    /// None if the configuration has no filter, or no unfiltered connections to compare with.
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
    /// Whether the first period can begin, or the present one is over.
    pub fn is_due(&self, now: Instant) -> bool {
        self.found.is_none() && self.began.is_none_or(|began| now.since(began) >= self.period)
    }
    /// The finding for which the filter was switched off.
    pub fn finding(&self) -> Option<Finding> {
        self.found
    }
    /// Ends the present period, and begins the next one. Returns the connections whose ACKs are not filtered
    /// in it.
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
