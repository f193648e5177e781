//! The bytes of one connection that came from the server and that the client has not acknowledged, as they came: a
//! simulated length or a device's datagram, held once and not copied, neither here nor, where the driver gathers what it
//! sends, on the way out.
//!
//! Pieces keep the boundaries of the packets that brought them, with the DSCP, TTL and PSH of their own. Where a
//! server sends a byte again, the first one stays.

use crate::accelerator::flow::from_server::payload_slice::PayloadSlice;
use crate::accelerator::flow::memory::shrink_if_empty;
use paceline_net::Payload;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a packet's header says of its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Mark {
    /// TOS or Traffic Class octet.
    pub traffic_class: u8,
    /// TTL or Hop Limit.
    pub hop_limit: u8,
    pub push: bool,
    /// Bytes from the piece's start to its urgent pointer; 0 for none.
    pub urgent: u16,
}

/// A stretch of the stream out of one packet.
#[derive(Clone, Debug)]
struct Piece {
    off: u64,
    len: u32,
    /// Bytes of the datagram ahead of the stretch.
    skip: u32,
    mark: Mark,
    /// None in simulation.
    datagram: Option<Arc<Box<[u8]>>>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.off + u64::from(self.len)
    }
    /// Where the bytes from `from` to `until` are in the datagram.
    fn place(&self, from: u64, until: u64) -> (usize, usize) {
        let at = self.skip as usize + (from - self.off) as usize;
        (at, at + (until - from) as usize)
    }
    /// The bytes from `from` to `until`; none in simulation.
    fn bytes(&self, from: u64, until: u64) -> Option<&[u8]> {
        let (at, end) = self.place(from, until);
        Some(&self.datagram.as_ref()?[at..end])
    }
    /// The part of it from `from` to `until`.
    fn part(&self, from: u64, until: u64) -> Self {
        self.clone().into_part(from, until)
    }
    fn into_part(self, from: u64, until: u64) -> Self {
        let ahead = (from - self.off) as u32;
        let mark = Mark {
            push: self.mark.push && until == self.end(),
            urgent: u16::try_from(u32::from(self.mark.urgent).saturating_sub(ahead)).unwrap_or(0),
            ..self.mark
        };
        Self { off: from, len: (until - from) as u32, skip: self.skip + ahead, mark, ..self }
    }
}

/// What to send next: a stretch of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct Cut {
    pub len: u32,
    pub mark: Mark,
    /// Whether the stretch ends where a packet of the server ended.
    pub ends_packet: bool,
}

/// What became of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Stored {
    /// Bytes that were not here before.
    pub new: u64,
    /// Bytes that were here, and are other ones.
    pub conflict: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(in crate::accelerator) struct Store {
    /// In order and without gaps, up to `next`.
    pieces: VecDeque<Piece>,
    /// Beyond the first gap: ascending and disjoint.
    beyond: VecDeque<Piece>,
    next: u64,
    bytes: u64,
}

/// Bytes of bookkeeping that a piece costs beside its payload, counted against the buffers.
pub(in crate::accelerator) const PIECE_COST: u64 = 64;

impl Store {
    pub fn new(start: u64) -> Self {
        Self { next: start, ..Self::default() }
    }
    /// The offset up to which everything is here.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Where the newest packet in order begins.
    pub fn tail(&self) -> u64 {
        self.pieces.back().map_or(self.next, |piece| piece.off)
    }
    /// Bytes held, bookkeeping included.
    pub fn cost(&self) -> u64 {
        self.bytes + PIECE_COST * (self.pieces.len() + self.beyond.len()) as u64
    }
    /// PayloadSlicees held beyond the first gap, lowest first, adjacent ones not joined.
    pub fn beyond(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.beyond.iter().map(|piece| (piece.off, piece.end()))
    }

    /// Takes the payload of a packet that stands at `off`, from `skip` in its datagram; `from..until` is the part
    /// that is wanted.
    pub fn insert(
        &mut self,
        (off, len, skip): (u64, u32, u32),
        (from, until): (u64, u64),
        mark: Mark,
        payload: Payload,
    ) -> Stored {
        let datagram = match payload {
            Payload::Datagram(bytes) => Some(Arc::new(bytes)),
            Payload::Virtual(_) => None,
        };
        let packet = Piece { off, len, skip, mark, datagram };
        if from == self.next && self.beyond.is_empty() && from < until {
            self.next = until;
            self.bytes += until - from;
            self.pieces.push_back(packet.into_part(from, until));
            return Stored { new: until - from, conflict: false };
        }
        let conflict = self.differs(&packet);
        let mut gaps = [(0, 0); 8];
        let mut found = 0;
        let mut cursor = from.max(self.next);
        let start = self.beyond.partition_point(|piece| piece.end() <= cursor);
        for piece in self.beyond.range(start..) {
            if piece.off >= until || found == gaps.len() - 1 {
                break;
            }
            if piece.off > cursor {
                gaps[found] = (cursor, piece.off);
                found += 1;
            }
            cursor = piece.end();
        }
        if cursor < until && found < gaps.len() - 1 {
            gaps[found] = (cursor, until);
            found += 1;
        }
        let mut new = 0;
        for &(left, right) in &gaps[..found] {
            new += right - left;
            let at = self.beyond.partition_point(|piece| piece.off < left);
            self.beyond.insert(at, packet.part(left, right));
        }
        self.bytes += new;
        while let Some(piece) = self.beyond.pop_front_if(|piece| piece.off == self.next) {
            self.next = piece.end();
            self.pieces.push_back(piece);
        }
        Stored { new, conflict }
    }

    /// Whether bytes that are here as well differ.
    fn differs(&self, packet: &Piece) -> bool {
        let overlapping = |pieces: &VecDeque<Piece>| {
            let start = pieces.partition_point(|piece| piece.end() <= packet.off);
            pieces.range(start..).take_while(|piece| piece.off < packet.end()).any(|piece| {
                let (left, right) = (piece.off.max(packet.off), piece.end().min(packet.end()));
                piece.bytes(left, right) != packet.bytes(left, right)
            })
        };
        overlapping(&self.pieces) || overlapping(&self.beyond)
    }

    /// Forgets everything below `off`, piece by piece.
    pub fn release(&mut self, off: u64) {
        // A look at all of them first: with many connections each is a wait for memory, and now they wait together.
        let over = self.pieces.iter().take_while(|piece| piece.end() <= off);
        std::hint::black_box(
            over.filter_map(|piece| piece.datagram.as_ref()?.first()).fold(0, |all, byte| all ^ byte),
        );
        while let Some(piece) = self.pieces.pop_front_if(|piece| piece.end() <= off) {
            self.bytes -= u64::from(piece.len);
        }
        shrink_if_empty(&mut self.pieces);
        shrink_if_empty(&mut self.beyond);
    }

    /// Forgets what is beyond the first gap; whether there was anything.
    pub fn forget_beyond(&mut self) -> bool {
        let any = !self.beyond.is_empty();
        self.bytes -= self.beyond.drain(..).map(|piece| u64::from(piece.len)).sum::<u64>();
        any
    }

    fn at(&self, off: u64) -> usize {
        match self.pieces.back() {
            // New data is near the end, retransmissions near the start.
            Some(last) if last.off <= off => self.pieces.len() - 1,
            _ => self.pieces.partition_point(|piece| piece.end() <= off),
        }
    }

    /// The stretch to send from `off`, of at most `segment` bytes, or of several whole segments up to `most`, ending
    /// before `limit`. `None` if nothing is held there.
    pub fn cut(&self, off: u64, segment: u32, most: u32, limit: u64) -> Option<Cut> {
        let limit = limit.min(self.next);
        if off >= limit {
            return None;
        }
        let at = self.at(off);
        let piece = self.pieces.get(at)?;
        debug_assert!(piece.off <= off && off < piece.end(), "what is to be sent is held");
        let most = u64::from(most.max(segment) / segment * segment);
        let available = piece.end().min(limit) - off;
        let mut len = available.min(most);
        let mut last = piece;
        let urgent = u16::try_from(u64::from(piece.mark.urgent).saturating_sub(off - piece.off)).unwrap_or(0);
        // Further packets of the server join only if nothing tells them apart.
        for next in self.pieces.range(at + 1..) {
            let alike = Mark { push: false, ..next.mark } == Mark { push: false, ..last.mark };
            let aligned = last.end() == off + len && len.is_multiple_of(u64::from(segment));
            if !alike
                || !aligned
                || last.mark.urgent > 0
                || last.mark.push
                || len >= most
                || next.off >= limit
            {
                break;
            }
            len += (next.end().min(limit) - next.off).min(most - len);
            last = next;
        }
        let ends_packet = off + len == last.end();
        let mark = Mark { push: last.mark.push && ends_packet, urgent, ..piece.mark };
        Some(Cut { len: len as u32, mark, ends_packet })
    }

    /// The pieces that have a part of a stretch that is held, and the part; `None` in simulation.
    fn parts(&self, off: u64, len: u32) -> Option<impl Iterator<Item = (&Piece, u64, u64)>> {
        let (at, end) = (self.at(off), off + u64::from(len));
        self.pieces.get(at)?.datagram.as_ref()?;
        let parts = self.pieces.range(at..).take_while(move |piece| piece.off < end);
        Some(parts.map(move |piece| (piece, off.max(piece.off), end.min(piece.end()))))
    }
    /// The bytes of a stretch that is held; `None` in simulation.
    pub fn read(&self, off: u64, len: u32) -> Option<impl Iterator<Item = &[u8]>> {
        Some(self.parts(off, len)?.filter_map(|(piece, from, until)| piece.bytes(from, until)))
    }
    /// The same without a copy; `None` where it would be in more than `most` parts as well.
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

    pub fn check(&self, una: u64) {
        let mut expected = self.pieces.front().map_or(self.next, |piece| piece.off);
        assert!(expected <= una, "what the client has not acknowledged is here");
        let mut bytes = 0;
        for piece in &self.pieces {
            assert!(piece.off == expected && piece.len > 0, "no gap below `next`");
            expected = piece.end();
            bytes += u64::from(piece.len);
        }
        assert_eq!(expected, self.next);
        for piece in &self.beyond {
            assert!(piece.off >= expected && piece.off > self.next, "beyond the gap, in order");
            expected = piece.end();
            bytes += u64::from(piece.len);
        }
        assert_eq!(bytes, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    fn stream_byte(off: u64) -> u8 {
        (off ^ off >> 8 ^ off >> 16) as u8
    }
    fn datagram(off: u64, len: u32) -> Payload {
        // Seven bytes of header.
        let bytes: Vec<u8> =
            (0..7).map(|_| 0xee).chain((off..off + u64::from(len)).map(stream_byte)).collect();
        Payload::Datagram(bytes.into())
    }

    #[test]
    fn random_arrivals_give_the_stream_back() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "store");
            let mut store = Store::new(0);
            let mut sent = 0;
            while sent < 5000 {
                let off = (store.next() + stream.below(300)).saturating_sub(150);
                let len = 1 + stream.below(200) as u32;
                let (from, until) = (off.max(store.next()), off + u64::from(len));
                let stored =
                    store.insert((off, len, 7), (from, until.max(from)), Mark::default(), datagram(off, len));
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

    #[test]
    fn what_is_empty_again_keeps_no_room_for_a_transfer() {
        let mut store = Store::new(0);
        for off in (0..100_000).step_by(100) {
            store.insert((off, 100, 7), (off, off + 100), Mark::default(), datagram(off, 100));
        }
        assert!(store.pieces.capacity() >= 1000);
        store.release(100_000);
        assert!(store.pieces.capacity() == 0 && store.cost() == 0);
    }

    #[test]
    fn the_first_bytes_stay_and_the_others_are_noticed() {
        let mut store = Store::new(0);
        store.insert((0, 10, 7), (0, 10), Mark::default(), datagram(0, 10));
        let stored = store.insert((0, 10, 7), (10, 10), Mark::default(), datagram(500, 10));
        assert_eq!(stored, Stored { new: 0, conflict: true });
        let read: Vec<u8> = store.read(0, 10).unwrap().flatten().copied().collect();
        assert_eq!(read, (0..10).map(stream_byte).collect::<Vec<u8>>());
    }
}
