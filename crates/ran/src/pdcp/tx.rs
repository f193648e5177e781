//! The transmitting end of PDCP, and the buffer above it.

use super::config::PdcpConfig;
use crate::rlc::nr::SduSource;
use paceline_net::{Instant, Packet, SduQueue};
use std::collections::VecDeque;

/// A PDCP PDU: an SDU with its number.
#[derive(Clone, PartialEq, Debug)]
pub struct Pdu {
    /// COUNT: hyper frame number and sequence number.
    pub count: u32,
    header_bytes: u8,
    pub packet: Packet,
}

impl Pdu {
    /// Length in bytes with the headers of PDCP and SDAP.
    pub fn bytes(&self) -> u32 {
        self.packet.len + u32::from(self.header_bytes)
    }
}

/// Data available for transmission above RLC (TS 36.323 §4.5, TS 38.323 §5.6): SDUs with the headers that
/// they will get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    pub bytes: u64,
    pub packets: u64,
}

impl Waiting {
    pub fn is_empty(self) -> bool {
        self.packets == 0
    }
}

/// The transmitting end: its COUNT continues when RLC is re-established.
#[derive(Clone, Debug)]
pub struct Tx {
    next_count: u32,
    header_bytes: u8,
    /// PDUs that a former path did not deliver, in the order of their COUNTs; they go before new SDUs.
    resend: VecDeque<Pdu>,
    resend_bytes: u64,
}

impl Default for Tx {
    fn default() -> Self {
        Self::new(PdcpConfig::default())
    }
}

impl Tx {
    pub fn new(config: PdcpConfig) -> Self {
        let header_bytes = config.header_bytes();
        Self { next_count: 0, header_bytes, resend: VecDeque::new(), resend_bytes: 0 }
    }
    /// The COUNT of the next PDU.
    pub fn next_to_send(&self) -> u32 {
        self.resend.front().map_or(self.next_count, |pdu| pdu.count)
    }
    /// Bytes of the headers of an SDU.
    pub fn header_bytes(&self) -> u32 {
        u32::from(self.header_bytes)
    }
    /// Number of packets held.
    pub fn held(&self) -> u64 {
        self.resend.len() as u64
    }
    /// Data available for transmission here and in the buffer above.
    pub fn waiting(&self, above: &dyn SduQueue) -> Waiting {
        let packets = above.packets() as u64;
        Waiting {
            bytes: self.resend_bytes + above.bytes().0 + u64::from(self.header_bytes) * packets,
            packets: self.held() + packets,
        }
    }
    /// Takes the next PDU: one to send again, or the next SDU from the buffer above.
    pub fn pull(&mut self, now: Instant, above: &mut dyn SduQueue) -> Option<Pdu> {
        if let Some(pdu) = self.resend.pop_front() {
            self.resend_bytes -= u64::from(pdu.bytes());
            return Some(pdu);
        }
        let packet = above.pop(now)?;
        let count = self.next_count;
        self.next_count = self.next_count.wrapping_add(1);
        Some(Pdu { count, header_bytes: self.header_bytes, packet })
    }
    /// PDUs that RLC did not deliver, in the order of their COUNTs, go before those that wait already: those
    /// have higher COUNTs.
    pub fn send_again(&mut self, undelivered: Vec<Pdu>) {
        for pdu in undelivered.into_iter().rev() {
            debug_assert!(self.resend.front().is_none_or(|first| pdu.count < first.count));
            self.resend_bytes += u64::from(pdu.bytes());
            self.resend.push_front(pdu);
        }
    }
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
    pub fn waiting(&self) -> Waiting {
        self.tx.waiting(self.buffer)
    }
}

impl SduSource<Pdu> for Source<'_> {
    fn pull(&mut self) -> Option<(Pdu, u32)> {
        let pdu = Self::pull(self)?;
        let bytes = pdu.bytes();
        Some((pdu, bytes))
    }
    fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Bytes, DropTail, TcpHeader};

    #[test]
    fn pdus_to_send_again_go_first_in_the_order_of_their_counts() {
        let address = "198.18.0.1".parse().unwrap();
        let packet = || Packet::tcp(address, address, TcpHeader::default());
        let mut buffer = DropTail::new(Bytes(1 << 20));
        (0..5).for_each(|_| buffer.push(Instant::ZERO, packet()));
        let mut tx = Tx::default();
        let mut pull = |tx: &mut Tx, count| -> Vec<Pdu> {
            (0..count).filter_map(|_| tx.pull(Instant::ZERO, &mut buffer)).collect()
        };
        let sent = pull(&mut tx, 3);
        assert_eq!(tx.next_to_send(), 3);
        tx.send_again(sent[1..].to_vec());
        tx.send_again(sent[..1].to_vec());
        assert_eq!(tx.next_to_send(), 0);
        assert_eq!(tx.waiting(&DropTail::new(Bytes(0))), Waiting { bytes: 3 * 42, packets: 3 });
        let counts: Vec<u32> = pull(&mut tx, 9).iter().map(|pdu| pdu.count).collect();
        assert_eq!((counts, tx.held(), tx.next_to_send()), (vec![0, 1, 2, 3, 4], 0, 5));
    }
}
