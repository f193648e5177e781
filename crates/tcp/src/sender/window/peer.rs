//! SND.WND: the window that the peer advertises (RFC 9293 §3.10.7.4).

use paceline_net::SeqNumber;

#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct PeerWindow {
    /// Bytes.
    size: u64,
    /// SND.UNA + SND.WND, as an offset.
    end: u64,
    /// The largest size seen.
    largest: u64,
    /// SND.WL1: the sequence number of the segment that last updated the window.
    seq: SeqNumber,
}

impl PeerWindow {
    /// The size in bytes that the peer advertised last.
    pub fn size(&self) -> u64 {
        self.size
    }
    /// The offset of the first byte that the peer does not accept yet.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// The largest size seen, in bytes.
    pub fn largest(&self) -> u64 {
        self.largest
    }
    /// The segment with this number advertises `size` bytes from the offset `una` on.
    pub fn set(&mut self, seq: SeqNumber, una: u64, size: u64) {
        *self = Self { size, end: una + size, largest: self.largest.max(size), seq };
    }
    /// The same, unless a newer segment has advertised; `advances`: it acknowledges new data. Returns whether
    /// it was taken.
    pub fn update(&mut self, seq: SeqNumber, una: u64, size: u64, advances: bool) -> bool {
        let newer = seq > self.seq || advances;
        let taken = newer || (seq == self.seq && (size > self.size || size == 0));
        if taken {
            self.set(seq, una, size);
        }
        taken
    }
}
