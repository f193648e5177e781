//! The event trace of a run.
//!
//! The engine has the times of dropped packets, completed transfers and connections that were given up; cells
//! and pairs have those of changes of cell and path. All other events are differences between two readings of
//! the model, [`STEP`] apart, and have the time of the later one. Reading changes nothing: results with and
//! without a trace are the same. Left out: UDP except for its drops, and the senders of a split-TCP proxy.

use crate::address;
use crate::counters::{self, Counters};
use crate::engine::Dropped;
use crate::model::{Access, KernelState, Model};
use crate::results::{HandoverResult, SwitchResult};
use crate::scenario::Scenario;
use paceline_net::event_trace::{
    AcceleratorChanges, AcceleratorMetrics, Detail, Record, Recovery, StateChange, TcpMetrics, flow_name, ms,
};
use paceline_net::{AddressTable, DropReason, Duration, Event, FlowKey, Instant};
use paceline_pep::accelerator::FlowSnapshot;
use paceline_ran::HandoverRecord;
use paceline_tcp::Endpoint;
use std::collections::BTreeMap;

/// Time between two readings. Chosen: the shortest slot of LTE, and less than a round trip; a shorter one
/// only makes the times of differences finer.
const STEP: Duration = Duration::from_millis(1);

/// Receives the events, in the order of time.
pub type EventSink = Box<dyn FnMut(&Record) + Send>;

/// The event trace of a model.
pub struct EventTrace {
    sink: EventSink,
    next_at: Instant,
    stations: AddressTable,
    /// Number of the engine's events that were read.
    events: usize,
    senders: BTreeMap<FlowKey, SenderState>,
    /// Per station.
    counters: Vec<Counters>,
    /// Per handover, whether its end was reported.
    handovers: Vec<bool>,
    /// Number of changes of path that were read.
    switches: usize,
    accelerator: AcceleratorChanges,
    kernel: BTreeMap<usize, KernelState>,
}

/// The state of a sender at the last reading.
struct SenderState {
    connection: &'static str,
    congestion: Option<&'static str>,
    metrics: Option<TcpMetrics>,
    recovery: Recovery,
}

impl EventTrace {
    /// Starts the trace of a model that has not run yet.
    pub fn start(scenario: &Scenario, model: &mut Model, sink: EventSink) -> Self {
        model.engine.record_dropped();
        Self {
            sink,
            next_at: model.engine.now() + STEP,
            stations: address::routes(scenario),
            events: 0,
            senders: BTreeMap::new(),
            counters: vec![Counters::default(); model.stations()],
            handovers: Vec::new(),
            switches: 0,
            accelerator: AcceleratorChanges::default(),
            kernel: BTreeMap::new(),
        }
    }
    /// Time at which [`EventTrace::read`] is due next.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }
    /// Passes the events since the last reading on.
    pub fn read(&mut self, model: &mut Model) {
        let now = model.engine.now();
        let mut records: Vec<(Instant, Record)> = Vec::new();
        let mut add = |at: Instant, station, flow, detail| {
            records.push((at, Record::at(at, station, flow, detail)));
        };
        for dropped in model.engine.take_dropped() {
            let station = dropped.addresses.iter().find_map(|address| self.stations.get(*address));
            add(dropped.at, station, dropped.flow, of_dropped(&dropped));
        }
        let station_of = |key: &FlowKey| [key.dst, key.src].into_iter().find_map(|ip| self.stations.get(ip));
        for (at, event) in model.engine.events().iter().skip(self.events) {
            self.events += 1;
            match event {
                Event::TransferComplete(key) => {
                    add(*at, station_of(key), Some(*key), Detail::TransferCompleted {});
                }
                Event::ConnectionTimedOut(key) => {
                    let detail = Detail::ConnectionClosed { trigger: "unanswered" };
                    add(*at, station_of(key), Some(*key), detail);
                }
                Event::ServingCell(_) => {}
            }
        }
        for station in 0..model.stations() {
            for endpoint in model.flows(station).into_iter().flat_map(|(server, host)| [server, host]) {
                let key = endpoint.flow_key();
                let state = self.senders.entry(key).or_default();
                state.read(endpoint, |detail| add(now, Some(station), Some(key), detail));
            }
            let counters = counters::read_station(model, station).counters;
            let before = std::mem::replace(&mut self.counters[station], counters);
            of_radio(&before, &self.counters[station], |detail| add(now, Some(station), None, detail));
            if let Some(state) = model.kernel_state(station)
                && self.kernel.insert(station, state) != Some(state)
            {
                let (congestion_window, smoothed_rtt) = (state.cwnd_bytes, ms(state.srtt));
                add(now, Some(station), None, Detail::Kernel { congestion_window, smoothed_rtt });
            }
        }
        for (station, flow) in model.pep().into_iter().flat_map(|pep| pep.accelerated()) {
            let state = flow.control.state.name();
            for detail in self.accelerator.read(&flow_name(&flow.key), state, of_accelerator(&flow)) {
                add(now, station, Some(flow.key), detail);
            }
        }
        match model.access() {
            Access::Cell(cell) => of_handovers(cell.handovers(), &mut self.handovers, now, add),
            Access::Sidelink(sidelink) => {
                for switch in sidelink.switches().iter().skip(self.switches) {
                    self.switches += 1;
                    add(switch.at, Some(switch.pair), None, of_switch(SwitchResult::from(switch)));
                }
            }
            Access::Link(_) => {}
        }
        records.sort_by_key(|(at, _)| *at);
        records.iter().for_each(|(_, record)| (self.sink)(record));
        self.next_at = now + STEP;
    }
}

impl Default for SenderState {
    fn default() -> Self {
        Self { connection: "closed", congestion: None, metrics: None, recovery: Recovery::default() }
    }
}

impl SenderState {
    /// Passes the differences from the last reading to `add`. A side that has sent no data has only the state
    /// of the connection.
    fn read(&mut self, endpoint: &Endpoint, mut add: impl FnMut(Detail)) {
        let (now, stats) = (endpoint.snapshot(), endpoint.stats());
        let old = std::mem::replace(&mut self.connection, now.state);
        if old != now.state {
            add(Detail::ConnectionState(change(Some(old), now.state)));
        }
        if stats.segments_sent == 0 {
            return;
        }
        let recovery = Recovery {
            segments: stats.retransmitted_segments,
            fast_recoveries: stats.fast_recoveries,
            timeouts: stats.timeouts,
            tail_loss_probes: stats.tail_loss_probes,
            undone_reductions: stats.undone_reductions,
        };
        let before = std::mem::replace(&mut self.recovery, recovery);
        if before != recovery {
            add(Detail::Retransmitted(Recovery {
                segments: recovery.segments - before.segments,
                fast_recoveries: recovery.fast_recoveries - before.fast_recoveries,
                timeouts: recovery.timeouts - before.timeouts,
                tail_loss_probes: recovery.tail_loss_probes - before.tail_loss_probes,
                undone_reductions: recovery.undone_reductions - before.undone_reductions,
            }));
        }
        let old = self.congestion.replace(now.congestion);
        if old != Some(now.congestion) {
            add(Detail::CongestionState(change(old, now.congestion)));
        }
        let metrics = TcpMetrics {
            congestion_window: now.cwnd.0,
            ssthresh: Some(now.ssthresh.0).filter(|bytes| *bytes != u64::MAX),
            bytes_in_flight: now.in_flight.0,
            smoothed_rtt: ms(now.srtt),
            min_rtt: ms(now.min_rtt),
            pacing_rate: now.pacing_rate.map(|rate| rate.0),
        };
        if self.metrics.replace(metrics) != Some(metrics) {
            add(Detail::Tcp(metrics));
        }
    }
}

fn change(old: Option<&str>, new: &str) -> StateChange {
    StateChange { old: old.map(str::to_owned), new: new.to_owned() }
}

fn of_dropped(dropped: &Dropped) -> Detail {
    let &Dropped { acknowledgment, length, reason, .. } = dropped;
    match reason {
        DropReason::AckFiltered => Detail::AckDiscarded { acknowledgment },
        DropReason::AckPoliced => Detail::AckPoliced { acknowledgment },
        reason => Detail::PacketDropped { trigger: reason.name(), length },
    }
}

/// Passes the events of the radio between two readings of a station to `add`.
fn of_radio(before: &Counters, now: &Counters, mut add: impl FnMut(Detail)) {
    let grown = |of: fn(&Counters) -> u64| of(now).saturating_sub(of(before));
    let requests = grown(|c| c.scheduling_requests);
    let failures = grown(|c| c.scheduling_request_failures);
    if requests + failures > 0 {
        add(Detail::SchedulingRequested { requests, failures });
    }
    let (started, completed) = (grown(|c| c.random_accesses), grown(|c| c.contention_resolutions));
    let (preambles, collisions) = (grown(|c| c.preambles), grown(|c| c.preamble_collisions));
    if started + completed + preambles > 0 {
        add(Detail::RandomAccess { started, completed, preambles, collisions });
    }
    let waits = grown(|c| c.request_waits);
    if let Some(mean_ns) = grown(|c| c.request_wait_ns).checked_div(waits) {
        add(Detail::Granted { waits, wait: Duration::from_nanos(mean_ns).as_millis_f64() });
    }
    for (direction, retransmissions) in [
        ("downlink", grown(|c| c.downlink_harq_retransmissions)),
        ("uplink", grown(|c| c.uplink_harq_retransmissions)),
    ] {
        if retransmissions > 0 {
            add(Detail::HarqRetransmitted { direction, retransmissions });
        }
    }
}

fn of_accelerator(flow: &FlowSnapshot) -> AcceleratorMetrics {
    AcceleratorMetrics {
        congestion_window: Some(flow.control.window).filter(|bytes| *bytes != u64::MAX),
        bytes_in_flight: flow.in_flight,
        smoothed_rtt: ms(flow.srtt),
        min_rtt: ms(Some(flow.min_rtt).filter(|rtt| !rtt.is_zero())),
        pacing_rate: flow.control.rate.0,
        capacity: flow.control.capacity.0,
        target_delay: flow.control.target_delay.as_millis_f64(),
        exposure: flow.exposure,
        held: flow.held,
        delivered: flow.delivered,
        limit: flow.limit.name().to_owned(),
    }
}

/// Passes the starts and ends of changes of cell until `now` to `add`. `ended` has an entry for each that
/// was read: whether its end was, too.
fn of_handovers(
    handovers: &[HandoverRecord],
    ended: &mut Vec<bool>,
    now: Instant,
    mut add: impl FnMut(Instant, Option<usize>, Option<FlowKey>, Detail),
) {
    for (index, record) in handovers.iter().enumerate() {
        let &HandoverRecord { station, from: from_cell, to: to_cell, .. } = record;
        if index == ended.len() {
            let trigger = HandoverResult::from(record).cause;
            let detail = Detail::HandoverStarted { from_cell, to_cell, trigger };
            add(record.at, Some(station), None, detail);
            ended.push(false);
        }
        let ends_at = record.served_at.or(record.failed.then_some(now));
        let Some(at) = ends_at.filter(|at| *at <= now && !ended[index]) else { continue };
        ended[index] = true;
        let HandoverResult { outcome, interruption_ms, dropped_packets, forwarded_packets, .. } =
            record.into();
        let interruption = interruption_ms;
        let detail = Detail::HandoverEnded {
            from_cell,
            to_cell,
            outcome,
            interruption,
            dropped_packets,
            forwarded_packets,
        };
        add(at, Some(station), None, detail);
    }
}

fn of_switch(switch: SwitchResult) -> Detail {
    let SwitchResult { direction, path, direct_cqi, uplink_cqi, dropped_packets, .. } = switch;
    Detail::PathSwitched { direction, path, direct_cqi, uplink_cqi, dropped_packets }
}
