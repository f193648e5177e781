//! The receiving end of PDCP (TS 38.323 §5.2.2): delivery in the order of COUNTs.
//!
//! In LTE RLC delivers in order, and PDCP passes SDUs on. Left out: `outOfOrderDelivery`, and reordering
//! during LTE's re-establishment, after which RLC's SDUs are in order as well.

use super::config::PdcpConfig;
use super::tx::Pdu;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Packet;
use std::collections::VecDeque;

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Rx {
    /// Whether SDUs have to be ordered: not in LTE.
    orders: bool,
    /// t-Reordering; none for infinity.
    t_reordering: Option<SlotSpan>,
    /// RX_DELIV: the first COUNT that was not delivered and for which the receiver waits.
    deliv: u32,
    /// SDUs from RX_DELIV to RX_NEXT, those received. The first is always missing.
    stored: VecDeque<Option<Packet>>,
    held: u64,
    /// RX_REORD: the COUNT after the one that started t-Reordering.
    reord: u32,
    expires_at: Option<Slot>,
}

impl Rx {
    pub fn new(config: PdcpConfig) -> Self {
        let (orders, t_reordering) = match config {
            PdcpConfig::Lte => (false, None),
            PdcpConfig::Nr(nr) => (true, nr.t_reordering),
        };
        let stored = VecDeque::new();
        Self { orders, t_reordering, deliv: 0, stored, held: 0, reord: 0, expires_at: None }
    }
    /// Number of packets held.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// The slot in which t-Reordering expires.
    pub fn expires_at(&self) -> Option<Slot> {
        self.expires_at
    }
    /// RX_NEXT: the COUNT after the highest received.
    fn next(&self) -> u32 {
        self.deliv.wrapping_add(self.stored.len() as u32)
    }

    /// A PDU arrives (§5.2.2.1): SDUs in order go to `deliver`. Returns the SDU if its COUNT is below
    /// RX_DELIV or was received before: it is discarded.
    pub fn receive(&mut self, slot: Slot, pdu: Pdu, mut deliver: impl FnMut(Packet)) -> Option<Packet> {
        if !self.orders {
            deliver(pdu.packet);
            return None;
        }
        let offset = pdu.count.wrapping_sub(self.deliv);
        if offset > u32::MAX / 2 {
            return Some(pdu.packet);
        }
        if offset == 0 {
            deliver(pdu.packet);
            if self.stored.is_empty() {
                self.deliv = self.deliv.wrapping_add(1);
                return None;
            }
            self.stored.pop_front();
            self.deliv = self.deliv.wrapping_add(1);
            self.deliver_consecutive(&mut deliver);
        } else {
            let offset = offset as usize;
            if self.stored.len() <= offset {
                self.stored.resize(offset + 1, None);
            }
            if self.stored[offset].is_some() {
                return Some(pdu.packet);
            }
            self.stored[offset] = Some(pdu.packet);
            self.held += 1;
        }
        self.update_timer(slot);
        None
    }
    /// Handles the expiry of t-Reordering (§5.2.2.2); does nothing before it.
    pub fn check_timer(&mut self, slot: Slot, mut deliver: impl FnMut(Packet)) {
        if self.expires_at.is_none_or(|at| at > slot) {
            return;
        }
        self.expires_at = None;
        while self.reord.wrapping_sub(self.deliv).wrapping_sub(1) < u32::MAX / 2 {
            self.deliver_first(&mut deliver);
        }
        self.deliver_consecutive(&mut deliver);
        self.update_timer(slot);
    }
    /// Delivers all SDUs held; the next SDU to arrive has this COUNT (TS 38.323 §5.1.2, for UM bearers).
    pub fn restart_at(&mut self, count: u32, mut deliver: impl FnMut(Packet)) {
        self.stored.drain(..).flatten().for_each(&mut deliver);
        self.held = 0;
        self.deliv = count;
        self.expires_at = None;
    }

    fn deliver_first(&mut self, deliver: &mut impl FnMut(Packet)) {
        if let Some(packet) = self.stored.pop_front().flatten() {
            self.held -= 1;
            deliver(packet);
        }
        self.deliv = self.deliv.wrapping_add(1);
    }
    fn deliver_consecutive(&mut self, deliver: &mut impl FnMut(Packet)) {
        while self.stored.front().is_some_and(Option::is_some) {
            self.deliver_first(deliver);
        }
    }
    fn update_timer(&mut self, slot: Slot) {
        let passed = self.deliv.wrapping_sub(self.reord) < u32::MAX / 2; // RX_DELIV >= RX_REORD
        if passed {
            self.expires_at = None;
        }
        if self.expires_at.is_none() && !self.stored.is_empty() {
            self.reord = self.next();
            self.expires_at = self.t_reordering.map(|timer| slot + timer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{NrPdcp, PdcpSn};
    use super::super::tx::Tx;
    use super::*;
    use paceline_net::{Bytes, DropTail, Instant, SduQueue, SeqNumber, Stream, TcpHeader};

    /// PDUs with the COUNTs 0, 1, ... whose packets carry their COUNT.
    fn pdus(count: u32) -> Vec<Pdu> {
        let address = "198.18.0.1".parse().unwrap();
        let mut buffer = DropTail::new(Bytes(1 << 30));
        for seq in 0..count {
            let tcp = TcpHeader { seq: SeqNumber(seq), ..TcpHeader::default() };
            buffer.push(Instant::ZERO, Packet::tcp(address, address, tcp));
        }
        let mut tx = Tx::default();
        (0..count).filter_map(|_| tx.pull(Instant::ZERO, &mut buffer)).collect()
    }
    fn nr(t_reordering: Option<u64>) -> Rx {
        let t_reordering = t_reordering.map(SlotSpan);
        Rx::new(PdcpConfig::Nr(NrPdcp { sn: PdcpSn::Eighteen, sdap_header: false, t_reordering }))
    }
    fn number(packet: &Packet) -> u32 {
        packet.tcp_header().unwrap().seq.0
    }

    #[test]
    fn sdus_wait_for_a_missing_one_until_t_reordering_expires() {
        let (pdus, mut rx, mut out) = (pdus(8), nr(Some(10)), Vec::new());
        let mut receive = |rx: &mut Rx, slot, count: usize| {
            rx.receive(Slot(slot), pdus[count].clone(), |packet| out.push(number(&packet))).is_some()
        };
        for (slot, count) in [(0, 0), (1, 2), (2, 5), (3, 3)] {
            assert!(!receive(&mut rx, slot, count));
        }
        assert!(receive(&mut rx, 3, 5), "5 was received before");
        assert!(receive(&mut rx, 3, 0), "0 was delivered");
        assert_eq!((rx.held(), rx.expires_at()), (3, Some(Slot(11))));
        assert!(!receive(&mut rx, 4, 1));
        // RX_REORD was 3: the timer starts again for the SDUs below 6.
        assert_eq!((rx.held(), rx.expires_at()), (1, Some(Slot(14))));
        rx.check_timer(Slot(13), |_| panic!("not yet"));
        let mut expired = Vec::new();
        rx.check_timer(Slot(14), |packet| expired.push(number(&packet)));
        assert_eq!((expired, rx.held(), rx.expires_at()), (vec![5], 0, None));
        assert!(receive(&mut rx, 15, 4), "it is too late");
        assert!(!receive(&mut rx, 15, 6));
        assert_eq!(out, [0, 1, 2, 3, 6]);
    }

    #[test]
    fn without_t_reordering_the_receiver_waits_for_ever() {
        let (pdus, mut rx) = (pdus(3), nr(None));
        rx.receive(Slot(0), pdus[2].clone(), |_| panic!("0 is missing"));
        assert_eq!((rx.expires_at(), rx.held()), (None, 1));
        let mut out = Vec::new();
        rx.restart_at(3, |packet| out.push(number(&packet)));
        assert_eq!((out, rx.held()), (vec![2], 0));
    }

    #[test]
    fn lte_passes_sdus_on() {
        let (pdus, mut rx, mut out) = (pdus(2), Rx::new(PdcpConfig::Lte), Vec::new());
        pdus.into_iter().rev().for_each(|pdu| {
            assert!(rx.receive(Slot(0), pdu, |packet| out.push(number(&packet))).is_none());
        });
        assert_eq!((out, rx.held()), (vec![1, 0], 0));
    }

    #[test]
    fn any_order_with_copies_and_losses_comes_out_in_order_and_once() {
        for seed in 0..40 {
            println!("seed {seed}");
            let mut random = Stream::new(seed, "pdcp");
            let (pdus, mut rx, mut out) = (pdus(500), nr(Some(30)), Vec::new());
            let mut arrivals: Vec<(u64, u32)> = Vec::new();
            let mut lost = Vec::new();
            for count in 0..500 {
                if random.chance(0.05) {
                    lost.push(count);
                    continue;
                }
                for _ in 0..1 + random.below(2) {
                    arrivals.push((u64::from(count) + random.below(30), count));
                }
            }
            arrivals.sort_unstable();
            let (mut discarded, received) = (0, arrivals.len() as u64);
            for (slot, count) in arrivals {
                rx.check_timer(Slot(slot), |packet| out.push(number(&packet)));
                let pdu = pdus[count as usize].clone();
                discarded += u64::from(rx.receive(Slot(slot), pdu, |p| out.push(number(&p))).is_some());
            }
            rx.check_timer(Slot(10_000), |packet| out.push(number(&packet)));
            rx.check_timer(Slot(20_000), |packet| out.push(number(&packet)));
            assert_eq!((rx.held(), out.len() as u64 + discarded), (0, received));
            assert!(out.windows(2).all(|pair| pair[0] < pair[1]), "in order, once");
            assert_eq!(out.len() + lost.len(), 500, "delays are within t-Reordering");
        }
    }
}
