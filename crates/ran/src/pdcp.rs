//! PDCP (TS 36.323): numbers the SDUs of a data radio bearer and adds the PDCP header.
//!
//! The header has a 12-bit sequence number: 2 bytes. An SDU gets its number when RLC takes it from the buffer
//! above, so an SDU that an ACK filter or the discard timer (§5.4) removes from the buffer leaves no gap in
//! the numbers. RLC sends at least a part of each SDU in the slot in which it takes it; the discard timer
//! therefore acts on the buffer alone. Left out: header compression (ROHC) and ciphering.

use paceline_net::{Bytes, Instant, Packet, SduQueue};

/// Bytes of the PDCP header with a 12-bit sequence number (TS 36.323 §6.2.4).
pub const HEADER_BYTES: u32 = 2;

/// A PDCP PDU: an SDU with its number.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// COUNT: hyper frame number and sequence number.
    pub count: u32,
    pub packet: Packet,
}

impl Pdu {
    /// Length in bytes with the PDCP header.
    pub fn bytes(&self) -> u32 {
        self.packet.len + HEADER_BYTES
    }
}

/// The transmitting end: its COUNT continues when RLC is re-established.
#[derive(Clone, Debug, Default)]
pub struct Tx {
    next_count: u32,
}

impl Tx {
    /// Takes the next SDU from the buffer above and numbers it.
    pub fn pull(&mut self, now: Instant, above: &mut dyn SduQueue) -> Option<Pdu> {
        let packet = above.pop(now)?;
        let count = self.next_count;
        self.next_count = self.next_count.wrapping_add(1);
        Some(Pdu { count, packet })
    }
}

/// Data available for transmission in the buffer above (TS 36.323 §4.5): SDUs with the headers they will get.
pub fn available(above: &dyn SduQueue) -> Bytes {
    above.bytes() + Bytes(u64::from(HEADER_BYTES) * above.packets() as u64)
}

/// The transmitting end of PDCP with the buffer above, from which RLC takes PDUs.
pub struct Source<'a> {
    pub tx: &'a mut Tx,
    pub buffer: &'a mut dyn SduQueue,
    /// The start of the present slot.
    pub now: Instant,
}

impl Source<'_> {
    /// The next PDU.
    pub fn pull(&mut self) -> Option<Pdu> {
        self.tx.pull(self.now, self.buffer)
    }
}
