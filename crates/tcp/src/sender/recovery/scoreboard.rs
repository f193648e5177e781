//! The scoreboard: every segment in flight with its state, sacked, lost or sent again (RFC 6675 §3-§4).
//!
//! By RFC 6675, a segment is lost when three separate sacked ranges, or more than two full segments of sacked
//! bytes, lie above it; `time_detection` decides by time instead. Without SACK, each duplicate ACK counts as
//! one sacked segment. Left out: rules 3 and 4 of NextSeg, retransmissions of segments that are not known to
//! be lost.
//!
//! Every operation has constant cost per segment over its life, except the logarithmic search for a SACK
//! block.

use super::rack::Rack;
use super::segment::{AckContext, ScoreboardUpdate, SentSegment};
use crate::sender::path::rate::{RateSampler, RateStamp};
use crate::timestamps::{is_older, timestamp};
use paceline_net::{Duration, Instant, Ranges};
use std::collections::VecDeque;

/// Separate sacked ranges above a segment that indicate its loss (RFC 6675 §2, DupThresh; RFC 5681 §3.2).
const DUP_THRESH: u64 = 3;

/// The segments in flight. A segment's number, `index + base`, stays the same for its life.
#[derive(Clone, Debug, Default)]
pub(in crate::sender) struct Scoreboard {
    pub(super) segments: VecDeque<SentSegment>,
    /// Segments that were acknowledged and removed at the front.
    pub(super) base: u64,
    pub(super) sacked: Ranges,
    /// Kept between calls to reuse its memory.
    gaps: Vec<(u64, u64)>,
    /// Bytes sent and not acknowledged cumulatively.
    outstanding: u64,
    sacked_bytes: u64,
    pub(super) sacked_segments: u32,
    lost_bytes: u64,
    resent_bytes: u64,
    /// Every segment that starts below this offset is sacked or lost.
    resolved_below: u64,
    /// No segment with a smaller number waits for its retransmission.
    next_lost: u64,
    /// Numbers and send times of retransmissions, in the order of their sending.
    pub(super) resent: VecDeque<(u64, Instant)>,
    pub(super) rack: Rack,
    /// Number of the first segment sent once that detection by time has not resolved.
    pub(super) time_cursor: u64,
    /// Bytes counted as arrived because of duplicate ACKs, without SACK.
    duplicate_bytes: u64,
    /// Duplicate bytes before the last timeout or end of a recovery that are not acknowledged yet.
    forgotten_bytes: u64,
}

impl Scoreboard {
    /// Bytes estimated to be in the network: outstanding, less sacked and lost, plus retransmissions (RFC
    /// 6675 §4, pipe).
    pub fn in_flight(&self) -> u64 {
        let left = self.sacked_bytes + self.duplicate_bytes + self.lost_bytes;
        (self.outstanding + self.resent_bytes).saturating_sub(left)
    }
    /// Bytes sent and not acknowledged cumulatively.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }
    /// Whether retransmissions are in the network.
    pub fn has_resent(&self) -> bool {
        self.resent_bytes > 0
    }
    /// Whether no segment is outstanding.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// Adds a new segment at the end.
    pub fn push(&mut self, start: u64, end: u64, fin: bool, now: Instant, stamp: RateStamp) {
        debug_assert!(self.segments.back().is_none_or(|last| last.end == start), "segments are contiguous");
        self.outstanding += end - start;
        let fresh = SentSegment {
            start,
            end,
            fin,
            sent_at: now,
            stamp,
            sacked: false,
            lost: false,
            resent: false,
            ever_resent: false,
        };
        self.segments.push_back(fresh);
    }
    /// The next lost segment to send again.
    pub fn next_lost(&mut self) -> Option<SentSegment> {
        let mut index = self.next_lost.saturating_sub(self.base) as usize;
        while let Some(segment) = self.segments.get(index) {
            if segment.lost && !segment.resent {
                break;
            }
            index += 1;
        }
        self.next_lost = self.base + index as u64;
        self.segments.get(index).copied()
    }
    /// Records the retransmission of the segment that [`Self::next_lost`] returned.
    pub fn resend(&mut self, now: Instant, stamp: RateStamp) {
        let index = (self.next_lost - self.base) as usize;
        debug_assert!(
            self.segments[index].lost && !self.segments[index].resent,
            "only a lost one is sent again"
        );
        self.resend_at(index, now, stamp);
        self.next_lost += 1;
    }
    /// Sends the last segment again as a probe, though it is not known to be lost; `None` if it is sacked,
    /// lost or was sent again already.
    pub fn resend_last(&mut self, now: Instant, stamp: RateStamp) -> Option<SentSegment> {
        let last = self.segments.back().filter(|last| !last.sacked && !last.lost && !last.resent)?;
        let sent = *last;
        self.resend_at(self.segments.len() - 1, now, stamp);
        Some(sent)
    }
    fn resend_at(&mut self, index: usize, now: Instant, stamp: RateStamp) {
        let segment = &mut self.segments[index];
        segment.resent = true;
        segment.ever_resent = true;
        segment.sent_at = now;
        segment.stamp = stamp;
        self.resent_bytes += segment.len();
        self.resent.push_back((self.base + index as u64, now));
    }
    /// A SACK block says that the peer has `[start, end)`.
    pub fn sack(
        &mut self,
        (start, end): (u64, u64),
        context: &AckContext,
        rates: &mut RateSampler,
        update: &mut ScoreboardUpdate,
    ) {
        let mut gaps = std::mem::take(&mut self.gaps);
        gaps.clear();
        gaps.extend(self.sacked.gaps(start, end));
        let merged = self.sacked.insert(start, end);
        for &gap in &gaps {
            let mut index = self.segments.partition_point(|segment| segment.end <= gap.0);
            while let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.start < gap.1) {
                index += 1;
                if segment.sacked || segment.start < merged.0 || segment.end > merged.1 {
                    continue;
                }
                segment.sacked = true;
                let len = segment.len();
                if segment.lost {
                    self.lost_bytes -= len;
                }
                if segment.resent {
                    self.resent_bytes -= len;
                }
                (segment.lost, segment.resent) = (false, false);
                self.sacked_bytes += len;
                self.sacked_segments += 1;
                update.bytes += len;
                update.sacked += len;
                if !segment.ever_resent {
                    update.oldest_sacked.get_or_insert(segment.sent_at);
                    update.newest_sacked = update.newest_sacked.max(Some(segment.sent_at));
                    update.on_original(segment, context);
                }
                rates.on_delivered(context.now, len, segment.stamp, segment.sent_at);
                record_arrival(&mut self.rack, segment, context);
            }
        }
        self.gaps = gaps;
    }
    /// Everything below `una` was acknowledged cumulatively.
    pub fn acknowledge(
        &mut self,
        una: u64,
        context: &AckContext,
        rates: &mut RateSampler,
        update: &mut ScoreboardUpdate,
    ) {
        let mut acked_segments = 0;
        while let Some(segment) = self.segments.front_mut().filter(|segment| segment.start < una) {
            let len = una.min(segment.end) - segment.start;
            self.outstanding -= len;
            if segment.sacked {
                self.sacked_bytes -= len;
            } else {
                update.bytes += len;
                update.ambiguous |= segment.ever_resent;
                update.oldest_acked.get_or_insert(segment.sent_at);
                update.newest_acked = Some(segment.sent_at);
                if !segment.ever_resent {
                    update.on_original(segment, context);
                }
                rates.on_delivered(context.now, len, segment.stamp, segment.sent_at);
                record_arrival(&mut self.rack, segment, context);
            }
            if segment.lost {
                self.lost_bytes -= len;
            }
            if segment.resent {
                self.resent_bytes -= len;
            }
            if una < segment.end {
                segment.start = una;
                break;
            }
            acked_segments += 1;
            self.sacked_segments -= u32::from(segment.sacked);
            self.segments.pop_front();
            self.base += 1;
        }
        self.sacked.remove_below(una);
        self.resolved_below = self.resolved_below.max(una);
        if self.duplicate_bytes > 0 && acked_segments > 0 {
            // The segment that filled the hole was not among those counted by duplicate ACKs.
            let arrived = update.bytes.saturating_sub(update.bytes / acked_segments);
            self.duplicate_bytes = self.duplicate_bytes.saturating_sub(arrived).min(self.outstanding);
            update.bytes -= arrived;
        }
        update.again = self.forgotten_bytes.min(update.bytes);
        self.forgotten_bytes = (self.forgotten_bytes - update.again).min(self.outstanding);
    }
    /// Forgets the arrivals that duplicate ACKs have shown (Linux `tcp_reset_reno_sack`).
    fn forget_duplicates(&mut self) {
        self.forgotten_bytes += std::mem::take(&mut self.duplicate_bytes);
    }
    /// Records reordering that the acknowledgment revealed.
    pub fn record_reordering(&mut self, context: &AckContext, mss: u32, update: &ScoreboardUpdate) {
        if let Some(low) = update.reordered {
            let highest = self.highest_sacked(context.highest).max(context.highest);
            self.rack.on_reordering(highest - low, mss);
        }
    }
    /// End of the highest sacked range; `otherwise` if there is none.
    pub fn highest_sacked(&self, otherwise: u64) -> u64 {
        self.sacked.end().unwrap_or(otherwise)
    }
    /// Whether all outstanding segments were sent once and none is sacked or lost.
    pub fn is_orderly(&self) -> bool {
        self.sacked_bytes + self.lost_bytes + self.resent_bytes + self.duplicate_bytes == 0
            && self.segments.front().is_none_or(|first| !first.ever_resent)
    }
    /// A DSACK reported an unnecessary retransmission.
    pub fn on_dsack(&mut self) {
        self.rack.on_dsack();
    }
    /// The first timeout after an undisturbed period, before segments are marked.
    pub fn on_timeout(&mut self) {
        self.rack.on_timeout(self.sacked_segments);
    }
    /// A fast recovery ended.
    pub fn on_recovery_end(&mut self) {
        self.rack.on_recovery_end();
        self.forget_duplicates();
    }
    /// See [`Rack::update_window`].
    pub fn update_reordering_window(&mut self, prior_delivered: u64, delivered: u64) {
        self.rack.update_window(prior_delivered, delivered);
    }
    /// Whether a delivery since the last call calls for a detection by time.
    pub fn take_rack_advanced(&mut self) -> bool {
        self.rack.take_advanced()
    }
    /// When the first segment was last sent.
    pub fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|first| first.sent_at)
    }
    /// Segments outstanding.
    pub fn len(&self) -> usize {
        self.segments.len()
    }
    /// Bytes marked as lost and not acknowledged since, whether sent again or not.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }
    /// Retransmissions in the network, in segments of `mss`.
    pub fn resent_segments(&self, mss: u32) -> u32 {
        self.resent_bytes.div_ceil(u64::from(mss)) as u32
    }
    /// Bytes that are sacked, or counted as arrived because of duplicate ACKs.
    pub fn arrived_bytes(&self) -> u64 {
        self.sacked_bytes + self.duplicate_bytes
    }
    /// A duplicate ACK on a connection without SACK: one more segment has left the network (RFC 5681 §3.2).
    pub fn on_duplicate_ack(&mut self, mss: u32, update: &mut ScoreboardUpdate) {
        let room = self.outstanding.saturating_sub(self.duplicate_bytes + self.lost_bytes);
        let len = u64::from(mss).min(room);
        self.duplicate_bytes += len;
        update.bytes += len;
    }
    /// Marks segments that are lost by the rule of RFC 6675 §4 (IsLost).
    pub fn detect_by_count(&mut self, mss: u32, update: &mut ScoreboardUpdate) {
        let (mut ranges, mut bytes) = (0, 0);
        let mut below = None;
        for (start, end) in self.sacked.iter().rev() {
            ranges += 1;
            bytes += end - start;
            if ranges >= DUP_THRESH || bytes > (DUP_THRESH - 1) * u64::from(mss) {
                below = Some(start);
                break;
            }
        }
        if let Some(below) = below.filter(|below| *below > self.resolved_below) {
            let mut index = self.segments.partition_point(|segment| segment.start < self.resolved_below);
            while self.segments.get(index).is_some_and(|segment| segment.start < below) {
                self.mark_lost(index, update);
                index += 1;
            }
            self.resolved_below = below;
        }
    }
    pub(super) fn mark_lost(&mut self, index: usize, update: &mut ScoreboardUpdate) {
        let segment = &mut self.segments[index];
        if segment.sacked || segment.lost {
            return;
        }
        segment.lost = true;
        self.lost_bytes += segment.end - segment.start;
        update.lost += segment.end - segment.start;
        update.newest_lost = Some(segment.stamp);
        self.next_lost = self.next_lost.min(self.base + index as u64);
    }
    /// The retransmission of this segment is lost.
    pub(super) fn mark_lost_again(&mut self, index: usize, update: &mut ScoreboardUpdate) {
        let segment = &mut self.segments[index];
        let len = segment.len();
        if segment.resent {
            segment.resent = false;
            self.resent_bytes -= len;
            update.lost += if segment.lost { len } else { 0 };
            update.retransmission_lost = true;
        }
        update.newest_lost = Some(segment.stamp);
        self.next_lost = self.next_lost.min(self.base + index as u64);
        self.mark_lost(index, update);
    }
    /// Marks the first segment as lost, after three duplicate ACKs or a partial ACK (RFC 6582 §3.2).
    pub fn mark_first_lost(&mut self, update: &mut ScoreboardUpdate) {
        if !self.segments.is_empty() {
            self.mark_lost(0, update);
        }
    }
    /// Marks everything that is not sacked as lost, after a timeout (RFC 6675 §5.1). Given the time `now`,
    /// segments sent within the last round-trip time are excepted, but for the first one (RFC 8985 §6.3).
    pub fn mark_all_lost(&mut self, now: Option<Instant>, update: &mut ScoreboardUpdate) {
        let reneged = self.segments.front().is_some_and(|first| first.sacked);
        if reneged {
            // The peer has discarded data that it had sacked: the SACK information is not reliable (RFC 2018
            // §8).
            self.sacked.clear();
            (self.sacked_bytes, self.sacked_segments) = (0, 0);
            self.segments.iter_mut().for_each(|segment| segment.sacked = false);
        }
        self.forget_duplicates();
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let recent = |now| !self.rack.time_until_lost(now, segment.sent_at, Duration::ZERO).is_zero();
            if index > 0 && !reneged && now.is_some_and(recent) {
                continue;
            }
            if segment.resent {
                self.mark_lost_again(index, update);
            } else {
                self.mark_lost(index, update);
            }
        }
        self.next_lost = self.base;
        self.time_cursor = self.base;
        self.resolved_below = self.segments.back().map_or(self.resolved_below, |last| last.end);
    }
    /// Marks lost segments as in flight again: the losses were spurious.
    pub fn unmark_lost(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.lost || segment.resent) {
            (segment.lost, segment.resent) = (false, false);
        }
        self.lost_bytes = 0;
        self.resent_bytes = 0;
        self.resolved_below = self.segments.front().map_or(self.resolved_below, |first| first.start);
        self.next_lost = self.base;
        self.time_cursor = self.base;
    }
}

/// Records the arrival of a segment in `rack`, unless the echo shows that an earlier transmission arrived
/// (RFC 8985 §6.2 step 2).
fn record_arrival(rack: &mut Rack, segment: &SentSegment, context: &AckContext) {
    let earlier =
        segment.ever_resent && context.echo.is_some_and(|echo| is_older(echo, timestamp(segment.sent_at)));
    if !earlier {
        rack.on_delivered(context.now, segment.sent_at, segment.end, segment.ever_resent, context.min_rtt);
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
