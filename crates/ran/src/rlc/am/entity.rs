//! AMENT

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
