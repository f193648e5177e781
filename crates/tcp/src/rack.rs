//! Losses told by time (RACK, RFC 8985 §6, with the details of Linux `tcp_recovery`): what was sent before something
//! that arrived, and is not acknowledged within the latest round-trip time and a reordering window, is lost.
//!
//! The window is zero until reordering was seen and once recovery has begun, then a quarter of the smallest RTT, and
//! a quarter more for each round trip in which a DSACK told of a needless retransmission, for 16 recoveries.
//!
//! Segments are judged in the order of their sending, at constant cost: those sent once lie in that order on the
//! scoreboard, and those sent again in a queue of their own.

use crate::scoreboard::{Delivered, Scoreboard, Sent};
use paceline_net::{Duration, Instant};

/// Recoveries for which a widened window lasts.
const PERSIST: u8 = 16;
/// Segments sacked that tell a loss before any reordering was seen.
const DUP_THRESH: u32 = 3;
/// Most segments of reordering that are allowed for (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// What RACK knows of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The latest sending of anything known to have arrived, by time and then by place.
    latest: (Instant, u64),
    /// Round-trip time of what arrived last.
    rtt: Duration,
    advanced: bool,
    reordering_seen: bool,
    /// Reordering in segments (`tp->reordering`).
    reordering: u32,
    steps: u8,
    persist: u8,
    dsack_seen: bool,
    /// Bytes delivered when the window was last widened.
    widened_at: u64,
    /// Name of the first segment that was sent once and not judged.
    pub(crate) cursor: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            reordering: DUP_THRESH,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            widened_at: 0,
            cursor: 0,
        }
    }
}

/// What the reordering window depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judge {
    pub now: Instant,
    pub min_rtt: Option<Duration>,
    pub srtt: Option<Duration>,
    /// Fast recovery or recovery after a timeout is under way.
    pub recovering: bool,
}

impl Rack {
    /// A transmission at `sent_at` of what ends at `end` was delivered.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        sent_at: Instant,
        end: u64,
        resent: bool,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now.since(sent_at);
        // Faster than possible: it was an earlier transmission that arrived.
        if resent && min_rtt.is_none_or(|min| rtt < min) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.latest = self.latest.max((sent_at, end));
    }
    /// Something sent once arrived `distance` bytes below what had arrived before.
    pub fn on_reordering(&mut self, distance: u64, mss: u32) {
        self.reordering_seen = true;
        let segments = distance.div_ceil(u64::from(mss.max(1))).min(MAX_REORDERING) as u32;
        self.reordering = self.reordering.max(segments);
    }
    /// A DSACK told that a retransmission was needless; a tail loss probe's own does not count.
    pub fn on_dsack(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }
    /// An acknowledgment was processed whose newest segment was sent when `prior_delivered` bytes had been delivered
    /// of the `delivered` now: widens the window at most once per round trip.
    pub fn update_window(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered < self.widened_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.steps = self.steps.saturating_add(1);
            self.dsack_seen = false;
            self.widened_at = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }
    /// A recovery ended.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }
    /// Whether an acknowledgment since the last call delivered something.
    pub fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }
    /// A timeout after that many duplicate ACKs: reordering was overestimated.
    pub fn on_timeout(&mut self, sacked_segments: u32) {
        if sacked_segments >= DUP_THRESH {
            self.reordering = self.reordering.min(DUP_THRESH);
        }
    }
    fn reo_wnd(&self, judge: &Judge, sacked_segments: u32) -> Duration {
        if !self.reordering_seen && (judge.recovering || sacked_segments >= self.reordering) {
            return Duration::ZERO;
        }
        let quarter = judge.min_rtt.unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.steps)).min(judge.srtt.unwrap_or(Duration::MAX))
    }
    /// What is left until a segment sent at `sent_at` is lost; zero if it is.
    pub fn remaining(&self, now: Instant, sent_at: Instant, window: Duration) -> Duration {
        (self.rtt + window).saturating_sub(now.since(sent_at))
    }
    fn sent_before(&self, segment: &Sent) -> bool {
        (segment.sent_at, segment.end) < self.latest
    }
}

impl Scoreboard {
    /// Marks what is lost by now; returns how long to wait until the last of what may be lost is.
    pub fn detect_by_time(&mut self, judge: &Judge, out: &mut Delivered) -> Option<Duration> {
        let window = self.rack.reo_wnd(judge, self.sacked_segments);
        let first = self.detect_sent_once(judge.now, window, out);
        let again = self.detect_sent_again(judge.now, window, out);
        first.max(again)
    }
    fn detect_sent_once(&mut self, now: Instant, window: Duration, out: &mut Delivered) -> Option<Duration> {
        let mut index = self.rack.cursor.saturating_sub(self.base) as usize;
        while let Some(segment) = self.segments.get(index) {
            let unjudged = !segment.sacked && !segment.lost && !segment.ever_resent;
            if unjudged {
                if !self.rack.sent_before(segment) {
                    break;
                }
                if !self.rack.remaining(now, segment.sent_at, window).is_zero() {
                    self.rack.cursor = self.base + index as u64;
                    return self.last_candidate(index, now, window);
                }
                self.mark_lost(index, out);
            }
            index += 1;
        }
        self.rack.cursor = self.base + index as u64;
        None
    }
    /// The wait for the newest segment from `first` on that was sent once before what arrived and is missing.
    fn last_candidate(&self, first: usize, now: Instant, window: Duration) -> Option<Duration> {
        let before = self.segments.partition_point(|segment| segment.end <= self.rack.latest.1);
        let mut index = before.max(first + 1) - 1;
        // Skip the run that was sacked at its end, in one step, and retransmissions in between.
        if let Some((start, _)) = self.sacked.range_at(self.segments[index].start) {
            index = self.segments.partition_point(|segment| segment.start < start).max(first + 1) - 1;
        }
        let candidate = |segment: &Sent| {
            !segment.sacked && !segment.lost && !segment.ever_resent && self.rack.sent_before(segment)
        };
        let index = if candidate(&self.segments[index]) { index } else { first };
        Some(self.rack.remaining(now, self.segments[index].sent_at, window))
    }
    fn detect_sent_again(&mut self, now: Instant, window: Duration, out: &mut Delivered) -> Option<Duration> {
        while let Some(&(name, sent_at)) = self.resent.front() {
            if let Some(index) = self.resent_index(name, sent_at) {
                let segment = &self.segments[index];
                if !self.rack.sent_before(segment) {
                    return None;
                }
                if !self.rack.remaining(now, sent_at, window).is_zero() {
                    return self.last_resent_candidate(now, window);
                }
                self.mark_lost_again(index, out);
            }
            self.resent.pop_front();
        }
        None
    }
    fn last_resent_candidate(&self, now: Instant, window: Duration) -> Option<Duration> {
        let before = self.resent.partition_point(|(_, sent_at)| *sent_at <= self.rack.latest.0);
        let newest = self.resent.range(..before).rev().find(|(name, sent_at)| {
            let index = self.resent_index(*name, *sent_at);
            index.is_some_and(|index| self.rack.sent_before(&self.segments[index]))
        });
        newest.map(|(_, sent_at)| self.rack.remaining(now, *sent_at, window))
    }
    /// The segment of an entry of the queue of retransmissions, if that transmission is still what counts.
    fn resent_index(&self, name: u64, sent_at: Instant) -> Option<usize> {
        let index = name.checked_sub(self.base)? as usize;
        let segment = self.segments.get(index)?;
        let counts = !segment.sacked && segment.sent_at == sent_at && (segment.resent || !segment.lost);
        counts.then_some(index)
    }
}

#[cfg(test)]
#[path = "rack_tests.rs"]
mod tests;
