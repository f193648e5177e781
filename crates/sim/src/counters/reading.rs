//! Reads a model at one moment.

use super::connections::{self, ConnectionReading};
use super::station::Counters;
use crate::address;
use crate::core_network::{PolicerReading, RouterReading};
use crate::link::Link;
use crate::managed::ManagedReading;
use crate::model::{Access, Model};
use crate::pings::Ping;
use paceline_net::{DropReason, Duration, Instant, SduQueue};
use paceline_pep::accelerator::DeviceSnapshot;
use paceline_ran::sidelink::{Carried, FlowDirection, PathKind, Sidelink, Switch};
use paceline_ran::{Cell, HandoverRecord, LinkStats};

/// State of a model at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Simulated time of the reading.
    pub at: Instant,
    pub stations: Vec<StationReading>,
    /// Bytes that the downlinks of a link could have carried so far, all together; none for a cell.
    pub link_capacity_bytes: Option<u64>,
}

/// State of one station at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct StationReading {
    pub counters: Counters,
    /// Whether the station is one of real programs, outside the model.
    pub real: bool,
    /// Congestion windows of the servers' endpoints, summed, bytes; none of a real station without a reading.
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time at the server's endpoint of the first connection.
    pub srtt: Option<Duration>,
    /// Bytes in the eNB's downlink buffer, or in the downlink queue of a link.
    pub downlink_queue_bytes: u64,
    /// Bytes in the station's uplink buffer, or in the uplink queue of a link.
    pub uplink_queue_bytes: u64,
    /// The accelerator's state of the station; none without connections there.
    pub accelerator: Option<DeviceSnapshot>,
    /// Bytes that the station's downlink could have carried so far; none for a cell.
    pub link_capacity_bytes: Option<u64>,
}

/// State of a model at the end of the run, as far as it is not counted.
#[derive(Clone, Debug)]
pub(crate) struct EndReading {
    /// 95th percentile of the round-trip times since the end of the warm-up, us.
    pub rtt_p95_us: u64,
    /// 95th percentile of the queueing and sending times of a link's downlink since then, us; none for a
    /// cell.
    pub link_delay_p95_us: Option<u64>,
    pub radio: RadioCapacity,
    /// Connections of each station.
    pub connections: Vec<Vec<ConnectionReading>>,
    /// Each station's relation to its cell; none for a link.
    pub cells: Option<Vec<CellReading>>,
    /// Each station's wired path.
    pub wired: Vec<WiredReading>,
    /// Managed queues of the link and of the hops.
    pub queues: Vec<ManagedReading>,
    /// Routers of the hops.
    pub routers: Vec<RouterReading>,
    /// ACK policers of the hops.
    pub policers: Vec<PolicerReading>,
    /// The proxy between servers and stations, if there is one.
    pub proxy: Option<Proxy>,
    /// Paths of the pairs of a sidelink.
    pub paths: PathReading,
    /// Changes of the serving cell.
    pub handovers: Vec<HandoverRecord>,
    /// Pings by station.
    pub pings: Vec<PingReading>,
}

/// Paths of the pairs of a sidelink; empty without one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathReading {
    /// Changes of path, in the order of time.
    pub switches: Vec<Switch>,
    /// Packets that each path of each flow has delivered: by pair.
    pub carried: Vec<(usize, FlowDirection, PathKind, Carried)>,
}

/// Kind of a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proxy {
    Accelerator,
    SplitTcp,
}

/// The wired path of one station: before the proxy, or all of it without one, and behind the proxy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WiredReading {
    /// Time for which the busiest hop has been sending.
    pub busy: [Duration; 2],
    /// Packets that full queues have dropped.
    pub drops: [u64; 2],
}

/// Capacity of all served cells together, as the mean per slot; zeros for a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RadioCapacity {
    pub slots_per_second: f64,
    pub downlink_prbs: f64,
    pub uplink_prbs: f64,
    pub uplink_grants: f64,
    /// Number of served cells.
    pub cells: u64,
}

/// The answered pings of one station.
#[derive(Clone, Debug)]
pub(crate) struct PingReading {
    pub station: usize,
    pub pings: Vec<Ping>,
}

/// Relation of one station to its cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellReading {
    /// Index of the serving cell.
    pub serving: usize,
    /// Position; in a deployment.
    pub place: Option<Place>,
    /// Sum of the TPC commands at the end, dB; in a deployment.
    pub power_correction_db: Option<f64>,
}

/// Position of a station in a deployment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Metres east of the middle site.
    pub x_m: f64,
    /// Metres north of the middle site.
    pub y_m: f64,
    /// Coupling loss to the serving cell, dB.
    pub coupling_loss_db: f64,
}

/// Reads the state of a model at its present time.
pub(crate) fn read(model: &mut Model) -> Reading {
    let at = model.engine.now();
    let stations = model.stations();
    let mut link_capacity_bytes = None;
    let mut own_capacity = vec![None; stations];
    if let Some(link) = model.link_mut() {
        own_capacity = (0..stations).map(|station| Some(link.downlink_capacity(station, at))).collect();
        let pipes = if link.per_station() { stations } else { 1 };
        link_capacity_bytes = Some(own_capacity.iter().take(pipes).flatten().sum());
    }
    let read = |(station, link_capacity_bytes)| StationReading {
        link_capacity_bytes,
        accelerator: model.pep_mut().and_then(|pep| pep.device(address::station(station).0.into())),
        ..read_station(model, station)
    };
    Reading { at, stations: own_capacity.into_iter().enumerate().map(read).collect(), link_capacity_bytes }
}

pub(crate) fn read_station(model: &Model, station: usize) -> StationReading {
    let senders: Vec<_> = model.flows(station).into_iter().map(|(server, _)| server.snapshot()).collect();
    let kernel = model.kernel_state(station);
    let (cwnd_bytes, srtt) = if model.is_real(station) {
        (kernel.map(|state| state.cwnd_bytes), kernel.and_then(|state| state.srtt))
    } else {
        let cwnd = senders.iter().map(|sender| sender.cwnd.0).sum();
        (Some(cwnd), senders.first().and_then(|sender| sender.srtt))
    };
    let (access, downlink_queue_bytes, uplink_queue_bytes) = match model.access() {
        Access::Cell(cell) => {
            let queues = (cell.downlink_queue(station).0, cell.uplink_buffer(station).bytes().0);
            (of_cell(cell, station), queues.0, queues.1)
        }
        Access::Link(link) => {
            let queues = (link.downlink(station).queued_bytes, link.uplink(station).queued_bytes);
            (of_link(link, station, model.monitor().counters()[station].acks), queues.0, queues.1)
        }
        Access::Sidelink(sidelink) => {
            let queued = FlowDirection::BOTH.map(|direction| sidelink.queued(station, direction));
            let acks = model.monitor().counters()[station].acks;
            (of_sidelink(sidelink, station, acks), queued[0], queued[1])
        }
    };
    StationReading {
        counters: with_transport(access, model, station),
        real: model.is_real(station),
        cwnd_bytes,
        srtt,
        downlink_queue_bytes,
        uplink_queue_bytes,
        accelerator: None,
        link_capacity_bytes: None,
    }
}

/// Reads a model at the end of its run. Takes the engine's events: call it once.
pub(crate) fn read_end(model: &mut Model) -> EndReading {
    let connections = connections::read(model);
    let rtt_p95_us = model.monitor().rtt_us().value_at_quantile(0.95);
    let wired = (0..model.stations()).map(|station| read_wired(model, station)).collect();
    let proxy =
        model.pep().map(|pep| if pep.is_accelerator() { Proxy::Accelerator } else { Proxy::SplitTcp });
    let (routers, policers) = read_routers(model);
    let rest = EndReading {
        rtt_p95_us,
        link_delay_p95_us: None,
        radio: RadioCapacity::default(),
        connections,
        cells: None,
        wired,
        queues: read_queues(model),
        routers,
        policers,
        proxy,
        paths: model.sidelink().map(read_paths).unwrap_or_default(),
        handovers: Vec::new(),
        pings: model.pings().into_iter().map(|(station, pings)| PingReading { station, pings }).collect(),
    };
    match model.access() {
        Access::Cell(cell) => {
            let (downlink_prbs, uplink_prbs) = cell.resource_blocks();
            let radio = RadioCapacity {
                slots_per_second: cell.clock().numerology().slots_per_second(),
                downlink_prbs,
                uplink_prbs,
                uplink_grants: cell.uplink_grants(),
                cells: cell.cells() as u64,
            };
            let of = |station| CellReading {
                serving: cell.serving(station),
                place: cell.place(station).map(|(point, coupling_loss_db)| Place {
                    x_m: point.x,
                    y_m: point.y,
                    coupling_loss_db,
                }),
                power_correction_db: cell.power_correction_db(station),
            };
            let cells = Some((0..model.stations()).map(of).collect());
            EndReading { radio, cells, handovers: cell.handovers().to_vec(), ..rest }
        }
        Access::Link(link) => {
            let p95 = link.downlink_delays_us().value_at_quantile(0.95);
            EndReading { link_delay_p95_us: Some(p95), ..rest }
        }
        Access::Sidelink(_) => rest,
    }
}

fn read_paths(sidelink: &Sidelink) -> PathReading {
    let both = [PathKind::Direct, PathKind::Infrastructure];
    let pairs = (0..sidelink.pairs()).filter(|pair| sidelink.has_peer(*pair));
    let flows = pairs.flat_map(|pair| FlowDirection::BOTH.map(|direction| (pair, direction)));
    let carried = flows.flat_map(|(pair, direction)| {
        both.map(|path| (pair, direction, path, sidelink.carried(pair, direction, path)))
    });
    PathReading { switches: sidelink.switches().to_vec(), carried: carried.collect() }
}

fn read_queues(model: &Model) -> Vec<ManagedReading> {
    let (before, behind) = model.cores();
    let mut queues = before.read_queues(0);
    queues.extend(behind.into_iter().flat_map(|core| core.read_queues(model.hops_before_proxy())));
    if let Access::Link(link) = model.access() {
        queues.extend(link.read_queues());
    }
    queues
}

/// Routers and policers of all hops.
fn read_routers(model: &Model) -> (Vec<RouterReading>, Vec<PolicerReading>) {
    let (before, behind) = model.cores();
    let (mut routers, mut policers) = (before.read_routers(0), before.read_policers(0));
    if let Some(core) = behind {
        routers.extend(core.read_routers(model.hops_before_proxy()));
        policers.extend(core.read_policers(model.hops_before_proxy()));
    }
    (routers, policers)
}

fn read_wired(model: &Model, station: usize) -> WiredReading {
    let (before, behind) = model.cores();
    let parts = [Some(before), behind];
    WiredReading {
        busy: parts.map(|part| part.map_or(Duration::ZERO, |part| part.busiest_hop(station))),
        drops: parts.map(|part| part.map_or(0, |part| part.drops(station))),
    }
}

/// Adds the counters of TCP and UDP to those of the access.
fn with_transport(access: Counters, model: &Model, station: usize) -> Counters {
    let flow = &model.monitor().counters()[station];
    let mut counters = Counters {
        downloaded: flow.downloaded,
        uploaded: flow.uploaded,
        segments: flow.segments,
        retransmissions: flow.retransmissions,
        rtt_ns: flow.rtt_ns,
        rtt_samples: flow.rtt_samples,
        ..access
    };
    if let Some((server, host)) = model.udp(station) {
        counters.downloaded += host.received_bytes;
        counters.uploaded += server.received_bytes;
        counters.rtt_ns += server.rtt_ns + host.rtt_ns;
        counters.rtt_samples += server.answers + host.answers;
        counters.udp_sent = server.sent + host.sent;
        counters.udp_received = server.received + host.received;
        counters.udp_delay_ns = server.delay_ns + host.delay_ns;
    }
    counters
}

fn radio_losses(stats: &LinkStats) -> u64 {
    use DropReason::{HarqFailed, PathSwitch, PdcpReordering, RadioLinkFailure, RlcReassembly};
    [HarqFailed, RlcReassembly, PdcpReordering, RadioLinkFailure, PathSwitch]
        .iter()
        .map(|reason| stats.dropped.of(*reason))
        .sum()
}

fn of_link(link: &Link, station: usize, acks: u64) -> Counters {
    let (down, up) = (link.downlink(station), link.uplink(station));
    Counters {
        acks_in: acks,
        acks_sent: acks,
        downlink_queue_drops: down.queue_drops,
        uplink_queue_drops: up.queue_drops,
        radio_losses: down.losses + up.losses,
        link_sent: down.sent,
        link_bytes: down.sent_bytes,
        link_queued_ns: down.queued_ns,
        downlink_packets: down.sent,
        downlink_buffer_wait_ns: down.queued_ns,
        uplink_packets: up.sent,
        uplink_buffer_wait_ns: up.queued_ns,
        ..Counters::default()
    }
}

/// Counters of a pair: the downlink is the direction towards the station. All hops of a flow add up.
fn of_sidelink(sidelink: &Sidelink, station: usize, acks: u64) -> Counters {
    let [down, up] = FlowDirection::BOTH.map(|direction| sidelink.counters(station, direction));
    let sum = |all: [&LinkStats; 4], of: fn(&LinkStats) -> u64| all.map(of).iter().sum();
    let full = |stats: &LinkStats| stats.dropped.of(DropReason::QueueFull);
    let waits = FlowDirection::BOTH.map(|direction| sidelink.waited(station, direction));
    let buffers = FlowDirection::BOTH.map(|direction| sidelink.buffer(station, direction));
    let discarded = buffers.map(|buffer| buffer.acks_discarded).iter().sum();
    Counters {
        acks_in: acks + discarded,
        acks_discarded: discarded,
        acks_sent: acks,
        random_accesses: if sidelink.is_nr() { 0 } else { sidelink.requests(station) },
        scheduling_requests: if sidelink.is_nr() { sidelink.requests(station) } else { 0 },
        downlink_queue_drops: sum(down, full),
        uplink_queue_drops: sum(up, full),
        radio_losses: sum(down, radio_losses) + sum(up, radio_losses),
        downlink_blocks: sum(down, |stats| stats.transport_blocks),
        downlink_block_bytes: sum(down, |stats| stats.transport_block_bytes),
        downlink_mcs_index_sum: sum(down, |stats| stats.mcs_index_sum),
        downlink_sinr_millidecibels: sum(down, |stats| stats.sinr_millidecibels),
        downlink_prbs: sum(down, |stats| stats.prbs),
        downlink_harq_retransmissions: sum(down, |stats| stats.harq_retransmissions),
        uplink_blocks: sum(up, |stats| stats.transport_blocks),
        uplink_block_bytes: sum(up, |stats| stats.transport_block_bytes),
        uplink_padding_bytes: sum(up, |stats| stats.padding_bytes),
        uplink_mcs_index_sum: sum(up, |stats| stats.mcs_index_sum),
        uplink_sinr_millidecibels: sum(up, |stats| stats.sinr_millidecibels),
        uplink_prbs: sum(up, |stats| stats.prbs),
        uplink_harq_retransmissions: sum(up, |stats| stats.harq_retransmissions),
        downlink_packets: waits[0].packets,
        downlink_buffer_wait_ns: waits[0].ns,
        uplink_packets: waits[1].packets,
        uplink_buffer_wait_ns: waits[1].ns,
        ..Counters::default()
    }
}

fn of_cell(cell: &Cell, station: usize) -> Counters {
    let (down, up) = (cell.downlink(station), cell.uplink(station));
    let access = cell.access(station);
    let buffer = cell.uplink_buffer(station).counters();
    let waits = [cell.downlink_buffer(station), cell.uplink_buffer(station)].map(SduQueue::waited);
    let ns = |span| cell.clock().duration(span).as_nanos();
    Counters {
        acks_in: buffer.acks_in,
        acks_discarded: buffer.acks_discarded,
        acks_sent: buffer.acks_out,
        scheduling_requests: access.scheduling_requests,
        scheduling_request_failures: access.scheduling_request_failures,
        request_waits: access.request_waits,
        request_wait_ns: access.request_wait_ns,
        random_accesses: access.random_accesses,
        contention_resolutions: access.contention_resolutions,
        contention_resolution_ns: ns(access.contention_resolution_slots),
        preambles: access.preambles,
        preamble_collisions: access.preamble_collisions,
        random_access_failures: access.random_access_failures,
        reestablishments: access.reestablishments,
        reestablishment_ns: ns(access.reestablishment_slots),
        grants: access.grants,
        power_limited_grants: access.power_limited_grants,
        prb_limited_grants: access.prb_limited_grants,
        headroom_reports: access.headroom_reports,
        headroom_index_sum: access.headroom_index_sum,
        downlink_queue_drops: down.dropped.of(DropReason::QueueFull),
        radio_losses: radio_losses(down) + radio_losses(up),
        pdcp_discards: down.dropped.of(DropReason::PdcpDiscard) + up.dropped.of(DropReason::PdcpDiscard),
        downlink_blocks: down.transport_blocks,
        downlink_block_bytes: down.transport_block_bytes,
        downlink_mcs_index_sum: down.mcs_index_sum,
        downlink_sinr_millidecibels: down.sinr_millidecibels,
        downlink_slots_without_mcs: down.slots_without_mcs,
        downlink_window_stall_ns: ns(down.window_stalls),
        downlink_prbs: down.prbs,
        downlink_harq_retransmissions: down.harq_retransmissions,
        uplink_blocks: up.transport_blocks,
        uplink_block_bytes: up.transport_block_bytes,
        uplink_padding_bytes: up.padding_bytes,
        uplink_mcs_index_sum: up.mcs_index_sum,
        uplink_sinr_millidecibels: up.sinr_millidecibels,
        uplink_slots_without_mcs: up.slots_without_mcs,
        uplink_window_stall_ns: ns(up.window_stalls),
        uplink_prbs: up.prbs,
        uplink_harq_retransmissions: up.harq_retransmissions,
        downlink_packets: waits[0].packets,
        downlink_buffer_wait_ns: waits[0].ns,
        downlink_harq_wait_ns: ns(down.harq_wait_slots),
        uplink_packets: waits[1].packets,
        uplink_buffer_wait_ns: waits[1].ns,
        grant_wait_ns: up.grant_wait_ns,
        uplink_harq_wait_ns: ns(up.harq_wait_slots),
        ..Counters::default()
    }
}
