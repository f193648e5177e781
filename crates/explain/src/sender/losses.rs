//! Segments that were sent again: for which reason, whether the first copy passed the capture point, and
//! whether they were needed.

use super::counts::{Episode, Repair};
use super::state::Sender;
use crate::causes::Cause;
use crate::segment::Segment;
use crate::space::{Arrival, Hole};
use paceline_net::Instant;

/// Duplicate ACKs that let a segment go again (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;
/// Least silence before a repair by the retransmission timer, ns: Linux's TCP_RTO_MIN. RFC 6298 §2.4 has 1 s.
/// Chosen over that, since repairs after duplicate ACKs follow these at once.
const LEAST_TIMEOUT_NS: u64 = 200_000_000;
/// Parts of a round trip before a tail loss probe, in halves. Chosen: RFC 8985 §7.2 has two round trips after
/// the last data; from the last ACK on that is one or more.
const PROBE_HALVES: u64 = 2;
/// Longest time in which a segment that was overtaken comes, ns, where no round trip is known. Equals the
/// limit of Wireshark's analysis.
const REORDERED_NS: u64 = 3_000_000;

impl Sender {
    /// Whether a segment in a hole was overtaken, and not sent again.
    pub(super) fn is_reordered(&self, hole: &Hole, at: Instant, tsval: Option<u32>) -> bool {
        let age = at.since(hole.since).as_nanos();
        // A repair follows a round trip after the hole at the earliest.
        let limit = self.rtt.least().map_or(REORDERED_NS, |rtt| rtt - rtt / 4);
        match (tsval, hole.tsval) {
            (Some(own), Some(later)) if own != later => (own.wrapping_sub(later) as i32) < 0,
            _ => age < limit,
        }
    }
    /// A segment that was sent again.
    pub(super) fn on_repair(&mut self, (start, end): (u64, u64), segment: &Segment, arrival: Arrival) {
        let repair = self.repair(start, end, segment.at);
        self.losses.retransmissions += 1;
        let count = match repair {
            Repair::Fast => &mut self.losses.fast,
            Repair::Timeout => &mut self.losses.timeout,
            Repair::TailProbe => &mut self.losses.tail_probe,
            Repair::Other => &mut self.losses.other,
        };
        *count += 1;
        let hole = if let Arrival::Fills(hole) = &arrival { Some(hole) } else { None };
        self.copies.on_lost(start, hole, self.srtt_ns());
        *(if hole.is_none() { &mut self.losses.lost_behind } else { &mut self.losses.lost_before }) += 1;
        // Karn's rule (RFC 6298 §3): the ACK does not tell which copy it answers.
        self.probes.retain(|(probe, _)| *probe <= start || *probe > end);
        let is_expiry = repair == Repair::Timeout && self.silence_ns(segment.at) >= self.least_timeout_ns();
        self.losses.timeouts += u64::from(is_expiry);
        self.commit_repair(segment.at, repair, is_expiry);
        self.last_sent = Some(segment.at);
        let cause = match repair {
            Repair::TailProbe => return,
            Repair::Timeout => Cause::Timeout,
            Repair::Fast | Repair::Other => Cause::Recovery,
        };
        let spent_ns = self.view.take_spent();
        let tsval = segment.options.timestamps.map(|(val, _)| val);
        let next = self.space.next();
        match &mut self.episode {
            Some(episode) => {
                episode.spent_ns += spent_ns;
                if is_expiry {
                    episode.cause = Cause::Timeout;
                    episode.point = next;
                }
            }
            None if self.acked.is_none_or(|acked| acked < next) => {
                self.episode = Some(Episode { cause, point: next, start, tsval, spent_ns });
            }
            None => {}
        }
    }
    fn repair(&self, start: u64, end: u64, at: Instant) -> Repair {
        let silence = self.silence_ns(at);
        let is_expiry = silence >= self.least_timeout_ns();
        let has_evidence = self.duplicates >= DUPLICATES || self.sacked >= end;
        let is_tail = end >= self.space.next() && self.acked.is_some_and(|acked| start > acked);
        match &self.episode {
            Some(_) if is_expiry => Repair::Timeout,
            Some(episode) if episode.cause == Cause::Timeout => Repair::Timeout,
            Some(_) => Repair::Fast,
            None if is_tail && !has_evidence && 2 * silence >= PROBE_HALVES * self.srtt_ns() => {
                Repair::TailProbe
            }
            None if is_expiry => Repair::Timeout,
            None if has_evidence => Repair::Fast,
            None if end >= self.space.next() && 2 * silence >= PROBE_HALVES * self.srtt_ns() => {
                Repair::TailProbe
            }
            None => Repair::Other,
        }
    }
    /// Time since the sender's last data and the last ACK.
    fn silence_ns(&self, at: Instant) -> u64 {
        let last = self.last_sent.max(self.last_heard);
        last.map_or(0, |last| at.since(last).as_nanos())
    }
    /// Least silence before the retransmission timer expires: a smoothed round trip, and at least
    /// [`LEAST_TIMEOUT_NS`].
    fn least_timeout_ns(&self) -> u64 {
        self.srtt_ns().max(LEAST_TIMEOUT_NS)
    }
    /// SACK blocks: the highest data that arrived, and reports of duplicates.
    pub(super) fn on_sack(&mut self, segment: &Segment, ack: u64) {
        let place = |seq| self.space.place(seq);
        let blocks =
            segment.options.sack.as_slice().iter().map(|(left, right)| (place(*left), place(*right)));
        let blocks: Vec<(u64, u64)> = blocks.collect();
        let Some((first, rest)) = blocks.split_first() else { return };
        self.sack_acks += 1;
        let is_outside = |(left, right): &(u64, u64)| !self.space.is_within(*left, *right);
        self.sack_outside += u64::from(blocks.iter().all(is_outside));
        // RFC 2883 §4: the first block is below the ACK, or within the second block.
        let is_inside = rest.first().is_some_and(|second| second.0 <= first.0 && first.1 <= second.1);
        let is_duplicate = first.1 <= ack || is_inside;
        let highest = blocks.iter().map(|(_, right)| *right).filter(|right| *right > ack).max();
        if let Some(highest) = highest.filter(|highest| *highest <= self.space.next()) {
            self.sacked = self.sacked.max(highest);
        }
        if is_duplicate && self.losses.spurious < self.losses.retransmissions {
            self.losses.spurious += 1;
            let start = first.0;
            if self.episode.as_ref().is_some_and(|episode| episode.start == start) {
                self.undo();
            }
        }
    }
    /// Eifel detection (RFC 3522): an ACK past the first repaired segment echoes an older TSval than that of
    /// the repair, so that the first copy arrived.
    pub(super) fn check_spurious(&mut self, segment: &Segment, ack: u64) {
        let Some((_, echo)) = segment.options.timestamps else { return };
        let Some(episode) = &self.episode else { return };
        let is_older = episode.tsval.is_some_and(|sent| (echo.wrapping_sub(sent) as i32) < 0);
        if is_older && ack > episode.start {
            self.losses.spurious += 1;
            self.undo();
        }
    }
    /// The repair was needless. After an expiry of the timer the path had paused.
    fn undo(&mut self) {
        if let Some(episode) = self.episode.take()
            && episode.cause == Cause::Timeout
        {
            let spent_ns = episode.spent_ns + self.view.take_spent();
            self.times.shift(Cause::Timeout, Cause::Pause, spent_ns);
        }
    }
}
