//! Figures of one run.

use super::kernel::KernelConnection;
use super::limits::{ConnectionSenders, LimitShares, RadioDelays, SenderSums, StationSenders, path_uses};
use super::network::handover::HandoverResult;
use super::network::paths::{self, PathResult, SwitchResult};
use super::network::queue::QueueResult;
use super::network::router::{PolicerResult, RouterResult};
use super::ping::PingResult;
use super::run_group::RunGroup;
use super::service;
use super::statistics::{mbps, number_or_nan, ratio};
use super::totals::{self, Totals};
use super::uplink::UplinkResult;
use crate::counters::{CellReading, ConnectionReading, Counters, EndReading, Reading, StationReading};
use paceline_net::{Duration, Instant};
use paceline_pep::accelerator::DeviceSnapshot;
use serde::{Deserialize, Serialize};

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Seed of the random streams.
    pub seed: u64,
    /// Length of the measured interval, seconds: from the end of the warm-up to the end of the run.
    pub measured_s: f64,
    /// Figures of all stations together.
    pub totals: Totals,
    /// Figures of each group of stations.
    #[serde(default)]
    pub groups: Vec<RunGroup>,
    /// Figures of each station.
    pub stations: Vec<StationResult>,
    /// Start of the measured interval, seconds; of an emulation, whose programs may end within the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_from_s: Option<f64>,
    /// Figures of each connection of the simulated stations.
    pub flows: Vec<FlowResult>,
    /// Figures of queues with active management.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueResult>,
    /// Packets that each path of a pair of stations with a direct link has carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathResult>,
    /// Changes of path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchResult>,
    /// Changes of the serving cell, with `[handover]` or after radio-link failures in a deployment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handovers: Vec<HandoverResult>,
    /// Figures of routers with a service time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routers: Vec<RouterResult>,
    /// Figures of ACK policers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policers: Vec<PolicerResult>,
    /// Figures of pings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pings: Vec<PingResult>,
    /// Connections of the real stations of an emulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_connections: Vec<KernelConnection>,
    /// The senders of each station's connections.
    #[serde(skip)]
    pub senders: Vec<StationSenders>,
    /// Time series: each station at each sample.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// Figures of one station in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResult {
    /// Index from 0.
    pub station: usize,
    /// Index of the station's `[[station]]` table.
    #[serde(default)]
    pub group: usize,
    /// Downloaded payload that the station acknowledged, Mb/s.
    pub goodput_mbps: f64,
    /// Uploaded payload that the server acknowledged, Mb/s.
    pub upload_mbps: f64,
    /// Pure ACKs that arrived at the uplink buffer.
    pub acks_in: u64,
    /// Pure ACKs that the ACK filter discarded.
    pub acks_discarded: u64,
    /// Pure ACKs that left the uplink buffer.
    pub acks_sent: u64,
    /// Mean round-trip time, ms; NaN of a real station without a measurement.
    #[serde(deserialize_with = "number_or_nan")]
    pub rtt_mean_ms: f64,
    /// Mean MCS index of downlink transport blocks.
    pub downlink_mcs: f64,
    /// Mean MCS index of uplink transport blocks.
    pub uplink_mcs: f64,
    /// Mean of the effective SINRs in dB of downlink transport blocks, at their first transmissions; none
    /// without blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downlink_sinr_db: Option<f64>,
    /// The same of uplink transport blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_sinr_db: Option<f64>,
    /// Mean size of downlink transport blocks, bytes: S_TBS of the per-station optimum (Ohta et al. 2018).
    pub downlink_block_bytes: f64,
    /// Scheduling requests sent.
    pub scheduling_requests: u64,
    /// Resources that limit the uplink.
    pub uplink: UplinkResult,
    /// Mean delays in the radio access, ms.
    pub waits: RadioDelays,
    /// Cause for which a station with simulated traffic has no acknowledged payload, where the radio has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_service: Option<String>,
    /// Index of the serving cell; in a deployment a sector of the served sites.
    pub sector: usize,
    /// Position, in a deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceResult>,
}

/// Position of a station in a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceResult {
    /// Metres east of the middle site.
    pub x_m: f64,
    /// Metres north of the middle site.
    pub y_m: f64,
    /// Coupling loss to the serving cell, dB: path loss, shadowing, penetration and antenna gains.
    pub coupling_loss_db: f64,
}

/// Figures of one connection of a simulated station, over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Index of the station.
    pub station: usize,
    /// Index of the connection within the station.
    pub flow: usize,
    /// Payload bytes acknowledged.
    pub bytes: u64,
    /// Segments with payload sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Time at which the sender of a finite transfer had every byte acknowledged, seconds. An accelerator
    /// acknowledges early: then this is before `received_s`.
    pub completed_s: Option<f64>,
    /// Time at which the receiver of a finite transfer had every byte, seconds.
    #[serde(default)]
    pub received_s: Option<f64>,
    /// Mean time for which an accelerator had stored data when it sent them, ms; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_ms: Option<f64>,
    /// Time from the first SYN to the last acknowledgment, or to the end of the run, seconds.
    pub life_s: f64,
    /// Mean round-trip time that the sender measured, ms.
    pub rtt_mean_ms: f64,
    /// Shares of the lifetime, by the limit of the sender.
    pub limits: LimitShares,
    /// Radio delays of the station's packets as shares of the mean round-trip time; behind a proxy, of the
    /// radio side's.
    pub round_trip: RadioDelays,
}

/// One sample of one station. Bytes, ACKs and packets count from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Simulated time.
    pub at: Instant,
    /// Index of the station.
    pub station: usize,
    /// Downloaded payload bytes acknowledged so far.
    pub downloaded: u64,
    /// Congestion windows of the servers' endpoints, summed, bytes; none of a real station without a reading
    /// of the kernel.
    pub cwnd: Option<u64>,
    /// Smoothed round-trip time of the first connection, ms; zero before its first measurement, none of a
    /// real station without a reading of the kernel.
    pub srtt_ms: Option<f64>,
    /// Bytes in the eNB's downlink buffer, or in the downlink queue of a link.
    pub downlink_queue: u64,
    /// Bytes in the station's uplink buffer, or in the uplink queue of a link.
    pub uplink_queue: u64,
    /// Pure ACKs sent so far.
    pub acks_sent: u64,
    /// Sum over a link's downlink packets so far of the time from arrival to the last byte sent, ns.
    pub queued_ns: u64,
    /// Packets in this sum.
    pub link_sent: u64,
    /// Bytes that the downlink of a link could have carried so far; none for a cell.
    pub capacity: Option<u64>,
    /// Mean MCS index of downlink transport blocks since the previous sample; none without a block.
    pub downlink_mcs: Option<f64>,
    /// Mean MCS index of uplink transport blocks since the previous sample; none without a block.
    pub uplink_mcs: Option<f64>,
    /// The accelerator's state of the station; none without connections there.
    pub accelerator: Option<DeviceSnapshot>,
}

/// Readings of one run, from which its figures are computed.
#[derive(Debug)]
pub(crate) struct Record {
    pub seed: u64,
    /// Per station, the index of its `[[station]]` table.
    pub groups: Vec<usize>,
    /// Names of the groups.
    pub group_names: Vec<String>,
    /// Start of the measured interval with the reading there; none if it is the start of the run.
    pub first: Option<(Instant, Reading)>,
    pub last: Reading,
    pub end: EndReading,
    pub samples: Vec<Sample>,
}

impl RunResult {
    /// Index of a station's group.
    pub(super) fn group_of(&self, station: usize) -> usize {
        self.stations.get(station).map_or(0, |own| own.group)
    }
    /// Figures from readings.
    pub(crate) fn new(record: Record) -> Self {
        let Record { seed, groups, group_names, first, last, end, samples } = record;
        let started_at = first.as_ref().map_or(Instant::ZERO, |(at, _)| *at);
        let span = last.at.since(started_at);
        let measured = measured(first.as_ref().map(|(_, reading)| reading), &last);
        let (flows, mut senders) = flows(&end.connections, &last.stations);
        let lives = flows.iter().map(|flow| Duration::from_secs_f64(flow.life_s));
        let life = lives.max().unwrap_or(Duration::ZERO);
        let paths = path_uses(&last.stations, &end, last.link_capacity_bytes, life);
        senders.iter_mut().zip(paths).for_each(|(own, path)| own.path = path);
        let mut all = StationSenders::default();
        senders.iter().for_each(|own| all.add(own));
        let totals = totals::of_counters(&measured, span, end.radio);
        let capacity = last.link_capacity_bytes.map(|bytes| {
            bytes - first.as_ref().and_then(|(_, reading)| reading.link_capacity_bytes).unwrap_or(0)
        });
        let totals = Totals {
            rtt_p95_ms: end.rtt_p95_us as f64 / 1000.0,
            stations_without_service: without_service(&measured, &end.connections) as f64,
            link_capacity_mbps: capacity.map_or(0.0, |bytes| mbps(bytes, span.as_secs_f64())),
            link_delay_p95_ms: end.link_delay_p95_us.map_or(0.0, |us| us as f64 / 1000.0),
            ..totals::with_senders(totals, &all.ends, all.over_radio())
        };
        let emulated = last.stations.iter().any(|station| station.real);
        let totals = if emulated {
            let simulated = measured.iter().zip(&end.connections).any(has_traffic);
            totals::of_emulation(totals, &measured, &all.ends, simulated)
        } else {
            totals
        };
        let (paths, switches) = paths::results(&end.paths);
        let ping = |own| PingResult::new(own, started_at, measured[own.station].udp_sent);
        let pings = end.pings.iter().map(ping).collect();
        let run_groups = RunGroup::of_stations(&group_names, &groups, &measured, span);
        let cell = |index: usize| end.cells.as_ref().map(|cells| &cells[index]);
        let stations = measured.iter().zip(groups).enumerate();
        let mut stations: Vec<StationResult> = stations
            .map(|(index, (c, group))| StationResult::new((index, group), c, span, cell(index)))
            .collect();
        for (((station, c), reading), own) in
            stations.iter_mut().zip(&measured).zip(&last.stations).zip(&end.connections)
        {
            if reading.real && c.rtt_samples == 0 {
                station.rtt_mean_ms = f64::NAN;
            }
            let cause = service::cause_of_none(c, &reading.counters).filter(|_| has_traffic((c, own)));
            station.no_service = cause.map(str::to_owned);
        }
        Self {
            seed,
            measured_s: span.as_secs_f64(),
            totals,
            groups: run_groups,
            stations,
            measured_from_s: emulated.then_some(started_at.as_secs_f64()),
            flows,
            queues: end.queues.iter().map(QueueResult::new).collect(),
            paths,
            handovers: end.handovers.iter().map(HandoverResult::from).collect(),
            switches,
            routers: end.routers.iter().map(|router| RouterResult::new(router, span)).collect(),
            policers: end.policers.iter().map(PolicerResult::new).collect(),
            pings,
            kernel_connections: Vec::new(),
            senders,
            samples,
        }
    }
}

/// Differences of the stations' counters over the measured interval.
fn measured(first: Option<&Reading>, last: &Reading) -> Vec<Counters> {
    let last = last.stations.iter().map(|station| &station.counters);
    match first {
        Some(first) => last.zip(&first.stations).map(|(last, first)| last.since(&first.counters)).collect(),
        None => last.cloned().collect(),
    }
}

/// Number of stations with simulated traffic that got no payload acknowledged.
fn without_service(measured: &[Counters], connections: &[Vec<ConnectionReading>]) -> usize {
    let starved = |station: &(&Counters, &Vec<ConnectionReading>)| {
        station.0.downloaded + station.0.uploaded == 0 && has_traffic(*station)
    };
    measured.iter().zip(connections).filter(starved).count()
}

/// Whether a station has simulated traffic.
fn has_traffic((c, connections): (&Counters, &Vec<ConnectionReading>)) -> bool {
    !connections.is_empty() || c.udp_sent > 0
}

/// Figures of each connection, and each station's senders. Both cover the whole run, as do the radio delays
/// that they are compared with.
fn flows(
    connections: &[Vec<ConnectionReading>],
    stations: &[StationReading],
) -> (Vec<FlowResult>, Vec<StationSenders>) {
    let (mut flows, mut senders) = (Vec::new(), Vec::new());
    for (station, (connections, reading)) in connections.iter().zip(stations).enumerate() {
        let mut all = StationSenders::default();
        for (flow, connection) in connections.iter().enumerate() {
            let own = ConnectionSenders::new(connection, &reading.counters);
            let SenderSums { bytes, segments, retransmissions, timeouts, times, .. } = &own.ends;
            flows.push(FlowResult {
                station,
                flow,
                bytes: *bytes,
                segments: *segments,
                retransmissions: *retransmissions,
                timeouts: *timeouts,
                completed_s: connection.completed_at.map(Instant::as_secs_f64),
                received_s: connection.received_at.map(Instant::as_secs_f64),
                stored_ms: connection
                    .relays
                    .iter()
                    .find_map(|relay| relay.stored)
                    .map(Duration::as_millis_f64),
                life_s: times.life().as_secs_f64(),
                rtt_mean_ms: own.ends.rtt_ms(),
                limits: LimitShares::new(times),
                round_trip: own.over_radio().round_trip(),
            });
            all.add_connection(&own);
        }
        senders.push(all);
    }
    (flows, senders)
}

impl FlowResult {
    /// Whether the handshake was completed during the run.
    pub fn opened(&self) -> bool {
        self.life_s > 0.0 && self.limits.handshake < 1.0
    }
}

impl StationResult {
    fn new(
        (station, group): (usize, usize),
        c: &Counters,
        span: Duration,
        cell: Option<&CellReading>,
    ) -> Self {
        let seconds = span.as_secs_f64();
        Self {
            station,
            group,
            goodput_mbps: mbps(c.downloaded, seconds),
            upload_mbps: mbps(c.uploaded, seconds),
            acks_in: c.acks_in,
            acks_discarded: c.acks_discarded,
            acks_sent: c.acks_sent,
            rtt_mean_ms: ratio(c.rtt_ns, c.rtt_samples) / 1e6,
            downlink_mcs: ratio(c.downlink_mcs_index_sum, c.downlink_blocks),
            uplink_mcs: ratio(c.uplink_mcs_index_sum, c.uplink_blocks),
            downlink_sinr_db: mean_sinr_db(c.downlink_sinr_millidecibels, c.downlink_blocks),
            uplink_sinr_db: mean_sinr_db(c.uplink_sinr_millidecibels, c.uplink_blocks),
            downlink_block_bytes: ratio(c.downlink_block_bytes, c.downlink_blocks),
            scheduling_requests: c.scheduling_requests,
            uplink: UplinkResult::new(c, cell.and_then(|cell| cell.power_correction_db)),
            waits: RadioDelays::new(c),
            no_service: None,
            sector: cell.map_or(0, |cell| cell.serving),
            place: cell.and_then(|cell| cell.place).map(|place| PlaceResult {
                x_m: place.x_m,
                y_m: place.y_m,
                coupling_loss_db: place.coupling_loss_db,
            }),
        }
    }
}

/// Mean of SINRs in dB from their sum above the origin; none without blocks.
fn mean_sinr_db(millidecibels: u64, blocks: u64) -> Option<f64> {
    (blocks > 0).then(|| ratio(millidecibels, blocks) / 1000.0 + paceline_ran::SINR_ORIGIN_DB)
}

impl Sample {
    /// Samples of all stations; `previous` is the reading of the sample before, none for the first one.
    pub(crate) fn of_stations(reading: &Reading, previous: Option<&Reading>) -> Vec<Self> {
        let stations = reading.stations.iter().enumerate();
        let samples = stations.map(|(station, of)| {
            let c = &of.counters;
            let since = previous.map_or_else(|| c.clone(), |old| c.since(&old.stations[station].counters));
            let mean_mcs = |sum: u64, blocks: u64| (blocks > 0).then(|| ratio(sum, blocks));
            Self {
                at: reading.at,
                station,
                downloaded: c.downloaded,
                cwnd: of.cwnd_bytes,
                srtt_ms: of.srtt.map(Duration::as_millis_f64).or((!of.real).then_some(0.0)),
                downlink_queue: of.downlink_queue_bytes,
                uplink_queue: of.uplink_queue_bytes,
                acks_sent: c.acks_sent,
                queued_ns: c.link_queued_ns,
                link_sent: c.link_sent,
                capacity: of.link_capacity_bytes,
                downlink_mcs: mean_mcs(since.downlink_mcs_index_sum, since.downlink_blocks),
                uplink_mcs: mean_mcs(since.uplink_mcs_index_sum, since.uplink_blocks),
                accelerator: of.accelerator,
            }
        });
        samples.collect()
    }
}
