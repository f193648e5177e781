//! The segments in flight: what was sacked, what is lost, what was sent again (RFC 6675 §3-§4).
//!
//! By RFC 6675, a segment is lost when three separate sacked ranges, or more than two full segments of sacked bytes,
//! lie above it; `rack` judges by time instead. Without SACK, duplicate ACKs stand for sacked segments. Left out of
//! RFC 6675: rules 3 and 4 of NextSeg, retransmissions of what is not known to be lost.
//!
//! All costs are constant per segment over its life, but for the logarithmic search of a SACK block's place.

use crate::rack::Rack;
use crate::ranges::RangeSet;
use crate::rate::{RateSampler, RateStamp};
use crate::rtt::timestamp;
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
    /// The last time.
    pub(crate) sent_at: Instant,
    stamp: RateStamp,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// A retransmission of it is in flight.
    pub(crate) resent: bool,
    /// It was sent more than once: its RTT is ambiguous (Karn).
    pub(crate) ever_resent: bool,
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
    pub ambiguous: bool,
    /// A segment that was sent once, below the limit of [`Context`], is among what arrived.
    pub original: bool,
    /// Bytes newly sacked.
    pub sacked: u64,
    /// A retransmission was lost.
    pub retransmission_lost: bool,
    /// Lowest byte sent once that arrived after something above it had.
    reordered: Option<u64>,
}

/// What an acknowledgment is judged by.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Context {
    pub now: Instant,
    pub min_rtt: Option<Duration>,
    /// TSecr: an acknowledgment older than a retransmission does not tell of it.
    pub echo: Option<u32>,
    /// Data below are what a recovery under way is about.
    pub recovery_end: u64,
    /// Highest byte known to have arrived, before this acknowledgment.
    pub highest: u64,
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
    fn note_original(&mut self, segment: &Sent, context: &Context) {
        self.original |= segment.end <= context.recovery_end;
        if segment.start < context.highest {
            self.reordered = Some(self.reordered.map_or(segment.start, |low| low.min(segment.start)));
        }
    }
}

/// The segments in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    pub(crate) segments: VecDeque<Sent>,
    /// Number of segments that left at the front: `index + base` names a segment for its life.
    pub(crate) base: u64,
    pub(crate) sacked: RangeSet,
    gaps: Vec<(u64, u64)>,
    outstanding: u64,
    sacked_bytes: u64,
    pub(crate) sacked_segments: u32,
    lost_bytes: u64,
    resent_bytes: u64,
    /// Every segment that starts below was judged: it is sacked or lost.
    judged_below: u64,
    /// No segment below this name waits for its retransmission.
    next_lost: u64,
    /// Retransmissions in the order of their sending.
    pub(crate) resent: VecDeque<(u64, Instant)>,
    pub(crate) rack: Rack,
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
        debug_assert!(
            self.segments[index].lost && !self.segments[index].resent,
            "only a lost one is sent again"
        );
        self.resend_at(index, now, stamp);
        self.next_lost += 1;
    }
    /// The last segment is sent again as a probe, though it is not known to be lost.
    pub fn resend_last(&mut self, now: Instant, stamp: RateStamp) -> Option<Sent> {
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
    /// The peer holds `[start, end)`.
    pub fn sack(
        &mut self,
        (start, end): (u64, u64),
        context: &Context,
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
                self.sacked_segments += 1;
                out.bytes += len;
                out.sacked += len;
                if !segment.ever_resent {
                    out.oldest_sacked.get_or_insert(segment.sent_at);
                    out.newest_sacked = out.newest_sacked.max(Some(segment.sent_at));
                    out.note_original(segment, context);
                }
                rates.on_delivered(context.now, len, segment.stamp, segment.sent_at);
                advance(&mut self.rack, segment, context);
            }
        }
        self.gaps = gaps;
    }
    /// Everything below `una` is acknowledged.
    pub fn acknowledge(&mut self, una: u64, context: &Context, rates: &mut RateSampler, out: &mut Delivered) {
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
                if !segment.ever_resent {
                    out.note_original(segment, context);
                }
                rates.on_delivered(context.now, len, segment.stamp, segment.sent_at);
                advance(&mut self.rack, segment, context);
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
        self.judged_below = self.judged_below.max(una);
        if self.duplicate_bytes > 0 && acked_segments > 0 {
            // The hole's own segment was not among those that the duplicates stood for.
            let arrived = out.bytes.saturating_sub(out.bytes / acked_segments);
            self.duplicate_bytes = self.duplicate_bytes.saturating_sub(arrived).min(self.outstanding);
            out.bytes -= arrived;
        }
    }
    /// Takes note of reordering that the acknowledgment showed.
    pub fn note_reordering(&mut self, context: &Context, mss: u32, out: &Delivered) {
        if let Some(low) = out.reordered {
            let highest = self.highest_sacked(context.highest).max(context.highest);
            self.rack.on_reordering(highest - low, mss);
        }
    }
    /// Highest byte known to have arrived out of order; `otherwise` if there is none.
    pub fn highest_sacked(&self, otherwise: u64) -> u64 {
        self.sacked.highest().unwrap_or(otherwise)
    }
    /// Whether everything outstanding was sent once and nothing of it is sacked or lost.
    pub fn is_orderly(&self) -> bool {
        self.sacked_bytes + self.lost_bytes + self.resent_bytes + self.duplicate_bytes == 0
            && self.segments.front().is_none_or(|first| !first.ever_resent)
    }
    /// When the first segment was last sent.
    pub fn first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|first| first.sent_at)
    }
    /// Segments outstanding.
    pub fn len(&self) -> usize {
        self.segments.len()
    }
    /// Bytes marked lost and not known to have arrived since, sent again or not.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }
    /// Retransmissions in the network, in segments of `mss`.
    pub fn resent_segments(&self, mss: u32) -> u32 {
        self.resent_bytes.div_ceil(u64::from(mss)) as u32
    }
    /// Bytes that arrived out of order, or that duplicate ACKs stand for.
    pub fn arrived_bytes(&self) -> u64 {
        self.sacked_bytes + self.duplicate_bytes
    }
    /// A duplicate ACK, on a connection without SACK: one segment more left the network.
    pub fn on_duplicate_ack(&mut self, mss: u32, out: &mut Delivered) {
        let room = self.outstanding.saturating_sub(self.duplicate_bytes + self.lost_bytes);
        let len = u64::from(mss).min(room);
        self.duplicate_bytes += len;
        out.bytes += len;
    }
    /// Marks what RFC 6675 tells lost.
    pub fn detect_by_count(&mut self, mss: u32, out: &mut Delivered) {
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
    pub(crate) fn mark_lost(&mut self, index: usize, out: &mut Delivered) {
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
    /// The retransmission of this segment is lost too.
    pub(crate) fn mark_lost_again(&mut self, index: usize, out: &mut Delivered) {
        let segment = &mut self.segments[index];
        let len = segment.len();
        if segment.resent {
            segment.resent = false;
            self.resent_bytes -= len;
            out.lost += if segment.lost { len } else { 0 };
            out.retransmission_lost = true;
        }
        out.newest_lost = Some(segment.stamp);
        self.next_lost = self.next_lost.min(self.base + index as u64);
        self.mark_lost(index, out);
    }
    /// The first segment is lost: three duplicate ACKs or a partial ACK said so (RFC 6582).
    pub fn mark_first_lost(&mut self, out: &mut Delivered) {
        if !self.segments.is_empty() {
            self.mark_lost(0, out);
        }
    }
    /// Forgets what duplicate ACKs stand for: a recovery without SACK is over.
    pub fn forget_duplicates(&mut self) {
        self.duplicate_bytes = 0;
    }
    /// The retransmission timer expired: everything that is not sacked is lost (RFC 6675 §5.1). Given the time,
    /// what was sent within the last round-trip time is not, but for the first segment (RFC 8985 §6.3).
    pub fn mark_all_lost(&mut self, young_at: Option<Instant>, out: &mut Delivered) {
        let reneged = self.segments.front().is_some_and(|first| first.sacked);
        if reneged {
            // What the peer holds beside its ACK cannot be relied on (RFC 2018 §8).
            self.sacked.clear();
            (self.sacked_bytes, self.sacked_segments) = (0, 0);
            self.segments.iter_mut().for_each(|segment| segment.sacked = false);
        }
        self.duplicate_bytes = 0;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            let young = |now| !self.rack.remaining(now, segment.sent_at, Duration::ZERO).is_zero();
            if index > 0 && !reneged && young_at.is_some_and(young) {
                continue;
            }
            if segment.resent {
                self.mark_lost_again(index, out);
            } else {
                self.mark_lost(index, out);
            }
        }
        self.next_lost = self.base;
        self.rack.cursor = self.base;
        self.judged_below = self.segments.back().map_or(self.judged_below, |last| last.end);
    }
    /// What was marked lost is in the network after all.
    pub fn unmark_lost(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.lost || segment.resent) {
            (segment.lost, segment.resent) = (false, false);
        }
        self.lost_bytes = 0;
        self.resent_bytes = 0;
        self.judged_below = self.segments.front().map_or(self.judged_below, |first| first.start);
        self.next_lost = self.base;
        self.rack.cursor = self.base;
    }
}

/// Tells `rack` of a segment that arrived, unless it is an earlier transmission of it that did.
fn advance(rack: &mut Rack, segment: &Sent, context: &Context) {
    let earlier = segment.ever_resent
        && context.echo.is_some_and(|echo| (echo.wrapping_sub(timestamp(segment.sent_at)) as i32) < 0);
    if !earlier {
        rack.on_delivered(context.now, segment.sent_at, segment.end, segment.ever_resent, context.min_rtt);
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
