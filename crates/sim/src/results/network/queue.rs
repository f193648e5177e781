//! Figures of managed queues (`queue_discipline`) in one run.

use super::super::statistics::ratio;
use crate::managed::ManagedReading;
use serde::{Deserialize, Serialize};

/// Figures of one managed queue after the warm-up; the queues of a link or hop that each station or cell has
/// for itself together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueResult {
    /// Place: `link` or `core.hops.N`, and the direction.
    pub queue: String,
    /// Discipline: `codel` or `fq-codel`.
    pub discipline: String,
    /// Packets that left at the head.
    pub packets: u64,
    /// Packets marked with Congestion Experienced.
    pub marks: u64,
    /// Packets dropped by CoDel as a congestion signal.
    pub drops: u64,
    /// Packets dropped because the queue was at its limit.
    pub overflows: u64,
    /// Times that a flow without packets in the queue got one; 0 for CoDel.
    pub new_flows: u64,
    /// Mean time of the packets in the queue, ms.
    pub sojourn_mean_ms: f64,
    /// Median of this time, ms.
    pub sojourn_p50_ms: f64,
    /// 95th percentile of this time, ms.
    pub sojourn_p95_ms: f64,
    /// 99th percentile of this time, ms.
    pub sojourn_p99_ms: f64,
}

impl QueueResult {
    pub(in crate::results) fn new(reading: &ManagedReading) -> Self {
        let counters = &reading.counters;
        let [p50, p95, p99] = reading.percentiles_us.map(|us| us as f64 / 1000.0);
        Self {
            queue: reading.name.clone(),
            discipline: reading.discipline.to_owned(),
            packets: counters.packets_out,
            marks: counters.marks,
            drops: counters.drops,
            overflows: counters.overflows,
            new_flows: counters.new_flows,
            sojourn_mean_ms: ratio(reading.sojourn_ns, counters.packets_out) / 1e6,
            sojourn_p50_ms: p50,
            sojourn_p95_ms: p95,
            sojourn_p99_ms: p99,
        }
    }
}
