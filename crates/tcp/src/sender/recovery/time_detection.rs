//! Detection of losses by time (RACK, RFC 8985 §6.2), on the scoreboard.
//!
//! Segments are evaluated in the order of their sending, at constant cost: those sent once lie in that order
//! on the scoreboard, and those sent again in a queue of their own.

use super::rack::RackContext;
use super::scoreboard::Scoreboard;
use super::segment::{ScoreboardUpdate, SentSegment};
use paceline_net::{Duration, Instant};

impl Scoreboard {
    /// Marks segments that are lost by now. Returns the time until the last of those that may be lost is.
    pub fn detect_by_time(
        &mut self,
        context: &RackContext,
        update: &mut ScoreboardUpdate,
    ) -> Option<Duration> {
        let window = self.rack.reordering_window(context, self.sacked_segments);
        let once = self.detect_sent_once(context.now, window, update);
        let again = self.detect_sent_again(context.now, window, update);
        once.max(again)
    }
    fn detect_sent_once(
        &mut self,
        now: Instant,
        window: Duration,
        update: &mut ScoreboardUpdate,
    ) -> Option<Duration> {
        let mut index = self.time_cursor.saturating_sub(self.base) as usize;
        while let Some(segment) = self.segments.get(index) {
            if is_unresolved(segment) {
                if !self.rack.sent_before(segment.sent_at, segment.end) {
                    break;
                }
                if !self.rack.time_until_lost(now, segment.sent_at, window).is_zero() {
                    self.time_cursor = self.base + index as u64;
                    return self.last_candidate(index, now, window);
                }
                self.mark_lost(index, update);
            }
            index += 1;
        }
        self.time_cursor = self.base + index as u64;
        None
    }
    /// The time until the newest candidate from `first` on is lost: sent once, before a segment that arrived,
    /// and not acknowledged.
    fn last_candidate(&self, first: usize, now: Instant, window: Duration) -> Option<Duration> {
        let latest_end = self.rack.latest_end();
        let before = self.segments.partition_point(|segment| segment.end <= latest_end);
        let mut index = before.max(first + 1) - 1;
        // Skip the sacked run at its end in one step.
        if let Some((start, _)) = self.sacked.range_at(self.segments[index].start) {
            index = self.segments.partition_point(|segment| segment.start < start).max(first + 1) - 1;
        }
        let newest = &self.segments[index];
        let candidate = is_unresolved(newest) && self.rack.sent_before(newest.sent_at, newest.end);
        let index = if candidate { index } else { first };
        Some(self.rack.time_until_lost(now, self.segments[index].sent_at, window))
    }
    fn detect_sent_again(
        &mut self,
        now: Instant,
        window: Duration,
        update: &mut ScoreboardUpdate,
    ) -> Option<Duration> {
        while let Some(&(number, sent_at)) = self.resent.front() {
            if let Some(index) = self.resent_index(number, sent_at) {
                let segment = &self.segments[index];
                if !self.rack.sent_before(segment.sent_at, segment.end) {
                    return None;
                }
                if !self.rack.time_until_lost(now, sent_at, window).is_zero() {
                    return self.last_resent_candidate(now, window);
                }
                self.mark_lost_again(index, update);
            }
            self.resent.pop_front();
        }
        None
    }
    fn last_resent_candidate(&self, now: Instant, window: Duration) -> Option<Duration> {
        let latest_sent_at = self.rack.latest_sent_at();
        let before = self.resent.partition_point(|(_, sent_at)| *sent_at <= latest_sent_at);
        let newest = self.resent.range(..before).rev().find(|(number, sent_at)| {
            let segment = self.resent_index(*number, *sent_at).map(|index| &self.segments[index]);
            segment.is_some_and(|segment| self.rack.sent_before(segment.sent_at, segment.end))
        });
        newest.map(|(_, sent_at)| self.rack.time_until_lost(now, *sent_at, window))
    }
    /// The segment of an entry of the queue of retransmissions, if that is its latest transmission and still
    /// awaited.
    fn resent_index(&self, number: u64, sent_at: Instant) -> Option<usize> {
        let index = number.checked_sub(self.base)? as usize;
        let segment = self.segments.get(index)?;
        let awaited = !segment.sacked && segment.sent_at == sent_at && (segment.resent || !segment.lost);
        awaited.then_some(index)
    }
}

/// Whether a segment was sent once and is neither delivered nor lost.
fn is_unresolved(segment: &SentSegment) -> bool {
    !segment.sacked && !segment.lost && !segment.ever_resent
}

#[cfg(test)]
#[path = "rack_tests.rs"]
mod tests;
