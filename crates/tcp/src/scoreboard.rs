//! The segments in flight: what was sacked, what is lost, what was sent again (RFC 6675 §3-§4).
//!
//! A segment is lost when three separate sacked ranges, or more than two full segments of sacked bytes, lie above
//! it. A retransmission is lost when something sent later than it, by a quarter of the smallest RTT, was delivered
//! (the rule of RFC 8985 for segments sent again). Without SACK, duplicate ACKs stand for sacked segments.
//!
//! All costs are constant per segment over its life, but for the logarithmic search of a SACK block's place.

use crate::ranges::RangeSet;
use crate::rate::{RateSampler, RateStamp};
use paceline_net::{Duration, Instant};
use std::collections::VecDeque;

/// Separate sacked ranges, or segments' worth of sacked bytes, that tell a loss (RFC 5681 §3.2).
const DUP_THRESH: u64 = 3;

/// One segment sent and not yet acknowledged cumulatively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub start: u64,
    pub end: u64,
    pub fin: bool,
    sent_at: Instant,
    stamp: RateStamp,
    sacked: bool,
    lost: bool,
    /// A retransmission of it is in flight.
    resent: bool,
    /// It was sent more than once: its RTT is ambiguous (Karn).
    ever_resent: bool,
}

impl Sent {
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
    pub fn payload(&self) -> u32 {
        (self.len() - u64::from(self.fin)) as u32
    }
}

/// What one acknowledgment delivered.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Delivered {
    /// Bytes newly acknowledged or sacked.
    pub bytes: u64,
    /// Bytes newly marked lost.
    pub lost: u64,
    /// Stamp of the segment newly marked lost last.
    pub newest_lost: Option<RateStamp>,
    /// Send time of the oldest and the newest segment acknowledged now, and of the newest one sacked now.
    oldest: Option<Instant>,
    newest: Option<Instant>,
    newest_sacked: Option<Instant>,
    oldest_sacked: Option<Instant>,
    /// A segment that was sent more than once is among those acknowledged.
    ambiguous: bool,
}

impl Delivered {
    /// RTT for the retransmission timer: of the oldest segment, since an ACK may have been delayed.
    pub fn rtt(&self, now: Instant) -> Option<Duration> {
        let acked = self.oldest.filter(|_| !self.ambiguous);
        acked.or(self.oldest_sacked).map(|sent_at| now.since(sent_at))
    }
    /// RTT for the congestion control: of the newest segment.
    pub fn newest_rtt(&self, now: Instant) -> Option<Duration> {
        let acked = self.newest.filter(|_| !self.ambiguous);
        self.newest_sacked.or(acked).map(|sent_at| now.since(sent_at))
    }
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Number of segments that left at the front: `index + base` names a segment for its life.
    base: u64,
    sacked: RangeSet,
    gaps: Vec<(u64, u64)>,
    outstanding: u64,
    sacked_bytes: u64,
    lost_bytes: u64,
    resent_bytes: u64,
    /// Every segment that starts below was judged: it is sacked or lost.
    judged_below: u64,
    /// No segment below this name waits for its retransmission.
    next_lost: u64,
    /// Retransmissions in flight in the order of their sending.
    resent: VecDeque<(u64, Instant)>,
    /// Send time of the latest segment known to be delivered.
    latest_delivered: Instant,
    /// Bytes that duplicate ACKs stand for, without SACK.
    duplicate_bytes: u64,
}

impl Scoreboard {
    /// Bytes in the network: sent, less sacked and lost, and what was sent again.
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
    /// Whether nothing waits for an acknowledgment.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// Records a new segment behind all others.
    pub fn push(&mut self, start: u64, end: u64, fin: bool, now: Instant, stamp: RateStamp) {
        debug_assert!(self.segments.back().is_none_or(|last| last.end == start), "segments are contiguous");
        self.outstanding += end - start;
        let fresh = Sent {
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
    pub fn next_lost(&mut self) -> Option<Sent> {
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
    /// The segment that [`Self::next_lost`] returned is sent again.
    pub fn resend(&mut self, now: Instant, stamp: RateStamp) {
        let index = (self.next_lost - self.base) as usize;
        let segment = &mut self.segments[index];
        debug_assert!(segment.lost && !segment.resent, "only a lost segment is sent again");
        segment.resent = true;
        segment.ever_resent = true;
        segment.sent_at = now;
        segment.stamp = stamp;
        self.resent_bytes += segment.len();
        self.resent.push_back((self.next_lost, now));
        self.next_lost += 1;
    }
    /// The peer holds `[start, end)`.
    pub fn sack(
        &mut self,
        (start, end): (u64, u64),
        now: Instant,
        rates: &mut RateSampler,
        out: &mut Delivered,
    ) {
        let mut gaps = std::mem::take(&mut self.gaps);
        let merged = self.sacked.insert(start, end, &mut gaps);
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
                out.bytes += len;
                if !segment.ever_resent {
                    out.oldest_sacked.get_or_insert(segment.sent_at);
                    out.newest_sacked = out.newest_sacked.max(Some(segment.sent_at));
                }
                self.latest_delivered = self.latest_delivered.max(segment.sent_at);
                rates.on_delivered(now, len, segment.stamp, segment.sent_at);
            }
        }
        self.gaps = gaps;
    }
    /// Everything below `una` is acknowledged.
    pub fn acknowledge(&mut self, una: u64, now: Instant, rates: &mut RateSampler, out: &mut Delivered) {
        let mut acked_segments = 0;
        while let Some(segment) = self.segments.front_mut().filter(|segment| segment.start < una) {
            let len = una.min(segment.end) - segment.start;
            self.outstanding -= len;
            if segment.sacked {
                self.sacked_bytes -= len;
            } else {
                out.bytes += len;
                out.ambiguous |= segment.ever_resent;
                out.oldest.get_or_insert(segment.sent_at);
                out.newest = Some(segment.sent_at);
                self.latest_delivered = self.latest_delivered.max(segment.sent_at);
                rates.on_delivered(now, len, segment.stamp, segment.sent_at);
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
            self.segments.pop_front();
            self.base += 1;
        }
        self.sacked.remove_below(una);
        self.judged_below = self.judged_below.max(una);
        if self.duplicate_bytes > 0 && acked_segments > 0 {
            // The hole's own segment was not among those that the duplicates stood for.
            let arrived = out.bytes.saturating_sub(out.bytes / acked_segments);
            self.duplicate_bytes = self.duplicate_bytes.saturating_sub(arrived).min(self.outstanding);
            out.bytes -= arrived;
        }
    }
    /// A duplicate ACK, on a connection without SACK: one segment more left the network.
    pub fn on_duplicate_ack(&mut self, mss: u32, out: &mut Delivered) {
        let room = self.outstanding.saturating_sub(self.duplicate_bytes + self.lost_bytes);
        let len = u64::from(mss).min(room);
        self.duplicate_bytes += len;
        out.bytes += len;
    }
    /// Marks what RFC 6675 tells lost.
    pub fn detect_losses(&mut self, mss: u32, min_rtt: Option<Duration>, out: &mut Delivered) {
        if !self.sacked.is_empty() {
            let (mut ranges, mut bytes) = (0, 0);
            let mut below = None;
            for (start, end) in self.sacked.iter_down() {
                ranges += 1;
                bytes += end - start;
                if ranges >= DUP_THRESH || bytes > (DUP_THRESH - 1) * u64::from(mss) {
                    below = Some(start);
                    break;
                }
            }
            if let Some(below) = below.filter(|below| *below > self.judged_below) {
                let mut index = self.segments.partition_point(|segment| segment.start < self.judged_below);
                while self.segments.get(index).is_some_and(|segment| segment.start < below) {
                    self.mark_lost(index, out);
                    index += 1;
                }
                self.judged_below = below;
            }
        }
        self.detect_lost_retransmissions(min_rtt, out);
    }
    fn detect_lost_retransmissions(&mut self, min_rtt: Option<Duration>, out: &mut Delivered) {
        let patience = min_rtt.unwrap_or(Duration::ZERO) / 4;
        while let Some(&(name, sent_at)) = self.resent.front() {
            let index = name.checked_sub(self.base).map(|index| index as usize);
            let segment = index.and_then(|index| self.segments.get_mut(index));
            if let Some(segment) = segment.filter(|segment| segment.resent && segment.sent_at == sent_at) {
                if sent_at + patience >= self.latest_delivered {
                    return;
                }
                segment.resent = false;
                let len = segment.len();
                self.resent_bytes -= len;
                out.lost += len;
                out.newest_lost = Some(segment.stamp);
                self.next_lost = self.next_lost.min(name);
            }
            self.resent.pop_front();
        }
    }
    fn mark_lost(&mut self, index: usize, out: &mut Delivered) {
        let segment = &mut self.segments[index];
        if segment.sacked || segment.lost {
            return;
        }
        segment.lost = true;
        self.lost_bytes += segment.end - segment.start;
        out.lost += segment.end - segment.start;
        out.newest_lost = Some(segment.stamp);
        self.next_lost = self.next_lost.min(self.base + index as u64);
    }
    /// The first segment is lost: three duplicate ACKs or a partial ACK said so (RFC 6582).
    pub fn mark_first_lost(&mut self, out: &mut Delivered) {
        if !self.segments.is_empty() {
            self.mark_lost(0, out);
        }
    }
    /// Bytes that duplicate ACKs stand for.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }
    /// The retransmission timer expired: everything that is not sacked is lost (RFC 6675 §5.1).
    pub fn mark_all_lost(&mut self, out: &mut Delivered) {
        if self.segments.front().is_some_and(|first| first.sacked) {
            // The peer reneged (RFC 2018 §8): what it holds beside its ACK cannot be relied on.
            self.sacked.clear();
            self.sacked_bytes = 0;
            self.segments.iter_mut().for_each(|segment| segment.sacked = false);
        }
        self.resent.clear();
        self.resent_bytes = 0;
        self.duplicate_bytes = 0;
        for index in 0..self.segments.len() {
            self.segments[index].resent = false;
            self.mark_lost(index, out);
        }
        self.next_lost = self.base;
        self.judged_below = self.segments.back().map_or(self.judged_below, |last| last.end);
    }
    /// What was marked lost is in the network after all.
    pub fn unmark_lost(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.lost) {
            (segment.lost, segment.resent) = (false, false);
        }
        self.lost_bytes = 0;
        self.resent_bytes = 0;
        self.resent.clear();
        self.judged_below = self.segments.front().map_or(self.judged_below, |first| first.start);
        self.next_lost = self.base;
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
