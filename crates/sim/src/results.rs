//! The figures of a run and of several runs, and the files they are written as.
//!
//! `summary.json` has one entry per seed and, over seeds, the mean with its 95% confidence interval (Student's t).
//! Rates count from the end of the warm-up.

mod uplink;

pub use uplink::UplinkResult;

use crate::counters::Counters;
use crate::model::Access;
use crate::scenario::Scenario;
use paceline_net::{Duration, Instant};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::fmt::Write;

macro_rules! totals {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The figures of the whole cell in one run.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Totals {
            $($(#[$doc])* pub $field: f64,)*
        }
        impl Totals {
            /// The names of all figures, in order.
            pub fn names() -> &'static [&'static str] {
                &[$(stringify!($field)),*]
            }
            /// Their values, in this order.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$field),*]
            }
            fn from_values(values: &[f64]) -> Self {
                let mut values = values.iter().copied();
                Self { $($field: values.next().unwrap_or_default()),* }
            }
        }
    };
}

totals! {
    /// Payload acknowledged towards the stations, Mb/s.
    goodput_mbps,
    /// Payload acknowledged from the stations, Mb/s.
    upload_mbps,
    /// Pure ACKs that reached the uplink buffers, per second.
    acks_in_per_s,
    /// Pure ACKs that the filter discarded, per second.
    acks_discarded_per_s,
    /// Pure ACKs sent over the uplink, per second.
    acks_sent_per_s,
    /// Mean round-trip time from data segment to ACK at the servers, ms.
    rtt_mean_ms,
    /// Its 95th percentile, ms.
    rtt_p95_ms,
    /// Share of data segments that were sent before.
    retransmission_share,
    /// Jain's fairness index over the stations' goodput.
    jain_index,
    /// Mean transport block downlink, bytes.
    downlink_block_bytes,
    /// Share of downlink resource blocks used.
    downlink_prb_share,
    /// Share of uplink resource blocks used.
    uplink_prb_share,
    /// Share of the uplink grants that a TTI may have that were given.
    uplink_grant_share,
    /// Share of transmissions that HARQ repeated, both directions.
    harq_retransmission_share,
    /// Scheduling requests per second.
    scheduling_requests_per_s,
    /// Mean time from data in an empty uplink buffer to the block that a scheduling request earned, ms.
    sr_wait_mean_ms,
    /// Random access procedures begun per second.
    random_accesses_per_s,
    /// Mean time from their begin to contention resolution, ms.
    random_access_mean_ms,
    /// Share of preambles that collided.
    preamble_collision_share,
    /// Share of uplink grants that a shortage of resource blocks kept small.
    uplink_block_limited_share,
    /// Share of uplink grants that the stations' power kept small.
    uplink_power_limited_share,
    /// Stations with simulated traffic that got nothing through: out of coverage, or starved.
    stations_without_service,
    /// Packets dropped at the eNB's buffers, per second.
    downlink_queue_drops_per_s,
    /// Packets lost below the buffers, per second, both directions: by HARQ, reassembly and radio-link failures.
    radio_losses_per_s,
    /// Packets that PDCP's discard timer ended, per second, both directions.
    pdcp_discards_per_s,
    /// Packets dropped at the uplink queue of a link in place of the cell, per second.
    uplink_queue_drops_per_s,
    /// What the downlinks of a link in place of the cell can have carried, Mb/s, headers included.
    link_capacity_mbps,
    /// What they sent, Mb/s, headers and lost packets included.
    link_sent_mbps,
    /// Mean time of a packet from its arrival at their queue to its last byte sent, ms.
    link_delay_mean_ms,
    /// Its 95th percentile, ms.
    link_delay_p95_ms,
    /// Share of UDP datagrams that did not arrive, counting those still under way at the end.
    udp_loss_share,
    /// Mean one-way delay of UDP datagrams, ms.
    udp_delay_mean_ms,
}

/// The figures of one station in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResult {
    /// Index from 0.
    pub station: usize,
    /// Payload acknowledged towards it, Mb/s.
    pub goodput_mbps: f64,
    /// Payload acknowledged from it, Mb/s.
    pub upload_mbps: f64,
    /// Pure ACKs that reached its uplink buffer.
    pub acks_in: u64,
    /// Pure ACKs discarded.
    pub acks_discarded: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Mean round-trip time, ms.
    pub rtt_mean_ms: f64,
    /// Mean downlink MCS.
    pub downlink_mcs: f64,
    /// Mean uplink MCS.
    pub uplink_mcs: f64,
    /// Mean downlink transport block, bytes: S_TBS of the per-station optimum.
    pub downlink_block_bytes: f64,
    /// Scheduling requests sent.
    pub scheduling_requests: u64,
    /// What its uplink waits for.
    pub uplink: UplinkResult,
    /// The cell that serves it: a sector of the served sites in a deployment.
    pub sector: usize,
    /// Where it stands in a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceResult>,
}

/// A station's place in a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceResult {
    /// Metres east of the middle site.
    pub x_m: f64,
    /// Metres north of it.
    pub y_m: f64,
    /// Coupling loss to the serving cell in dB: path loss, shadowing, penetration and antennas.
    pub coupling_loss_db: f64,
}

/// One connection of a simulated station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its station.
    pub station: usize,
    /// Index within the station.
    pub flow: usize,
    /// Payload bytes acknowledged in the whole run.
    pub bytes: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// When a finite transfer was complete, in seconds.
    pub completed_s: Option<f64>,
}

/// One moment of one station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Which station.
    pub station: usize,
    /// Payload acknowledged so far, bytes.
    pub downloaded: u64,
    /// Congestion windows of its connections together, bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time of its first connection, ms; zero before the first sample.
    pub srtt_ms: f64,
    /// Bytes waiting in the eNB.
    pub downlink_queue: u64,
    /// Bytes waiting in its uplink buffer.
    pub uplink_queue: u64,
    /// ACKs sent so far.
    pub acks_sent: u64,
    /// Sum of the times of a link's downlink packets from arrival to last byte sent, so far, ns.
    pub queued_ns: u64,
    /// Their number.
    pub link_sent: u64,
    /// Bytes that the downlink of a link can have carried so far; none for a cell.
    pub capacity: Option<u64>,
}

/// Everything of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Its seed.
    pub seed: u64,
    /// Seconds that count.
    pub measured_s: f64,
    /// The whole cell.
    pub totals: Totals,
    /// Station by station.
    pub stations: Vec<StationResult>,
    /// Connection by connection.
    pub flows: Vec<FlowResult>,
    /// The time series.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Which program made a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Version of Paceline.
    pub version: String,
    /// Commit it was built from.
    pub commit: String,
}

/// All runs of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Which program.
    pub paceline: Origin,
    /// The scenario's name.
    pub scenario: String,
    /// `simulated` or `emulated`.
    pub mode: &'static str,
    /// The ACK filter's scheme.
    pub scheme: String,
    /// Stations in the cell.
    pub stations: u64,
    /// Seconds that count.
    pub measured_s: f64,
    /// Mean over seeds.
    pub mean: Totals,
    /// Half width of the 95% confidence interval; absent with one seed.
    pub ci95: Option<Totals>,
    /// Seed by seed.
    pub runs: Vec<RunResult>,
}

impl Summary {
    /// Summarises the runs of one scenario.
    pub fn new(
        paceline: Origin,
        name: &str,
        mode: &'static str,
        scenario: &Scenario,
        runs: Vec<RunResult>,
    ) -> Self {
        let (mean, ci95) = mean_and_ci95(&runs);
        Self {
            paceline,
            scenario: name.to_owned(),
            mode,
            scheme: scenario.ack_filter.scheme.to_string(),
            stations: scenario.station_count(),
            measured_s: runs.first().map_or(0.0, |run| run.measured_s),
            mean,
            ci95,
            runs,
        }
    }
    /// `summary.json`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("results are plain data");
        text.push('\n');
        text
    }
    /// `stations.csv`.
    pub fn stations_csv(&self) -> String {
        let mut csv = String::from(
            "seed,station,goodput_mbps,upload_mbps,acks_in,acks_discarded,acks_sent,rtt_mean_ms,downlink_mcs,uplink_mcs,downlink_block_bytes,scheduling_requests,sr_wait_mean_ms,sr_failures,random_accesses,preambles,preamble_collisions,random_access_failures,random_access_mean_ms,reestablishments,reestablishment_mean_ms,uplink_grants,block_limited_share,power_limited_share,uplink_harq_retransmission_share,headroom_mean_db,sector,x_m,y_m,coupling_loss_db\n",
        );
        for (run, s) in self.runs.iter().flat_map(|run| run.stations.iter().map(move |s| (run, s))) {
            let place = s.place.map_or(String::from(",,"), |place| {
                format!("{:.1},{:.1},{:.2}", place.x_m, place.y_m, place.coupling_loss_db)
            });
            let _ = writeln!(
                csv,
                "{},{},{:.6},{:.6},{},{},{},{:.3},{:.3},{:.3},{:.1},{},{},{},{place}",
                run.seed,
                s.station,
                s.goodput_mbps,
                s.upload_mbps,
                s.acks_in,
                s.acks_discarded,
                s.acks_sent,
                s.rtt_mean_ms,
                s.downlink_mcs,
                s.uplink_mcs,
                s.downlink_block_bytes,
                s.scheduling_requests,
                s.uplink.csv(),
                s.sector
            );
        }
        csv
    }
    /// `flows.csv`.
    pub fn flows_csv(&self) -> String {
        let mut csv = String::from("seed,station,flow,bytes,retransmissions,timeouts,completed_s\n");
        for (run, f) in self.runs.iter().flat_map(|run| run.flows.iter().map(move |f| (run, f))) {
            let completed = f.completed_s.map_or(String::new(), |s| format!("{s:.6}"));
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{completed}",
                run.seed, f.station, f.flow, f.bytes, f.retransmissions, f.timeouts
            );
        }
        csv
    }
    /// `timeseries.csv`.
    pub fn timeseries_csv(&self) -> String {
        let header = "seed,time_s,station,downloaded,cwnd,srtt_ms,downlink_queue,uplink_queue,acks_sent,link_queued_ns,link_sent,link_capacity\n";
        let mut csv = String::from(header);
        for (run, s) in self.runs.iter().flat_map(|run| run.samples.iter().map(move |s| (run, s))) {
            let _ = writeln!(
                csv,
                "{},{:.3},{},{},{},{:.3},{},{},{},{},{},{}",
                run.seed,
                s.at.as_secs_f64(),
                s.station,
                s.downloaded,
                s.cwnd,
                s.srtt_ms,
                s.downlink_queue,
                s.uplink_queue,
                s.acks_sent,
                s.queued_ns,
                s.link_sent,
                s.capacity.map_or(String::new(), |bytes| bytes.to_string())
            );
        }
        csv
    }
}

/// Mean over runs and, for two or more, the half width of its 95% confidence interval.
pub fn mean_and_ci95(runs: &[RunResult]) -> (Totals, Option<Totals>) {
    let columns: Vec<Vec<f64>> = transpose(runs.iter().map(|run| run.totals.values()));
    let figures: Vec<(f64, Option<f64>)> = columns.iter().map(|column| mean_and_half(column)).collect();
    let means: Vec<f64> = figures.iter().map(|(mean, _)| *mean).collect();
    let halves: Option<Vec<f64>> = figures.iter().map(|(_, half)| *half).collect();
    (
        Totals::from_values(&means),
        halves.filter(|_| runs.len() > 1).map(|halves| Totals::from_values(&halves)),
    )
}

/// Mean of some values and, for two or more, the half width of its 95% confidence interval (Student's t).
pub fn mean_and_half(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let half = (values.len() > 1).then(|| {
        let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("there are degrees of freedom").inverse_cdf(0.975);
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        six_digits(t * libm_sqrt(variance / n))
    });
    (mean, half)
}

fn transpose(rows: impl Iterator<Item = Vec<f64>>) -> Vec<Vec<f64>> {
    let mut columns = Vec::new();
    for row in rows {
        columns.resize_with(row.len(), Vec::new);
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}

/// The square root is exact by IEEE 754, on every machine.
fn libm_sqrt(x: f64) -> f64 {
    x.max(0.0).sqrt()
}

/// Student's quantile comes from a library on the platform's own functions: its last digits are cut off.
fn six_digits(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// Mean or zero.
fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// What all served cells together have in a TTI.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PerTti {
    pub downlink_prb: u64,
    pub uplink_prb: u64,
    pub uplink_grants: u64,
}

/// What a run's counters and the cells' size say.
pub(crate) fn totals(stations: &[Counters], span: Duration, per_tti: PerTti, rtt_p95_us: u64) -> Totals {
    let seconds = span.as_secs_f64();
    let mut all = Counters::default();
    stations.iter().for_each(|station| all.add(station));
    let mbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
    let per_second = |count: u64| count as f64 / seconds;
    let harq = all.downlink_harq_retransmissions + all.uplink_harq_retransmissions;
    let ttis = seconds * 1000.0;
    let of_ttis =
        |used: u64, per_tti: u64| if per_tti == 0 { 0.0 } else { used as f64 / (ttis * per_tti as f64) };
    Totals {
        goodput_mbps: mbps(all.downloaded),
        upload_mbps: mbps(all.uploaded),
        acks_in_per_s: per_second(all.acks_in),
        acks_discarded_per_s: per_second(all.acks_discarded),
        acks_sent_per_s: per_second(all.acks_sent),
        rtt_mean_ms: ratio(all.rtt_sum, all.rtt_count) / 1e6,
        rtt_p95_ms: rtt_p95_us as f64 / 1000.0,
        retransmission_share: ratio(all.retransmissions, all.segments),
        jain_index: jain(stations.iter().map(|s| (s.downloaded + s.uploaded) as f64)),
        downlink_block_bytes: ratio(all.downlink_block_bytes, all.downlink_blocks),
        downlink_prb_share: of_ttis(all.downlink_prb, per_tti.downlink_prb),
        uplink_prb_share: of_ttis(all.uplink_prb, per_tti.uplink_prb),
        uplink_grant_share: of_ttis(all.grants, per_tti.uplink_grants),
        harq_retransmission_share: ratio(harq, all.downlink_blocks + all.uplink_blocks + harq),
        scheduling_requests_per_s: per_second(all.scheduling_requests),
        sr_wait_mean_ms: ratio(all.request_wait_ns, all.request_waits) / 1e6,
        random_accesses_per_s: per_second(all.random_accesses),
        random_access_mean_ms: ratio(all.resolved_ttis, all.resolved),
        preamble_collision_share: ratio(all.collisions, all.preambles),
        uplink_block_limited_share: ratio(all.block_limited, all.grants),
        uplink_power_limited_share: ratio(all.power_limited, all.grants),
        stations_without_service: 0.0, // who has traffic is not in the counters
        downlink_queue_drops_per_s: per_second(all.downlink_queue_drops),
        radio_losses_per_s: per_second(all.radio_losses),
        pdcp_discards_per_s: per_second(all.pdcp_discards),
        uplink_queue_drops_per_s: per_second(all.uplink_queue_drops),
        link_capacity_mbps: 0.0, // the link's own affair, as its distribution of delays is
        link_sent_mbps: mbps(all.link_bytes),
        link_delay_mean_ms: ratio(all.link_queued_ns, all.link_sent) / 1e6,
        link_delay_p95_ms: 0.0,
        udp_loss_share: ratio(all.udp_sent.saturating_sub(all.udp_received), all.udp_sent),
        udp_delay_mean_ms: ratio(all.udp_delay_ns, all.udp_received) / 1e6,
    }
}

/// Jain's fairness index; 1 where nothing was shared.
pub fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) = shares.fold((0.0, 0.0, 0.0), |(n, s, q), x| (n + 1.0, s + x, q + x * x));
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

/// One station's figures.
pub(crate) fn station(
    index: usize,
    counters: &Counters,
    span: Duration,
    access: Access<'_>,
) -> StationResult {
    let cell = match access {
        Access::Cell(cell) => Some(cell),
        Access::Link(_) => None,
    };
    let mbps = |bytes: u64| bytes as f64 * 8.0 / span.as_secs_f64() / 1e6;
    StationResult {
        station: index,
        goodput_mbps: mbps(counters.downloaded),
        upload_mbps: mbps(counters.uploaded),
        acks_in: counters.acks_in,
        acks_discarded: counters.acks_discarded,
        acks_sent: counters.acks_sent,
        rtt_mean_ms: ratio(counters.rtt_sum, counters.rtt_count) / 1e6,
        downlink_mcs: ratio(counters.downlink_mcs_sum, counters.downlink_blocks),
        uplink_mcs: ratio(counters.uplink_mcs_sum, counters.uplink_blocks),
        downlink_block_bytes: ratio(counters.downlink_block_bytes, counters.downlink_blocks),
        scheduling_requests: counters.scheduling_requests,
        uplink: UplinkResult::new(counters, cell.and_then(|cell| cell.power_correction_db(index))),
        sector: cell.map_or(0, |cell| cell.serving(index)),
        place: cell.and_then(|cell| cell.place(index)).map(|(point, coupling_loss_db)| PlaceResult {
            x_m: point.x,
            y_m: point.y,
            coupling_loss_db,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_intervals_follow_student() {
        let run = |goodput_mbps| RunResult {
            seed: 1,
            measured_s: 1.0,
            totals: Totals { goodput_mbps, ..Totals::default() },
            stations: Vec::new(),
            flows: Vec::new(),
            samples: Vec::new(),
        };
        let (mean, ci95) = mean_and_ci95(&[run(10.0), run(12.0), run(14.0)]);
        assert_eq!(mean.goodput_mbps, 12.0);
        // t(0.975, 2) = 4.30265, s = 2, n = 3.
        assert!((ci95.unwrap().goodput_mbps - 4.30265 * 2.0 / 3.0f64.sqrt()).abs() < 1e-4);
        assert_eq!(mean_and_ci95(&[run(1.0)]).1, None);
    }

    #[test]
    fn jain_is_one_for_equal_shares() {
        assert_eq!(jain([2.0, 2.0].into_iter()), 1.0);
        assert_eq!(jain([1.0, 0.0].into_iter()), 0.5);
        assert_eq!(jain([0.0, 0.0].into_iter()), 1.0);
    }
}
