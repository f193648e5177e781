//! Which resource limits a station's uplink: the wait for a grant, random access, resource blocks, power,
//! HARQ.

use super::statistics::ratio;
use crate::counters::Counters;
use serde::{Deserialize, Serialize};

/// Headroom in dB that the reported value 0 stands for (TS 36.133 §9.1.8.4).
const HEADROOM_OF_ZERO_DB: f64 = -23.0;

/// What the uplink of one station waited for, and what kept it small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkResult {
    /// Mean time from data in an empty buffer to the block that a scheduling request earned, ms.
    pub sr_wait_mean_ms: f64,
    /// Times that dsr-TransMax scheduling requests were in vain.
    pub sr_failures: u64,
    /// Random access procedures begun.
    pub random_accesses: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Of these, chosen by another station in the same occasion too.
    pub preamble_collisions: u64,
    /// Times that preambleTransMax preambles were in vain.
    pub random_access_failures: u64,
    /// Mean time from the begin of a random access to contention resolution, ms.
    pub random_access_mean_ms: f64,
    /// Connections re-established after a radio-link failure.
    pub reestablishments: u64,
    /// Mean time from the failure to service: cell selection, random access, signalling; ms.
    pub reestablishment_mean_ms: f64,
    /// Uplink grants, retransmissions aside.
    pub grants: u64,
    /// Share of them that a shortage of resource blocks kept small.
    pub block_limited_share: f64,
    /// Share of them that the station's power kept small.
    pub power_limited_share: f64,
    /// Share of uplink transmissions that HARQ repeated.
    pub harq_retransmission_share: f64,
    /// Power headroom reports sent.
    pub headroom_reports: u64,
    /// Mean of what they say in dB; absent without reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_mean_db: Option<f64>,
    /// What TPC commands have added to its power in the end, dB; in a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_correction_db: Option<f64>,
}

impl UplinkResult {
    /// The figures that these counters say.
    pub(super) fn new(counters: &Counters, power_correction_db: Option<f64>) -> Self {
        let c = counters;
        let retransmissions = c.uplink_harq_retransmissions;
        Self {
            sr_wait_mean_ms: ratio(c.request_wait_ns, c.request_waits) / 1e6,
            sr_failures: c.request_failures,
            random_accesses: c.random_accesses,
            preambles: c.preambles,
            preamble_collisions: c.collisions,
            random_access_failures: c.access_failures,
            random_access_mean_ms: ratio(c.resolved_ttis, c.resolved),
            reestablishments: c.reestablishments,
            reestablishment_mean_ms: ratio(c.reestablishment_ttis, c.reestablishments),
            grants: c.grants,
            block_limited_share: ratio(c.block_limited, c.grants),
            power_limited_share: ratio(c.power_limited, c.grants),
            harq_retransmission_share: ratio(retransmissions, c.uplink_blocks + retransmissions),
            headroom_reports: c.headroom_reports,
            headroom_mean_db: (c.headroom_reports > 0)
                .then(|| ratio(c.headroom_sum, c.headroom_reports) + HEADROOM_OF_ZERO_DB),
            power_correction_db,
        }
    }
}
