//! The transmitting end of PDCP, and the buffer above it.
//!
//! During the overlap of two paths a second path takes SDUs as well: each SDU that one path takes waits as a
//! copy for the other. The packet of an SDU with copies stays here until the first of them arrives.

use super::config::PdcpConfig;
use super::pdu::{Content, Pdu, StatusReport};
use super::shared::Shared;
use crate::rlc::nr::SduSource;
use paceline_net::{Instant, Packet, SduQueue};
use std::collections::VecDeque;
use std::sync::Arc;

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

/// The path that takes SDUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leg {
    /// The path of the bearer.
    #[default]
    Main,
    /// The second path during an overlap.
    Second,
}

/// PDUs that have a number and wait for a path, in the order of their COUNTs.
#[derive(Clone, Debug, Default)]
struct Numbered {
    pdus: VecDeque<Pdu>,
    bytes: u64,
}

impl Numbered {
    fn push(&mut self, pdu: Pdu) {
        self.bytes += u64::from(pdu.bytes());
        self.pdus.push_back(pdu);
    }
    fn pop(&mut self) -> Option<Pdu> {
        let pdu = self.pdus.pop_front()?;
        self.bytes -= u64::from(pdu.bytes());
        Some(pdu)
    }
    /// Adds PDUs, which may lie below the others.
    fn merge(&mut self, pdus: Vec<Pdu>) {
        pdus.into_iter().for_each(|pdu| self.push(pdu));
        self.pdus.make_contiguous().sort_by_key(|pdu| pdu.count);
    }
}

/// The transmitting end: its COUNT continues when RLC is re-established.
#[derive(Clone, Debug)]
pub struct Tx {
    next_count: u32,
    header_bytes: u8,
    /// A status report about the other direction, which goes before everything else.
    report: Option<Pdu>,
    /// PDUs that a former path did not deliver; they go before new SDUs.
    main: Numbered,
    /// During an overlap the PDUs of the second path.
    second: Option<Numbered>,
    pub shared: Shared,
}

impl Default for Tx {
    fn default() -> Self {
        Self::new(PdcpConfig::default())
    }
}

impl Tx {
    pub fn new(config: PdcpConfig) -> Self {
        Self {
            next_count: 0,
            header_bytes: config.header_bytes(),
            report: None,
            main: Numbered::default(),
            second: None,
            shared: Shared::default(),
        }
    }
    /// The COUNT of the next PDU.
    pub fn next_to_send(&self) -> u32 {
        self.main.pdus.front().map_or(self.next_count, |pdu| pdu.count)
    }
    /// The COUNT of the next SDU from the buffer above.
    pub fn next_count(&self) -> u32 {
        self.next_count
    }
    /// Bytes of the headers of an SDU.
    pub fn header_bytes(&self) -> u32 {
        u32::from(self.header_bytes)
    }
    /// Number of packets held.
    pub fn held(&self) -> u64 {
        self.main.pdus.iter().filter(|pdu| pdu.packet().is_some()).count() as u64 + self.shared.len()
    }
    /// Data available for transmission on a path, here and in the buffer above.
    pub fn waiting(&self, leg: Leg, above: &dyn SduQueue) -> Waiting {
        let (numbered, report) = match (leg, &self.second) {
            (Leg::Main, _) => (&self.main, &self.report),
            (Leg::Second, Some(second)) => (second, &None),
            (Leg::Second, None) => return Waiting::default(),
        };
        let (bytes, packets) = above.backlog();
        let (bytes, packets) = (bytes.0, packets as u64);
        let report = report.as_ref().map_or((0, 0), |report| (u64::from(report.bytes()), 1));
        Waiting {
            bytes: report.0 + numbered.bytes + bytes + u64::from(self.header_bytes) * packets,
            packets: report.1 + numbered.pdus.len() as u64 + packets,
        }
    }
    /// Takes the next PDU for a path: a status report, one to send again, or the next SDU from the buffer
    /// above.
    pub fn pull(&mut self, leg: Leg, now: Instant, above: &mut dyn SduQueue) -> Option<Pdu> {
        let numbered = match leg {
            Leg::Main => self.report.take().or_else(|| self.main.pop()),
            Leg::Second => self.second.as_mut()?.pop(),
        };
        if numbered.is_some() {
            return numbered;
        }
        let packet = above.pop(now)?;
        let count = self.next_count;
        self.next_count = self.next_count.wrapping_add(1);
        let mut pdu = Pdu { count, header_bytes: self.header_bytes, content: Content::Sdu(packet) };
        if let Some(second) = &mut self.second {
            let copy = self.shared.share(&mut pdu);
            match leg {
                Leg::Main => second.push(copy),
                Leg::Second => self.main.push(copy),
            }
        }
        Some(pdu)
    }
    /// Queues a status report about the other direction, in place of an older one.
    pub fn send_report(&mut self, report: StatusReport) {
        let content = Content::Report(Arc::new(report));
        self.report = Some(Pdu { count: 0, header_bytes: 0, content });
    }
    /// A PDU that has its number already waits behind the others.
    pub fn pass_on(&mut self, pdu: Pdu) {
        self.main.push(pdu);
    }
    /// Takes the PDUs with a number that wait.
    pub fn take_numbered(&mut self) -> Vec<Pdu> {
        std::mem::take(&mut self.main).pdus.into()
    }
    /// PDUs that RLC did not deliver go before new SDUs, in the order of their COUNTs.
    pub fn send_again(&mut self, undelivered: Vec<Pdu>) {
        self.main.merge(undelivered);
    }
    /// A status report arrives: copies of SDUs that have arrived are not sent (TS 36.323 §5.3.2, TS 38.323
    /// §5.4.2). Returns their number.
    pub fn on_report(&mut self, report: &StatusReport) -> u64 {
        let before = self.main.pdus.len();
        let Self { main, shared, .. } = self;
        main.pdus.retain(|pdu| {
            let sent = pdu.packet().is_some() || shared.has(pdu.count) || !report.confirms(pdu.count);
            main.bytes -= if sent { 0 } else { u64::from(pdu.bytes()) };
            sent
        });
        (before - main.pdus.len()) as u64
    }

    /// PDUs that wait to be sent again are dropped. Calls `lost` with the packets of which no copy is left.
    pub fn drop_numbered(&mut self, lost: impl FnMut(Packet)) {
        let main = std::mem::take(&mut self.main);
        main.pdus.into_iter().filter_map(|pdu| self.shared.lose(pdu)).for_each(lost);
    }
    /// Deletes the copies of delivered SDUs that wait to be sent again.
    pub fn delete_copies(&mut self) {
        let Self { main, shared, .. } = self;
        let is_copy = |pdu: &Pdu| matches!(pdu.content, Content::Copy(_));
        main.pdus.retain(|pdu| pdu.packet().is_some() || is_copy(pdu) && shared.has(pdu.count));
        main.bytes = main.pdus.iter().map(|pdu| u64::from(pdu.bytes())).sum();
    }
    /// A second path begins to take SDUs: those with a number that wait go to both.
    pub fn begin_overlap(&mut self) {
        let mut second = Numbered::default();
        for pdu in &mut self.main.pdus {
            second.push(self.shared.share(pdu));
        }
        self.second = Some(second);
    }
    /// The second path becomes the only one. Calls `lost` with the packets of which no copy is left.
    pub fn confirm_overlap(&mut self, lost: impl FnMut(Packet)) {
        let Some(second) = self.second.take() else { return };
        let main = std::mem::replace(&mut self.main, second);
        main.pdus.into_iter().filter_map(|pdu| self.shared.lose(pdu)).for_each(lost);
    }
    /// The second path ends. Calls `lost` with the packets of which no copy is left.
    pub fn cancel_overlap(&mut self, lost: impl FnMut(Packet)) {
        let Some(second) = self.second.take() else { return };
        second.pdus.into_iter().filter_map(|pdu| self.shared.lose(pdu)).for_each(lost);
    }
}

/// The transmitting end of PDCP with the buffer above, from which RLC of a path takes PDUs.
pub struct Source<'a> {
    pub tx: &'a mut Tx,
    pub buffer: &'a mut dyn SduQueue,
    pub leg: Leg,
    /// The start of the present slot.
    pub now: Instant,
}

impl Source<'_> {
    /// The next PDU.
    pub fn pull(&mut self) -> Option<Pdu> {
        self.tx.pull(self.leg, self.now, self.buffer)
    }
    pub fn waiting(&self) -> Waiting {
        self.tx.waiting(self.leg, self.buffer)
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
            (0..count).filter_map(|_| tx.pull(Leg::Main, Instant::ZERO, &mut buffer)).collect()
        };
        let sent = pull(&mut tx, 3);
        assert_eq!(tx.next_to_send(), 3);
        tx.send_again(sent[1..].to_vec());
        tx.send_again(sent[..1].to_vec());
        assert_eq!(tx.next_to_send(), 0);
        assert_eq!(tx.waiting(Leg::Main, &DropTail::new(Bytes(0))), Waiting { bytes: 3 * 42, packets: 3 });
        let counts: Vec<u32> = pull(&mut tx, 9).iter().map(|pdu| pdu.count).collect();
        assert_eq!((counts, tx.held(), tx.next_to_send()), (vec![0, 1, 2, 3, 4], 0, 5));
    }
}
