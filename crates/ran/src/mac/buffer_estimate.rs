//! BE

use crate::lte::bsr;
use crate::slot::Tti;
use std::collections::VecDeque;

/// The eNB's belief about one station's buffer.
#[derive(Clone, Debug, Default)]
pub struct BufferEstimate {
    bytes: u32,
    /// Grants whose block is not decoded yet: TTI of the block and its bytes.
    outstanding: VecDeque<(Tti, u32)>,
    /// When the first scheduling request came that is not taken up: those that repeat it do not delay the answer.
    requested_at: Option<Tti>,
    /// When the block of the last report was first sent: an older one that HARQ delayed is out of date.
    reported_at: Tti,
}

impl BufferEstimate {
    /// Bytes that the station is believed to have beyond what is granted.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }
    /// Whether a grant is out whose block has not come.
    pub fn waiting(&self) -> bool {
        !self.outstanding.is_empty() || self.requested_at.is_some()
    }
    /// The station asks for a grant: the least that it is given.
    pub fn ask(&mut self, sr_grant: u32) {
        self.bytes = self.bytes.max(sr_grant);
    }
    /// A scheduling request was heard in `tti`.
    pub fn on_request(&mut self, tti: Tti) {
        self.requested_at.get_or_insert(tti);
    }
    /// Takes up a scheduling request once its processing time is over.
    pub fn process_request(&mut self, tti: Tti, delay: u64, sr_grant: u32) {
        let Some(at) = self.requested_at.filter(|at| tti.since(*at) >= delay) else {
            return;
        };
        self.requested_at = None;
        // A later grant that is still out serves the request as well.
        if self.outstanding.iter().all(|(granted_for, _)| *granted_for <= at) {
            self.bytes = self.bytes.max(sr_grant);
        }
    }
    /// A block of `bytes` is granted for `tti`.
    pub fn on_grant(&mut self, tti: Tti, bytes: u32) {
        self.outstanding.push_back((tti, bytes));
        self.bytes = self.bytes.saturating_sub(bytes);
    }
    /// The block first sent in `first_sent_at` was decoded.
    pub fn on_decoded(&mut self, first_sent_at: Tti, report: Option<u8>, padding: u32, sr_grant: u32) {
        self.outstanding.retain(|(tti, _)| *tti != first_sent_at);
        match report {
            Some(index) if first_sent_at >= self.reported_at => {
                // The report was written at the first transmission: later grants came on top of it.
                let later = self.outstanding.iter().filter(|(tti, _)| *tti > first_sent_at);
                let granted: u32 = later.map(|(_, bytes)| bytes).sum();
                self.bytes = bsr::assumed_bytes(index).saturating_sub(granted);
                self.reported_at = first_sent_at;
            }
            Some(_) => {}
            // Filled to the brim without a report: more may wait.
            None if padding == 0 && self.outstanding.is_empty() => self.bytes = self.bytes.max(sr_grant),
            None => {}
        }
    }
    /// The block first sent in `first_sent_at` was given up; its report, if any, is lost.
    pub fn on_lost(&mut self, first_sent_at: Tti, sr_grant: u32) {
        self.outstanding.retain(|(tti, _)| *tti != first_sent_at);
        self.bytes = self.bytes.max(sr_grant);
    }
}
