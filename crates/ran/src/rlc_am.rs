//! RLC acknowledged mode (TS 36.322): every SDU arrives, in order and once, or the radio link fails.
//!
//! An [`Am`] is one direction of a bearer: the transmitting side of one entity (`tx`, §5.1.3.1, §5.2.1, §5.2.2),
//! the receiving side of its peer (`rx`, §5.1.3.2), and the SDUs between them. Its STATUS PDUs (`status`, §5.2.3)
//! travel with the blocks of the other direction. 10-bit sequence numbers, window 512; segmentation,
//! concatenation, re-segmentation, polling and all timers.
//!
//! The SDUs form one stream of bytes, and a PDU is a stretch of it; what is in flight carries positions, no
//! packets. Each packet stays in `sdus` from the moment it is numbered until the receiver has every byte up to its
//! end, or until the entities are re-established: so it leaves once, whatever is lost or repeated on the way.
//!
//! Left out: what re-establishment can save (§5.4 delivers complete SDUs, TS 36.323 §5.2.1.1 sends the others
//! again); the indication of delivery to upper layers; reordering of STATUS PDUs beyond what HARQ does to them.

mod rx;
mod sdus;
mod status;
#[cfg(test)]
mod tests;
mod tx;

pub use status::{Nack, Status};

use crate::rlc_um::Reassembled;
use crate::slot::Tti;
use paceline_net::{Packet, SduQueue};
use rx::Rx;
use sdus::Sdus;
use tx::Tx;

/// Number of sequence numbers.
const MODULUS: u16 = 1024;
/// AM_Window_Size (§7.2).
const WINDOW: u16 = 512;
/// Largest value of a length indicator: 11 bits. A longer element can only be the last of its PDU.
const MAX_LENGTH_INDICATOR: u32 = 2047;
/// Largest data field: a segment offset has 15 bits, and all ones is reserved.
const MAX_DATA: u32 = 0x7FFE;

/// The parameters of RLC-Config for AM (TS 36.331 §6.3.2), times in TTIs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AmConfig {
    /// t-PollRetransmit.
    pub t_poll_retransmit: u64,
    /// pollPDU; none for infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte in bytes; none for infinity.
    pub poll_byte: Option<u64>,
    /// maxRetxThreshold.
    pub max_retx_threshold: u32,
    /// t-StatusProhibit.
    pub t_status_prohibit: u64,
}

/// Header bytes of a PDU, or of a PDU segment, with this many SDU elements (§6.2.1.4 and §6.2.1.5).
pub const fn header_len(segment: bool, elements: u32) -> u32 {
    let fixed = if segment { 4 } else { 2 };
    fixed + (3 * elements.saturating_sub(1)).div_ceil(2)
}

/// Distance of `sn` above `base`, modulo the number space (§7.1).
const fn distance(sn: u16, base: u16) -> u16 {
    (sn + MODULUS - base) % MODULUS
}
const fn plus(sn: u16, offset: u16) -> u16 {
    (sn + offset) % MODULUS
}

/// An AMD PDU, or a segment of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Sequence number.
    pub sn: u16,
    /// Where the PDU, not its segment, begins in the stream of SDUs.
    start: u64,
    /// SO: where the segment begins in the PDU's data field.
    pub so: u32,
    /// Bytes of data.
    pub data: u32,
    /// Whether the PDU's last byte is in it (LSF, or no segment at all).
    pub last: bool,
    /// Whether it is a segment (RF).
    pub segment: bool,
    /// P: the peer is asked for a STATUS PDU.
    pub poll: bool,
    /// Whether these bytes were sent before.
    pub retransmission: bool,
    /// Length with its header.
    pub len: u32,
}

/// Disjoint ranges of byte positions in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn first(&self) -> Option<(u32, u32)> {
        self.0.first().copied()
    }
    fn bytes(&self) -> u32 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }
    fn contains(&self, from: u32, to: u32) -> bool {
        self.0.iter().any(|(a, b)| *a <= from && to <= *b)
    }
    /// Adds a range, merged with those that it touches.
    fn insert(&mut self, mut from: u32, mut to: u32) {
        self.0.retain(|(a, b)| {
            let apart = *b < from || to < *a;
            if !apart {
                (from, to) = (from.min(*a), to.max(*b));
            }
            apart
        });
        let at = self.0.partition_point(|(a, _)| *a < from);
        self.0.insert(at, (from, to));
    }
    /// Removes the first `bytes` bytes, which lie in the first range.
    fn remove_front(&mut self, bytes: u32) {
        self.0[0].0 += bytes;
        if self.0[0].0 == self.0[0].1 {
            self.0.remove(0);
        }
    }
}

/// One direction of an AM bearer.
#[derive(Clone, Debug)]
pub struct Am {
    tx: Tx,
    rx: Rx,
    sdus: Sdus,
}

impl Am {
    /// Two entities that have exchanged nothing; t-Reordering lasts this many TTIs.
    pub fn new(config: AmConfig, t_reordering: u64) -> Self {
        Self { tx: Tx::new(config), rx: Rx::new(config, t_reordering), sdus: Sdus::default() }
    }
    /// Bytes that wait to be sent, repeated ones included (§4.5), without RLC headers.
    pub fn available(&self, above: &dyn SduQueue) -> u64 {
        self.tx.available(above, &self.sdus)
    }
    /// Bytes that wait below the buffer: repetitions and the rest of an SDU.
    pub fn available_below(&self) -> u64 {
        self.tx.available_below(&self.sdus)
    }
    /// Whether the window lets anything of that go out.
    pub fn sendable(&self, above: &dyn SduQueue) -> bool {
        self.tx.sendable(above, &self.sdus)
    }
    /// PDUs that wait to be repeated, in whole or in part.
    pub fn retransmissions_pending(&self) -> u32 {
        self.tx.retransmissions_pending()
    }
    /// SDUs of which a part was sent and a part was not.
    pub fn partial(&self) -> u64 {
        self.tx.partial(&self.sdus)
    }
    /// Packets held.
    pub fn held(&self) -> u64 {
        self.sdus.held()
    }
    /// Length of the STATUS PDU that may be sent now; zero if there is none.
    pub fn status_len(&self) -> u32 {
        self.rx.status_len()
    }
    /// The STATUS PDU, cut to `room` bytes.
    pub fn pull_status(&mut self, tti: Tti, room: u32) -> Option<Status> {
        self.rx.pull_status(tti, room)
    }
    /// A data PDU of at most `room` bytes, repetitions first.
    pub fn pull(&mut self, tti: Tti, above: &mut dyn SduQueue, room: u32) -> Option<Pdu> {
        self.tx.pull(tti, above, &mut self.sdus, room)
    }
    /// A data PDU arrives at the receiver.
    pub fn receive(&mut self, tti: Tti, pdu: &Pdu, out: &mut Vec<Reassembled>) {
        self.rx.receive(tti, pdu);
        self.sdus.deliver(self.rx.in_sequence(), out);
    }
    /// A STATUS PDU arrives at the transmitter.
    pub fn on_status(&mut self, status: &Status) {
        self.tx.on_status(status, &mut self.sdus);
    }
    /// Whether [`Am::tick`] may do something.
    pub fn due(&self, tti: Tti) -> bool {
        self.rx.due(tti) || self.tx.due(tti)
    }
    /// Time passes at both ends.
    pub fn tick(&mut self, tti: Tti, above: &dyn SduQueue) {
        self.rx.tick(tti);
        self.tx.tick(tti, above, &self.sdus);
    }
    /// Whether nothing here needs time to pass.
    pub fn idle(&self) -> bool {
        self.tx.idle() && self.rx.idle()
    }
    /// Whether a PDU was repeated maxRetxThreshold times in vain.
    pub fn failed(&self) -> bool {
        self.tx.failed()
    }
    /// Re-establishes both ends (§5.4) and gives out the packets that were numbered and not delivered.
    pub fn reestablish(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.tx.reestablish();
        self.rx.reestablish();
        std::mem::take(&mut self.sdus).into_packets()
    }
}
