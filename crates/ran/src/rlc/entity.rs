//! RLC of one direction of a bearer in the configured mode: calls go to [`um`] or [`am`] (TS 36.322), or to
//! [`nr::Um`] or [`nr::Am`] (TS 38.322).
//!
//! The transmitting and the receiving side stand together. Data pass from one to the other in transport
//! blocks alone.

use super::am::{self, Am, AmConfig};
use super::nr;
use super::reassembled::Reassembled;
use super::um;
use crate::pdcp;
use crate::slot::{Slot, SlotSpan};

/// Mode and its parameters; t-Reordering, which both modes of LTE have, is a parameter of the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RlcConfig {
    /// Unacknowledged mode of LTE.
    #[default]
    Um,
    /// Acknowledged mode of LTE.
    Am(AmConfig),
    /// Unacknowledged mode of NR.
    NrUm(nr::UmConfig),
    /// Acknowledged mode of NR.
    NrAm(nr::AmConfig),
}

impl RlcConfig {
    /// Whether the mode is AM.
    pub fn is_am(&self) -> bool {
        matches!(self, Self::Am(_) | Self::NrAm(_))
    }
}

/// A PDU in LTE; in NR a STATUS PDU or all data PDUs of a transport block. Blocks of NR are boxed, since they
/// are twice as large as the PDUs of LTE, which are moved from queue to queue.
#[derive(Clone, PartialEq, Debug)]
pub enum Pdu {
    Um(um::Pdu),
    Am(am::Pdu),
    /// An AM status report about the other direction.
    Status(am::Status),
    NrUm(Box<nr::UmBlock>),
    NrAm(Box<nr::AmBlock>),
    /// An AM status report of NR about the other direction.
    NrStatus(nr::Status),
}

impl Pdu {
    /// Length in bytes with RLC headers; in NR also with MAC sub-headers.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Um(pdu) => pdu.len,
            Self::Am(pdu) => pdu.len,
            Self::Status(status) => status.len,
            Self::NrUm(block) => block.bytes,
            Self::NrAm(block) => block.bytes,
            Self::NrStatus(status) => status.bytes(),
        }
    }
    /// Number of packets inside the PDU. In AM and in NR packets stay in the bearer: zero.
    pub fn held(&self) -> u64 {
        match self {
            Self::Um(pdu) => pdu.held(),
            _ => 0,
        }
    }
    pub fn is_status(&self) -> bool {
        matches!(self, Self::Status(_) | Self::NrStatus(_))
    }
    /// Number of PDUs and segments in it that were sent before.
    pub fn retransmissions(&self) -> u64 {
        match self {
            Self::Am(pdu) => u64::from(pdu.retransmission),
            Self::NrAm(block) => block.retransmissions.iter().map(|run| run.pdus().count() as u64).sum(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Um {
    tx: um::Tx,
    rx: um::Rx,
}

/// [`nr::Am`] with the length in bytes of the STATUS PDU that may be sent in the present slot.
#[derive(Clone, Debug)]
pub struct NrAm {
    am: nr::Am<pdcp::Pdu>,
    status_len: u32,
}

/// One direction of a bearer.
#[derive(Clone, Debug)]
pub enum Rlc {
    Um(Box<Um>),
    Am(Box<Am>),
    NrUm(Box<nr::Um<pdcp::Pdu>>),
    NrAm(Box<NrAm>),
}

impl Rlc {
    /// Both sides in their initial state; LTE's t-Reordering lasts `t_reordering` slots.
    pub fn new(config: RlcConfig, t_reordering: SlotSpan) -> Self {
        match config {
            RlcConfig::Um => {
                let um = Um { tx: um::Tx::default(), rx: um::Rx::new(t_reordering) };
                Self::Um(Box::new(um))
            }
            RlcConfig::Am(config) => Self::Am(Box::new(Am::new(config, t_reordering))),
            RlcConfig::NrUm(config) => Self::NrUm(Box::new(nr::Um::new(config))),
            RlcConfig::NrAm(config) => Self::NrAm(Box::new(NrAm { am: nr::Am::new(config), status_len: 0 })),
        }
    }
    /// Bytes available for transmission in RLC and above (TS 36.322 §4.5, TS 38.322 §5.5), without RLC
    /// headers.
    pub fn available(&self, above: pdcp::Waiting) -> u64 {
        match self {
            Self::Um(um) => um.tx.available(above),
            Self::Am(am) => am.available(above),
            Self::NrUm(_) | Self::NrAm(_) => self.available_below() + above.bytes,
        }
    }
    /// Bytes available for transmission in RLC alone.
    pub fn available_below(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.partial_left(),
            Self::Am(am) => am.available_below(),
            Self::NrUm(um) => um.available_below(),
            Self::NrAm(nr) => nr.am.available_below(),
        }
    }
    /// Whether RLC would use a transmission opportunity. A stalled AM window holds new data back.
    pub fn sendable(&self, above: pdcp::Waiting) -> bool {
        match self {
            Self::Um(_) | Self::NrUm(_) => self.available(above) > 0,
            Self::Am(am) => am.sendable(above),
            Self::NrAm(nr) => nr.am.sendable(above.is_empty()),
        }
    }
    /// Whether the AM window is full.
    pub fn window_full(&self) -> bool {
        match self {
            Self::Um(_) | Self::NrUm(_) => false,
            Self::Am(am) => am.window_full(),
            Self::NrAm(nr) => nr.am.stalled(),
        }
    }
    /// Whether a full AM window alone holds data back.
    pub fn window_stalled(&self, above: pdcp::Waiting) -> bool {
        match self {
            Self::Um(_) | Self::NrUm(_) => false,
            Self::Am(am) => am.window_stalled(above),
            Self::NrAm(nr) => nr.am.stalled() && !above.is_empty() && !nr.am.sendable(false),
        }
    }
    /// Number of SDUs that were sent in part.
    pub fn partial_sdus(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.held(),
            Self::Am(am) => am.partial_sdus(),
            Self::NrUm(um) => u64::from(um.available_below() > 0),
            Self::NrAm(nr) => nr.am.partial_sdus(),
        }
    }
    /// Number of PDUs considered for retransmission and not sent yet; in NR of SDUs.
    pub fn retransmissions_pending(&self) -> u32 {
        match self {
            Self::Um(_) | Self::NrUm(_) => 0,
            Self::Am(am) => am.retransmissions_pending(),
            Self::NrAm(nr) => nr.am.retransmissions_pending(),
        }
    }
    /// Length in bytes of the STATUS PDU about this direction that may be sent now in the other; zero if
    /// there is none.
    pub fn status_len(&self) -> u32 {
        match self {
            Self::Um(_) | Self::NrUm(_) => 0,
            Self::Am(am) => am.status_len(),
            Self::NrAm(nr) => nr.status_len,
        }
    }
    /// Number of packets held at both ends.
    pub fn held(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.held() + um.rx.held(),
            Self::Am(am) => am.held(),
            Self::NrUm(um) => um.sdus().filter(|pdu| pdu.packet().is_some()).count() as u64,
            Self::NrAm(nr) => nr.am.undelivered().filter(|pdu| pdu.packet().is_some()).count() as u64,
        }
    }
    /// Whether no timer runs and no status report is triggered.
    pub fn idle(&self) -> bool {
        match self {
            Self::Um(um) => um.rx.expires_at().is_none(),
            Self::Am(am) => am.idle(),
            Self::NrUm(um) => um.expires_at().is_none(),
            Self::NrAm(nr) => nr.am.next_event().is_none(),
        }
    }
    /// Whether the mode is AM: RLC can have data to send without a new packet from above.
    pub fn is_am(&self) -> bool {
        matches!(self, Self::Am(_) | Self::NrAm(_))
    }
    /// The lengths of NR's headers; none in LTE.
    pub fn nr_headers(&self) -> Option<nr::Headers> {
        match self {
            Self::Um(_) | Self::Am(_) => None,
            Self::NrUm(um) => Some(um.headers()),
            Self::NrAm(nr) => Some(nr.am.headers()),
        }
    }
    /// The length of NR's sequence numbers; none in LTE.
    pub fn nr_sn(&self) -> Option<nr::SnLength> {
        match self {
            Self::Um(_) | Self::Am(_) => None,
            Self::NrUm(um) => Some(um.sn()),
            Self::NrAm(nr) => Some(nr.am.sn()),
        }
    }
    /// An SDU of NR that was sent, if it is not delivered, and its length in bytes.
    pub fn nr_sdu(&self, number: u64) -> (Option<&pdcp::Pdu>, u32) {
        match self {
            Self::Um(_) | Self::Am(_) => (None, 0),
            Self::NrUm(um) => um.sdu(number).map_or((None, 0), |pdu| (Some(pdu), pdu.bytes())),
            Self::NrAm(nr) => nr.am.sdu(number),
        }
    }
    /// Data for at most `room` bytes: a PDU in LTE, all data of the block in NR.
    #[inline]
    pub fn pull(&mut self, slot: Slot, source: &mut pdcp::Source, room: u32) -> Option<Pdu> {
        match self {
            Self::Um(um) => um.tx.pull(source, room).map(Pdu::Um),
            Self::Am(am) => am.pull(slot, source, room).map(Pdu::Am),
            Self::NrUm(um) => um.pull(source, room).map(|block| Pdu::NrUm(Box::new(block))),
            Self::NrAm(nr) => nr.am.pull(slot, source, room).map(|block| Pdu::NrAm(Box::new(block))),
        }
    }
    /// The STATUS PDU about this direction, cut to `room` bytes; in NR with its MAC sub-header.
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Pdu> {
        match self {
            Self::Um(_) | Self::NrUm(_) => None,
            Self::Am(am) => am.pull_status(slot, room).map(Pdu::Status),
            Self::NrAm(nr) => {
                let status = nr.am.pull_status(slot, room)?;
                nr.status_len = nr.am.status_len(slot);
                Some(Pdu::NrStatus(status))
            }
        }
    }
    #[inline]
    pub fn receive(&mut self, slot: Slot, pdu: Pdu, out: &mut Vec<Reassembled>) {
        match (self, pdu) {
            (Self::Um(um), Pdu::Um(pdu)) => um.rx.receive(slot, pdu, out, &mut um.tx),
            (Self::Am(am), Pdu::Am(pdu)) => am.receive(slot, &pdu, out),
            (Self::NrUm(um), Pdu::NrUm(block)) => {
                let mut incomplete = Vec::new();
                let deliver = |pdu| out.push(Reassembled::Sdu(pdu));
                um.receive(slot, &block, deliver, |pdu| incomplete.push(pdu));
                out.extend(incomplete.into_iter().map(Reassembled::Incomplete));
            }
            (Self::NrAm(nr), Pdu::NrAm(block)) => {
                nr.am.receive(slot, &block, |pdu| out.push(Reassembled::Sdu(pdu)));
            }
            _ => unreachable!("both sides of a bearer are in one mode"),
        }
    }
    /// A STATUS PDU about this direction arrives at the transmitting side.
    pub fn on_status(&mut self, status: &Pdu) {
        match (self, status) {
            (Self::Am(am), Pdu::Status(status)) => am.on_status(status),
            (Self::NrAm(nr), Pdu::NrStatus(status)) => nr.am.on_status(status),
            _ => {}
        }
    }
    /// Whether [`Rlc::check_timers`] has work in `slot`.
    pub fn timers_due(&self, slot: Slot) -> bool {
        match self {
            Self::Um(um) => um.rx.expires_at().is_some_and(|at| at <= slot),
            Self::Am(am) => am.timers_due(slot),
            Self::NrUm(um) => um.expires_at().is_some_and(|at| at <= slot),
            Self::NrAm(nr) => nr.am.timers_due(slot),
        }
    }
    /// Handles the timers that have expired; may be called when none has.
    #[inline]
    pub fn check_timers(
        &mut self,
        slot: Slot,
        above: impl FnOnce() -> pdcp::Waiting,
        out: &mut Vec<Reassembled>,
    ) {
        match self {
            Self::Um(um) => um.rx.expire(slot, out, &mut um.tx),
            // Called for every block that arrives; a timer has expired in few of these calls.
            Self::Am(am) if am.timers_due(slot) => am.check_timers(slot, above()),
            Self::Am(_) => {}
            Self::NrUm(um) => um.check_timers(slot, |pdu| out.push(Reassembled::Incomplete(pdu))),
            Self::NrAm(nr) => {
                nr.am.check_timers(slot, above().is_empty());
                nr.status_len = nr.am.status_len(slot);
            }
        }
    }
    /// HARQ lost a PDU: calls `dropped` with the SDUs whose last byte was in it; in NR with those that had
    /// any byte in it.
    pub fn on_pdu_lost(&mut self, pdu: Pdu, mut dropped: impl FnMut(pdcp::Pdu)) {
        match (self, pdu) {
            (Self::Um(um), Pdu::Um(mut pdu)) => {
                let last = pdu.elements.drain(..).filter_map(|element| element.last);
                last.for_each(&mut dropped);
                um.tx.recycle(pdu.elements);
            }
            (Self::NrUm(um), Pdu::NrUm(block)) => um.on_lost(&block, dropped),
            _ => {}
        }
    }
    /// Whether the transmitting side reports a radio-link failure.
    pub fn radio_link_failed(&self) -> bool {
        match self {
            Self::Um(_) | Self::NrUm(_) => false,
            Self::Am(am) => am.radio_link_failed(),
            Self::NrAm(nr) => nr.am.radio_link_failed(),
        }
    }
    /// The receiver delivers what it can before it is re-established (TS 36.322 §5.4): in LTE the SDUs
    /// received out of sequence.
    pub fn flush(&mut self, received: &mut Vec<Reassembled>) {
        match self {
            Self::Um(um) => um.rx.flush(received, &mut um.tx),
            Self::Am(am) => am.deliver_out_of_sequence(received),
            Self::NrUm(_) | Self::NrAm(_) => {}
        }
    }
    /// The PDCP PDUs of AM whose delivery is not confirmed, in the order of their COUNTs.
    pub fn for_each_unconfirmed(&mut self, mut unconfirmed: impl FnMut(&mut pdcp::Pdu)) {
        match self {
            Self::Um(_) | Self::NrUm(_) => {}
            Self::Am(am) => am.unconfirmed().for_each(unconfirmed),
            Self::NrAm(nr) => nr.am.unconfirmed().for_each(|(pdu, _)| unconfirmed(pdu)),
        }
    }
    /// Ends both sides (TS 36.322 §5.4, TS 38.322 §5.1.2): calls `undelivered` with the PDCP PDUs that are
    /// left, in the order of their COUNTs. In AM these are the PDUs whose delivery is not confirmed; copies
    /// of those that were delivered are among them.
    pub fn release(mut self, mut undelivered: impl FnMut(pdcp::Pdu)) {
        self.for_each_unconfirmed(|pdu| undelivered(pdu.take()));
        match self {
            Self::Um(mut um) => um.tx.take_partial().into_iter().for_each(undelivered),
            Self::NrUm(mut um) => um.reestablish(undelivered),
            Self::Am(_) | Self::NrAm(_) => {}
        }
    }
}
