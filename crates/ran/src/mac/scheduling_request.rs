//! Uplink access: how a station without a grant gets one (TS 36.321 §5.4.4 and §5.4.5), and what the eNB believes
//! about its buffer.
//!
//! Data in an empty buffer triggers a regular BSR; without a grant that triggers a scheduling request, sent at the
//! station's next PUCCH occasion (TS 36.213 Table 10.1.5-1). The eNB answers with a small grant; the BSR in it
//! earns a large one. A request is heard with a stated probability; after dsr-TransMax of them in vain the station
//! gives up PUCCH and accesses at random (`random_access`), which gives PUCCH back to it. BSRs are lost when their
//! block is; the retransmission timer then restarts access.

use crate::mac::pdu::BsrDue;
use crate::slot::Tti;
use paceline_net::Instant;

/// Timers of uplink access in TTIs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessConfig {
    /// Period of the scheduling request on PUCCH: 1, 2, 5, 10, 20, 40 or 80.
    pub sr_period: u64,
    /// sr-ProhibitTimer in scheduling request periods, 0..=7.
    pub sr_prohibit: u64,
    /// dsr-TransMax: requests in vain before PUCCH is given up.
    pub dsr_trans_max: u32,
    /// Probability that the eNB hears a scheduling request.
    pub sr_detection: f64,
    /// periodicBSR-Timer.
    pub periodic_bsr: u64,
    /// retxBSR-Timer.
    pub retx_bsr: u64,
    /// Size in bytes of the grant that answers a scheduling request.
    pub sr_grant: u32,
}

/// What uplink access costs a station: counters that only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessStats {
    /// Scheduling requests sent.
    pub requests: u64,
    /// Times that dsr-TransMax requests were in vain.
    pub request_failures: u64,
    /// Waits that a scheduling request ended.
    pub request_waits: u64,
    /// From data in an empty buffer to the first block, over these waits, in nanoseconds.
    pub request_wait_ns: u64,
    /// Random access procedures begun.
    pub random_accesses: u64,
    /// Of these, ended by contention resolution.
    pub resolved: u64,
    /// From their begin to contention resolution, in TTIs.
    pub resolved_ttis: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Of these, chosen by another station in the same occasion too.
    pub collisions: u64,
    /// Times that preambleTransMax preambles were in vain.
    pub access_failures: u64,
    /// Connections re-established.
    pub reestablishments: u64,
    /// From the radio-link failure to service, over these, in TTIs.
    pub reestablishment_ttis: u64,
    /// Uplink grants, retransmissions aside.
    pub grants: u64,
    /// Of these, smaller than the buffer asked for because of the station's power.
    pub power_limited: u64,
    /// Of these, smaller than buffer and power asked for because resource blocks were short.
    pub block_limited: u64,
    /// Power headroom reports sent.
    pub headroom_reports: u64,
    /// Sum of their values 0..=63.
    pub headroom_sum: u64,
}

/// What a station does with its scheduling request in a TTI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Nothing.
    None,
    /// It sends one.
    Sent,
    /// dsr-TransMax requests were in vain (§5.4.4): PUCCH is given up, random access begins.
    Failed,
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
    /// SR_COUNTER.
    counter: u32,
    /// When the data came that a regular BSR is to report.
    waiting_since: Option<Instant>,
    /// Counters.
    pub stats: AccessStats,
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
            counter: 0,
            waiting_since: None,
            stats: AccessStats::default(),
        }
    }
    /// MAC is reset (TS 36.321 §5.9).
    pub fn reset(&mut self) {
        *self = Self { stats: std::mem::take(&mut self.stats), ..Self::new(self.sr_offset) };
    }
    /// Data arrived while the buffer was empty.
    pub fn on_data_in_empty_buffer(&mut self, now: Instant) {
        self.regular = true;
        self.waiting_since.get_or_insert(now);
    }
    /// Whether no block went out since data came into an empty buffer.
    pub fn waits(&self) -> bool {
        self.waiting_since.is_some()
    }
    /// Which BSR is to go into the next block.
    pub fn bsr_due(&mut self, tti: Tti, has_data: impl FnOnce() -> bool) -> BsrDue {
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
        if let Some(since) = self.waiting_since.take().filter(|_| self.counter > 0) {
            self.stats.request_waits += 1;
            self.stats.request_wait_ns += tti.starts_at().since(since).as_nanos();
        }
        if reported || emptied {
            self.regular = false;
            self.counter = 0;
        }
        if reported {
            self.periodic_at = Some(tti + config.periodic_bsr);
        }
    }
    /// Whether a scheduling request goes out in `tti`. Called only where no grant is at hand.
    pub fn scheduling_request(
        &mut self,
        tti: Tti,
        config: &AccessConfig,
        has_data: impl FnOnce() -> bool,
    ) -> Request {
        self.check_retransmission(tti, has_data);
        let occasion = || tti.0 % config.sr_period == self.sr_offset % config.sr_period;
        if !self.regular || tti < self.prohibited_until || !occasion() {
            return Request::None;
        }
        if self.counter >= config.dsr_trans_max {
            self.stats.request_failures += 1;
            return Request::Failed;
        }
        self.prohibited_until = tti + config.sr_prohibit * config.sr_period;
        self.counter += 1;
        self.stats.requests += 1;
        Request::Sent
    }
    fn check_retransmission(&mut self, tti: Tti, has_data: impl FnOnce() -> bool) {
        if self.retx_at.is_some_and(|at| at <= tti) {
            self.retx_at = None;
            self.regular |= has_data();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: AccessConfig = AccessConfig {
        sr_period: 10,
        sr_prohibit: 3,
        dsr_trans_max: 4,
        sr_detection: 1.0,
        periodic_bsr: 5,
        retx_bsr: 320,
        sr_grant: 80,
    };

    /// The TTIs of `0..until` in which the station sends a request, and the one in which it gives up.
    fn requests(access: &mut StationAccess, config: &AccessConfig, until: u64) -> (Vec<u64>, Option<u64>) {
        let mut sent = Vec::new();
        for tti in 0..until {
            match access.scheduling_request(Tti(tti), config, || true) {
                Request::Sent => sent.push(tti),
                Request::Failed => return (sent, Some(tti)),
                Request::None => {}
            }
        }
        (sent, None)
    }

    #[test]
    fn requests_keep_their_occasions_the_prohibit_timer_and_dsr_trans_max() {
        for sr_period in [1, 2, 5, 10, 20, 40, 80] {
            for sr_prohibit in 0..=7 {
                for dsr_trans_max in [4, 8, 64] {
                    let config = AccessConfig { sr_period, sr_prohibit, dsr_trans_max, ..CONFIG };
                    let mut access = StationAccess::new(3);
                    access.on_data_in_empty_buffer(Instant::ZERO);
                    let (sent, failed) = requests(&mut access, &config, 100_000);
                    let step = sr_period * sr_prohibit.max(1);
                    let expected = |n: u64| 3 % sr_period + n * step;
                    let count = u64::from(dsr_trans_max);
                    assert_eq!(sent, (0..count).map(expected).collect::<Vec<_>>());
                    assert_eq!(failed, Some(expected(count)));
                    assert_eq!((access.stats.requests, access.stats.request_failures), (count, 1));
                }
            }
        }
    }

    #[test]
    fn a_block_with_a_report_ends_the_count() {
        let mut access = StationAccess::new(0);
        access.on_data_in_empty_buffer(Instant::from_nanos(500_000));
        assert_eq!(access.scheduling_request(Tti(10), &CONFIG, || true), Request::Sent);
        assert_eq!(access.scheduling_request(Tti(40), &CONFIG, || true), Request::Sent);
        access.on_block(Tti(48), &CONFIG, true, false);
        // From 0.5 ms to 48 ms.
        assert_eq!((access.stats.request_waits, access.stats.request_wait_ns), (1, 47_500_000));
        access.on_data_in_empty_buffer(Instant::from_millis(60));
        let config = AccessConfig { sr_prohibit: 0, ..CONFIG };
        let (sent, failed) = requests(&mut access, &config, 1000);
        // The last prohibit timer runs until 70.
        assert_eq!((sent, failed), (vec![70, 80, 90, 100], Some(110)));
    }

    #[test]
    fn the_timers_of_reports_are_exact_to_a_tti() {
        for (periodic_bsr, retx_bsr) in [(5, 320), (2560, 320), (40, 10_240)] {
            let config = AccessConfig { periodic_bsr, retx_bsr, ..CONFIG };
            let mut access = StationAccess::new(0);
            access.on_data_in_empty_buffer(Instant::ZERO);
            assert_eq!(access.bsr_due(Tti(8), || true), BsrDue::Regular);
            access.on_block(Tti(8), &config, true, false);
            let first = periodic_bsr.min(retx_bsr);
            assert_eq!(access.bsr_due(Tti(8 + first - 1), || true), BsrDue::None);
            let due = if periodic_bsr < retx_bsr { BsrDue::Periodic } else { BsrDue::Regular };
            assert_eq!(access.bsr_due(Tti(8 + first), || true), due);
            // A block without a report moves the retransmission timer alone.
            let mut access = StationAccess::new(0);
            access.on_data_in_empty_buffer(Instant::ZERO);
            access.on_block(Tti(8), &config, true, false);
            access.on_block(Tti(9), &config, false, false);
            let request = |access: &mut StationAccess, tti| {
                access.scheduling_request(Tti(tti), &AccessConfig { sr_period: 1, ..config }, || true)
            };
            assert_eq!(request(&mut access, 9 + retx_bsr - 1), Request::None);
            assert_eq!(request(&mut access, 9 + retx_bsr), Request::Sent, "data wait and no grant came");
            // Without data the timer triggers nothing.
            let mut access = StationAccess::new(0);
            access.on_block(Tti(8), &config, true, true);
            assert_eq!(access.scheduling_request(Tti(20_000), &config, || false), Request::None);
        }
    }
}
