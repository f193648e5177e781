//! The server's bytes that the client has not acknowledged, in the form in which they arrived: simulated
//! lengths, or the datagrams of a device, which are not copied.
//!
//! A piece is the payload of one packet, with its DSCP, TTL and PSH flag. If the server sends a byte again,
//! the first copy is kept.

use crate::accelerator::flow::from_server::beyond::Beyond;
use crate::accelerator::flow::from_server::payload_slice::PayloadSlice;
pub(in crate::accelerator) use crate::accelerator::flow::from_server::piece::{Mark, Piece};
use crate::accelerator::flow::memory::shrink_if_empty;
use crate::accelerator::flow::steps::step;
use paceline_net::{Instant, Ranges};
use std::collections::VecDeque;

/// A part of the stream that one packet can carry: its bytes have the same header fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct Cut {
    pub len: u32,
    pub mark: Mark,
    /// Whether it ends at the end of a packet of the server.
    pub ends_packet: bool,
}

/// Data beyond the first gap that one packet can carry.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct PartBeyond<'a> {
    pub off: u64,
    pub len: u32,
    pub mark: Mark,
    /// None in simulation.
    pub bytes: Option<&'a [u8]>,
}

/// The result of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Stored {
    /// Bytes that were not stored before.
    pub new: u64,
    /// Whether bytes that are stored already differ.
    pub conflict: bool,
}

#[derive(Debug, Default)]
pub(in crate::accelerator) struct Store {
    /// In order and contiguous, up to `next`.
    pieces: VecDeque<Piece>,
    /// Data beyond the first gap, if there is any.
    beyond: Option<Box<Beyond>>,
    next: u64,
    /// Bytes of memory of `pieces`.
    cost: u64,
}

/// Gaps that one packet fills at most. Chosen: a packet that spans more fills the others when it is sent
/// again.
const MAX_GAPS: usize = 7;
/// Pieces with which a packet is compared at most. Chosen: more than packets of usual sizes overlap.
const MAX_COMPARED: usize = 64;
/// Least bytes of memory beside the payload for data beyond a gap. Chosen: a few hundred pieces.
const LEAST_OVERHEAD_BYTES: u64 = 64 << 10;

impl Store {
    pub fn new(start: u64) -> Self {
        Self { next: start, ..Self::default() }
    }
    /// End of the contiguous data.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Start of the newest packet of the contiguous data.
    pub fn tail(&self) -> u64 {
        self.pieces.back().map_or(self.next, |piece| piece.off)
    }
    /// The last boundary of a packet of the server at or below `off`. Super-packets consist of packets of
    /// `segment` bytes.
    pub fn boundary(&self, off: u64, segment: u32) -> u64 {
        match self.pieces.get(self.at(off)).filter(|piece| piece.off <= off) {
            Some(piece) => off - (off - piece.off) % u64::from(segment),
            None => off,
        }
    }
    /// TSval of the packet with the byte at `off`, if it is stored.
    pub fn timestamp(&self, off: u64) -> Option<u32> {
        let piece = self.pieces.get(self.at(off)).filter(|piece| piece.off <= off && off < piece.end())?;
        Some(piece.timestamp)
    }
    /// Bytes of memory, bookkeeping included.
    pub fn cost(&self) -> u64 {
        self.cost + self.beyond.as_ref().map_or(0, |beyond| beyond.cost())
    }
    /// Whether there is data beyond a gap.
    pub fn has_gap(&self) -> bool {
        self.beyond.is_some()
    }
    /// The ranges beyond the first gap.
    pub fn beyond(&self) -> Option<&Ranges> {
        self.beyond.as_ref().map(|beyond| beyond.ranges())
    }
    /// Whether more data may be stored beyond a gap: the pieces there cost at most `share` bytes beside their
    /// payload. Small segments at every second offset would cost a hundred times their bytes.
    pub fn has_room_beyond(&self, share: u64) -> bool {
        self.beyond.as_ref().is_none_or(|beyond| beyond.overhead() < share.max(LEAST_OVERHEAD_BYTES))
    }

    /// When the byte at `off` arrived, if it is stored.
    pub fn arrived_at(&self, off: u64) -> Option<Instant> {
        Some(self.pieces.get(self.at(off)).filter(|piece| piece.off <= off && off < piece.end())?.at)
    }

    /// Stores the part `from..until` of a packet.
    pub fn insert(&mut self, mut packet: Piece, (from, until): (u64, u64)) -> Stored {
        if from == self.next && self.beyond.is_none() && from < until {
            packet.narrow(from, until);
            self.push(packet);
            return Stored { new: until - from, conflict: false };
        }
        let conflict = self.differs(&packet);
        let mut new = 0;
        let mut cursor = from.max(self.next);
        for _ in 0..MAX_GAPS {
            let gap = || (cursor < until).then_some((cursor, until));
            let Some((left, right)) = self.beyond().map_or_else(gap, |all| all.next_gap(cursor, until))
            else {
                break;
            };
            (new, cursor) = (new + right - left, right);
            let part = packet.part(left, right);
            if left == self.next {
                self.push(part);
            } else {
                self.beyond.get_or_insert_default().insert(part);
            }
        }
        while let Some(piece) = self.beyond.as_mut().and_then(|beyond| beyond.take(self.next)) {
            self.push(piece);
        }
        self.beyond.take_if(|beyond| beyond.is_empty());
        Stored { new, conflict }
    }
    fn push(&mut self, piece: Piece) {
        self.next = piece.end();
        self.cost += piece.cost();
        self.pieces.push_back(piece);
    }

    /// Whether a packet has other bytes than the store at the same offsets.
    fn differs(&self, packet: &Piece) -> bool {
        let start = self.pieces.partition_point(|piece| piece.end() <= packet.off);
        let stored = self.pieces.range(start..).inspect(|_| step());
        let beyond = self.beyond.iter().flat_map(|beyond| beyond.from(packet.off));
        let overlapping = |piece: &&Piece| piece.off < packet.end();
        let all = stored.take_while(overlapping).chain(beyond.take_while(overlapping));
        all.take(MAX_COMPARED).any(|piece| {
            let (left, right) = (piece.off.max(packet.off), piece.end().min(packet.end()));
            piece.bytes(left, right) != packet.bytes(left, right)
        })
    }

    /// Removes the pieces that end at or below `off`.
    pub fn release(&mut self, off: u64) {
        // All datagrams are read before the first is freed: their cache misses overlap.
        let released = self.pieces.iter().take_while(|piece| piece.end() <= off);
        std::hint::black_box(
            released.filter_map(|piece| piece.datagram.as_ref()?.first()).fold(0, |all, byte| all ^ byte),
        );
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.end() <= off) {
            self.cost -= piece.cost();
        }
        shrink_if_empty(&mut self.pieces);
    }

    /// The data beyond the first gap, in parts of at most `segment` bytes.
    pub fn parts_beyond(&self, segment: u32) -> impl Iterator<Item = PartBeyond<'_>> {
        let pieces = self.beyond.iter().flat_map(|beyond| beyond.from(self.next));
        pieces.flat_map(move |piece| {
            let starts = (piece.off..piece.end()).step_by(segment.max(1) as usize);
            starts.map(move |off| {
                let until = (off + u64::from(segment.max(1))).min(piece.end());
                let push = piece.mark.push && until == piece.end();
                let mark = Mark { push, urgent: 0, ..piece.mark };
                PartBeyond { off, len: (until - off) as u32, mark, bytes: piece.bytes(off, until) }
            })
        })
    }
    /// Removes all data beyond the first gap. Whether there was any.
    pub fn forget_beyond(&mut self) -> bool {
        self.beyond.take().is_some()
    }

    /// Index of the piece with the byte at `off`.
    fn at(&self, off: u64) -> usize {
        match self.pieces.back() {
            // New data is near the end, retransmissions near the start.
            Some(last) if last.off <= off => self.pieces.len() - 1,
            _ => self.pieces.partition_point(|piece| piece.end() <= off),
        }
    }

    /// The payload to send from `off`: at most `segment` bytes, or several whole segments up to `most` bytes,
    /// ending at or before `limit`. `None` if there is no data at `off`.
    pub fn cut(&self, off: u64, segment: u32, most: u32, limit: u64) -> Option<Cut> {
        let limit = limit.min(self.next);
        if off >= limit {
            return None;
        }
        let at = self.at(off);
        let piece = self.pieces.get(at)?;
        debug_assert!(piece.off <= off && off < piece.end(), "the data to send is stored");
        let most = u64::from(most.max(segment) / segment * segment);
        let available = piece.end().min(limit) - off;
        let mut len = available.min(most);
        let mut last = piece;
        let urgent = u16::try_from(u64::from(piece.mark.urgent).saturating_sub(off - piece.off)).unwrap_or(0);
        // Further packets of the server join if their header fields are the same. PSH is set where the last
        // one ends: a server that writes piece by piece sets it on each small packet.
        for next in self.pieces.range(at + 1..) {
            let alike = Mark { push: false, ..next.mark } == Mark { push: false, ..last.mark };
            let aligned = last.end() == off + len && len.is_multiple_of(u64::from(segment));
            if !alike || !aligned || last.mark.urgent > 0 || len >= most || next.off >= limit {
                break;
            }
            len += (next.end().min(limit) - next.off).min(most - len);
            last = next;
        }
        let ends_packet = off + len == last.end();
        let mark = Mark { push: last.mark.push && ends_packet, urgent, ..piece.mark };
        Some(Cut { len: len as u32, mark, ends_packet })
    }

    /// The pieces that overlap `len` stored bytes at `off`, and the ranges of overlap; `None` in simulation.
    fn parts(&self, off: u64, len: u32) -> Option<impl Iterator<Item = (&Piece, u64, u64)>> {
        let (at, end) = (self.at(off), off + u64::from(len));
        self.pieces.get(at)?.datagram.as_ref()?;
        let parts = self.pieces.range(at..).take_while(move |piece| piece.off < end);
        Some(parts.map(move |piece| (piece, off.max(piece.off), end.min(piece.end()))))
    }
    /// `len` stored bytes at `off`, by piece; `None` in simulation.
    pub fn read(&self, off: u64, len: u32) -> Option<impl Iterator<Item = &[u8]>> {
        Some(self.parts(off, len)?.filter_map(|(piece, from, until)| piece.bytes(from, until)))
    }
    /// The same as slices that share the memory; `None` if there would be more than `most` as well.
    pub fn share(&self, off: u64, len: u32, most: usize) -> Option<Vec<PayloadSlice>> {
        if self.parts(off, len)?.nth(most).is_some() {
            return None;
        }
        let share = |(piece, from, until): (&Piece, u64, u64)| {
            let (at, end) = piece.place(from, until);
            Some(PayloadSlice::new(piece.datagram.as_ref()?, at, end))
        };
        self.parts(off, len)?.map(share).collect()
    }

    /// Panics if an invariant does not hold, or data above `una` is missing.
    pub fn check(&self, una: u64) {
        let mut expected = self.pieces.front().map_or(self.next, |piece| piece.off);
        assert!(expected <= una, "unacknowledged data is stored");
        for piece in &self.pieces {
            assert!(piece.off == expected && piece.len > 0, "no gap below `next`");
            expected = piece.end();
        }
        assert_eq!(expected, self.next);
        assert_eq!(self.cost, self.pieces.iter().map(Piece::cost).sum::<u64>());
        self.beyond.iter().for_each(|beyond| beyond.check(self.next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Payload;
    use paceline_net::Stream;

    fn stream_byte(off: u64) -> u8 {
        (off ^ off >> 8 ^ off >> 16) as u8
    }
    /// A packet whose bytes are those of the stream at `from`.
    fn packet(off: u64, len: u32, from: u64) -> Piece {
        let datagram = Piece::datagram(datagram(from, len));
        Piece { off, len, skip: 7, timestamp: 0, at: Instant::ZERO, mark: Mark::default(), datagram }
    }
    fn datagram(off: u64, len: u32) -> Payload {
        // Seven bytes of header.
        let bytes: Vec<u8> =
            (0..7).map(|_| 0xee).chain((off..off + u64::from(len)).map(stream_byte)).collect();
        Payload::Datagram(bytes.into())
    }

    // keeps: accelerator.prefix
    #[test]
    fn random_arrivals_give_the_stream() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "store");
            let mut store = Store::new(0);
            let mut sent = 0;
            while sent < 5000 {
                let off = (store.next() + stream.below(300)).saturating_sub(150);
                let len = 1 + stream.below(200) as u32;
                let (from, until) = (off.max(store.next()), off + u64::from(len));
                let stored = store.insert(packet(off, len, off), (from, until.max(from)));
                assert!(!stored.conflict);
                while let Some(cut) = store.cut(sent, 50, if stream.chance(0.5) { 150 } else { 50 }, u64::MAX)
                {
                    let read: Vec<u8> = store.read(sent, cut.len).unwrap().flatten().copied().collect();
                    assert!(read.iter().zip(sent..).all(|(byte, off)| *byte == stream_byte(off)));
                    assert_eq!(read.len(), cut.len as usize);
                    let shared = store.share(sent, cut.len, usize::MAX).unwrap();
                    assert_eq!(shared.iter().map(PayloadSlice::as_bytes).collect::<Vec<_>>().concat(), read);
                    assert_eq!(store.share(sent, cut.len, shared.len() - 1), None);
                    sent += u64::from(cut.len);
                }
                store.release(sent.saturating_sub(400));
                store.check(sent);
            }
        }
    }

    // keeps: accelerator.checksums
    #[test]
    fn packets_join_beyond_push_which_stays_at_the_end() {
        let mut store = Store::new(0);
        for off in (0..500).step_by(100) {
            let mark = Mark { push: true, traffic_class: if off < 400 { 0 } else { 8 }, ..Mark::default() };
            store.insert(Piece { mark, ..packet(off, 100, off) }, (off, off + 100));
        }
        let cut = |off, most| store.cut(off, 100, most, u64::MAX).unwrap();
        assert_eq!((cut(0, 1000).len, cut(0, 1000).mark.push), (400, true));
        assert_eq!((cut(0, 250).len, cut(0, 250).mark.push), (200, true));
        assert_eq!((cut(50, 100).len, cut(50, 100).mark.push), (50, true));
        assert_eq!(cut(400, 1000).mark.traffic_class, 8);
    }

    #[test]
    fn an_empty_store_keeps_no_memory_of_a_transfer() {
        let mut store = Store::new(0);
        for off in (0..100_000).step_by(100) {
            store.insert(packet(off, 100, off), (off, off + 100));
        }
        assert!(store.pieces.capacity() >= 1000);
        store.release(100_000);
        assert!(store.pieces.capacity() == 0 && store.cost() == 0);
    }

    // keeps: accelerator.server-retransmits
    #[test]
    fn the_first_copy_stays_and_a_conflict_is_reported() {
        let mut store = Store::new(0);
        store.insert(packet(0, 10, 0), (0, 10));
        let stored = store.insert(packet(0, 10, 500), (10, 10));
        assert_eq!(stored, Stored { new: 0, conflict: true });
        let read: Vec<u8> = store.read(0, 10).unwrap().flatten().copied().collect();
        assert_eq!(read, (0..10).map(stream_byte).collect::<Vec<u8>>());
    }
}
