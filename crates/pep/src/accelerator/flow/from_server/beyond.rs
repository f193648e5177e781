//! Stored data beyond the first gap of the stream: pieces that are disjoint, and the ranges that they make.

use crate::accelerator::flow::from_server::piece::Piece;
use crate::accelerator::flow::steps::step;
use paceline_net::Ranges;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// By their offsets.
    pieces: BTreeMap<u64, Piece>,
    ranges: Ranges,
    /// Bytes of memory and of payload.
    cost: u64,
    bytes: u64,
}

impl Beyond {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
    /// Bytes of memory beside the payload.
    pub fn overhead(&self) -> u64 {
        self.cost - self.bytes
    }
    pub fn cost(&self) -> u64 {
        self.cost
    }
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }
    /// Stores a piece, of which no byte is stored.
    pub fn insert(&mut self, piece: Piece) {
        self.ranges.insert(piece.off, piece.end());
        self.cost += piece.cost();
        self.bytes += u64::from(piece.len);
        self.pieces.insert(piece.off, piece);
    }
    /// Removes the piece that begins at `off`.
    pub fn take(&mut self, off: u64) -> Option<Piece> {
        let piece = self.pieces.first_entry().filter(|first| *first.key() == off)?.remove();
        self.ranges.remove_below(piece.end());
        self.cost -= piece.cost();
        self.bytes -= u64::from(piece.len);
        Some(piece)
    }
    /// The pieces that end after `from`, from there on.
    pub fn from(&self, from: u64) -> impl Iterator<Item = &Piece> {
        let before = self.pieces.range(..from).next_back().map(|(_, piece)| piece);
        let before = before.filter(|piece| piece.end() > from);
        before.into_iter().chain(self.pieces.range(from..).map(|(_, piece)| piece)).inspect(|_| step())
    }
    /// Panics if an invariant does not hold; the stream is stored up to `next`.
    pub fn check(&self, next: u64) {
        let mut expected = next + 1;
        let mut ranges = Ranges::default();
        for piece in self.pieces.values() {
            assert!(piece.off >= expected, "beyond the gap, in order");
            expected = piece.end();
            ranges.insert(piece.off, piece.end());
        }
        assert!(ranges.iter().eq(self.ranges.iter()));
        assert_eq!(self.cost, self.pieces.values().map(Piece::cost).sum::<u64>());
        assert_eq!(self.bytes, self.pieces.values().map(|piece| u64::from(piece.len)).sum::<u64>());
    }
}
