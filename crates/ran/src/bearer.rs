//! One direction of a data radio bearer: the buffer above PDCP, the PDCP pair, and the RLC pair of its path.
//!
//! A bearer can change its path ([`Bearer::switch`]): handover, change between a direct and an infrastructure
//! link, or re-establishment after a radio-link failure (TS 38.323 §5.1.2 and §5.4.1, TS 36.323 §5.2.1). MAC
//! of the old path is reset before: what its HARQ processes carry is lost there. The COUNTs go on. Left out:
//! two paths at a time, and copies of SDUs that were delivered and not confirmed: a status report of the
//! receiving PDCP (TS 38.323 §5.4.1) is taken for granted.

use crate::duplex::Direction;
use crate::mac::nr_encode::{self, EncodedPdu};
use crate::mac::pdu::{self as mac, Sender};
use crate::pdcp::{self, PdcpConfig};
use crate::rlc::{Reassembled, Rlc, RlcConfig};
use crate::slot::{Slot, SlotSpan};
use paceline_net::{DropReason, Instant, Packet, SduQueue};

/// The fate of the SDUs that RLC of the old path took and did not deliver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// They are dropped.
    Drop,
    /// In AM they are sent again on the new path, ahead of other SDUs and in the order of their COUNTs (TS
    /// 38.323 §5.1.2). In UM they are dropped: the new path sends only SDUs that RLC did not take.
    Forward,
}

/// The end of a packet in a bearer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ended {
    Delivered(Packet),
    Dropped(Packet, DropReason),
}

/// One direction of a bearer.
pub(crate) struct Bearer {
    pub buffer: Box<dyn SduQueue + Send>,
    tx: pdcp::Tx,
    rx: pdcp::Rx,
    /// RLC of the present path.
    pub rlc: Rlc,
    pdcp: PdcpConfig,
    /// Mode and t-Reordering of RLC.
    rlc_config: (RlcConfig, SlotSpan),
}

impl Bearer {
    pub fn new(
        buffer: Box<dyn SduQueue + Send>,
        pdcp: PdcpConfig,
        rlc: RlcConfig,
        t_reordering: SlotSpan,
    ) -> Self {
        let (tx, rx) = (pdcp::Tx::new(pdcp), pdcp::Rx::new(pdcp));
        let rlc_config = (rlc, t_reordering);
        Self { buffer, tx, rx, rlc: Rlc::new(rlc, t_reordering), pdcp, rlc_config }
    }
    /// The transmitting end at the start of a slot; `reverse` is the other direction.
    pub fn sender<'a>(&'a mut self, reverse: &'a mut Self, now: Instant) -> Sender<'a> {
        let source = pdcp::Source { tx: &mut self.tx, buffer: &mut *self.buffer, now };
        Sender { rlc: &mut self.rlc, reverse: &mut reverse.rlc, source }
    }
    /// The bytes of an NR block that this direction has just filled.
    pub fn encode(&self, pdu: &mac::Pdu, direction: Direction) -> Option<EncodedPdu> {
        match self.pdcp {
            PdcpConfig::Lte => None,
            PdcpConfig::Nr(nr) => Some(nr_encode::encode(pdu, &self.rlc, nr, direction)),
        }
    }
    /// Data above RLC.
    pub fn waiting(&self) -> pdcp::Waiting {
        self.tx.waiting(&*self.buffer)
    }
    /// Bytes available for transmission: above RLC, in RLC, and the status report about the other direction.
    pub fn available(&self, reverse: &Self) -> u64 {
        self.rlc.available(self.waiting()) + u64::from(reverse.rlc.status_len())
    }
    /// Whether a block would carry data; a full RLC window holds data back.
    pub fn sendable(&self, reverse: &Self) -> bool {
        self.rlc.sendable(self.waiting()) || reverse.rlc.status_len() > 0
    }
    /// Whether a full window of RLC AM alone holds data back.
    pub fn window_stalled(&self) -> bool {
        // Asked in every slot; the buffer above matters only behind a full window.
        self.rlc.window_full() && self.rlc.window_stalled(self.waiting())
    }
    /// Number of packets held at both ends.
    pub fn held(&self) -> u64 {
        self.buffer.packets() as u64 + self.tx.held() + self.rx.held() + self.rlc.held()
    }
    /// Whether no timer of RLC or PDCP runs and no status report is triggered.
    pub fn idle(&self) -> bool {
        self.rlc.idle() && self.rx.expires_at().is_none()
    }
    /// Whether a timer is due in `slot`.
    pub fn timers_due(&self, slot: Slot) -> bool {
        self.rlc.timers_due(slot) || self.rx.expires_at().is_some_and(|at| at <= slot)
    }
    /// Handles the timers that have expired, after RLC passed `reassembled` to PDCP.
    pub fn deliver(&mut self, slot: Slot, reassembled: &mut Vec<Reassembled>, mut ended: impl FnMut(Ended)) {
        self.rlc.check_timers(slot, self.tx.waiting(&*self.buffer), reassembled);
        for result in reassembled.drain(..) {
            match result {
                Reassembled::Sdu(pdu) => {
                    let late = self.rx.receive(slot, pdu, |packet| ended(Ended::Delivered(packet)));
                    if let Some(packet) = late {
                        ended(Ended::Dropped(packet, DropReason::PdcpReordering));
                    }
                }
                Reassembled::Incomplete(packet) => {
                    ended(Ended::Dropped(packet, DropReason::RlcReassembly));
                }
            }
        }
        self.rx.check_timer(slot, |packet| ended(Ended::Delivered(packet)));
    }

    /// Changes to the RLC entities `to` of another path; SDUs that are dropped get `reason`.
    pub fn switch(
        &mut self,
        to: Rlc,
        fate: Fate,
        slot: Slot,
        reason: DropReason,
        mut ended: impl FnMut(Ended),
    ) {
        let mut old = std::mem::replace(&mut self.rlc, to);
        let (mut complete, mut undelivered) = (Vec::new(), Vec::new());
        old.release(&mut complete, |pdu| undelivered.push(pdu));
        for result in complete {
            match result {
                Reassembled::Sdu(pdu) => {
                    self.rx.receive(slot, pdu, |packet| ended(Ended::Delivered(packet)));
                }
                Reassembled::Incomplete(packet) => ended(Ended::Dropped(packet, reason)),
            }
        }
        if fate == Fate::Forward && old.is_am() {
            return self.tx.send_again(undelivered);
        }
        undelivered.into_iter().for_each(|pdu| ended(Ended::Dropped(pdu.packet, reason)));
        self.rx.restart_at(self.tx.next_to_send(), |packet| ended(Ended::Delivered(packet)));
    }
    /// Takes the packets that wait above RLC, in the order of their transmission.
    pub fn take_waiting(&mut self, now: Instant) -> Vec<Packet> {
        let (tx, buffer) = (&mut self.tx, &mut *self.buffer);
        std::iter::from_fn(|| tx.pull(now, buffer)).map(|pdu| pdu.packet).collect()
    }
    /// Changes to RLC entities of the same configuration in another cell.
    pub fn hand_over(&mut self, fate: Fate, slot: Slot, ended: impl FnMut(Ended)) {
        let (config, t_reordering) = self.rlc_config;
        let to = Rlc::new(config, t_reordering);
        self.switch(to, fate, slot, DropReason::PathSwitch, ended);
    }
    /// Re-establishes RLC after a radio-link failure. In LTE, SDUs of AM are dropped and UM goes on as it
    /// was; in NR, SDUs of AM are sent again and those of UM dropped.
    pub fn reestablish(&mut self, slot: Slot, ended: impl FnMut(Ended)) {
        let fate = match self.rlc {
            Rlc::Um(_) => return,
            Rlc::Am(_) | Rlc::NrUm(_) => Fate::Drop,
            Rlc::NrAm(_) => Fate::Forward,
        };
        let (config, t_reordering) = self.rlc_config;
        let to = Rlc::new(config, t_reordering);
        self.switch(to, fate, slot, DropReason::RadioLinkFailure, ended);
    }
}

#[cfg(test)]
#[path = "bearer_tests.rs"]
mod tests;
