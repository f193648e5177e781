//! What the buffer before the radio has lately held without losing any of it. What is lost while less than that waits is not
//! lost there: radios lose a part of what they send for some time, on a fading channel or through interference, and no
//! silence tells of it. Such losses are no sign of a buffer that is too short (`shallow`), nor of a rate that is too high.
//!
//! Buffers hold bytes: what was delivered while a packet waited had been before it. The rate says less, as it was another one
//! while the queue grew. What a buffer was seen to hold is forgotten in time: others may fill it as well, and some are
//! bounded by time.

use paceline_net::{Duration, Instant};
use std::collections::VecDeque;

/// Time in seconds within which what was held is forgotten.
const MEMORY: f64 = 20.0;
/// Of packets that arrive sooner after each other only the first is looked at, and what was delivered is remembered for so
/// many. Where a queue lasts for longer than that nothing is said of it.
const APART: Duration = Duration::from_millis(4);
const REMEMBERED: usize = 64;
/// What was lost while so much less waited than was held leaves no doubt.
const CLEARLY: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Bytes held without loss; it fades.
    most: f64,
    /// In this round trip: the shortest queue that a packet has found, in bytes.
    shortest: Option<u64>,
    /// The longest in it, and in the last one that told of any. What is found lost was sent in either.
    longest: [Option<u64>; 2],
    /// When how much had been delivered in all, the oldest first.
    past: VecDeque<(Instant, u64)>,
}

impl Held {
    /// A packet has arrived that had waited for so long; with it so many bytes were delivered in all. `counts`: its wait was
    /// that of a queue, for sure.
    pub fn on_queue(&mut self, now: Instant, waited: Duration, delivered: u64, counts: bool) {
        if self.past.back().is_some_and(|(at, _)| now.since(*at) < APART) {
            return;
        }
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((now, delivered));
        let came_at = Instant::from_nanos(now.as_nanos().saturating_sub(waited.as_nanos()));
        let after = self.past.partition_point(|(at, _)| *at < came_at);
        // It came between two of them: so much at least had been before it, and no more than so much.
        let least = delivered - self.past.get(after).map_or(delivered, |(_, bytes)| *bytes);
        let most = after.checked_sub(1).map_or(u64::MAX, |before| delivered - self.past[before].1);
        self.longest[0] = self.longest[0].max(Some(most));
        if counts {
            self.shortest = Some(self.shortest.map_or(least, |shortest| shortest.min(least)));
        }
    }
    /// A round trip of so many seconds ended, in which so much was found lost.
    pub fn on_round(&mut self, seconds: f64, lost: u64) {
        self.most *= 1.0 - (seconds / MEMORY).min(1.0);
        if let (Some(shortest), 0) = (self.shortest.take(), lost) {
            self.most = self.most.max(shortest as f64);
        }
        if self.longest[0].is_some() {
            self.longest = [None, self.longest[0]];
        }
    }
    /// Nothing was on its way for a while.
    pub fn on_idle(&mut self) {
        self.past.clear();
    }
    /// Whether the buffer has held more than it did lately.
    pub fn had_room(&self) -> bool {
        self.had_held(1)
    }
    /// Whether it has held far more.
    pub fn had_much_room(&self) -> bool {
        self.had_held(CLEARLY)
    }
    fn had_held(&self, times: u64) -> bool {
        let [this, last] = self.longest;
        last.is_some_and(|last| last.max(this.unwrap_or(0)).saturating_mul(times) < self.most as u64)
    }
}
