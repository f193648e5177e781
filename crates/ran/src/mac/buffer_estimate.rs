//! The eNB's estimate of a station's uplink buffer, from scheduling requests, buffer status reports and its
//! own grants.
//!
//! A report states the buffer when its block was first sent; grants for later slots are subtracted. A station
//! adds a report to every block whose padding can hold one (TS 36.321 §5.4.5, TS 38.321 §5.4.5). A block
//! without a report was therefore full, but for padding too small for a report, and more data may wait:
//! once every granted block is decoded, the estimate is then at least one SR grant.

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
    /// First transmission of the last decoded block without a report; none before the first such block.
    unreported_at: Option<Slot>,
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
    pub fn on_decoded(&mut self, first_sent_at: Slot, report: Option<BufferReport>, sr_grant: u32) {
        self.end_grant(first_sent_at);
        match report {
            Some(report) if first_sent_at >= self.reported_at => {
                let later = self.outstanding.iter().filter(|(slot, _)| *slot > first_sent_at);
                let granted: u32 = later.map(|(_, bytes)| bytes).sum();
                self.bytes = report.assumed_bytes().saturating_sub(granted);
                self.reported_at = first_sent_at;
            }
            Some(_) => {}
            None => self.unreported_at = self.unreported_at.max(Some(first_sent_at)),
        }
        // The block that was sent last counts, which HARQ may deliver before others.
        if self.outstanding.is_empty() && self.unreported_at.is_some_and(|at| at > self.reported_at) {
            self.bytes = self.bytes.max(sr_grant);
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

#[cfg(test)]
mod tests {
    use super::*;

    const SR_GRANT: u32 = 80;

    fn decoded(estimate: &mut BufferEstimate, at: u64, report: Option<u64>) -> u32 {
        estimate.on_decoded(Slot(at), report.map(BufferReport::nr_short), SR_GRANT);
        estimate.bytes()
    }
    fn granted(slots: &[u64]) -> BufferEstimate {
        let mut estimate = BufferEstimate::default();
        slots.iter().for_each(|slot| estimate.on_grant(Slot(*slot), 100));
        estimate
    }

    #[test]
    fn a_block_without_a_report_leads_to_another_grant_once_nothing_is_outstanding() {
        let mut estimate = granted(&[4, 5]);
        assert_eq!(decoded(&mut estimate, 4, None), 0, "the next block may tell");
        assert_eq!(decoded(&mut estimate, 5, None), SR_GRANT);
        let mut estimate = granted(&[4]);
        assert_eq!(decoded(&mut estimate, 4, Some(0)), 0, "an empty buffer was reported");
    }

    #[test]
    fn the_block_that_was_sent_last_counts_also_if_it_is_decoded_first() {
        // HARQ delivers the report of slot 4 after the full block of slot 5.
        let mut estimate = granted(&[4, 5]);
        assert_eq!(decoded(&mut estimate, 5, None), 0);
        assert_eq!(decoded(&mut estimate, 4, Some(0)), SR_GRANT);
        // The report of slot 5 is later than the block of slot 4, which lacks one.
        let mut estimate = granted(&[4, 5]);
        assert_eq!(decoded(&mut estimate, 5, Some(0)), 0);
        assert_eq!(decoded(&mut estimate, 4, None), 0);
    }
}
