//! PDCP (TS 36.323): numbers and heads the SDUs of a data radio bearer as they go down to RLC.
//!
//! The header is that of a 12-bit sequence number: 2 bytes. Numbering happens when RLC takes the SDU, behind the
//! buffer above: what an ACK filter or the discard timer (§5.4) takes from there leaves no gap. What RLC has taken
//! is sent in the same TTI, at least in part, so that the timer no longer concerns it. Left out: ROHC, ciphering.

use paceline_net::{Bytes, Instant, Packet, SduQueue};

/// PDCP header with a 12-bit sequence number (TS 36.323 §6.2.4).
pub const HEADER: u32 = 2;

/// An SDU with its number.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// COUNT: hyper frame number and sequence number.
    pub count: u32,
    /// The IP packet.
    pub packet: Packet,
}

impl Pdu {
    /// Length with the PDCP header.
    pub fn bytes(&self) -> u32 {
        self.packet.len + HEADER
    }
}

/// The transmitting entity.
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
    /// Data available for transmission in the buffer above (TS 36.323 §4.5): SDUs with their headers to be.
    pub fn available(&self, above: &dyn SduQueue) -> Bytes {
        above.bytes() + Bytes(u64::from(HEADER) * above.packets() as u64)
    }
}
