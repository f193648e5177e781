//! Access of a sending station to uplink slots: request, short grant, buffer status report, data grants. The
//! distances between them are those of the carrier.

use super::config::TrailingBsr;
use crate::mac::buffer_estimate::BufferEstimate;
use crate::mac::pdu::BsrDue;
use crate::mcs::Mcs;
use crate::prb::PrbSet;
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// A grant of uplink PRBs.
pub(super) struct Grant {
    pub slot: Slot,
    pub prbs: PrbSet,
    pub mcs: Mcs,
    /// The HARQ process.
    pub process: usize,
    pub kind: GrantKind,
}

/// Purpose of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GrantKind {
    /// The answer to a request: one PRB towards the eNB.
    Short,
    Data,
    /// A retransmission by asynchronous HARQ.
    Again,
}

/// State of a station's access, and of the eNB about it.
#[derive(Default)]
pub(super) struct Access {
    /// Slot of the last request.
    requested_at: Option<Slot>,
    /// Slot of the request that the eNB has not answered.
    pub unanswered: Option<Slot>,
    pub grants: VecDeque<Grant>,
    /// The eNB's estimate of the buffer.
    pub estimate: BufferEstimate,
    /// Last slot in which the station transmitted or had a grant.
    pub active_in: Option<Slot>,
}

impl Access {
    /// Whether the station may send a request in a slot, if it has data.
    pub fn may_request(&self, slot: Slot, timeout: SlotSpan) -> bool {
        self.grants.is_empty()
            && self.active_in != Some(slot)
            && self.requested_at.is_none_or(|at| slot.since(at) >= timeout)
    }
    pub fn request(&mut self, slot: Slot) {
        self.requested_at = Some(slot);
        self.unanswered.get_or_insert(slot);
    }
    /// The grant for a slot.
    pub fn take_grant(&mut self, slot: Slot) -> Option<Grant> {
        self.grants.pop_front_if(|grant| grant.slot == slot)
    }
    /// Whether the eNB has decoded and granted everything, and the station awaits nothing.
    pub fn idle(&self) -> bool {
        self.unanswered.is_none()
            && self.grants.is_empty()
            && self.estimate.bytes() == 0
            && !self.estimate.awaits_uplink()
    }
}

impl TrailingBsr {
    /// The report that a block of `block` bytes should end with, if `available` bytes wait before it and a
    /// block of the whole carrier has `full` bytes.
    pub(super) fn due(self, available: u64, block: u32, full: u32) -> BsrDue {
        let due = match self {
            Self::Backlog => available > u64::from(block) + u64::from(full),
            Self::Always => available > u64::from(block),
            Self::Never => false,
        };
        if due { BsrDue::Periodic } else { BsrDue::None }
    }
}
