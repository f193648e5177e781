//! Rows of stations, connections and samples.

use super::columns::row;
use super::csv::Decimals;
use crate::results::run::{FlowResult, RunResult, Sample, StationResult};
use crate::results::run_group::RunGroup;

fn group_name(run: &RunResult, group: usize) -> String {
    run.groups.get(group).map(RunGroup::label).unwrap_or_default()
}

row! {
    /// A row of `groups.csv`.
    pub(super) struct GroupRow {
        seed: u64,
        group: usize,
        group_name: String,
        stations: u64,
        goodput_mbps: Decimals<6>,
        upload_mbps: Decimals<6>,
        goodput_per_station_mbps: Decimals<6>,
        upload_per_station_mbps: Decimals<6>,
        rtt_mean_ms: Decimals<3>,
        retransmission_share: Decimals<6>,
        jain_index: Decimals<6>,
    }
}

impl GroupRow {
    pub(super) fn new(run: &RunResult, own: &RunGroup) -> Self {
        let figures = &own.figures;
        Self {
            seed: run.seed,
            group: own.group,
            group_name: own.label(),
            stations: own.stations,
            goodput_mbps: Decimals(figures.goodput_mbps),
            upload_mbps: Decimals(figures.upload_mbps),
            goodput_per_station_mbps: Decimals(figures.goodput_per_station_mbps),
            upload_per_station_mbps: Decimals(figures.upload_per_station_mbps),
            rtt_mean_ms: Decimals(figures.rtt_mean_ms),
            retransmission_share: Decimals(figures.retransmission_share),
            jain_index: Decimals(figures.jain_index),
        }
    }
}

row! {
    /// A row of `stations.csv`.
    pub(super) struct StationRow {
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
        group_name: String,
    }
}

impl StationRow {
    pub(super) fn new(run: &RunResult, s: &StationResult) -> Self {
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
            group_name: group_name(run, s.group),
        }
    }
}

row! {
    /// A row of `flows.csv`.
    pub(super) struct FlowRow {
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
        stored_ms: Option<Decimals<3>>,
        group: usize,
        group_name: String,
    }
}

impl FlowRow {
    pub(super) fn new(run: &RunResult, f: &FlowResult) -> Self {
        let (limits, round_trip) = (&f.limits, &f.round_trip);
        let group = run.group_of(f.station);
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
            stored_ms: f.stored_ms.map(Decimals),
            group,
            group_name: group_name(run, group),
        }
    }
}

row! {
    /// A row of `timeseries.csv`.
    pub(super) struct SampleRow {
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
        accelerator_in_flight: Option<u64>,
        accelerator_window: Option<u64>,
        accelerator_capacity_mbps: Option<Decimals<3>>,
        accelerator_min_rtt_ms: Option<Decimals<3>>,
        accelerator_target_ms: Option<Decimals<3>>,
        accelerator_state: Option<&'static str>,
        group: usize,
        group_name: String,
    }
}

impl SampleRow {
    pub(super) fn new(run: &RunResult, s: &Sample) -> Self {
        let control = s.accelerator.map(|device| device.control);
        let group = run.group_of(s.station);
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
            accelerator_in_flight: s.accelerator.map(|device| device.in_flight),
            accelerator_window: control.map(|control| control.window).filter(|window| *window < u64::MAX),
            accelerator_capacity_mbps: control.map(|control| Decimals(control.capacity.0 as f64 / 1e6)),
            accelerator_min_rtt_ms: control.map(|control| Decimals(control.min_rtt.as_millis_f64())),
            accelerator_target_ms: control.map(|control| Decimals(control.target_delay.as_millis_f64())),
            accelerator_state: control.map(|control| control.state.name()),
            group,
            group_name: group_name(run, group),
        }
    }
}
