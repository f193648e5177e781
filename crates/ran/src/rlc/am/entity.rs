//! One direction of an AM bearer: the transmitting side, the receiving side of the peer, and the SDUs between
//! them. The methods are those of [`crate::rlc::Rlc`], which has their description.

use super::config::AmConfig;
use super::pdu::Pdu;
use super::rx::Rx;
use super::sdus::Sdus;
use super::status::Status;
use super::tx::Tx;
use crate::pdcp;
use crate::rlc::reassembled::Reassembled;
use crate::slot::{Slot, SlotSpan};

/// One direction of an AM bearer.
#[derive(Clone, Debug)]
pub struct Am {
    tx: Tx,
    pub(super) rx: Rx,
    sdus: Sdus,
}

impl Am {
    /// Two entities in their initial state; t-Reordering lasts `t_reordering` slots.
    pub fn new(config: AmConfig, t_reordering: SlotSpan) -> Self {
        Self { tx: Tx::new(config), rx: Rx::new(config, t_reordering), sdus: Sdus::default() }
    }
    pub fn available(&self, above: pdcp::Waiting) -> u64 {
        self.tx.available(above, &self.sdus)
    }
    pub fn available_below(&self) -> u64 {
        self.tx.available_below(&self.sdus)
    }
    pub fn sendable(&self, above: pdcp::Waiting) -> bool {
        self.tx.sendable(above, &self.sdus)
    }
    pub fn window_full(&self) -> bool {
        self.tx.stalled()
    }
    pub fn window_stalled(&self, above: pdcp::Waiting) -> bool {
        self.tx.window_stalled(above, &self.sdus)
    }
    pub fn retransmissions_pending(&self) -> u32 {
        self.tx.retransmissions_pending()
    }
    pub fn partial_sdus(&self) -> u64 {
        self.tx.partial_sdus(&self.sdus)
    }
    pub fn held(&self) -> u64 {
        self.sdus.held()
    }
    pub fn status_len(&self) -> u32 {
        self.rx.status_len()
    }
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Status> {
        self.rx.pull_status(slot, room)
    }
    pub fn pull(&mut self, slot: Slot, source: &mut pdcp::Source, room: u32) -> Option<Pdu> {
        self.tx.pull(slot, source, &mut self.sdus, room)
    }
    pub fn receive(&mut self, slot: Slot, pdu: &Pdu, out: &mut Vec<Reassembled>) {
        self.rx.receive(slot, pdu);
        self.sdus.deliver(self.rx.in_sequence(), out);
    }
    pub fn on_status(&mut self, status: &Status) {
        self.tx.on_status(status, &mut self.sdus);
    }
    pub fn timers_due(&self, slot: Slot) -> bool {
        self.rx.timers_due(slot) || self.tx.timers_due(slot, &self.sdus)
    }
    pub fn check_timers(&mut self, slot: Slot, above: pdcp::Waiting) {
        self.rx.check_timers(slot);
        self.tx.check_timers(slot, above, &self.sdus);
    }
    pub fn idle(&self) -> bool {
        self.tx.idle() && self.rx.idle()
    }
    /// Whether RETX_COUNT of a PDU has reached maxRetxThreshold (TS 36.322 §5.2.1).
    pub fn radio_link_failed(&self) -> bool {
        self.tx.radio_link_failed()
    }
    /// Delivers the SDUs that were received out of sequence (TS 36.322 §5.4).
    pub fn deliver_out_of_sequence(&mut self, out: &mut Vec<Reassembled>) {
        for (from, to) in self.rx.received_ranges() {
            self.sdus.deliver_within(from, to, out);
        }
    }
    /// The PDCP PDUs that are not acknowledged, in the order of their COUNTs: another path of the bearer can
    /// carry them.
    pub fn unconfirmed(&mut self) -> impl Iterator<Item = &mut pdcp::Pdu> {
        self.sdus.unconfirmed()
    }
}
