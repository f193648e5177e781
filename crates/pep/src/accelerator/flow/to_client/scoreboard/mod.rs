//! Loss detection for segments to the client: RACK (RFC 8985) over one record for each segment.
//!
//! Each record is examined once for its first transmission, in the order of offsets, and once for each
//! retransmission, in the order of time: the work per segment is constant. A timeout retransmits the first
//! segment and leaves the other ones to RACK. Clients without SACK have NewReno (`newreno`). The segments
//! are in `records`, SACK blocks in `ranges`; `losses` counts lost bytes by cause, `delivery` reports an ACK.
//! Tail loss probes are in `recovery`.

pub(in crate::accelerator) mod delivery;
pub(in crate::accelerator) mod losses;
pub(in crate::accelerator) mod newreno;
mod records;
pub(in crate::accelerator) mod sent;

use crate::accelerator::flow::memory::shrink_if_empty;
use crate::accelerator::flow::steps::step;
use crate::accelerator::flow::to_client::rtt::{AckDeadline, RttBounds};
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::flow::to_client::scoreboard::newreno::NewReno;
use crate::accelerator::flow::to_client::scoreboard::records::Records;
use crate::accelerator::flow::to_client::scoreboard::sent::{
    FIN, LOST, PAST_EDGE, RETRANSMITTED, Retransmission, SACKED, SUSPECTED, SUSPECTED_AGAIN, Sent,
};
use paceline_net::{Duration, Instant, Ranges};
use std::collections::VecDeque;
use std::hint::black_box;

/// Flights after the last DSACK for which the reordering window stays widened. RFC 8985, section 6.2, step 4
/// counts 16 loss recoveries; recoveries are not told apart here.
const WIDENED_FLIGHTS: u8 = 16;
/// Largest reordering window, in quarters of the minimum round-trip time. Chosen: the smoothed round-trip
/// time bounds the window anyway.
const MAX_REORDER_QUARTERS: u8 = 8;
/// Segments SACKed above a hole that make the reordering window zero (RFC 8985, section 6.2, step 4:
/// DupThresh).
const DUPLICATE_THRESHOLD: u64 = 3;

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Scoreboard {
    records: Records,
    sacked: Ranges,
    sacked_bytes: u64,
    /// For a client without SACK.
    newreno: Option<Box<NewReno>>,
    /// Retransmissions in the order of time; entries may be stale.
    retransmitted: VecDeque<(u64, Instant)>,
    /// First transmissions below this offset have been examined.
    examined: u64,
    /// The delivered segment that was sent last: when, and its end (RACK.xmit_ts, RACK.end_seq).
    rack: (Instant, u64),
    /// Its round-trip time (RACK.rtt).
    rack_rtt: Duration,
    /// Latest transmission time of all delivered segments.
    newest_delivered_at: Instant,
    /// Highest end delivered: a first transmission below it was overtaken (RACK.fack).
    highest: u64,
    /// A retransmission was answered sooner than the minimum round-trip time, and no segment sent once was
    /// delivered since: either the retransmission was spurious, or the path has become shorter.
    early_ack: bool,
    /// When a spurious retransmission was last seen.
    spurious_at: Instant,
    reordered: bool,
    /// When a segment was last retransmitted, in milliseconds modulo 2^32; 0 for never, or if a segment that
    /// was sent later has arrived.
    retransmitted_ms: u32,
    /// The reordering window, in quarters of the minimum round-trip time.
    reorder_quarters: u8,
    /// End of the flight in which the reordering window was last widened.
    widened_until: u64,
    /// End of the current flight, and flights until the reordering window is reset.
    flight_until: u64,
    flights_left: u8,
}

impl Scoreboard {
    pub fn new(sack: bool) -> Self {
        Self { newreno: (!sack).then(Box::default), ..Self::default() }
    }
    /// Whether SACK blocks are used.
    pub fn uses_sack(&self) -> bool {
        self.newreno.is_none()
    }
    /// The client's SACK blocks are missing or wrong: from now on duplicate ACKs count.
    pub fn end_sack(&mut self) {
        if self.has_hole() {
            self.lose_all();
        }
        self.newreno = Some(Box::default());
    }
    /// The client's SACK blocks are wrong: what they reported counts as in flight again, and duplicate ACKs
    /// count from now on.
    pub fn forget_sack(&mut self) {
        for (left, right) in std::mem::take(&mut self.sacked).iter() {
            for at in self.records.first_from(left)..self.records.first_from(right) {
                step();
                self.records.unmark_sacked(at);
            }
        }
        (self.sacked_bytes, self.examined) = (0, 0);
        self.newreno = Some(Box::default());
    }
    /// The client's SACK blocks are used again.
    pub fn resume_sack(&mut self) {
        self.newreno = None;
    }
    /// Reads each cache line of the state.
    pub fn prefetch(&self) {
        black_box((
            self.records.len(),
            self.sacked_bytes,
            self.retransmitted.len(),
            self.rack,
            self.highest,
            self.flight_until,
        ));
    }
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    /// Bytes sent that are not acknowledged, not marked lost, and not reported as arrived.
    pub fn in_flight(&self) -> u64 {
        let in_flight = self.records.in_flight();
        in_flight - self.newreno.as_ref().map_or(0, |newreno| newreno.arrived().min(in_flight))
    }
    /// Bytes that were SACKed, or of a client without SACK those that duplicate ACKs have reported.
    pub fn arrived_bytes(&self) -> u64 {
        self.sacked_bytes + self.newreno.as_ref().map_or(0, |newreno| newreno.arrived())
    }
    pub fn is_front_lost(&self) -> bool {
        self.records.front().is_some_and(|front| front.is(LOST))
    }
    pub fn has_lost(&self) -> bool {
        self.records.has_lost()
    }
    /// Whether a SACK block shows a hole.
    pub fn has_hole(&self) -> bool {
        !self.sacked.is_empty()
    }
    /// Whether NewReno is recovering from a loss.
    pub fn is_recovering(&self) -> bool {
        self.newreno.as_ref().is_some_and(|newreno| newreno.is_recovering())
    }

    /// New data was sent. `past_edge`: it ends past the client's window.
    pub fn on_send(&mut self, now: Instant, off: u64, len: u32, past_edge: bool, fin: bool) {
        let state = if past_edge { PAST_EDGE } else { 0 } | if fin { FIN } else { 0 };
        self.records.push(Sent { off, at: now, len, gap_ms: 0, state });
    }

    /// The client acknowledged everything below `una`, and the SACK blocks.
    pub fn on_ack(
        &mut self,
        now: Instant,
        una: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
        bounds: &RttBounds,
    ) -> Delivery {
        let mut delivery = Delivery { highest_before: self.highest, ..Delivery::default() };
        let newreno = self.newreno.as_mut();
        let covered = newreno.and_then(|newreno| newreno.before_ack(&self.records, now, una, bounds.min));
        while let Some(record) = self.records.pop_below(una) {
            if record.is(SACKED) {
                self.sacked_bytes -= u64::from(record.len);
            } else {
                self.on_delivered(now, record, &mut delivery, bounds);
            }
        }
        if let Some((front, part)) = self.records.trim_front(una) {
            if front.is(SACKED) {
                self.sacked_bytes -= part;
            } else {
                delivery.bytes += part;
            }
        }
        self.sacked.remove_below(una);
        let end = self.records.end().unwrap_or(una);
        if una > self.flight_until {
            self.flight_until = end;
            self.on_flight_end();
        }
        for (left, right) in blocks {
            let (left, right) = (left.max(una), right.min(end));
            if left < right {
                self.on_sack_block(now, left, right, &mut delivery, bounds);
            }
        }
        if delivery.rtt.is_some() && self.highest > delivery.highest_before {
            let beyond = self.highest.saturating_sub(delivery.highest_before.max(una));
            delivery.skipped = Some(beyond.saturating_sub(delivery.bytes));
        }
        if let Some((newreno, covered)) = self.newreno.as_mut().zip(covered)
            && newreno.after_ack(&mut self.records, now, una, covered, &mut delivery)
        {
            self.examined = una;
        }
        self.records.shrink_if_empty();
        self.sacked.shrink_if_empty();
        delivery
    }

    /// Only whole records count: a block that ends inside of one is a client's mistake, and would make the
    /// set of blocks longer than the records.
    fn on_sack_block(
        &mut self,
        now: Instant,
        left: u64,
        right: u64,
        delivery: &mut Delivery,
        bounds: &RttBounds,
    ) {
        let mut at = self.records.first_from(left);
        let Some(left) = self.records.get(at).map(|record| record.off) else { return };
        let behind = self.records.find(right).and_then(|at| self.records.get(at));
        let right = behind.map_or(right, |record| record.off);
        if left >= right {
            return;
        }
        let mut cursor = left;
        while let Some((from, until)) = self.sacked.next_gap(cursor, right) {
            if from > cursor {
                at = self.records.first_from(from);
            }
            while self.records.get(at).is_some_and(|record| record.off < until) {
                step();
                let before = self.records.mark_sacked(at);
                self.sacked_bytes += u64::from(before.len);
                self.on_delivered(now, before, delivery, bounds);
                at += 1;
            }
            cursor = until;
        }
        self.sacked.insert(left, right);
    }

    /// A record was acknowledged for the first time.
    fn on_delivered(&mut self, now: Instant, record: Sent, delivery: &mut Delivery, bounds: &RttBounds) {
        delivery.bytes += u64::from(record.len);
        delivery.longest = delivery.longest.max(record.len);
        self.newest_delivered_at = self.newest_delivered_at.max(record.at);
        let mut rtt = now.since(record.at);
        if record.is(RETRANSMITTED) {
            if rtt < bounds.min && record.is(SUSPECTED_AGAIN) {
                // The ACK answers an earlier retransmission, sent one minimum round-trip time ago at the
                // latest.
                rtt = bounds.min;
            }
            // The ACK answers the first transmission (RFC 8985, section 6.2, step 2).
            if rtt < bounds.min {
                delivery.spurious += u64::from(record.len);
                self.early_ack = true;
                return;
            }
            // The ACK may answer an earlier copy. A sample of the last copy would be too short, and RACK
            // would mark everything sent in between as lost. After a spurious retransmission this holds for
            // all copies sent before: the queue is longer than any sample shows.
            if rtt < bounds.shortest
                || rtt + record.gap() <= bounds.first_copy
                || record.at < self.spurious_at
            {
                return;
            }
            if record.is(SUSPECTED) || rtt > bounds.longest {
                // New data that is sent once will show which copy it was (F-RTO, RFC 5682).
                delivery.ambiguous = true;
                return;
            }
        } else {
            self.early_ack = false;
            self.note_sent_once(record.at);
            delivery.past_window |= record.is(PAST_EDGE);
            if record.end() < delivery.highest_before {
                self.reordered = true;
                self.reorder_quarters = self.reorder_quarters.max(1);
            }
            if delivery.sent_at.is_none_or(|at| at <= record.at) {
                delivery.rtt = Some(rtt);
                delivery.sent_at = Some(record.at);
            }
        }
        self.highest = self.highest.max(record.end());
        let sent_at = Instant::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
        if (sent_at, record.end()) > self.rack {
            self.rack = (sent_at, record.end());
            self.rack_rtt = rtt;
        }
    }

    /// A DSACK: a retransmission was spurious. The reordering window grows once for each flight, and is reset
    /// after [`WIDENED_FLIGHTS`] without one (RFC 8985, section 6.2, step 4).
    pub fn on_dsack(&mut self, now: Instant, una: u64) {
        self.reordered = true;
        self.on_spurious(now);
        if una >= self.widened_until {
            self.widened_until = self.records.end().unwrap_or(una);
            self.reorder_quarters = (self.reorder_quarters + 1).min(MAX_REORDER_QUARTERS);
            self.flights_left = WIDENED_FLIGHTS;
        }
    }
    /// A retransmission was spurious.
    pub fn on_spurious(&mut self, now: Instant) {
        self.spurious_at = now;
    }
    fn on_flight_end(&mut self) {
        self.flights_left = self.flights_left.saturating_sub(1);
        if self.flights_left == 0 {
            self.reorder_quarters = 1;
        }
    }
    /// A duplicate ACK without SACK blocks; see [`NewReno::on_duplicate`].
    pub fn on_bare_duplicate(&mut self, now: Instant, segment: u32, overdue: Duration) -> (u64, bool) {
        let Some(newreno) = &mut self.newreno else { return (0, false) };
        newreno.on_duplicate(&mut self.records, now, segment, overdue)
    }
    /// A retransmission timeout.
    pub fn on_timeout(&mut self) {
        if let Some(newreno) = &mut self.newreno {
            newreno.on_timeout(&self.records);
        }
    }

    fn reorder_window(&self, (min_rtt, srtt): (Duration, Duration), segment: u32) -> Duration {
        if !self.reordered && self.sacked_bytes >= DUPLICATE_THRESHOLD * u64::from(segment) {
            return Duration::ZERO;
        }
        // Chosen: RFC 8985 bounds the window by the smoothed round-trip time. A late repair costs more than a
        // spurious one, hence an eighth of it.
        (min_rtt * u64::from(self.reorder_quarters.max(1)) / 4).min(srtt / 8)
    }

    /// Moves the losses since the last call to `delivery`.
    pub fn take_losses(&mut self, delivery: &mut Delivery) {
        self.records.take_losses(delivery);
    }
    /// Marks records as lost that were sent before the newest delivered one (RACK), and those past
    /// `deadline`. `rtt` are the minimum and the smoothed round-trip time. Returns when to detect again.
    pub fn detect_losses(
        &mut self,
        now: Instant,
        rtt: (Duration, Duration),
        segment: u32,
        deadline: Option<AckDeadline>,
    ) -> Option<Instant> {
        let window = self.reorder_window(rtt, segment);
        let (rack, rack_rtt) = (self.rack, self.rack_rtt);
        let has_sack = self.newreno.is_none();
        // `Err`: not lost yet, and when it will be.
        let is_lost = |record: &Sent| -> Result<(), Option<Instant>> {
            let overtaken = has_sack && (record.at, record.end()) < rack;
            let at = overtaken.then_some(record.at + rack_rtt + window);
            let late = deadline.map(|deadline| (record.at + deadline.age).max(deadline.not_before));
            match [at, late].into_iter().flatten().min() {
                Some(at) if at <= now => Ok(()),
                at => Err(at),
            }
        };
        let mut again: Option<Instant> = None;
        let mut at = self.records.find(self.examined).unwrap_or(self.records.len());
        while let Some(record) = self.records.get(at) {
            step();
            let waits = record.in_flight() && !record.is(RETRANSMITTED);
            if waits && let Err(later) = is_lost(record) {
                again = later;
                break;
            }
            self.examined = record.end();
            if waits {
                self.records.lose_detected(at);
            }
            at += 1;
        }
        while let Some(&(off, sent_at)) = self.retransmitted.front() {
            step();
            if let Some(at) = self.records.find(off)
                && let Some(record) = self.records.get(at)
                && record.at == sent_at
                && record.in_flight()
            {
                if let Err(later) = is_lost(record) {
                    again = match (again, later) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    };
                    break;
                }
                self.records.lose_detected(at);
            }
            self.retransmitted.pop_front();
        }
        shrink_if_empty(&mut self.retransmitted);
        again
    }

    /// Marks the first record as lost: a timeout, a probe, or a drop past the window. `suspected`: it may
    /// only be late, and new data will show which.
    pub fn lose_first(&mut self, suspected: bool) {
        self.records.lose_first(suspected);
    }
    /// At a timeout after an early ACK: no segment of the flight was merely late, or its ACK would have
    /// followed. All of them are marked lost. Whether that is so.
    pub fn lose_flight(&mut self) -> bool {
        self.early_ack && self.records.lose_where(0, |_| true) > 0
    }
    /// Marks everything sent past the client's window as lost. Returns the bytes.
    pub fn lose_past_edge(&mut self) -> u64 {
        self.records.lose_where(0, |record| record.is(PAST_EDGE))
    }
    /// While the first record is lost, a client drops every segment that begins at its window's edge or past
    /// it: those in flight are marked lost.
    pub fn lose_from(&mut self, edge: u64) {
        let past = |record: &Sent| record.off >= edge && record.in_flight();
        if self.is_front_lost() && self.records.back().is_some_and(past) {
            self.records.lose_where(self.records.first_from(edge), |_| true);
        }
    }
    /// Marks records as lost that are longer than the path allows.
    pub fn lose_larger(&mut self, segment: u32) {
        self.records.lose_where(0, |record| record.len > segment);
    }
    /// Whether the client has discarded SACKed data (reneging, RFC 2018, section 8): the SACKed first record
    /// is not acknowledged. Linux does so when its buffer is full.
    pub fn has_reneged(&self) -> bool {
        self.records.front().is_some_and(|front| front.is(SACKED))
    }
    /// The client may have discarded SACKed data: all of it is marked as lost.
    pub fn lose_sacked(&mut self) {
        for (left, right) in std::mem::take(&mut self.sacked).iter() {
            let mut at = self.records.first_from(left);
            while self.records.get(at).is_some_and(|record| record.off < right) {
                step();
                self.records.lose_sacked(at);
                at += 1;
            }
        }
        self.sacked_bytes = 0;
    }
    /// Marks everything as lost that is not acknowledged cumulatively: the client may have discarded SACKed
    /// data.
    pub fn lose_all(&mut self) {
        self.lose_sacked();
        self.records.lose_where(0, |_| true);
    }

    /// Whether the first record was sent after everything that was delivered: then it arrives ahead of all
    /// data sent from now on.
    pub fn is_front_in_flight(&self) -> bool {
        let in_flight = |front: &Sent| front.in_flight() && front.at >= self.newest_delivered_at;
        self.records.front().is_none_or(in_flight)
    }
    /// When the first record was sent, if that was past the client's window and it is in flight.
    pub fn front_past_edge_sent_at(&self) -> Option<Instant> {
        let front = self.records.front();
        front.filter(|record| record.is(PAST_EDGE) && record.in_flight()).map(|record| record.at)
    }
    /// The next segment to retransmit, until [`Scoreboard::on_retransmit`].
    pub fn next_lost(&mut self) -> Option<Retransmission> {
        self.records.next_lost()
    }
    /// The segment of [`Scoreboard::next_lost`] was sent, its first `len` bytes at least.
    pub fn on_retransmit(&mut self, now: Instant, len: u32, past_edge: bool) {
        self.retransmitted_ms = (now.as_millis() as u32).max(1);
        if let Some(off) = self.records.on_retransmit(now, len, past_edge) {
            self.retransmitted.push_back((off, now));
        }
    }

    /// A segment that was sent once, at `at`, has arrived. The path keeps the order: retransmissions that
    /// were sent earlier have been answered.
    fn note_sent_once(&mut self, at: Instant) {
        if (at.as_millis() as u32).wrapping_sub(self.retransmitted_ms) as i32 > 0 {
            self.retransmitted_ms = 0;
        }
    }
    /// Whether a duplicate ACK may answer a retransmission, or a packet that was sent at `probe_at`.
    pub fn may_answer_repetition(&self, probe_at: Instant) -> bool {
        self.retransmitted_ms != 0 || probe_at > Instant::ZERO && self.newest_delivered_at <= probe_at
    }

    /// Panics if an invariant does not hold. `una..nxt` are the outstanding bytes.
    pub fn check(&self, una: u64, nxt: u64) {
        self.records.check(una, nxt, self.sacked_bytes);
        assert!(self.sacked.len() <= self.records.len() + 1);
        assert!(self.sacked.end().is_none_or(|end| end <= nxt));
    }
}

#[cfg(test)]
mod tests;
