//! One direction of a connection at a capture point: its data with their acknowledgment, and the holes of the
//! data that did not pass.

use super::clock::TsClock;
use paceline_explain::segment::Segment;
use paceline_net::{SeqNumber, TcpFlags};
use std::collections::BTreeMap;

/// Bytes of IPv4 and TCP headers without options (RFC 791, RFC 9293), and of the timestamps option with its
/// padding (RFC 7323 appendix A); IPv6 has 20 more.
const HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;
const IPV6_MORE: u32 = 20;

/// A data segment that passed.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Time, ns.
    pub at: u64,
    /// Position of the first byte.
    pub start: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Bytes of the datagram.
    pub wire: u32,
    /// TSval.
    pub tsval: Option<u32>,
    /// Time of the acknowledgment that first covers it, ns.
    pub acked_at: Option<u64>,
    /// TSval of that acknowledgment.
    pub acked_value: Option<u32>,
    /// Whether bytes before it had not passed: at least one segment is missing.
    pub behind_hole: bool,
    /// Whether some of its bytes passed before or fill a hole.
    pub is_repair: bool,
    /// Whether it was sent again later.
    pub was_repeated: bool,
}

/// A pure acknowledgment, or one with data, that passed in the other direction.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time, ns.
    pub at: u64,
    /// Bytes that it newly acknowledges, by number or SACK.
    pub bytes: u64,
    /// TSval.
    pub tsval: Option<u32>,
}

/// A direction.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Data in the order of passing.
    pub data: Vec<Data>,
    /// Acknowledgments of these.
    pub acks: Vec<Ack>,
    /// Clock of the data's sender.
    pub clock: TsClock,
    /// Payload bytes.
    pub bytes: u64,
    /// Segments that were sent again.
    pub repeated: u64,
    /// Holes: places before which data did not pass.
    pub holes: u64,
    origin: Option<SeqNumber>,
    next: u64,
    /// Unacknowledged segments, by position.
    open: BTreeMap<u64, u32>,
}

/// Position of the first byte. Chosen: data from before the capture have a positive one too, as numbers reach
/// back by at most 2^31.
const ORIGIN: u64 = 1 << 33;

fn wire(segment: &Segment) -> u32 {
    let options = if segment.options.timestamps.is_some() { TIMESTAMPS } else { 0 };
    let family = if segment.src.is_ipv6() { IPV6_MORE } else { 0 };
    segment.len + HEADERS + options + family
}

impl Direction {
    fn place(&mut self, seq: SeqNumber) -> u64 {
        let origin = *self.origin.get_or_insert(seq);
        // The distance is from the highest byte so far, so that numbers may wrap.
        let next = if self.next == 0 { ORIGIN } else { self.next };
        let top = origin.0.wrapping_add((next - ORIGIN) as u32);
        next.saturating_add_signed(i64::from(seq.0.wrapping_sub(top) as i32))
    }
    /// A segment of the direction's sender.
    pub fn on_sent(&mut self, segment: &Segment) {
        let at = segment.at.as_nanos();
        if let Some((value, _)) = segment.options.timestamps {
            self.clock.add(at, value);
        }
        let is_syn = segment.has(TcpFlags::SYN);
        if is_syn {
            self.origin = Some(SeqNumber(segment.seq.0.wrapping_add(1)));
            self.next = ORIGIN;
            return;
        }
        if segment.len == 0 {
            return;
        }
        let start = self.place(segment.seq);
        let end = start + u64::from(segment.len);
        let next = if self.next == 0 { start } else { self.next };
        let is_repair = start < next;
        let behind_hole = start > next;
        self.holes += u64::from(behind_hole);
        self.next = next.max(end);
        self.bytes += u64::from(segment.len);
        let index = self.data.len() as u32;
        self.data.push(Data {
            at,
            start,
            len: segment.len,
            wire: wire(segment),
            tsval: segment.options.timestamps.map(|(value, _)| value),
            acked_at: None,
            acked_value: None,
            behind_hole,
            is_repair,
            was_repeated: false,
        });
        if is_repair {
            for old in self.open.range(start..end).map(|(_, index)| *index as usize).collect::<Vec<_>>() {
                self.data[old].was_repeated = true;
                self.repeated += 1;
            }
        }
        self.open.insert(start, index);
    }
    /// A segment of the other end.
    pub fn on_answer(&mut self, segment: &Segment) {
        let Some(ack) = segment.ack else { return };
        if self.origin.is_none() || segment.has(TcpFlags::SYN) {
            return;
        }
        let at = segment.at.as_nanos();
        let ack = self.place(ack);
        let blocks: Vec<(u64, u64)> = segment
            .options
            .sack
            .as_slice()
            .iter()
            .map(|(left, right)| (self.place(*left), self.place(*right)))
            .filter(|(left, right)| left < right)
            .collect();
        let tsval = segment.options.timestamps.map(|(value, _)| value);
        let mut bytes = self.cover(0, ack, (at, tsval));
        for (left, right) in blocks {
            bytes += self.cover(left, right, (at, tsval));
        }
        self.acks.push(Ack { at, bytes, tsval });
    }
    /// Marks the open segments that end within a range as acknowledged; returns their bytes.
    fn cover(&mut self, from: u64, to: u64, (at, tsval): (u64, Option<u32>)) -> u64 {
        if from >= to {
            return 0;
        }
        let mut bytes = 0;
        let covered: Vec<u64> = self
            .open
            .range(from..to)
            .filter(|(start, index)| **start + u64::from(self.data[**index as usize].len) <= to)
            .map(|(start, _)| *start)
            .collect();
        for start in covered {
            if let Some(index) = self.open.remove(&start) {
                let data = &mut self.data[index as usize];
                (data.acked_at, data.acked_value) = (Some(at), tsval);
                bytes += u64::from(data.len);
            }
        }
        bytes
    }
}
