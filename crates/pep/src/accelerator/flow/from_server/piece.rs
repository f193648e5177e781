//! The payload of one packet of the server, as it is stored: a simulated length, or a part of the datagram.
//!
//! A piece that is at least half of its datagram shares the datagram's memory; a smaller one is copied. So a
//! piece keeps at most twice its bytes, also where only a small part of a packet was new.

use paceline_net::{Instant, Payload};
use std::sync::Arc;

/// Header fields that the payload of a packet keeps on the way to the client.
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

/// Bytes that a piece costs beside its payload. Chosen: at least the size of [`Piece`].
const PIECE_COST_BYTES: u64 = 64;
/// Bytes that the memory of a datagram costs beside its length: a counted pointer and the reserve of two
/// allocations, and the reserve of the queue or of the tree. Measured with the allocator of glibc, by
/// `tests/accelerator/memory.rs`.
const DATAGRAM_COST_BYTES: u64 = 160;

/// A part of the stream from one packet.
#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Piece {
    pub off: u64,
    pub len: u32,
    /// Bytes of the datagram before the piece.
    pub skip: u32,
    /// TSval of the packet.
    pub timestamp: u32,
    /// When the packet arrived.
    pub at: Instant,
    pub mark: Mark,
    /// None in simulation.
    pub datagram: Option<Arc<Box<[u8]>>>,
}

impl Piece {
    /// The memory of a packet's payload.
    pub fn datagram(payload: Payload) -> Option<Arc<Box<[u8]>>> {
        match payload {
            Payload::Datagram(bytes) => Some(Arc::new(bytes)),
            Payload::Virtual(_) => None,
        }
    }
    pub fn end(&self) -> u64 {
        self.off + u64::from(self.len)
    }
    /// The range `from..until` of the stream as a range of the datagram.
    pub fn place(&self, from: u64, until: u64) -> (usize, usize) {
        let at = self.skip as usize + (from - self.off) as usize;
        (at, at + (until - from) as usize)
    }
    /// The bytes `from..until` of the stream; `None` in simulation.
    pub fn bytes(&self, from: u64, until: u64) -> Option<&[u8]> {
        let (at, end) = self.place(from, until);
        Some(&self.datagram.as_ref()?[at..end])
    }
    /// The part `from..until` of the piece.
    pub fn part(&self, from: u64, until: u64) -> Self {
        let mut part = Self { datagram: self.datagram.clone(), ..*self };
        part.narrow(from, until);
        part
    }
    /// Makes the piece its part `from..until`.
    pub fn narrow(&mut self, from: u64, until: u64) {
        let ahead = (from - self.off) as u32;
        self.mark.push &= until == self.end();
        self.mark.urgent = u16::try_from(u32::from(self.mark.urgent).saturating_sub(ahead)).unwrap_or(0);
        (self.off, self.len, self.skip) = (from, (until - from) as u32, self.skip + ahead);
        if let Some(datagram) = &self.datagram
            && 2 * (self.len as usize) < datagram.len()
        {
            let (at, end) = self.place(from, until);
            (self.datagram, self.skip) = (Some(Arc::new(datagram[at..end].into())), 0);
        }
    }
    /// Bytes of memory, bookkeeping included.
    pub fn cost(&self) -> u64 {
        let datagram = |bytes: &Arc<Box<[u8]>>| bytes.len() as u64 + DATAGRAM_COST_BYTES;
        PIECE_COST_BYTES + self.datagram.as_ref().map_or(u64::from(self.len), datagram)
    }
}
