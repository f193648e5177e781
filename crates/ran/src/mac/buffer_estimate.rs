//! The eNB's estimate of a station's uplink buffer, from scheduling requests, buffer status reports and its
//! own grants.
//!
//! A report states the buffer when its block was first sent; grants for later slots are subtracted. A block
//! without padding and without a report suggests that more data wait: the estimate is then at least one SR
//! grant.

use super::buffer_report::BufferReport;
use crate::slot::{Slot, SlotSpan};
use std::collections::VecDeque;

/// The eNB's estimate of one station's uplink buffer.
#[derive(Clone, Debug, Default)]
pub struct BufferEstimate {
    bytes: u32,
    /// Grants whose block is not decoded yet: slot of the block and its bytes.
    outstanding: VecDeque<(Slot, u32)>,
    /// Slot of the first scheduling request that is not processed; repeated requests do not delay the answer.
    requested_at: Option<Slot>,
    /// First transmission of the block with the last report: HARQ can deliver an older report later.
    reported_at: Slot,
}

impl BufferEstimate {
    /// Estimated bytes in the buffer beyond the granted ones.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
    /// Whether a granted block is not decoded yet or a scheduling request is not processed.
    pub fn awaits_uplink(&self) -> bool {
        !self.outstanding.is_empty() || self.requested_at.is_some()
    }
    /// Raises the estimate to the size of an SR grant, the smallest grant.
    pub fn raise_to(&mut self, sr_grant: u32) {
        self.bytes = self.bytes.max(sr_grant);
    }
    pub fn on_request(&mut self, slot: Slot) {
        self.requested_at.get_or_insert(slot);
    }
    /// Processes a scheduling request `delay` slots after its reception.
    pub fn process_request(&mut self, slot: Slot, delay: SlotSpan, sr_grant: u32) {
        let Some(at) = self.requested_at.filter(|at| slot.since(*at) >= delay) else {
            return;
        };
        self.requested_at = None;
        // An outstanding grant for a slot after the request answers it already.
        if self.outstanding.iter().all(|(granted_for, _)| *granted_for <= at) {
            self.bytes = self.bytes.max(sr_grant);
        }
    }
    pub fn on_grant(&mut self, slot: Slot, bytes: u32) {
        self.outstanding.push_back((slot, bytes));
        self.bytes = self.bytes.saturating_sub(bytes);
    }
    /// The block first sent in `first_sent_at` was decoded.
    pub fn on_decoded(
        &mut self,
        first_sent_at: Slot,
        report: Option<BufferReport>,
        padding: u32,
        sr_grant: u32,
    ) {
        self.end_grant(first_sent_at);
        match report {
            Some(report) if first_sent_at >= self.reported_at => {
                let later = self.outstanding.iter().filter(|(slot, _)| *slot > first_sent_at);
                let granted: u32 = later.map(|(_, bytes)| bytes).sum();
                self.bytes = report.assumed_bytes().saturating_sub(granted);
                self.reported_at = first_sent_at;
            }
            Some(_) => {}
            None if padding == 0 && self.outstanding.is_empty() => self.bytes = self.bytes.max(sr_grant),
            None => {}
        }
    }
    /// HARQ gave up the block first sent in `first_sent_at`; a report in it is lost.
    pub fn on_lost(&mut self, first_sent_at: Slot, sr_grant: u32) {
        self.end_grant(first_sent_at);
        self.bytes = self.bytes.max(sr_grant);
    }
    /// The block of a slot is not outstanding any more.
    fn end_grant(&mut self, sent_at: Slot) {
        // Mostly it is the oldest.
        while self.outstanding.pop_front_if(|(slot, _)| *slot == sent_at).is_some() {}
        if self.outstanding.iter().any(|(slot, _)| *slot == sent_at) {
            self.outstanding.retain(|(slot, _)| *slot != sent_at);
        }
    }
}
