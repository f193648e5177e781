//! Figures of a group of stations, the stations of one `[[station]]` table, over all runs.

use super::limits::{LimitShares, RadioDelays, SenderSums};
use super::run::{RunResult, StationResult};
use super::statistics::{jain, ratio};
use serde::{Deserialize, Serialize};

/// Figures and limits of TCP for one group of stations, over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Index of the group's `[[station]]` table.
    pub group: usize,
    /// Number of stations.
    pub stations: u64,
    /// Number of connections over all runs.
    pub flows: u64,
    /// Downloaded payload of all stations of the group, Mb/s; mean over runs.
    #[serde(default)]
    pub goodput_mbps: f64,
    /// Uploaded payload of all stations of the group, Mb/s; mean over runs.
    #[serde(default)]
    pub upload_mbps: f64,
    /// Downloaded payload per station, Mb/s; mean over runs.
    #[serde(default)]
    pub goodput_per_station_mbps: f64,
    /// Uploaded payload per station, Mb/s; mean over runs.
    #[serde(default)]
    pub upload_per_station_mbps: f64,
    /// Jain's fairness index of the goodput of the group's stations; mean over runs.
    #[serde(default)]
    pub jain_index: f64,
    /// Retransmissions among the segments with payload.
    #[serde(default)]
    pub retransmission_share: f64,
    /// Mean round-trip time that the senders measured, ms.
    pub rtt_mean_ms: f64,
    /// Shares of the connections' lifetimes.
    pub limits: LimitShares,
    /// Radio delays as shares of the mean round-trip time.
    pub round_trip: RadioDelays,
    /// The largest limit, in words.
    pub verdict: String,
}

impl GroupResult {
    /// The stations of `group` in all runs; none without simulated connections.
    pub(super) fn of_runs(group: usize, runs: &[RunResult]) -> Option<Self> {
        let mut sums = SenderSums::default();
        let (mut count, mut downloads, mut uploads, mut jains) = (0, 0.0, 0.0, 0.0);
        for run in runs {
            let members = run.stations.iter().filter(|station| station.group == group);
            let members: Vec<&StationResult> = members.collect();
            members.iter().filter_map(|own| run.senders.get(own.station)).for_each(|own| sums.add(own));
            count = members.len() as u64;
            downloads += members.iter().map(|own| own.goodput_mbps).sum::<f64>();
            uploads += members.iter().map(|own| own.upload_mbps).sum::<f64>();
            jains += jain(members.iter().map(|own| own.goodput_mbps + own.upload_mbps));
        }
        let (number, stations) = (runs.len().max(1) as f64, count.max(1) as f64);
        sums.any().then(|| Self {
            group,
            stations: count,
            flows: sums.flows,
            goodput_mbps: downloads / number,
            upload_mbps: uploads / number,
            goodput_per_station_mbps: downloads / number / stations,
            upload_per_station_mbps: uploads / number / stations,
            jain_index: jains / number,
            retransmission_share: ratio(sums.retransmissions, sums.segments),
            rtt_mean_ms: sums.rtt_ms(),
            limits: LimitShares::new(&sums.times),
            round_trip: sums.round_trip(),
            verdict: sums.verdict(),
        })
    }
}
