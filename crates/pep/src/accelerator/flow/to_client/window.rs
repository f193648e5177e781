//! The receive window that the client advertises.

use paceline_net::SeqNumber;

#[derive(Debug)]
pub(in crate::accelerator) struct ClientWindow {
    /// Right edge as a stream offset, and size in bytes.
    edge: u64,
    size: u32,
    /// Sequence number of the segment that advertised it (SND.WL1 of RFC 9293).
    wl1: SeqNumber,
}

/// The changes of the window by a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct WindowChange {
    /// The segment advertises the same size.
    pub same_size: bool,
    /// The segment moves the right edge forward.
    pub advances: bool,
    /// Data may be sent again: the edge moved forward, or a zero window opened.
    pub opens: bool,
}

impl ClientWindow {
    pub fn new(edge: u64, size: u64, wl1: SeqNumber) -> Self {
        Self { edge, size: size as u32, wl1 } // at most 2^30: RFC 7323, section 2.3
    }
    pub fn edge(&self) -> u64 {
        self.edge
    }
    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }
    pub fn is_closed(&self) -> bool {
        self.size == 0
    }
    /// A segment with acknowledgment `ack` and number `seq` advertises `size` bytes; `una` is the highest
    /// acknowledgment before it. Beside the test of RFC 9293, section 3.10.7.4, an edge that moves forward is
    /// accepted: an injected sequence number must not close the window for good.
    pub fn update(&mut self, una: u64, ack: u64, size: u64, seq: SeqNumber) -> WindowChange {
        let edge = ack + size;
        let (same_size, advances) = (size == self.size(), edge > self.edge);
        let accepted = ack > una || ack == una && (seq >= self.wl1 || advances);
        let opens = accepted && (advances || size > 0 && self.size == 0);
        if accepted {
            (self.edge, self.size, self.wl1) = (edge, size as u32, seq);
        }
        WindowChange { same_size, advances, opens }
    }
}
