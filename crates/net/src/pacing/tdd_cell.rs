//! A sender's knowledge of the TDD cell on its path: slots that are given, or a period that is learned from
//! ACKs; and the round-trip times without the pattern's part.

use super::{CleanDelay, Hint, Learned, Learner};
use crate::{Duration, Instant};

/// Knowledge of the TDD cell on the path.
#[derive(Clone, Debug)]
pub struct TddCell {
    /// None if the pattern is given.
    learner: Option<Learner>,
    period: Option<Duration>,
    /// Whether controls get clean round-trip times.
    cleans: bool,
    clean: Option<CleanDelay>,
    /// The latest clean round-trip time, and the least one of the connection.
    latest: Duration,
    least: Duration,
    /// The first ACK of the last bunch.
    bunch_at: Instant,
    changed: Option<Hint>,
}

impl TddCell {
    /// With the pattern in `hint`, or with a learner if it has none. If it `cleans`, controls get clean
    /// round-trip times.
    pub fn new(hint: &Hint, cleans: bool) -> Self {
        let period = hint.period();
        Self {
            learner: period.is_none().then(Learner::default),
            period,
            cleans,
            clean: period.map(CleanDelay::new),
            latest: Duration::ZERO,
            least: Duration::MAX,
            bunch_at: Instant::ZERO,
            changed: None,
        }
    }
    /// An ACK arrived with this round-trip time; returns the one for controls that watch delay.
    pub fn on_ack(&mut self, now: Instant, rtt: Option<Duration>) -> Option<Duration> {
        if let Some(learner) = &mut self.learner {
            learner.on_ack(now, rtt);
            let period = learner.learned().map(|learned| learned.period);
            if period != self.period {
                self.period = period;
                self.clean = period.map(CleanDelay::new);
                self.changed = Some(period.map_or(Hint::None, Hint::Period));
            }
        }
        if self.period.is_some_and(|period| now.since(self.bunch_at) > period / 2) {
            self.bunch_at = now;
        }
        let rtt = rtt?;
        self.least = self.least.min(rtt);
        self.latest = self.clean.as_mut().map_or(rtt, |clean| clean.on_sample(now, rtt));
        Some(if self.cleans { self.latest } else { rtt })
    }
    /// The learned period; none if it is given or not known.
    pub fn learned(&self) -> Option<Learned> {
        self.learner.as_ref()?.learned()
    }
    /// The period, if it is known.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }
    /// The learned period, if it has changed since the last call.
    pub fn take_change(&mut self) -> Option<Hint> {
        self.changed.take()
    }
    /// The time that packets wait in queues: the clean round-trip time above the least one.
    pub fn queueing(&self) -> Duration {
        self.latest.saturating_sub(self.least)
    }
    /// The time of the next bunch of ACKs; none without a period.
    pub fn next_bunch_at(&self) -> Option<Instant> {
        Some(self.bunch_at + self.period?)
    }
}
