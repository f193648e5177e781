//! The receiving end of PDCP (TS 36.323 §5.1.2, TS 38.323 §5.2.2): delivery in the order of COUNTs, once.
//!
//! In LTE RLC delivers in order, and PDCP passes SDUs on, gaps and all. While two paths overlap, or SDUs wait
//! for others since the path changed, LTE reorders as well (TS 36.323 §5.1.2.1.4). Left out:
//! `outOfOrderDelivery`.

use super::config::PdcpConfig;
use super::pdu::StatusReport;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Packet;
use std::collections::VecDeque;

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Rx {
    config: PdcpConfig,
    /// t-Reordering; none for infinity.
    t_reordering: Option<SlotSpan>,
    /// Whether SDUs arrive on two paths.
    pub overlap: bool,
    /// RLC may deliver SDUs below this COUNT out of order.
    unordered_below: u32,
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
    /// A receiver; `lte_reordering` is t-Reordering of LTE, where SDUs are reordered.
    pub fn new(config: PdcpConfig, lte_reordering: Option<SlotSpan>) -> Self {
        let t_reordering = match config {
            PdcpConfig::Lte => lte_reordering,
            PdcpConfig::Nr(nr) => nr.t_reordering,
        };
        Self {
            config,
            t_reordering,
            overlap: false,
            unordered_below: 0,
            deliv: 0,
            stored: VecDeque::new(),
            held: 0,
            reord: 0,
            expires_at: None,
        }
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
    /// Whether SDUs wait for those with lower COUNTs.
    fn orders(&self) -> bool {
        let unordered = self.deliv.wrapping_sub(self.unordered_below) > u32::MAX / 2;
        self.config != PdcpConfig::Lte || self.overlap || unordered || !self.stored.is_empty()
    }
    /// A path sends SDUs below this COUNT again after higher ones: RLC delivers them out of order.
    pub fn expect_unordered_below(&mut self, count: u32) {
        self.unordered_below = count;
    }
    /// The status report (TS 36.323 §5.3.1, TS 38.323 §5.4.1).
    pub fn report(&self) -> StatusReport {
        let arrived = self.stored.iter().skip(1).map(Option::is_some);
        StatusReport::new(self.config, self.deliv, arrived)
    }

    /// An SDU arrives (§5.2.2.1): SDUs in order go to `deliver`. Returns the SDU if its COUNT is below
    /// RX_DELIV or was received before: it is discarded.
    pub fn receive(
        &mut self,
        slot: Slot,
        count: u32,
        packet: Packet,
        mut deliver: impl FnMut(Packet),
    ) -> Option<Packet> {
        let offset = count.wrapping_sub(self.deliv);
        if offset > u32::MAX / 2 {
            return Some(packet);
        }
        if !self.orders() {
            deliver(packet);
            self.deliv = count.wrapping_add(1);
            return None;
        }
        if offset == 0 {
            deliver(packet);
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
                return Some(packet);
            }
            self.stored[offset] = Some(packet);
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
    /// No SDU below this COUNT will arrive: those held below it are delivered (TS 38.323 §5.1.2, for UM
    /// bearers).
    pub fn skip_to(&mut self, slot: Slot, count: u32, mut deliver: impl FnMut(Packet)) {
        while count.wrapping_sub(self.deliv).wrapping_sub(1) < u32::MAX / 2 {
            if self.stored.is_empty() {
                self.deliv = count;
                break;
            }
            self.deliver_first(&mut deliver);
        }
        self.deliver_consecutive(&mut deliver);
        self.update_timer(slot);
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
    use super::super::pdu::Pdu;
    use super::super::tx::{Leg, Tx};
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
        (0..count).filter_map(|_| tx.pull(Leg::Main, Instant::ZERO, &mut buffer)).collect()
    }
    fn nr(t_reordering: Option<u64>) -> Rx {
        let t_reordering = t_reordering.map(SlotSpan);
        Rx::new(PdcpConfig::Nr(NrPdcp { sn: PdcpSn::Eighteen, sdap_header: false, t_reordering }), None)
    }
    fn number(packet: &Packet) -> u32 {
        packet.tcp_header().unwrap().seq.0
    }
    fn receive(rx: &mut Rx, slot: u64, pdu: &Pdu, out: impl FnMut(Packet)) -> bool {
        rx.receive(Slot(slot), pdu.count, pdu.packet().unwrap().clone(), out).is_some()
    }

    #[test]
    fn sdus_wait_for_a_missing_one_until_t_reordering_expires() {
        let (pdus, mut rx, mut out) = (pdus(8), nr(Some(10)), Vec::new());
        let mut receive = |rx: &mut Rx, slot, count: usize| {
            receive(rx, slot, &pdus[count], |packet| out.push(number(&packet)))
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
        receive(&mut rx, 0, &pdus[2], |_| panic!("0 is missing"));
        assert_eq!((rx.expires_at(), rx.held()), (None, 1));
        let mut out = Vec::new();
        rx.skip_to(Slot(1), 3, |packet| out.push(number(&packet)));
        assert_eq!((out, rx.held()), (vec![2], 0));
    }

    #[test]
    fn lte_passes_sdus_on_with_gaps_and_reorders_during_an_overlap() {
        let (pdus, mut rx) = (pdus(12), Rx::new(PdcpConfig::Lte, Some(SlotSpan(50))));
        let mut out = Vec::new();
        let mut arrive = |rx: &mut Rx, count: usize| {
            receive(rx, count as u64, &pdus[count], |packet| out.push(number(&packet)))
        };
        assert!(!arrive(&mut rx, 0) && !arrive(&mut rx, 2), "1 was lost in RLC");
        assert!(arrive(&mut rx, 2), "a copy");
        rx.overlap = true;
        assert!(!arrive(&mut rx, 5) && !arrive(&mut rx, 4) && rx.held() == 2);
        rx.overlap = false;
        assert!(!arrive(&mut rx, 6) && rx.held() == 3, "SDUs wait until none is missing");
        let report = rx.report();
        assert_eq!((report.first_missing, &report.arrived[..]), (3, &[true, true, true][..]));
        assert!(!arrive(&mut rx, 3) && !arrive(&mut rx, 9));
        assert_eq!((out, rx.held(), rx.expires_at()), (vec![0, 2, 3, 4, 5, 6, 9], 0, None));
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
                let pdu = &pdus[count as usize];
                discarded += u64::from(receive(&mut rx, slot, pdu, |p| out.push(number(&p))));
            }
            rx.check_timer(Slot(10_000), |packet| out.push(number(&packet)));
            rx.check_timer(Slot(20_000), |packet| out.push(number(&packet)));
            assert_eq!((rx.held(), out.len() as u64 + discarded), (0, received));
            assert!(out.windows(2).all(|pair| pair[0] < pair[1]), "in order, once");
            assert_eq!(out.len() + lost.len(), 500, "delays are within t-Reordering");
        }
    }
}
