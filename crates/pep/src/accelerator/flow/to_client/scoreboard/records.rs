//! The retransmission queue: one record for each segment that the client has not acknowledged cumulatively.

use crate::accelerator::flow::memory::shrink_if_empty;
use crate::accelerator::flow::steps::step;
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::flow::to_client::scoreboard::losses::Losses;
use crate::accelerator::flow::to_client::scoreboard::sent::{
    FIN, LOST, PAST_EDGE, RETRANSMITTED, Retransmission, SACKED, SUSPECTED, SUSPECTED_AGAIN, Sent,
};
use paceline_net::{Instant, Ranges};
use std::collections::VecDeque;

/// Records in the order of their offsets, without gaps.
#[derive(Debug, Default)]
pub(in crate::accelerator) struct Records {
    sent: VecDeque<Sent>,
    /// Bytes of the records that are neither SACKed nor lost.
    in_flight: u64,
    /// Losses that no ACK has reported to the rate control yet.
    losses: Losses,
    /// Offsets of lost records; parts may be stale.
    lost: Ranges,
}

impl Records {
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
    pub fn len(&self) -> usize {
        self.sent.len()
    }
    pub fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter()
    }
    pub fn front(&self) -> Option<&Sent> {
        self.sent.front()
    }
    pub fn back(&self) -> Option<&Sent> {
        self.sent.back()
    }
    /// End of the last record.
    pub fn end(&self) -> Option<u64> {
        self.sent.back().map(Sent::end)
    }
    pub fn get(&self, at: usize) -> Option<&Sent> {
        self.sent.get(at)
    }
    /// Index of the record with the byte at `off`, or of the first one after it.
    pub fn find(&self, off: u64) -> Option<usize> {
        let at = self.sent.partition_point(|record| record.end() <= off);
        (at < self.sent.len()).then_some(at)
    }
    /// Index of the first record that begins at or after `off`.
    pub fn first_from(&self, off: u64) -> usize {
        self.sent.partition_point(|record| record.off < off)
    }
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// A new segment was sent.
    pub fn push(&mut self, record: Sent) {
        debug_assert!(self.end().is_none_or(|end| end == record.off), "new data is sent in order");
        self.sent.push_back(record);
        self.in_flight += u64::from(record.len);
    }
    /// Removes the first record if it ends at or below `una`.
    pub fn pop_below(&mut self, una: u64) -> Option<Sent> {
        let record = self.sent.pop_front_if(|record| record.end() <= una)?;
        if record.in_flight() {
            self.in_flight -= u64::from(record.len);
        }
        Some(record)
    }
    /// Cuts the part below `una` off the first record. Returns the record as it was and the bytes cut off.
    pub fn trim_front(&mut self, una: u64) -> Option<(Sent, u64)> {
        let front = self.sent.front_mut().filter(|front| front.off < una)?;
        let before = *front;
        let part = una - front.off;
        front.off = una;
        front.len -= part as u32;
        if front.in_flight() {
            self.in_flight -= part;
        }
        Some((before, part))
    }
    /// Marks a record as SACKed; returns it as it was.
    pub fn mark_sacked(&mut self, at: usize) -> Sent {
        let record = &mut self.sent[at];
        let before = *record;
        record.state = record.state & !LOST | SACKED;
        if before.in_flight() {
            self.in_flight -= u64::from(before.len);
        }
        before
    }

    /// Marks a record in flight as lost.
    pub fn lose(&mut self, at: usize) {
        let record = &mut self.sent[at];
        record.state |= LOST;
        self.in_flight -= u64::from(record.len);
        self.lost.insert(record.off, record.end());
    }
    /// Marks a record as lost that loss detection has found, and counts the loss.
    pub fn lose_detected(&mut self, at: usize) {
        self.sent[at].state &= !SUSPECTED;
        self.losses.on_lost(&self.sent[at]);
        self.lose(at);
    }
    /// Marks as lost those records in flight from index `from` on for which `is_lost` holds. Returns their
    /// bytes.
    pub fn lose_where(&mut self, from: usize, is_lost: impl Fn(&Sent) -> bool) -> u64 {
        let before = self.in_flight;
        for at in from..self.sent.len() {
            step();
            if self.sent[at].in_flight() && is_lost(&self.sent[at]) {
                self.lose(at);
            }
        }
        before - self.in_flight
    }
    /// Marks the first record as lost, if it is in flight, without counting the loss. `suspected`: it may
    /// only be late.
    pub fn lose_first(&mut self, suspected: bool) {
        if let Some(front) = self.sent.front_mut().filter(|front| front.in_flight()) {
            let again = if front.is(RETRANSMITTED) { SUSPECTED_AGAIN } else { 0 };
            front.state |= again | if suspected { SUSPECTED } else { 0 };
            self.lose(0);
        }
    }
    /// Counts the loss of the first record and marks it as lost.
    pub fn lose_first_counted(&mut self) {
        if let Some(front) = self.sent.front() {
            self.losses.on_lost(front);
        }
        self.lose_first(false);
    }
    /// Marks a SACKed record as lost.
    pub fn lose_sacked(&mut self, at: usize) {
        let record = &mut self.sent[at];
        record.state = record.state & !SACKED | LOST;
        self.lost.insert(record.off, record.end());
    }
    /// Returns a SACKed record to flight.
    pub fn unmark_sacked(&mut self, at: usize) {
        let record = &mut self.sent[at];
        record.state &= !SACKED;
        self.in_flight += u64::from(record.len);
    }
    /// Counts lost bytes whose place is unknown.
    pub fn count_missing(&mut self, bytes: u64) {
        self.losses.on_missing(bytes);
    }
    /// Returns every lost record to flight: nothing had been lost.
    pub fn undo_losses(&mut self) {
        for (left, right) in std::mem::take(&mut self.lost).iter() {
            for at in self.find(left).unwrap_or(self.sent.len())..self.first_from(right) {
                step();
                if self.sent[at].is(LOST) {
                    self.sent[at].state &= !LOST;
                    self.in_flight += u64::from(self.sent[at].len);
                }
            }
        }
    }
    /// Moves the losses since the last call to `delivery`.
    pub fn take_losses(&mut self, delivery: &mut Delivery) {
        self.losses.take(delivery);
    }

    /// The lost segment with the lowest offset; [`Records::on_retransmit`] removes it.
    pub fn next_lost(&mut self) -> Option<Retransmission> {
        while let Some((off, _)) = self.lost.first() {
            step();
            let Some(&record) = self.find(off).and_then(|at| self.sent.get(at)) else {
                self.lost.clear();
                break;
            };
            if record.off <= off && record.is(LOST) {
                return Some(Retransmission { off: record.off, len: record.len, fin: record.is(FIN) });
            }
            self.lost.remove_below(if record.off > off { record.off } else { record.end() });
        }
        None
    }
    /// The segment of [`Records::next_lost`] was sent, its first `len` bytes at least: a smaller path MTU
    /// splits the record. Returns its offset.
    pub fn on_retransmit(&mut self, now: Instant, len: u32, past_edge: bool) -> Option<u64> {
        let at = self.find(self.lost.first()?.0)?;
        let record = self.sent[at];
        if len < record.len {
            let remainder = Sent { off: record.off + u64::from(len), len: record.len - len, ..record };
            self.sent[at].len = len;
            self.sent.insert(at + 1, remainder);
        }
        let record = &mut self.sent[at];
        self.lost.remove_below(record.end());
        record.send_again(now);
        let edge = if past_edge { PAST_EDGE } else { 0 };
        record.state = record.state & !(LOST | PAST_EDGE) | RETRANSMITTED | edge;
        self.in_flight += u64::from(record.len);
        Some(record.off)
    }

    /// Frees the memory of an empty queue.
    pub fn shrink_if_empty(&mut self) {
        shrink_if_empty(&mut self.sent);
        self.lost.shrink_if_empty();
    }

    /// Panics if the records do not cover `una..nxt` or the counts are wrong. `sacked` are the SACKed bytes.
    pub fn check(&self, una: u64, nxt: u64, sacked: u64) {
        let mut expected = una;
        let (mut in_flight_sum, mut sacked_sum) = (0, 0);
        for record in &self.sent {
            assert!(record.off == expected && record.len > 0, "records have no gaps");
            expected = record.end();
            assert!(!record.is(SACKED) || !record.is(LOST));
            in_flight_sum += if record.in_flight() { u64::from(record.len) } else { 0 };
            sacked_sum += if record.is(SACKED) { u64::from(record.len) } else { 0 };
        }
        assert_eq!(expected, nxt);
        assert_eq!((in_flight_sum, sacked_sum), (self.in_flight, sacked));
    }
}
