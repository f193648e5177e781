//! One direction of an AM bearer: the transmitting side, the receiving side of the peer, and the SDUs between
//! them.

use super::config::AmConfig;
use super::pdu::Pdu;
use super::rx::Rx;
use super::sdus::Sdus;
use super::status::Status;
use super::tx::Tx;
use crate::rlc::reassembled::Reassembled;
use crate::slot::Tti;
use paceline_net::{Packet, SduQueue};

/// One direction of an AM bearer.
#[derive(Clone, Debug)]
pub struct Am {
    tx: Tx,
    pub(super) rx: Rx,
    sdus: Sdus,
}

impl Am {
    /// Two entities in their initial state; t-Reordering lasts `t_reordering` TTIs.
    pub fn new(config: AmConfig, t_reordering: u64) -> Self {
        Self { tx: Tx::new(config), rx: Rx::new(config, t_reordering), sdus: Sdus::default() }
    }
    /// Bytes available for transmission, retransmissions included (TS 36.322 §4.5), without RLC headers.
    pub fn available(&self, above: &dyn SduQueue) -> u64 {
        self.tx.available(above, &self.sdus)
    }
    /// Bytes available for transmission below the buffer: retransmissions and the unsent bytes of an SDU.
    pub fn available_below(&self) -> u64 {
        self.tx.available_below(&self.sdus)
    }
    /// Whether the window allows a transmission of available data.
    pub fn sendable(&self, above: &dyn SduQueue) -> bool {
        self.tx.sendable(above, &self.sdus)
    }
    /// Number of PDUs that are to be retransmitted in whole or in part.
    pub fn retransmissions_pending(&self) -> u32 {
        self.tx.retransmissions_pending()
    }
    /// Number of SDUs that were sent in part.
    pub fn partial_sdus(&self) -> u64 {
        self.tx.partial_sdus(&self.sdus)
    }
    /// Number of packets held.
    pub fn held(&self) -> u64 {
        self.sdus.held()
    }
    /// Length in bytes of the STATUS PDU that may be sent now; zero if there is none.
    pub fn status_len(&self) -> u32 {
        self.rx.status_len()
    }
    /// The STATUS PDU, cut to `room` bytes.
    pub fn pull_status(&mut self, tti: Tti, room: u32) -> Option<Status> {
        self.rx.pull_status(tti, room)
    }
    /// A data PDU of at most `room` bytes, retransmissions first.
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
    /// Whether [`Am::check_timers`] has work in `tti`.
    pub fn timers_due(&self, tti: Tti) -> bool {
        self.rx.timers_due(tti) || self.tx.timers_due(tti)
    }
    /// Handles the timers of both ends that have expired.
    pub fn check_timers(&mut self, tti: Tti, above: &dyn SduQueue) {
        self.rx.check_timers(tti);
        self.tx.check_timers(tti, above, &self.sdus);
    }
    /// Whether no timer runs and no status report is triggered.
    pub fn idle(&self) -> bool {
        self.tx.idle() && self.rx.idle()
    }
    /// Whether RETX_COUNT of a PDU has reached maxRetxThreshold (TS 36.322 §5.2.1).
    pub fn radio_link_failed(&self) -> bool {
        self.tx.radio_link_failed()
    }
    /// Re-establishes both ends (TS 36.322 §5.4) and returns the packets that were numbered and not
    /// delivered.
    pub fn reestablish(&mut self) -> impl Iterator<Item = Packet> + use<> {
        self.tx.reestablish();
        self.rx.reestablish();
        std::mem::take(&mut self.sdus).into_packets()
    }
}
