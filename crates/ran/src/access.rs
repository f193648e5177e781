//! Uplink access: how a station without a grant gets one (TS 36.321 §5.4.4 and §5.4.5), and what the eNB believes
//! about its buffer.
//!
//! Data in an empty buffer triggers a regular BSR; without a grant that triggers a scheduling request, sent at the
//! station's next PUCCH occasion (TS 36.213 Table 10.1.5-1). The eNB answers with a small grant; the BSR in it
//! earns a large one. Scheduling requests are always received, and stations are always connected and in sync:
//! random access is left out. BSRs are lost when their block is; the retransmission timer then restarts access.

use crate::lte::bsr;
use crate::mac::BsrDue;
use crate::slot::Tti;
use std::collections::VecDeque;

/// Timers of uplink access in TTIs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessConfig {
    /// Period of the scheduling request on PUCCH: 1, 2, 5, 10, 20, 40 or 80.
    pub sr_period: u64,
    /// sr-ProhibitTimer in scheduling request periods, 0..=7.
    pub sr_prohibit: u64,
    /// periodicBSR-Timer.
    pub periodic_bsr: u64,
    /// retxBSR-Timer.
    pub retx_bsr: u64,
    /// Size in bytes of the grant that answers a scheduling request.
    pub sr_grant: u32,
}

/// The station's side.
#[derive(Clone, Debug)]
pub struct StationAccess {
    sr_offset: u64,
    /// A regular BSR was triggered and not sent.
    regular: bool,
    periodic_at: Option<Tti>,
    retx_at: Option<Tti>,
    prohibited_until: Tti,
    /// Scheduling requests sent.
    pub requests: u64,
}

impl StationAccess {
    /// A station whose scheduling request has this offset in its period.
    pub fn new(sr_offset: u64) -> Self {
        Self {
            sr_offset,
            regular: false,
            periodic_at: None,
            retx_at: None,
            prohibited_until: Tti(0),
            requests: 0,
        }
    }
    /// MAC is reset (TS 36.321 §5.9).
    pub fn reset(&mut self) {
        *self = Self { requests: self.requests, ..Self::new(self.sr_offset) };
    }
    /// Data arrived while the buffer was empty.
    pub fn on_data_in_empty_buffer(&mut self) {
        self.regular = true;
    }
    /// Which BSR is to go into the next block.
    pub fn bsr_due(&mut self, tti: Tti, has_data: bool) -> BsrDue {
        self.check_retransmission(tti, has_data);
        match self.periodic_at {
            _ if self.regular => BsrDue::Regular,
            Some(at) if at <= tti => BsrDue::Periodic,
            _ => BsrDue::None,
        }
    }
    /// A block went out; `reported` if a BSR was in it, `emptied` if the buffer was emptied by it.
    pub fn on_block(&mut self, tti: Tti, config: &AccessConfig, reported: bool, emptied: bool) {
        self.retx_at = Some(tti + config.retx_bsr);
        if reported || emptied {
            self.regular = false;
        }
        if reported {
            self.periodic_at = Some(tti + config.periodic_bsr);
        }
    }
    /// Whether a scheduling request goes out in `tti`. Called only where no grant is at hand.
    pub fn scheduling_request(&mut self, tti: Tti, config: &AccessConfig, has_data: bool) -> bool {
        self.check_retransmission(tti, has_data);
        let occasion = tti.0 % config.sr_period == self.sr_offset % config.sr_period;
        if !self.regular || !occasion || tti < self.prohibited_until {
            return false;
        }
        self.prohibited_until = tti + config.sr_prohibit * config.sr_period;
        self.requests += 1;
        true
    }
    fn check_retransmission(&mut self, tti: Tti, has_data: bool) {
        if self.retx_at.is_some_and(|at| at <= tti) {
            self.retx_at = None;
            self.regular |= has_data;
        }
    }
}

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
    /// A scheduling request was sent in `tti`.
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
