//! RLC acknowledged mode of NR (TS 38.322 §5.2.3): each SDU is delivered once, or the radio link fails.
//!
//! An [`Am`] is one direction of a bearer: the transmitting side of one entity and the receiving side of
//! its peer. STATUS PDUs about this direction travel in blocks of the other one. SDUs are delivered when
//! complete, in any order. Left out: the delivery indication to PDCP for each confirmed SDU.

use super::am_block::{AmBlock, AmConfig};
use super::am_rx::Rx;
use super::am_tx::Tx;
use super::headers::{Headers, SnLength, subheader};
use super::runs::{Sdu, SduSource};
use super::status::Status;
use crate::slot::Slot;

/// One direction of a bearer; `T` is an SDU.
#[derive(Clone, Debug)]
pub struct Am<T> {
    config: AmConfig,
    tx: Tx<T>,
    rx: Rx,
}

impl<T> Am<T> {
    /// Both sides in their initial state.
    pub fn new(config: AmConfig) -> Self {
        Self { config, tx: Tx::new(config), rx: Rx::new(config) }
    }
    /// Bytes for retransmission, and of the SDU that was sent in part (§5.5, the data volume without the
    /// buffer above).
    pub fn available_below(&self) -> u64 {
        self.tx.available_below()
    }
    /// Length of sequence numbers.
    pub fn sn(&self) -> SnLength {
        self.config.sn
    }
    /// An SDU of the window, if it is not delivered, and its length in bytes.
    pub fn sdu(&self, number: u64) -> (Option<&T>, u32) {
        self.tx.sdu(number)
    }
    /// Lengths of the headers.
    pub fn headers(&self) -> Headers {
        Headers::am(self.config.sn)
    }
    /// Number of SDUs that were sent in part: 0 or 1.
    pub fn partial_sdus(&self) -> u64 {
        u64::from(self.tx.unsent() > 0)
    }
    /// Number of SDUs with bytes to retransmit.
    pub fn retransmissions_pending(&self) -> u32 {
        self.tx.retransmissions_pending()
    }
    /// Number of SDUs that were not delivered.
    pub fn held(&self) -> u64 {
        self.tx.held()
    }
    /// Whether a transmission opportunity would be used. A full window holds new data back.
    pub fn sendable(&self, above_empty: bool) -> bool {
        self.tx.sendable(above_empty)
    }
    /// Number of SDUs that were sent and not confirmed up to the newest; at most AM_Window_Size.
    pub fn window_used(&self) -> u64 {
        self.tx.window_used().max(self.rx.window_used())
    }
    /// Whether the window is full.
    pub fn stalled(&self) -> bool {
        self.tx.stalled()
    }
    /// Number of transmission opportunities in which the full window held data back.
    pub fn window_stalls(&self) -> u64 {
        self.tx.window_stalls()
    }
    /// Whether an SDU reached maxRetxThreshold: the transmitting side reports a radio-link failure.
    pub fn radio_link_failed(&self) -> bool {
        self.tx.failed()
    }
    /// The next slot in which a timer expires or a STATUS PDU may be sent.
    pub fn next_event(&self) -> Option<Slot> {
        self.tx.expires_at().into_iter().chain(self.rx.next_event()).min()
    }

    /// Whether [`Am::check_timers`] may have work in `slot`: a timer expires, a STATUS PDU may be sent, or no
    /// poll was sent for the last SDU and no data wait below PDCP.
    pub fn timers_due(&self, slot: Slot) -> bool {
        let unpolled =
            self.tx.window_used() > 0 && self.tx.expires_at().is_none() && self.tx.available_below() == 0;
        unpolled || self.next_event().is_some_and(|at| at <= slot)
    }

    /// Fills `room` bytes of a transport block; none without data or without room for a byte.
    pub fn pull(&mut self, slot: Slot, above: &mut impl SduSource<T>, room: u32) -> Option<AmBlock> {
        self.tx.pull(slot, above, room)
    }
    /// A block arrives: SDUs that become complete go to `deliver`.
    pub fn receive(&mut self, slot: Slot, block: &AmBlock, mut deliver: impl FnMut(T))
    where
        T: Sdu,
    {
        for (sdu, from, to) in block.pdus() {
            if self.rx.on_pdu(slot, sdu, from, to) {
                self.tx.take(sdu).into_iter().for_each(&mut deliver);
            }
        }
        self.rx.on_polls(block.polls);
    }
    /// Bytes in a transport block of the STATUS PDU that may be sent now in the other direction, with its MAC
    /// sub-header; zero if there is none.
    pub fn status_bytes(&self, slot: Slot) -> u32 {
        match self.rx.status_len(slot) {
            0 => 0,
            len => len + subheader(len),
        }
    }
    /// Length in bytes of the STATUS PDU that may be sent now; zero if there is none.
    pub fn status_len(&self, slot: Slot) -> u32 {
        self.rx.status_len(slot)
    }
    /// The STATUS PDU about this direction, cut to `room` bytes of a transport block.
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Status> {
        self.rx.pull_status(slot, room)
    }
    /// A STATUS PDU about this direction arrives at the transmitting side.
    pub fn on_status(&mut self, status: &Status) {
        self.tx.on_status(status);
    }
    /// Handles the timers that have expired; may be called when none has.
    pub fn check_timers(&mut self, slot: Slot, above_empty: bool) {
        self.tx.check_timers(slot, above_empty);
        self.rx.check_timers(slot);
    }
    /// The SDUs that were not delivered, in ascending order.
    pub fn undelivered(&self) -> impl Iterator<Item = &T> {
        self.tx.undelivered()
    }
    /// The SDUs that no STATUS PDU confirmed, in ascending order, each with whether it was delivered. Where
    /// RLC is re-established (§5.1.2) PDCP sends them again.
    pub fn unconfirmed(&mut self) -> impl Iterator<Item = (&mut T, bool)> {
        self.tx.unconfirmed()
    }
}
