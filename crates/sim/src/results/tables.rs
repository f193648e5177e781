//! CSV tables of a results folder. A row is a flat struct: its field names are the columns.

use super::kernel::KernelConnection;
use super::network::paths::{PathResult, SwitchResult};
use super::network::queue::QueueResult;
use super::network::router::{PolicerResult, RouterResult};
use super::run::{FlowResult, RunResult, Sample, StationResult};
use serde::{Serialize, Serializer};

/// A number that is written with `N` decimals; empty if it is NaN.
#[derive(Default)]
pub(super) struct Decimals<const N: usize>(pub(super) f64);

impl<const N: usize> Serialize for Decimals<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_nan() {
            return serializer.serialize_none();
        }
        serializer.collect_str(&format_args!("{:.N$}", self.0))
    }
}

/// A row of `stations.csv`.
#[derive(Default, Serialize)]
struct StationRow {
    seed: u64,
    station: usize,
    goodput_mbps: Decimals<6>,
    upload_mbps: Decimals<6>,
    acks_in: u64,
    acks_discarded: u64,
    acks_sent: u64,
    rtt_mean_ms: Decimals<3>,
    downlink_mcs: Decimals<3>,
    uplink_mcs: Decimals<3>,
    downlink_block_bytes: Decimals<1>,
    scheduling_requests: u64,
    sr_wait_mean_ms: Decimals<3>,
    sr_failures: u64,
    random_accesses: u64,
    preambles: u64,
    preamble_collisions: u64,
    random_access_failures: u64,
    random_access_mean_ms: Decimals<3>,
    reestablishments: u64,
    reestablishment_mean_ms: Decimals<3>,
    uplink_grants: u64,
    block_limited_share: Decimals<4>,
    power_limited_share: Decimals<4>,
    uplink_harq_retransmission_share: Decimals<4>,
    headroom_mean_db: Option<Decimals<2>>,
    downlink_queue_ms: Decimals<3>,
    grant_ms: Decimals<3>,
    uplink_queue_ms: Decimals<3>,
    downlink_harq_ms: Decimals<3>,
    uplink_harq_ms: Decimals<3>,
    sector: usize,
    x_m: Option<Decimals<1>>,
    y_m: Option<Decimals<1>>,
    coupling_loss_db: Option<Decimals<2>>,
    group: usize,
    downlink_sinr_db: Option<Decimals<3>>,
    uplink_sinr_db: Option<Decimals<3>>,
    no_service: Option<String>,
}

impl StationRow {
    fn new(run: &RunResult, s: &StationResult) -> Self {
        let (uplink, waits) = (&s.uplink, &s.waits);
        Self {
            seed: run.seed,
            station: s.station,
            goodput_mbps: Decimals(s.goodput_mbps),
            upload_mbps: Decimals(s.upload_mbps),
            acks_in: s.acks_in,
            acks_discarded: s.acks_discarded,
            acks_sent: s.acks_sent,
            rtt_mean_ms: Decimals(s.rtt_mean_ms),
            downlink_mcs: Decimals(s.downlink_mcs),
            uplink_mcs: Decimals(s.uplink_mcs),
            downlink_block_bytes: Decimals(s.downlink_block_bytes),
            scheduling_requests: s.scheduling_requests,
            sr_wait_mean_ms: Decimals(uplink.sr_wait_mean_ms),
            sr_failures: uplink.sr_failures,
            random_accesses: uplink.random_accesses,
            preambles: uplink.preambles,
            preamble_collisions: uplink.preamble_collisions,
            random_access_failures: uplink.random_access_failures,
            random_access_mean_ms: Decimals(uplink.random_access_mean_ms),
            reestablishments: uplink.reestablishments,
            reestablishment_mean_ms: Decimals(uplink.reestablishment_mean_ms),
            uplink_grants: uplink.grants,
            block_limited_share: Decimals(uplink.block_limited_share),
            power_limited_share: Decimals(uplink.power_limited_share),
            uplink_harq_retransmission_share: Decimals(uplink.harq_retransmission_share),
            headroom_mean_db: uplink.headroom_mean_db.map(Decimals),
            downlink_queue_ms: Decimals(waits.downlink_queue),
            grant_ms: Decimals(waits.grant),
            uplink_queue_ms: Decimals(waits.uplink_queue),
            downlink_harq_ms: Decimals(waits.downlink_harq),
            uplink_harq_ms: Decimals(waits.uplink_harq),
            sector: s.sector,
            x_m: s.place.map(|place| Decimals(place.x_m)),
            y_m: s.place.map(|place| Decimals(place.y_m)),
            coupling_loss_db: s.place.map(|place| Decimals(place.coupling_loss_db)),
            group: s.group,
            downlink_sinr_db: s.downlink_sinr_db.map(Decimals),
            uplink_sinr_db: s.uplink_sinr_db.map(Decimals),
            no_service: s.no_service.clone(),
        }
    }
}

/// A row of `flows.csv`.
#[derive(Default, Serialize)]
struct FlowRow {
    seed: u64,
    station: usize,
    flow: usize,
    bytes: u64,
    retransmissions: u64,
    timeouts: u64,
    completed_s: Option<Decimals<6>>,
    received_s: Option<Decimals<6>>,
    segments: u64,
    life_s: Decimals<6>,
    rtt_mean_ms: Decimals<3>,
    handshake_share: Decimals<6>,
    application_share: Decimals<6>,
    send_buffer_share: Decimals<6>,
    receive_window_share: Decimals<6>,
    congestion_window_share: Decimals<6>,
    pacing_share: Decimals<6>,
    recovery_share: Decimals<6>,
    timeout_share: Decimals<6>,
    downlink_queue_rtt_share: Decimals<6>,
    grant_rtt_share: Decimals<6>,
    uplink_queue_rtt_share: Decimals<6>,
    downlink_harq_rtt_share: Decimals<6>,
    uplink_harq_rtt_share: Decimals<6>,
}

impl FlowRow {
    fn new(run: &RunResult, f: &FlowResult) -> Self {
        let (limits, round_trip) = (&f.limits, &f.round_trip);
        Self {
            seed: run.seed,
            station: f.station,
            flow: f.flow,
            bytes: f.bytes,
            retransmissions: f.retransmissions,
            timeouts: f.timeouts,
            completed_s: f.completed_s.map(Decimals),
            received_s: f.received_s.map(Decimals),
            segments: f.segments,
            life_s: Decimals(f.life_s),
            rtt_mean_ms: Decimals(f.rtt_mean_ms),
            handshake_share: Decimals(limits.handshake),
            application_share: Decimals(limits.application),
            send_buffer_share: Decimals(limits.send_buffer),
            receive_window_share: Decimals(limits.receive_window),
            congestion_window_share: Decimals(limits.congestion_window),
            pacing_share: Decimals(limits.pacing),
            recovery_share: Decimals(limits.recovery),
            timeout_share: Decimals(limits.timeout),
            downlink_queue_rtt_share: Decimals(round_trip.downlink_queue),
            grant_rtt_share: Decimals(round_trip.grant),
            uplink_queue_rtt_share: Decimals(round_trip.uplink_queue),
            downlink_harq_rtt_share: Decimals(round_trip.downlink_harq),
            uplink_harq_rtt_share: Decimals(round_trip.uplink_harq),
        }
    }
}

/// A row of `timeseries.csv`.
#[derive(Default, Serialize)]
struct SampleRow {
    seed: u64,
    time_s: Decimals<3>,
    station: usize,
    downloaded: u64,
    cwnd: Option<u64>,
    srtt_ms: Option<Decimals<3>>,
    downlink_queue: u64,
    uplink_queue: u64,
    acks_sent: u64,
    link_queued_ns: u64,
    link_sent: u64,
    link_capacity: Option<u64>,
    downlink_mcs: Option<Decimals<3>>,
    uplink_mcs: Option<Decimals<3>>,
}

impl SampleRow {
    fn new(run: &RunResult, s: &Sample) -> Self {
        Self {
            seed: run.seed,
            time_s: Decimals(s.at.as_secs_f64()),
            station: s.station,
            downloaded: s.downloaded,
            cwnd: s.cwnd,
            srtt_ms: s.srtt_ms.map(Decimals),
            downlink_queue: s.downlink_queue,
            uplink_queue: s.uplink_queue,
            acks_sent: s.acks_sent,
            link_queued_ns: s.queued_ns,
            link_sent: s.link_sent,
            link_capacity: s.capacity,
            downlink_mcs: s.downlink_mcs.map(Decimals),
            uplink_mcs: s.uplink_mcs.map(Decimals),
        }
    }
}

/// A row of `kernel_connections.csv`.
#[derive(Default, Serialize)]
struct KernelConnectionRow {
    seed: u64,
    station: usize,
    connection: usize,
    server: String,
    station_port: u16,
    first_packet_s: Decimals<6>,
    last_packet_s: Decimals<6>,
    downloaded: u64,
    uploaded: u64,
    server_congestion_control: Option<String>,
    server_segments: Option<u64>,
    server_retransmissions: Option<u64>,
    server_srtt_ms: Option<Decimals<3>>,
    server_min_rtt_ms: Option<Decimals<3>>,
    station_congestion_control: Option<String>,
    station_segments: Option<u64>,
    station_retransmissions: Option<u64>,
    station_srtt_ms: Option<Decimals<3>>,
    station_min_rtt_ms: Option<Decimals<3>>,
}

impl KernelConnectionRow {
    fn new(run: &RunResult, c: &KernelConnection) -> Self {
        let (server, station) = (c.server_end.clone(), c.station_end.clone());
        Self {
            seed: run.seed,
            station: c.station,
            connection: c.connection,
            server: c.server.clone(),
            station_port: c.station_port,
            first_packet_s: Decimals(c.first_packet_s),
            last_packet_s: Decimals(c.last_packet_s),
            downloaded: c.downloaded,
            uploaded: c.uploaded,
            server_congestion_control: server.congestion_control,
            server_segments: server.segments,
            server_retransmissions: server.retransmissions,
            server_srtt_ms: server.srtt_ms.map(Decimals),
            server_min_rtt_ms: server.min_rtt_ms.map(Decimals),
            station_congestion_control: station.congestion_control,
            station_segments: station.segments,
            station_retransmissions: station.retransmissions,
            station_srtt_ms: station.srtt_ms.map(Decimals),
            station_min_rtt_ms: station.min_rtt_ms.map(Decimals),
        }
    }
}

/// A row of `queues.csv`.
#[derive(Default, Serialize)]
struct QueueRow {
    seed: u64,
    queue: String,
    discipline: String,
    packets: u64,
    marks: u64,
    drops: u64,
    overflows: u64,
    new_flows: u64,
    sojourn_mean_ms: Decimals<3>,
    sojourn_p50_ms: Decimals<3>,
    sojourn_p95_ms: Decimals<3>,
    sojourn_p99_ms: Decimals<3>,
}

impl QueueRow {
    fn new(run: &RunResult, q: &QueueResult) -> Self {
        Self {
            seed: run.seed,
            queue: q.queue.clone(),
            discipline: q.discipline.clone(),
            packets: q.packets,
            marks: q.marks,
            drops: q.drops,
            overflows: q.overflows,
            new_flows: q.new_flows,
            sojourn_mean_ms: Decimals(q.sojourn_mean_ms),
            sojourn_p50_ms: Decimals(q.sojourn_p50_ms),
            sojourn_p95_ms: Decimals(q.sojourn_p95_ms),
            sojourn_p99_ms: Decimals(q.sojourn_p99_ms),
        }
    }
}

/// A row of `paths.csv`.
#[derive(Default, Serialize)]
struct PathRow<'a> {
    seed: u64,
    station: usize,
    direction: &'a str,
    path: &'a str,
    packets: u64,
    bytes: u64,
}

impl<'a> PathRow<'a> {
    fn new(seed: u64, own: &'a PathResult) -> Self {
        let PathResult { station, direction, path, packets, bytes } = own;
        Self { seed, station: *station, direction, path, packets: *packets, bytes: *bytes }
    }
}

/// A row of `switches.csv`.
#[derive(Default, Serialize)]
struct SwitchRow<'a> {
    seed: u64,
    time_s: Decimals<6>,
    station: usize,
    direction: &'a str,
    path: &'a str,
    direct_cqi: u8,
    uplink_cqi: u8,
    dropped_packets: u64,
    dropped_bytes: u64,
}

impl<'a> SwitchRow<'a> {
    fn new(seed: u64, own: &'a SwitchResult) -> Self {
        Self {
            seed,
            time_s: Decimals(own.time_s),
            station: own.station,
            direction: &own.direction,
            path: &own.path,
            direct_cqi: own.direct_cqi,
            uplink_cqi: own.uplink_cqi,
            dropped_packets: own.dropped_packets,
            dropped_bytes: own.dropped_bytes,
        }
    }
}

/// A row of `routers.csv`.
#[derive(Default, Serialize)]
struct RouterRow {
    seed: u64,
    router: String,
    busy_share: Decimals<4>,
    packets_per_s: Decimals<1>,
    downlink_packets: u64,
    uplink_packets: u64,
    downlink_drops: u64,
    uplink_drops: u64,
    most_waiting: u64,
}

impl RouterRow {
    fn new(run: &RunResult, r: &RouterResult) -> Self {
        Self {
            seed: run.seed,
            router: r.router.clone(),
            busy_share: Decimals(r.busy_share),
            packets_per_s: Decimals(r.packets_per_s),
            downlink_packets: r.downlink_packets,
            uplink_packets: r.uplink_packets,
            downlink_drops: r.downlink_drops,
            uplink_drops: r.uplink_drops,
            most_waiting: r.most_waiting,
        }
    }
}

/// Text of `paths.csv`.
pub(super) fn paths(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.paths.iter().map(|own| PathRow::new(run.seed, own))))
}
/// Text of `switches.csv`.
pub(super) fn switches(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.switches.iter().map(|own| SwitchRow::new(run.seed, own))))
}

/// A row of `policers.csv`.
#[derive(Default, Serialize)]
struct PolicerRow {
    seed: u64,
    policer: String,
    decision: String,
    acks: u64,
}

impl PolicerRow {
    fn of_policer(run: &RunResult, p: &PolicerResult) -> Vec<Self> {
        let row = |(decision, acks): (&str, u64)| Self {
            seed: run.seed,
            policer: p.policer.clone(),
            decision: decision.to_owned(),
            acks,
        };
        let kept = p.kept.iter().map(|(reason, acks)| (reason.as_str(), *acks));
        std::iter::once(("dropped", p.dropped)).chain(kept).map(row).collect()
    }
}

/// Text of `routers.csv`.
pub(super) fn routers(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.routers.iter().map(|router| RouterRow::new(run, router))))
}

/// Text of `policers.csv`.
pub(super) fn policers(runs: &[RunResult]) -> String {
    let of_run = |run: &'_ RunResult| -> Vec<PolicerRow> {
        run.policers.iter().flat_map(|policer| PolicerRow::of_policer(run, policer)).collect()
    };
    text(runs.iter().flat_map(of_run))
}

/// Text of `queues.csv`.
pub(super) fn queues(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.queues.iter().map(|queue| QueueRow::new(run, queue))))
}

/// Text of `kernel_connections.csv`.
pub(super) fn kernel_connections(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.kernel_connections.iter().map(|c| KernelConnectionRow::new(run, c))))
}

/// Text of `stations.csv`.
pub(super) fn stations(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.stations.iter().map(|station| StationRow::new(run, station))))
}

/// Text of `flows.csv`.
pub(super) fn flows(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.flows.iter().map(|flow| FlowRow::new(run, flow))))
}

/// Text of `timeseries.csv`.
pub(super) fn timeseries(runs: &[RunResult]) -> String {
    text(runs.iter().flat_map(|run| run.samples.iter().map(|sample| SampleRow::new(run, sample))))
}

/// The header and the rows. The crate writes the header with the first row: an empty table takes it from a
/// default row.
pub(super) fn text<Row: Serialize + Default>(rows: impl Iterator<Item = Row>) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        let header = text(std::iter::once(Row::default()));
        return header.lines().take(1).map(|line| format!("{line}\n")).collect();
    }
    let mut csv = csv::Writer::from_writer(Vec::new());
    rows.for_each(|row| csv.serialize(row).expect("a row is a flat struct, and a vector takes every write"));
    let bytes = csv.into_inner().expect("a vector takes every write");
    String::from_utf8(bytes).expect("a string is serialized as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_rows_have_their_header() {
        assert_eq!(timeseries(&[]).lines().count(), 1);
        assert!(flows(&[]).starts_with("seed,station,flow,bytes,") && flows(&[]).ends_with("_rtt_share\n"));
    }
}
