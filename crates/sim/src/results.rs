//! The figures of a run and of several runs, and the files they are written as.
//!
//! `summary.json` has one entry per seed and, over seeds, the mean with its 95% confidence interval (Student's t).
//! Rates count from the end of the warm-up.

mod limits;
mod series;
mod totals;
mod uplink;

pub use limits::{GroupResult, LimitShares, RadioWaits, Waits};
pub use series::Sample;
pub(crate) use totals::{PerTti, totals, with_waits};
pub use totals::{Totals, jain};
pub use uplink::UplinkResult;

use crate::counters::Counters;
use crate::model::Access;
use crate::scenario::Scenario;
use paceline_net::Duration;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::fmt::Write;

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
    /// Mean times in the radio, ms.
    pub waits: RadioWaits,
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
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// When the sender of a finite transfer knew it to be complete, in seconds: with an accelerator before it is.
    pub completed_s: Option<f64>,
    /// When the receiver had all of it.
    #[serde(default)]
    pub received_s: Option<f64>,
    /// From its first SYN to the last acknowledgment, or to the end of the run, in seconds.
    pub life_s: f64,
    /// Mean round-trip time that its sender measured, ms.
    pub rtt_mean_ms: f64,
    /// What its sender waited for, as shares of its life.
    pub limits: LimitShares,
    /// Where its round-trip time passes in the radio, as shares of it: means over its station's packets.
    pub round_trip: RadioWaits,
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
    /// Station by station, what its connections waited for.
    #[serde(skip)]
    pub waits: Vec<Waits>,
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
    /// Why TCP is as slow as it is: group by group of simulated stations, over all runs.
    pub groups: Vec<GroupResult>,
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
            groups: groups(scenario, &runs),
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
            "seed,station,goodput_mbps,upload_mbps,acks_in,acks_discarded,acks_sent,rtt_mean_ms,downlink_mcs,uplink_mcs,downlink_block_bytes,scheduling_requests,sr_wait_mean_ms,sr_failures,random_accesses,preambles,preamble_collisions,random_access_failures,random_access_mean_ms,reestablishments,reestablishment_mean_ms,uplink_grants,block_limited_share,power_limited_share,uplink_harq_retransmission_share,headroom_mean_db,downlink_queue_ms,grant_ms,uplink_queue_ms,downlink_harq_ms,uplink_harq_ms,sector,x_m,y_m,coupling_loss_db\n",
        );
        for (run, s) in self.runs.iter().flat_map(|run| run.stations.iter().map(move |s| (run, s))) {
            let waits: Vec<String> = s.waits.values().iter().map(|wait| format!("{wait:.3}")).collect();
            let waits = waits.join(",");
            let place = s.place.map_or(String::from(",,"), |place| {
                format!("{:.1},{:.1},{:.2}", place.x_m, place.y_m, place.coupling_loss_db)
            });
            let _ = writeln!(
                csv,
                "{},{},{:.6},{:.6},{},{},{},{:.3},{:.3},{:.3},{:.1},{},{},{waits},{},{place}",
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
        let mut csv = String::from(
            "seed,station,flow,bytes,retransmissions,timeouts,completed_s,received_s,segments,life_s,rtt_mean_ms",
        );
        for (names, suffix) in [(LimitShares::NAMES, "_share"), (RadioWaits::NAMES, "_rtt_share")] {
            names.iter().for_each(|name| csv += &format!(",{name}{suffix}"));
        }
        csv.push('\n');
        for (run, f) in self.runs.iter().flat_map(|run| run.flows.iter().map(move |f| (run, f))) {
            let [completed, received] =
                [f.completed_s, f.received_s].map(|at| at.map_or(String::new(), |s| format!("{s:.6}")));
            let _ = write!(
                csv,
                "{},{},{},{},{},{},{completed},{received},{},{:.6},{:.3}",
                run.seed,
                f.station,
                f.flow,
                f.bytes,
                f.retransmissions,
                f.timeouts,
                f.segments,
                f.life_s,
                f.rtt_mean_ms
            );
            let shares = f.limits.values().into_iter().chain(f.round_trip.values());
            shares.for_each(|share| csv += &format!(",{share:.6}"));
            csv.push('\n');
        }
        csv
    }
}

/// What the connections of each group of stations waited for; groups without are left out.
fn groups(scenario: &Scenario, runs: &[RunResult]) -> Vec<GroupResult> {
    let mut first = 0;
    let mut results = Vec::new();
    for (group, stations) in scenario.stations.iter().enumerate() {
        let members = first..first + stations.count as usize;
        first = members.end;
        let mut waits = Waits::default();
        for run in runs {
            run.waits.iter().take(members.end).skip(members.start).for_each(|own| waits.add(own));
        }
        if waits.any() {
            results.push(GroupResult::new(group, stations.count, &waits));
        }
    }
    results
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
        waits: RadioWaits::new(counters),
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
            waits: Vec::new(),
            samples: Vec::new(),
        };
        let (mean, ci95) = mean_and_ci95(&[run(10.0), run(12.0), run(14.0)]);
        assert_eq!(mean.goodput_mbps, 12.0);
        // t(0.975, 2) = 4.30265, s = 2, n = 3.
        assert!((ci95.unwrap().goodput_mbps - 4.30265 * 2.0 / 3.0f64.sqrt()).abs() < 1e-4);
        assert_eq!(mean_and_ci95(&[run(1.0)]).1, None);
    }
}
