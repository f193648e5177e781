//! The sequence space of one direction: positions that do not wrap, and the holes between the segments that
//! passed the capture point.

use paceline_net::{Instant, SeqNumber};
use std::collections::VecDeque;

/// Position of the first byte. Chosen: earlier bytes of a capture that starts in mid-stream stay positive.
const ORIGIN: u64 = 1 << 32;
/// Most holes that are remembered. Chosen: a burst of losses makes few holes; beyond this the oldest is
/// forgotten and its bytes count as seen.
const MAX_HOLES: usize = 64;

/// Bytes that did not pass before later ones did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// First byte.
    pub start: u64,
    /// Behind the last byte.
    pub end: u64,
    /// Time of the segment behind the hole.
    pub since: Instant,
    /// Its TSval.
    pub tsval: Option<u32>,
}

/// The relation of a segment to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next bytes, or bytes behind a new hole.
    New,
    /// Bytes of a hole.
    Fills(Hole),
    /// Bytes that passed before.
    Seen,
}

/// The positions of one direction.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Behind the highest byte that passed, as sequence number and as position.
    top: Option<(SeqNumber, u64)>,
    holes: VecDeque<Hole>,
    /// Whether a segment of the sender passed.
    has_started: bool,
    /// Behind the last byte of the sender, at which its FIN is.
    fin: Option<u64>,
    /// Bytes that were acknowledged and did not pass the capture point.
    pub missing: u64,
    /// Whether holes were forgotten.
    pub capped: bool,
}

impl Space {
    /// Whether a sequence number is known.
    pub fn is_open(&self) -> bool {
        self.top.is_some()
    }
    /// Starts at this sequence number, if there is none yet.
    pub fn open(&mut self, seq: SeqNumber) {
        self.top.get_or_insert((seq, ORIGIN));
    }
    /// The sender's first segment. In mid-stream, data in flight before the capture began are no hole.
    pub fn start(&mut self, seq: SeqNumber) {
        self.open(seq);
        let ahead = self.place(seq);
        if !self.has_started && ahead > self.next() {
            self.advance(ahead);
        }
        self.has_started = true;
    }
    /// The position of a sequence number.
    pub fn place(&self, seq: SeqNumber) -> u64 {
        let (top, position) = self.top.unwrap_or((seq, ORIGIN));
        position.saturating_add_signed(i64::from(seq.distance(top)))
    }
    /// Whether a range was sent since the sender's SYN.
    pub fn is_within(&self, start: u64, end: u64) -> bool {
        start >= ORIGIN && end <= self.next()
    }
    /// Behind the highest byte that passed.
    pub fn next(&self) -> u64 {
        self.top.map_or(ORIGIN, |(_, position)| position)
    }
    /// Whether nothing but a SYN passed.
    pub fn is_empty(&self) -> bool {
        self.next() == ORIGIN
    }
    /// Whether there are holes.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }
    /// Adds the bytes of a segment. Returns its relation to the others and the number of bytes that are new.
    pub fn add(&mut self, start: u64, len: u32, at: Instant, tsval: Option<u32>) -> (Arrival, u64) {
        let (end, next) = (start + u64::from(len), self.next());
        if start >= next {
            if start > next {
                self.holes.push_back(Hole { start: next, end: start, since: at, tsval });
                if self.holes.len() > MAX_HOLES {
                    self.holes.pop_front();
                    self.capped = true;
                }
            }
            self.advance(end);
            return (Arrival::New, u64::from(len));
        }
        let filled = self.holes.iter().find(|hole| hole.start < end && start < hole.end).copied();
        let mut new = self.cut(start, end);
        if end > next {
            new += end - next;
            self.advance(end);
        }
        let arrival = match filled {
            Some(hole) => Arrival::Fills(hole),
            // A repaired segment that was merged with new ones counts by the larger part.
            None if end > next && end - next > next - start => Arrival::New,
            None => Arrival::Seen,
        };
        (arrival, new)
    }
    /// A FIN follows this position.
    pub fn finish(&mut self, end: u64) {
        self.fin = Some(end);
    }
    /// Everything before `ack` was received: holes there were missed by the capture.
    pub fn acknowledge(&mut self, ack: u64) {
        let next = self.next();
        // The FIN has a sequence number, and is no byte.
        let ack = if self.fin.is_some_and(|fin| ack == fin + 1) { ack - 1 } else { ack };
        if ack > next {
            self.missing += ack - next;
            self.advance(ack);
        }
        self.missing += self.cut(0, ack);
    }
    fn advance(&mut self, to: u64) {
        if let Some((seq, position)) = self.top.as_mut() {
            *seq += (to - *position) as u32;
            *position = to;
        }
    }
    /// Removes a range from the holes; returns the bytes that it had of them.
    fn cut(&mut self, start: u64, end: u64) -> u64 {
        if self.holes.is_empty() {
            return 0;
        }
        let (mut removed, mut rest) = (0, VecDeque::new());
        for hole in &self.holes {
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                rest.push_back(*hole);
                continue;
            }
            removed += to - from;
            rest.extend(
                [Hole { end: from, ..*hole }, Hole { start: to, ..*hole }]
                    .into_iter()
                    .filter(|h| h.start < h.end),
            );
        }
        while rest.len() > MAX_HOLES {
            rest.pop_front();
            self.capped = true;
        }
        self.holes = rest;
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant::from_nanos(5);

    #[test]
    fn holes_are_filled_in_parts_and_numbers_wrap() {
        let mut space = Space::default();
        space.open(SeqNumber(u32::MAX - 99));
        let start = space.place(SeqNumber(u32::MAX - 99));
        assert_eq!(space.add(start, 100, AT, None), (Arrival::New, 100));
        assert_eq!(space.place(SeqNumber(0)), start + 100);
        assert_eq!(space.add(start + 400, 100, AT, Some(7)), (Arrival::New, 100));
        assert!(space.has_holes());
        let hole = Hole { start: start + 100, end: start + 400, since: AT, tsval: Some(7) };
        assert_eq!(space.add(start + 200, 100, AT, None), (Arrival::Fills(hole), 100));
        assert_eq!(space.add(start + 200, 100, AT, None), (Arrival::Seen, 0));
        space.acknowledge(start + 250);
        assert_eq!((space.missing, space.has_holes()), (100, true));
        assert!(matches!(space.add(start + 300, 100, AT, None), (Arrival::Fills(_), 100)));
        assert!(!space.has_holes());
        space.acknowledge(start + 600);
        assert_eq!((space.missing, space.next()), (200, start + 600));
    }
}
