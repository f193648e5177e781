//! Access of a sending station to uplink subframes: random access request, short grant, buffer status report,
//! data grants.
//!
//! The distances are those of the published timeline (Nardini, Stea, Virdis 2016): a request of slot 0 is
//! answered by a short grant for slot 5; the report in it is decoded at 9; the data grant is for 11, and its
//! block is decoded at 15.

use super::config::TrailingBsr;
use crate::mac::buffer_estimate::BufferEstimate;
use crate::mac::pdu::BsrDue;
use crate::mcs::Mcs;
use crate::prb::PrbSet;
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// From a random access request to the eNB's decision about the short grant. Follows from the published
/// timeline: the grant is for slot 5, and [`GRANT_DISTANCE`] before it is slot 3.
pub(super) const REQUEST_PROCESSING: SlotSpan = SlotSpan(3);
/// From the eNB's decision about a grant to the granted slot. Follows from the published timeline: a report
/// decoded at 9 leads to data at 11.
pub(super) const GRANT_DISTANCE: SlotSpan = SlotSpan(2);
/// From a transmission to its data at the receiver, and to the verdict on it. Follows from the published
/// timeline: 5 to 9, and 11 to 15.
pub(super) const DECODING: SlotSpan = SlotSpan(4);

/// A grant of uplink PRBs.
pub(super) struct Grant {
    pub slot: Slot,
    pub prbs: PrbSet,
    pub mcs: Mcs,
    /// Whether it answers a request: one PRB towards the eNB.
    pub short: bool,
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
