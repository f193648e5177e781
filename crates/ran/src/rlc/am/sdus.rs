//! The SDUs of one direction as a stream of bytes. PDUs are byte ranges of it; packets stay here until
//! delivery.

use super::pdu::{MAX_DATA, header_len};
use crate::pdcp;
use crate::rlc::Reassembled;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Sdu {
    /// Position after its last byte.
    end: u64,
    /// The PDCP PDU; a copy once it is delivered.
    pdu: pdcp::Pdu,
}

/// The SDUs from the oldest one in an unacknowledged PDU to the newest numbered one.
#[derive(Clone, Debug, Default)]
pub(super) struct Sdus {
    queue: VecDeque<Sdu>,
    end: u64,
    /// Number of delivered SDUs at the front of the queue.
    delivered: usize,
}

impl Sdus {
    /// Appends a PDCP PDU.
    pub fn push(&mut self, pdu: pdcp::Pdu) {
        self.end += u64::from(pdu.bytes());
        self.queue.push_back(Sdu { end: self.end, pdu });
    }
    /// Position after the last byte of the newest SDU.
    pub fn end(&self) -> u64 {
        self.end
    }
    pub fn held(&self) -> u64 {
        self.queue.range(self.delivered..).filter(|sdu| sdu.pdu.packet().is_some()).count() as u64
    }
    /// Number of SDU elements in the bytes `[from, to)`.
    pub fn elements(&self, from: u64, to: u64) -> u32 {
        let first = self.queue.partition_point(|sdu| sdu.end <= from);
        self.queue.range(first..).take_while(|sdu| sdu.end < to).count() as u32 + 1
    }
    /// Number of the bytes `[from, to)` that a PDU segment of `room` bytes can hold.
    pub fn fit(&self, from: u64, to: u64, room: u32) -> u32 {
        let first = self.queue.partition_point(|sdu| sdu.end <= from);
        let mut reach = from;
        for (elements, sdu) in (1..).zip(self.queue.range(first..)) {
            let data = room.saturating_sub(header_len(true, elements)).min(MAX_DATA);
            let limit = from + u64::from(data);
            if limit <= reach {
                break; // no byte of this element fits
            }
            reach = sdu.end.min(to).min(limit);
            if reach < sdu.end || reach == to {
                break;
            }
        }
        (reach - from) as u32
    }
    /// Delivers every packet that ends at or before `position`.
    pub fn deliver(&mut self, position: u64, out: &mut Vec<Reassembled>) {
        while let Some(sdu) = self.queue.get_mut(self.delivered).filter(|sdu| sdu.end <= position) {
            out.push(Reassembled::Sdu(sdu.pdu.take()));
            self.delivered += 1;
        }
    }
    /// Removes the acknowledged SDUs, those that end at or before `position`.
    pub fn release(&mut self, position: u64) {
        while self.queue.front().is_some_and(|sdu| sdu.end <= position) {
            debug_assert!(self.delivered > 0, "an acknowledged SDU was delivered");
            self.queue.pop_front();
            self.delivered -= 1;
        }
    }
    /// Delivers the SDUs above those in sequence that lie within the bytes `[from, to)`.
    pub fn deliver_within(&mut self, from: u64, to: u64, out: &mut Vec<Reassembled>) {
        let mut start = match self.delivered.checked_sub(1) {
            Some(last) => self.queue[last].end,
            None => self.queue.front().map_or(0, |sdu| sdu.end - u64::from(sdu.pdu.bytes())),
        };
        for sdu in self.queue.range_mut(self.delivered..) {
            if from <= start && sdu.end <= to {
                out.push(Reassembled::Sdu(sdu.pdu.take()));
            }
            start = sdu.end;
        }
    }
    /// The PDCP PDUs that are not acknowledged, in the order of their COUNTs.
    pub fn unconfirmed(&mut self) -> impl Iterator<Item = &mut pdcp::Pdu> {
        self.queue.iter_mut().map(|sdu| &mut sdu.pdu)
    }
}
