//! RLC of one direction of a bearer in the configured mode (TS 36.322): calls go to [`um`] or [`am`].
//!
//! The transmitting and the receiving side stand together. Data pass from one to the other in transport
//! blocks alone.

use super::am::{self, Am, AmConfig};
use super::reassembled::Reassembled;
use super::um;
use crate::pdcp;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Packet, SduQueue};

/// Mode and its parameters; t-Reordering, which both modes have, is a parameter of the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RlcConfig {
    /// Unacknowledged mode.
    #[default]
    Um,
    /// Acknowledged mode.
    Am(AmConfig),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Pdu {
    Um(um::Pdu),
    Am(am::Pdu),
    /// An AM status report about the other direction.
    Status(am::Status),
}

impl Pdu {
    /// Length in bytes with its header.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Um(pdu) => pdu.len,
            Self::Am(pdu) => pdu.len,
            Self::Status(status) => status.len,
        }
    }
    /// Number of packets inside the PDU. In AM packets stay in the bearer: zero.
    pub fn held(&self) -> u64 {
        match self {
            Self::Um(pdu) => pdu.elements.iter().filter(|element| element.last.is_some()).count() as u64,
            Self::Am(_) | Self::Status(_) => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Um {
    tx: um::Tx,
    rx: um::Rx,
}

/// One direction of a bearer.
#[derive(Clone, Debug)]
pub enum Rlc {
    Um(Box<Um>),
    Am(Box<Am>),
}

impl Rlc {
    /// Both sides in their initial state; t-Reordering lasts `t_reordering` slots.
    pub fn new(config: RlcConfig, t_reordering: SlotSpan) -> Self {
        match config {
            RlcConfig::Um => {
                let um = Um { tx: um::Tx::default(), rx: um::Rx::new(t_reordering) };
                Self::Um(Box::new(um))
            }
            RlcConfig::Am(config) => Self::Am(Box::new(Am::new(config, t_reordering))),
        }
    }
    /// Bytes available for transmission in RLC and in the buffer above (TS 36.322 §4.5), without RLC headers.
    pub fn available(&self, above: &dyn SduQueue) -> u64 {
        match self {
            Self::Um(um) => um.tx.available(above),
            Self::Am(am) => am.available(above),
        }
    }
    /// Bytes available for transmission in RLC alone.
    pub fn available_below(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.partial_left(),
            Self::Am(am) => am.available_below(),
        }
    }
    /// Whether RLC would use a transmission opportunity. A stalled AM window holds new data back.
    pub fn sendable(&self, above: &dyn SduQueue) -> bool {
        match self {
            Self::Um(um) => um.tx.available(above) > 0,
            Self::Am(am) => am.sendable(above),
        }
    }
    /// Number of SDUs that were sent in part.
    pub fn partial_sdus(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.held(),
            Self::Am(am) => am.partial_sdus(),
        }
    }
    /// Number of PDUs considered for retransmission and not sent yet.
    pub fn retransmissions_pending(&self) -> u32 {
        match self {
            Self::Um(_) => 0,
            Self::Am(am) => am.retransmissions_pending(),
        }
    }
    /// Length in bytes of the STATUS PDU about this direction that may be sent now in the other; zero if
    /// there is none.
    pub fn status_len(&self) -> u32 {
        match self {
            Self::Um(_) => 0,
            Self::Am(am) => am.status_len(),
        }
    }
    /// Number of packets held at both ends.
    pub fn held(&self) -> u64 {
        match self {
            Self::Um(um) => um.tx.held() + um.rx.held(),
            Self::Am(am) => am.held(),
        }
    }
    /// Whether no timer runs and no status report is triggered.
    pub fn idle(&self) -> bool {
        match self {
            Self::Um(um) => um.rx.expires_at().is_none(),
            Self::Am(am) => am.idle(),
        }
    }
    /// Whether the mode is AM: RLC can have data to send without a new packet from above.
    pub fn is_am(&self) -> bool {
        matches!(self, Self::Am(_))
    }
    /// A data PDU of at most `room` bytes.
    pub fn pull(&mut self, slot: Slot, source: &mut pdcp::Source, room: u32) -> Option<Pdu> {
        match self {
            Self::Um(um) => um.tx.pull(source, room).map(Pdu::Um),
            Self::Am(am) => am.pull(slot, source, room).map(Pdu::Am),
        }
    }
    /// The STATUS PDU about this direction, cut to `room` bytes.
    pub fn pull_status(&mut self, slot: Slot, room: u32) -> Option<Pdu> {
        match self {
            Self::Um(_) => None,
            Self::Am(am) => am.pull_status(slot, room).map(Pdu::Status),
        }
    }
    pub fn receive(&mut self, slot: Slot, pdu: Pdu, out: &mut Vec<Reassembled>) {
        match (self, pdu) {
            (Self::Um(um), Pdu::Um(pdu)) => um.rx.receive(slot, pdu, out, &mut um.tx),
            (Self::Am(am), Pdu::Am(pdu)) => am.receive(slot, &pdu, out),
            _ => unreachable!("both sides of a bearer are in one mode"),
        }
    }
    /// A STATUS PDU about this direction arrives at the transmitting side.
    pub fn on_status(&mut self, status: &am::Status) {
        if let Self::Am(am) = self {
            am.on_status(status);
        }
    }
    /// Whether [`Rlc::check_timers`] has work in `slot`.
    pub fn timers_due(&self, slot: Slot) -> bool {
        match self {
            Self::Um(um) => um.rx.expires_at().is_some_and(|at| at <= slot),
            Self::Am(am) => am.timers_due(slot),
        }
    }
    /// Handles the timers that have expired; may be called when none has.
    pub fn check_timers(&mut self, slot: Slot, above: &dyn SduQueue, out: &mut Vec<Reassembled>) {
        match self {
            Self::Um(um) => um.rx.expire(slot, out, &mut um.tx),
            Self::Am(am) => am.check_timers(slot, above),
        }
    }
    /// HARQ lost a PDU: calls `dropped` with the packets whose last byte was in it.
    pub fn on_pdu_lost(&mut self, pdu: Pdu, mut dropped: impl FnMut(Packet)) {
        if let (Self::Um(um), Pdu::Um(mut pdu)) = (self, pdu) {
            pdu.elements.drain(..).filter_map(|element| element.last).for_each(&mut dropped);
            um.tx.recycle(pdu.elements);
        }
    }
    /// Whether the transmitting side reports a radio-link failure.
    pub fn radio_link_failed(&self) -> bool {
        match self {
            Self::Um(_) => false,
            Self::Am(am) => am.radio_link_failed(),
        }
    }
    /// Re-establishes both sides (TS 36.322 §5.4): calls `dropped` with the packets that were not delivered.
    pub fn reestablish(&mut self, dropped: impl FnMut(Packet)) {
        if let Self::Am(am) = self {
            am.take_unconfirmed().map(|pdu| pdu.packet).for_each(dropped);
        }
    }
}
