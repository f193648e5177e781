//! Figures of a station's uplink by resource: scheduling requests, random access, grants, transmit power,
//! HARQ.

use super::statistics::{mean_ms, ratio};
use crate::counters::Counters;
use serde::{Deserialize, Serialize};

/// Power headroom that the reported value 0 means (TS 36.133 9.1.8.4).
const HEADROOM_OF_ZERO_DB: f64 = -23.0;

/// Uplink figures of one station.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkResult {
    /// Mean time from data in an empty buffer to the transport block that the scheduling request led to, ms.
    pub sr_wait_mean_ms: f64,
    /// Times that dsr-TransMax scheduling requests were sent without a grant (TS 36.321 5.4.4).
    pub sr_failures: u64,
    /// Random access procedures started.
    pub random_accesses: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Of these, chosen by another station in the same PRACH occasion.
    pub preamble_collisions: u64,
    /// Times that preambleTransMax preambles were sent without success (TS 36.321 5.1.5).
    pub random_access_failures: u64,
    /// Mean time from the start of a random access to contention resolution, ms.
    pub random_access_mean_ms: f64,
    /// RRC connections re-established after a radio-link failure.
    pub reestablishments: u64,
    /// Mean time from the failure to service, ms: cell selection, random access, signalling.
    pub reestablishment_mean_ms: f64,
    /// Uplink grants for new transmissions.
    pub grants: u64,
    /// Share of these grants that were limited by the number of free PRBs.
    pub block_limited_share: f64,
    /// Share of these grants that were limited by the station's transmit power.
    pub power_limited_share: f64,
    /// Share of uplink transmissions that are HARQ retransmissions.
    pub harq_retransmission_share: f64,
    /// Power headroom reports sent.
    pub headroom_reports: u64,
    /// Mean reported headroom, dB; none without reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_mean_db: Option<f64>,
    /// Sum of the TPC commands at the end of the run, dB; in a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_correction_db: Option<f64>,
}

impl UplinkResult {
    /// Figures from counters.
    pub(super) fn new(counters: &Counters, power_correction_db: Option<f64>) -> Self {
        let c = counters;
        let retransmissions = c.uplink_harq_retransmissions;
        Self {
            sr_wait_mean_ms: ratio(c.request_wait_ns, c.request_waits) / 1e6,
            sr_failures: c.scheduling_request_failures,
            random_accesses: c.random_accesses,
            preambles: c.preambles,
            preamble_collisions: c.preamble_collisions,
            random_access_failures: c.random_access_failures,
            random_access_mean_ms: mean_ms(c.contention_resolution_ns, c.contention_resolutions),
            reestablishments: c.reestablishments,
            reestablishment_mean_ms: mean_ms(c.reestablishment_ns, c.reestablishments),
            grants: c.grants,
            block_limited_share: ratio(c.prb_limited_grants, c.grants),
            power_limited_share: ratio(c.power_limited_grants, c.grants),
            harq_retransmission_share: ratio(retransmissions, c.uplink_blocks + retransmissions),
            headroom_reports: c.headroom_reports,
            headroom_mean_db: (c.headroom_reports > 0)
                .then(|| ratio(c.headroom_index_sum, c.headroom_reports) + HEADROOM_OF_ZERO_DB),
            power_correction_db,
        }
    }
}
