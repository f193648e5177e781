//! Uplink access of a station without a grant: buffer status reports (TS 36.321 §5.4.5) and scheduling
//! requests (§5.4.4).
//!
//! Data in an empty buffer trigger a regular BSR. A regular BSR without a grant triggers a scheduling request
//! (SR), sent at the station's next PUCCH occasion (TS 36.213 Table 10.1.5-1). The eNB detects an SR with a
//! configured probability and answers with a small grant; the BSR in that block leads to a larger grant.
//! After dsr-TransMax SRs without a grant the station releases PUCCH and starts random access
//! (`random_access`). A BSR is lost with its transport block; retxBSR-Timer then triggers a new one.

use super::pdu::BsrDue;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Instant;

/// Parameters of scheduling requests and buffer status reports; times in slots.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessConfig {
    /// Period of SR occasions on PUCCH: 1, 2, 5, 10, 20, 40 or 80 (TS 36.213 Table 10.1.5-1).
    pub sr_period: SlotSpan,
    /// sr-ProhibitTimer (TS 36.331, TS 38.331).
    pub sr_prohibit: SlotSpan,
    /// dsr-TransMax: SRs without a grant after which PUCCH is released.
    pub dsr_trans_max: u32,
    /// Probability that the eNB detects a scheduling request.
    pub sr_detection: f64,
    /// periodicBSR-Timer.
    pub periodic_bsr: SlotSpan,
    /// retxBSR-Timer.
    pub retx_bsr: SlotSpan,
    /// Size in bytes of the grant that answers a scheduling request.
    pub sr_grant: u32,
    /// Grants without a request.
    pub proactive: Option<ProactiveGrants>,
}

/// Grants that the base station gives without a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProactiveGrants {
    /// Time without a grant after which a station gets one; zero for one in every uplink slot.
    pub after: SlotSpan,
    /// Their size in bytes.
    pub size: u32,
    /// Time without data in either direction after which they end; none if they do not end.
    pub inactivity: Option<SlotSpan>,
}

impl ProactiveGrants {
    /// Whether a station whose last data were decoded in `active_at`, if it had any, gets these grants.
    pub fn serve(&self, slot: Slot, active_at: Option<Slot>) -> bool {
        self.inactivity.is_none_or(|limit| active_at.is_some_and(|at| slot.since(at) <= limit))
    }
}

/// Counters of a station's uplink access; none of them decreases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessStats {
    /// Scheduling requests sent.
    pub scheduling_requests: u64,
    /// Times that dsr-TransMax scheduling requests were not answered by a grant.
    pub scheduling_request_failures: u64,
    /// Waits for a first block that a scheduling request ended.
    pub request_waits: u64,
    /// Sum of these waits in nanoseconds: from data in an empty buffer to the first block.
    pub request_wait_ns: u64,
    /// Random access procedures started.
    pub random_accesses: u64,
    /// Random access procedures that ended with contention resolution.
    pub contention_resolutions: u64,
    /// Sum of their durations in slots, from the start to contention resolution.
    pub contention_resolution_slots: SlotSpan,
    /// Preambles sent.
    pub preambles: u64,
    /// Preambles that another station sent in the same occasion.
    pub preamble_collisions: u64,
    /// Times that preambleTransMax preambles did not lead to contention resolution.
    pub random_access_failures: u64,
    /// RRC connections re-established.
    pub reestablishments: u64,
    /// Sum of the times from radio-link failure to service, in slots.
    pub reestablishment_slots: SlotSpan,
    /// Handovers that ended with service in the target cell.
    pub handovers: u64,
    /// Sum of the times without service at handovers, in slots.
    pub handover_slots: SlotSpan,
    /// Uplink grants for new blocks.
    pub grants: u64,
    /// Grants smaller than the estimated buffer because of the station's power.
    pub power_limited_grants: u64,
    /// Grants smaller than buffer and power allowed because too few PRBs were free.
    pub prb_limited_grants: u64,
    /// Power headroom reports sent.
    pub headroom_reports: u64,
    /// Sum of their reported values, each 0..=63.
    pub headroom_index_sum: u64,
}

/// The outcome of the SR procedure in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrOutcome {
    None,
    Sent,
    /// dsr-TransMax requests got no grant (§5.4.4): PUCCH is released, random access begins.
    Failed,
}

/// The SR and BSR procedures of one station.
#[derive(Clone, Debug)]
pub struct UplinkAccess {
    sr_offset: u64,
    /// A regular BSR was triggered and not sent.
    regular_bsr: bool,
    periodic_bsr_at: Option<Slot>,
    retx_bsr_at: Option<Slot>,
    sr_prohibited_until: Slot,
    /// SR_COUNTER (§5.4.4).
    sr_counter: u32,
    /// Arrival of the first data since the buffer was empty, until a block is sent.
    waiting_since: Option<Instant>,
    /// Counters.
    pub stats: AccessStats,
}

impl UplinkAccess {
    /// A station with this offset in the SR period.
    pub fn new(sr_offset: u64) -> Self {
        Self {
            sr_offset,
            regular_bsr: false,
            periodic_bsr_at: None,
            retx_bsr_at: None,
            sr_prohibited_until: Slot(0),
            sr_counter: 0,
            waiting_since: None,
            stats: AccessStats::default(),
        }
    }
    /// Resets MAC (TS 36.321 §5.9); counters stay.
    pub fn reset(&mut self) {
        *self = Self { stats: std::mem::take(&mut self.stats), ..Self::new(self.sr_offset) };
    }
    /// Data arrived while the buffer was empty: triggers a regular BSR.
    pub fn on_data_in_empty_buffer(&mut self, now: Instant) {
        self.regular_bsr = true;
        self.waiting_since.get_or_insert(now);
    }
    /// Whether no block has been sent since data arrived in an empty buffer.
    pub fn awaits_first_block(&self) -> bool {
        self.waiting_since.is_some()
    }
    pub fn bsr_due(&mut self, slot: Slot, has_data: impl FnOnce() -> bool) -> BsrDue {
        self.check_retx_bsr_timer(slot, has_data);
        match self.periodic_bsr_at {
            _ if self.regular_bsr => BsrDue::Regular,
            Some(at) if at <= slot => BsrDue::Periodic,
            _ => BsrDue::None,
        }
    }
    /// A block was sent; `reported` if a BSR was in it, `emptied` if the buffer is empty now.
    pub fn on_block(
        &mut self,
        slot: Slot,
        now: Instant,
        config: &AccessConfig,
        reported: bool,
        emptied: impl FnOnce() -> bool,
    ) {
        self.retx_bsr_at = Some(slot + config.retx_bsr);
        if let Some(since) = self.waiting_since.take().filter(|_| self.sr_counter > 0) {
            self.stats.request_waits += 1;
            self.stats.request_wait_ns += now.since(since).as_nanos();
        }
        if reported || emptied() {
            self.regular_bsr = false;
            self.sr_counter = 0;
        }
        if reported {
            self.periodic_bsr_at = Some(slot + config.periodic_bsr);
        }
    }
    /// Runs the SR procedure in `slot`. Called only if the station has no grant for it.
    pub fn scheduling_request(
        &mut self,
        slot: Slot,
        config: &AccessConfig,
        has_data: impl FnOnce() -> bool,
    ) -> SrOutcome {
        self.check_retx_bsr_timer(slot, has_data);
        let occasion = || slot.within(config.sr_period) == SlotSpan(self.sr_offset) % config.sr_period;
        if !self.regular_bsr || slot < self.sr_prohibited_until || !occasion() {
            return SrOutcome::None;
        }
        if self.sr_counter >= config.dsr_trans_max {
            self.stats.scheduling_request_failures += 1;
            return SrOutcome::Failed;
        }
        self.sr_prohibited_until = slot + config.sr_prohibit;
        self.sr_counter += 1;
        self.stats.scheduling_requests += 1;
        SrOutcome::Sent
    }
    fn check_retx_bsr_timer(&mut self, slot: Slot, has_data: impl FnOnce() -> bool) {
        if self.retx_bsr_at.is_some_and(|at| at <= slot) {
            self.retx_bsr_at = None;
            self.regular_bsr |= has_data();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: AccessConfig = AccessConfig {
        sr_period: SlotSpan(10),
        sr_prohibit: SlotSpan(30),
        dsr_trans_max: 4,
        sr_detection: 1.0,
        periodic_bsr: SlotSpan(5),
        retx_bsr: SlotSpan(320),
        sr_grant: 80,
        proactive: None,
    };

    /// The slots of `0..until` in which the station sends an SR, and the one in which the SR procedure fails.
    fn requests(access: &mut UplinkAccess, config: &AccessConfig, until: u64) -> (Vec<u64>, Option<u64>) {
        let mut sent = Vec::new();
        for slot in 0..until {
            match access.scheduling_request(Slot(slot), config, || true) {
                SrOutcome::Sent => sent.push(slot),
                SrOutcome::Failed => return (sent, Some(slot)),
                SrOutcome::None => {}
            }
        }
        (sent, None)
    }

    #[test]
    fn scheduling_requests_follow_occasions_prohibit_timer_and_dsr_trans_max() {
        for sr_period in [1, 2, 5, 10, 20, 40, 80] {
            for sr_prohibit in 0..=7 {
                for dsr_trans_max in [4, 8, 64] {
                    let sr_prohibit = SlotSpan(sr_period * sr_prohibit);
                    let config =
                        AccessConfig { sr_period: SlotSpan(sr_period), sr_prohibit, dsr_trans_max, ..CONFIG };
                    let mut access = UplinkAccess::new(3);
                    access.on_data_in_empty_buffer(Instant::ZERO);
                    let (sent, failed) = requests(&mut access, &config, 100_000);
                    let step = sr_period.max(sr_prohibit.0);
                    let expected = |n: u64| 3 % sr_period + n * step;
                    let count = u64::from(dsr_trans_max);
                    assert_eq!(sent, (0..count).map(expected).collect::<Vec<_>>());
                    assert_eq!(failed, Some(expected(count)));
                    assert_eq!(
                        (access.stats.scheduling_requests, access.stats.scheduling_request_failures),
                        (count, 1)
                    );
                }
            }
        }
    }

    #[test]
    fn a_block_with_a_bsr_resets_the_sr_counter() {
        let mut access = UplinkAccess::new(0);
        access.on_data_in_empty_buffer(Instant::from_nanos(500_000));
        assert_eq!(access.scheduling_request(Slot(10), &CONFIG, || true), SrOutcome::Sent);
        assert_eq!(access.scheduling_request(Slot(40), &CONFIG, || true), SrOutcome::Sent);
        access.on_block(Slot(48), Instant::from_millis(48), &CONFIG, true, || false);
        // From 0.5 ms to 48 ms.
        assert_eq!((access.stats.request_waits, access.stats.request_wait_ns), (1, 47_500_000));
        access.on_data_in_empty_buffer(Instant::from_millis(60));
        let config = AccessConfig { sr_prohibit: SlotSpan(0), ..CONFIG };
        let (sent, failed) = requests(&mut access, &config, 1000);
        // sr-ProhibitTimer runs until slot 70.
        assert_eq!((sent, failed), (vec![70, 80, 90, 100], Some(110)));
    }

    #[test]
    fn bsr_timers_are_exact_to_a_slot() {
        for (periodic_bsr, retx_bsr) in [(5, 320), (2560, 320), (40, 10_240)] {
            let config =
                AccessConfig { periodic_bsr: SlotSpan(periodic_bsr), retx_bsr: SlotSpan(retx_bsr), ..CONFIG };
            let mut access = UplinkAccess::new(0);
            access.on_data_in_empty_buffer(Instant::ZERO);
            assert_eq!(access.bsr_due(Slot(8), || true), BsrDue::Regular);
            access.on_block(Slot(8), Instant::from_millis(8), &config, true, || false);
            let first = periodic_bsr.min(retx_bsr);
            assert_eq!(access.bsr_due(Slot(8 + first - 1), || true), BsrDue::None);
            let due = if periodic_bsr < retx_bsr { BsrDue::Periodic } else { BsrDue::Regular };
            assert_eq!(access.bsr_due(Slot(8 + first), || true), due);
            // A block without a BSR restarts retxBSR-Timer alone.
            let mut access = UplinkAccess::new(0);
            access.on_data_in_empty_buffer(Instant::ZERO);
            access.on_block(Slot(8), Instant::from_millis(8), &config, true, || false);
            access.on_block(Slot(9), Instant::from_millis(9), &config, false, || false);
            let request = |access: &mut UplinkAccess, slot| {
                access.scheduling_request(
                    Slot(slot),
                    &AccessConfig { sr_period: SlotSpan(1), ..config },
                    || true,
                )
            };
            assert_eq!(request(&mut access, 9 + retx_bsr - 1), SrOutcome::None);
            assert_eq!(request(&mut access, 9 + retx_bsr), SrOutcome::Sent, "retxBSR-Timer has expired");
            // Without data, the expiry of retxBSR-Timer triggers nothing.
            let mut access = UplinkAccess::new(0);
            access.on_block(Slot(8), Instant::from_millis(8), &config, true, || true);
            assert_eq!(access.scheduling_request(Slot(20_000), &config, || false), SrOutcome::None);
        }
    }
}
