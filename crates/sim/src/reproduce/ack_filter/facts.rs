//! Why a row is as it is: sentences from counters.

use super::{ACK_BYTES, Experiment, OPT, SCHEMES};
use crate::results::StationResult;
use crate::scenario::{Hop, Scenario};
use paceline_ran::resource_blocks;

/// A resource is the limit from this share of its capacity on.
const FULL: f64 = 0.9;

/// What the network offers, for saying what limits it.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Payload bytes of a segment.
    pub segment: f64,
    /// Header bytes of a segment: S_header.
    pub header: f64,
    /// Rate of the narrowest hop, Mb/s, those of all cells together where each has its own; none without hops.
    pub hop_mbps: Option<f64>,
    /// Share of the uplink's resource blocks that data can use: the rest is PUCCH.
    pub uplink_for_data: f64,
    /// Scheduling request occasions of a station, per second.
    pub sr_occasions_per_s: f64,
}

impl Network {
    /// Of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let cell = &scenario.cell;
        let uplink = resource_blocks(cell.uplink_bandwidth.unwrap_or(cell.bandwidth).0 / 1000).unwrap_or(100);
        let times = |hop: &Hop| if hop.per_cell { scenario.served_cells() as u64 } else { 1 };
        let narrowest = scenario.core.hops.iter().map(|hop| hop.rate.0 * times(hop)).min();
        Self {
            segment: scenario.tcp.segment_size.0 as f64,
            header: scenario.ack_filter.header.0 as f64,
            hop_mbps: narrowest.map(|rate| rate as f64 / 1e6),
            uplink_for_data: 1.0 - f64::from(cell.pucch_prb) / f64::from(uplink),
            sr_occasions_per_s: 1000.0 / cell.sr_period.as_millis().max(1) as f64,
        }
    }
}

impl Experiment<'_> {
    /// Which resource is used up, and how far the others are.
    pub(super) fn limit(&self, scheme: usize, stations: u64) -> String {
        let (t, network) = (self.mean(scheme, stations), &self.network);
        let uplink = t.uplink_prb_share / network.uplink_for_data;
        let wire = t.goodput_mbps * (network.segment + ACK_BYTES) / network.segment;
        let hop = network.hop_mbps.map(|rate| wire / rate);
        let requests = t.scheduling_requests_per_s / (network.sr_occasions_per_s * stations as f64);
        let resources = [
            ("the uplink's resource blocks", uplink),
            ("the uplink's grants", t.uplink_grant_share),
            ("the downlink's resource blocks", t.downlink_prb_share),
            ("the narrowest wired hop", hop.unwrap_or(0.0)),
            ("the scheduling request occasions", requests),
        ];
        let full: Vec<&str> =
            resources.iter().filter(|(_, share)| *share >= FULL).map(|(name, _)| *name).collect();
        let limit = match full[..] {
            [] => format!("no resource is used to {:.0}%", 100.0 * FULL),
            _ => format!("used up: {}", full.join(" and ")),
        };
        let hop = hop.map_or(String::new(), |share| format!(", hop {:.0}%", 100.0 * share));
        format!(
            "{} with {stations} stations, {limit} (downlink blocks {:.0}%, uplink blocks {:.0}%, uplink grants {:.0}%{hop}, SR occasions {:.0}% and {:.0} ms of waiting, grants short of power {:.0}%, HARQ repetitions {:.0}%)",
            SCHEMES[scheme],
            100.0 * t.downlink_prb_share,
            100.0 * uplink,
            100.0 * t.uplink_grant_share,
            100.0 * requests,
            t.sr_wait_mean_ms,
            100.0 * t.uplink_power_limited_share,
            100.0 * t.harq_retransmission_share,
        )
    }

    /// The thresholds that the stations' mean downlink blocks give.
    pub(super) fn optimum(&self, stations: u64) -> String {
        let acks = 2.0 * (self.network.segment + self.network.header);
        let of = |station: &StationResult| (station.downlink_block_bytes / acks).floor().max(1.0);
        let all: Vec<f64> =
            self.at(OPT, stations).iter().flat_map(|run| run.stations.iter().map(of)).collect();
        let (low, high) = all.iter().fold((f64::INFINITY, 1.0f64), |(l, h), t| (l.min(*t), h.max(*t)));
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        format!(
            "a station's own threshold is {mean:.1} on average ({:.0} to {high:.0}) against the common 6",
            low.min(high)
        )
    }

    pub(super) fn discarded(&self, scheme: usize, stations: u64) -> String {
        let t = self.mean(scheme, stations);
        let share = if t.acks_in_per_s > 0.0 { t.acks_discarded_per_s / t.acks_in_per_s } else { 0.0 };
        format!("{} discards {:.0}% of the ACKs of {stations} stations", SCHEMES[scheme], 100.0 * share)
    }
}
