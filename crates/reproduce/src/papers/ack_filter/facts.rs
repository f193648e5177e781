//! Explanations of rows: sentences from counters.

use super::experiment::{ACK_BYTES, Experiment, OPT, SCHEMES};
use paceline_sim::results::StationResult;

/// Share of its capacity from which on a resource counts as used up. Chosen: scheduling leaves a few percent
/// unused.
const FULL_SHARE: f64 = 0.9;

impl Experiment<'_> {
    /// The resources that are used up, and the use of all.
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
            resources.iter().filter(|(_, share)| *share >= FULL_SHARE).map(|(name, _)| *name).collect();
        let limit = match full[..] {
            [] => format!("no resource is used to {:.0}%", 100.0 * FULL_SHARE),
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

    /// The per-station optimal thresholds that follow from the stations' mean downlink transport blocks.
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

    /// Share of the ACKs that a scheme discards.
    pub(super) fn discarded(&self, scheme: usize, stations: u64) -> String {
        let t = self.mean(scheme, stations);
        let share = if t.acks_in_per_s > 0.0 { t.acks_discarded_per_s / t.acks_in_per_s } else { 0.0 };
        format!("{} discards {:.0}% of the ACKs of {stations} stations", SCHEMES[scheme], 100.0 * share)
    }
}
