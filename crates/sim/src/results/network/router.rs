//! Figures of routers (`service_time`) and ACK policers (`police`) in one run.

use super::super::statistics::ratio;
use crate::core_network::{PolicerReading, RouterReading};
use paceline_net::Duration;
use paceline_pep::ack_policer::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of one router after the warm-up; the routers that each cell has for itself together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterResult {
    /// Place: `core.hops.N`.
    pub router: String,
    /// Share of the time for which the router forwards packets.
    pub busy_share: f64,
    /// Packets of both directions that the router forwards, per second.
    pub packets_per_s: f64,
    /// Packets forwarded towards the stations.
    pub downlink_packets: u64,
    /// Packets forwarded towards the servers.
    pub uplink_packets: u64,
    /// Packets towards the stations that found the router's queue full.
    pub downlink_drops: u64,
    /// Packets towards the servers that found the router's queue full.
    pub uplink_drops: u64,
    /// Most packets that have waited for the router.
    pub most_waiting: u64,
}

impl RouterResult {
    pub(in crate::results) fn new(reading: &RouterReading, span: Duration) -> Self {
        let packets: u64 = reading.forwarded.iter().sum();
        let busy_ns = packets * reading.service_time.as_nanos();
        Self {
            router: reading.name.clone(),
            // The service of the first packet may have begun before the span.
            busy_share: ratio(busy_ns, reading.routers * span.as_nanos()).min(1.0),
            packets_per_s: packets as f64 / span.as_secs_f64(),
            downlink_packets: reading.forwarded[0],
            uplink_packets: reading.forwarded[1],
            downlink_drops: reading.drops[0],
            uplink_drops: reading.drops[1],
            most_waiting: reading.most_waiting,
        }
    }
}

/// Figures of one ACK policer after the warm-up; the policers that each cell has for itself together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicerResult {
    /// Place: `core.hops.N`.
    pub policer: String,
    /// Packets in the policed direction.
    pub packets: u64,
    /// Pure ACKs among them.
    pub acks: u64,
    /// Pure ACKs that were dropped.
    pub dropped: u64,
    /// Pure ACKs that were kept, by the reason's name in docs/police.md.
    pub kept: BTreeMap<String, u64>,
}

impl PolicerResult {
    pub(in crate::results) fn new(reading: &PolicerReading) -> Self {
        let stats = &reading.stats;
        let kept = Reason::ALL.into_iter().map(|reason| (reason.name().to_owned(), stats.kept(reason)));
        Self {
            policer: reading.name.clone(),
            packets: stats.packets,
            acks: stats.acks,
            dropped: stats.dropped,
            kept: kept.filter(|(_, count)| *count > 0).collect(),
        }
    }
}
