//! Runs a model and reads off its figures.

use crate::counters::{self, Counters};
use crate::engine::Capture;
use crate::model::{Access, Model};
use crate::results::{self, FlowResult, LimitShares, PerTti, RadioWaits, RunResult, Sample, Totals, Waits};
use crate::scenario::Scenario;
use paceline_net::{Duration, Event, FlowKey, Instant};
use paceline_ran::LinkStats;
use paceline_tcp::Endpoint;
use std::collections::BTreeMap;

/// Simulates one seed. `progress` is told the simulated time now and then; `capture` gets the packets.
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    capture: Option<Capture>,
    progress: &mut dyn FnMut(Instant),
) -> RunResult {
    let mut model = Model::new(scenario, seed, &[]);
    if let Some(capture) = capture {
        model.capture(capture);
    }
    let end = Instant::ZERO + scenario.run.duration;
    let mut reading = Reading::new(scenario, seed, &model);
    while reading.next_stop() <= end {
        let next = reading.next_stop();
        model.engine.run_until(next);
        reading.stop(&mut model);
        progress(next);
    }
    model.engine.run_until(end);
    reading.end_here(&mut model);
    reading.finish(&mut model)
}

/// The readings of one run: a sample at every interval, and the counters at the end of the warm-up.
pub struct Reading {
    seed: u64,
    interval: Duration,
    warmup_ends: Instant,
    next_sample: Instant,
    at_warmup: Option<Vec<Counters>>,
    samples: Vec<Sample>,
    /// Blocks that each station's directions had sent at the last sample.
    sent: Vec<[Blocks; 2]>,
    per_tti: PerTti,
    /// Bytes that a link's downlinks together can have carried.
    capacity: Option<Capacity>,
    last: (Instant, Vec<Counters>),
}

impl Reading {
    /// Starts reading a model.
    pub fn new(scenario: &Scenario, seed: u64, model: &Model) -> Self {
        let warmup_ends = Instant::ZERO + scenario.run.warmup;
        let (per_tti, capacity) = match model.access() {
            Access::Cell(cell) => {
                let (down, up) = cell.resource_blocks();
                let (downlink_prb, uplink_prb) = (u64::from(down), u64::from(up));
                (PerTti { downlink_prb, uplink_prb, uplink_grants: cell.uplink_grants() }, None)
            }
            Access::Link(_) => (PerTti::default(), Some(Capacity::default())),
        };
        Self {
            seed,
            interval: scenario.run.sample,
            warmup_ends,
            next_sample: Instant::ZERO + scenario.run.sample,
            at_warmup: None,
            samples: Vec::new(),
            sent: vec![Default::default(); model.stations()],
            per_tti,
            capacity,
            last: (Instant::ZERO, Vec::new()),
        }
    }
    /// When [`Reading::stop`] wants to be called next.
    pub fn next_stop(&self) -> Instant {
        if self.at_warmup.is_none() { self.warmup_ends.min(self.next_sample) } else { self.next_sample }
    }
    /// Reads what is due at the model's present.
    pub fn stop(&mut self, model: &mut Model) {
        let now = model.engine.now();
        if self.at_warmup.is_none() && now >= self.warmup_ends {
            self.at_warmup = Some(counters::read(model));
            model.restart_distributions();
            if let Some(capacity) = &mut self.capacity {
                capacity.at_warmup = link_capacity(model, now);
            }
        }
        if now >= self.next_sample {
            let each = self.sent.iter_mut().enumerate();
            self.samples.extend(each.map(|(station, sent)| sample(model, station, now, sent)));
            while self.next_sample <= now {
                self.next_sample += self.interval;
            }
        }
    }
    /// The figures are to end at the model's present, unless it is said again later.
    pub fn end_here(&mut self, model: &mut Model) {
        let now = model.engine.now();
        self.last = (now, counters::read(model));
        if let Some(capacity) = &mut self.capacity {
            capacity.last = link_capacity(model, now);
        }
    }
    /// The figures from the end of the warm-up to where [`Reading::end_here`] was said last.
    pub fn finish(self, model: &mut Model) -> RunResult {
        let events = model.engine.take_events();
        let (end, last) = self.last;
        // A run that ended within its warm-up counts whole, even if the model went on beyond it.
        let at_warmup = self.at_warmup.filter(|_| end > self.warmup_ends);
        let counted_from = if at_warmup.is_some() { self.capacity.map_or(0, |c| c.at_warmup) } else { 0 };
        let started_at = if at_warmup.is_some() { self.warmup_ends } else { Instant::ZERO };
        let first = at_warmup.unwrap_or_else(|| vec![Counters::default(); last.len()]);
        let measured: Vec<Counters> =
            last.iter().zip(&first).map(|(last, first)| last.since(first)).collect();
        let span = end.since(started_at);
        let p95 = model.monitor().rtt_us().value_at_quantile(0.95);
        // Connections are told of whole: so is the radio that they wait for.
        let (flows, waits) = flows(model, &events, &last);
        let mut all = Waits::default();
        waits.iter().for_each(|own| all.add(own));
        let totals = results::totals(&measured, span, self.per_tti, p95);
        RunResult {
            seed: self.seed,
            measured_s: span.as_secs_f64(),
            totals: Totals {
                stations_without_service: without_service(model, &measured) as f64,
                link_capacity_mbps: self
                    .capacity
                    .map_or(0.0, |c| (c.last - counted_from) as f64 * 8.0 / span.as_secs_f64() / 1e6),
                link_delay_p95_ms: match model.access() {
                    Access::Cell(_) => 0.0,
                    Access::Link(link) => link.downlink_delays_us().value_at_quantile(0.95) as f64 / 1000.0,
                },
                ..results::with_waits(totals, &all)
            },
            stations: measured
                .iter()
                .enumerate()
                .map(|(i, c)| results::station(i, c, span, model.access()))
                .collect(),
            flows,
            waits,
            samples: self.samples,
        }
    }
}

/// Stations with simulated traffic of which nothing was acknowledged.
fn without_service(model: &Model, measured: &[Counters]) -> usize {
    let silent = |(station, c): &(usize, &Counters)| {
        c.downloaded + c.uploaded == 0 && (!model.flows(*station).is_empty() || c.udp_sent > 0)
    };
    measured.iter().enumerate().filter(silent).count()
}

/// Bytes that a link's downlinks can have carried, at the end of the warm-up and of the figures.
#[derive(Clone, Copy, Debug, Default)]
struct Capacity {
    at_warmup: u64,
    last: u64,
}

fn link_capacity(model: &mut Model, now: Instant) -> u64 {
    let stations = model.stations();
    let Some(link) = model.link_mut() else { return 0 };
    let own = if link.per_station() { stations } else { 1 };
    (0..own).map(|station| link.downlink_capacity(station, now)).sum()
}

/// Transport blocks first sent in one direction of a station.
#[derive(Clone, Copy, Debug, Default)]
struct Blocks {
    mcs_sum: u64,
    number: u64,
}

impl Blocks {
    fn new(stats: &LinkStats) -> Self {
        Self { mcs_sum: stats.mcs_sum, number: stats.blocks }
    }
    /// Mean MCS of the blocks sent after `earlier`.
    fn mean_mcs_since(self, earlier: Self) -> Option<f64> {
        let number = self.number - earlier.number;
        (number > 0).then(|| (self.mcs_sum - earlier.mcs_sum) as f64 / number as f64)
    }
}

/// Reads off a station; `sent`, its blocks at the last sample, is brought up to date.
fn sample(model: &mut Model, station: usize, at: Instant, sent: &mut [Blocks; 2]) -> Sample {
    let capacity = model.link_mut().map(|link| link.downlink_capacity(station, at));
    let model = &*model;
    let senders: Vec<_> = model.flows(station).into_iter().map(|(server, _)| server.snapshot()).collect();
    let (downlink_queue, uplink_queue, acks_sent, queued_ns, link_sent) = match model.access() {
        Access::Cell(cell) => {
            let buffer = cell.uplink_buffer(station);
            (cell.downlink_queue(station).0, buffer.bytes().0, buffer.counters().acks_out, 0, 0)
        }
        Access::Link(link) => {
            let (down, up) = (link.downlink(station), link.uplink(station));
            let acks = model.monitor().counters()[station].acks;
            (down.queued_bytes, up.queued_bytes, acks, down.queued_ns, down.sent)
        }
    };
    let before = *sent;
    if let Access::Cell(cell) = model.access() {
        *sent = [cell.downlink(station), cell.uplink(station)].map(Blocks::new);
    }
    let received = model.udp(station).map_or(0, |(_, host)| host.received_bytes);
    Sample {
        at,
        station,
        downloaded: model.monitor().counters()[station].downloaded + received,
        cwnd: senders.iter().map(|sender| sender.cwnd.0).sum(),
        srtt_ms: senders.first().and_then(|sender| sender.srtt).map_or(0.0, Duration::as_millis_f64),
        downlink_queue,
        uplink_queue,
        acks_sent,
        queued_ns,
        link_sent,
        capacity,
        downlink_mcs: sent[0].mean_mcs_since(before[0]),
        uplink_mcs: sent[1].mean_mcs_since(before[1]),
    }
}

/// Connection by connection, and station by station what they waited for.
fn flows(model: &Model, events: &[(Instant, Event)], counters: &[Counters]) -> (Vec<FlowResult>, Vec<Waits>) {
    let completed: BTreeMap<FlowKey, Instant> = events
        .iter()
        .filter_map(|(at, event)| match event {
            Event::TransferComplete(key) => Some((*key, *at)),
            Event::ConnectionTimedOut(_) => None,
        })
        .collect();
    let now = model.engine.now();
    let (mut flows, mut waits) = (Vec::new(), Vec::new());
    for (station, counters) in counters.iter().enumerate() {
        let radio = RadioWaits::new(counters);
        let mut all = Waits::default();
        for (flow, (server, host)) in model.flows(station).into_iter().enumerate() {
            // A request is not what the flow is for.
            let asks = host.only_asks();
            let mut own = waits_of(server, now);
            if !asks {
                own.add(&waits_of(host, now));
            }
            own.flows = 1;
            own.set_radio(&radio);
            let key = server.flow_key();
            let whole = model.transfer_size(station).map(|size| size.0);
            let ends = if asks { vec![host] } else { vec![host, server] };
            let received = ends.into_iter().map(Endpoint::stats).find(|s| Some(s.bytes_received) == whole);
            let received_at = received.map(|stats| stats.received_at);
            let completed_at = completed.get(&key).or_else(|| completed.get(&key.reversed()));
            flows.push(FlowResult {
                station,
                flow,
                bytes: own.bytes,
                segments: own.segments,
                retransmissions: own.retransmissions,
                timeouts: own.timeouts,
                completed_s: completed_at.map(|at| at.as_secs_f64()),
                received_s: received_at.map(|at| at.as_secs_f64()),
                life_s: own.times.life().as_secs_f64(),
                rtt_mean_ms: own.rtt_ms(),
                limits: LimitShares::new(&own.times),
                round_trip: own.round_trip(),
            });
            all.add(&own);
        }
        waits.push(all);
    }
    (flows, waits)
}

/// What one end of a connection sent and waited for.
fn waits_of(endpoint: &Endpoint, now: Instant) -> Waits {
    let (stats, times) = (endpoint.stats(), endpoint.limits(now));
    let sends = !times.life().is_zero();
    Waits {
        times,
        bytes: stats.bytes_acked,
        segments: stats.segments_sent,
        retransmissions: stats.retransmitted_segments,
        timeouts: stats.timeouts,
        rtt_ns: stats.rtt_ns,
        rtt_samples: stats.rtt_samples,
        window: if sends { endpoint.snapshot().peer_window.0 } else { 0 },
        send_buffer: if sends { endpoint.send_buffer().0 } else { 0 },
        ..Waits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_end_within_the_warm_up_count_whole() {
        let text = "[run]\nduration = \"10 s\"\nwarmup = \"2 s\"\n[[station]]\n";
        let scenario = crate::scenario::load("test.toml", text, &[]).unwrap();
        let mut model = Model::new(&scenario, 1, &[]);
        let mut reading = Reading::new(&scenario, 1, &model);
        model.engine.run_until(Instant::from_millis(1500));
        reading.end_here(&mut model);
        // The model lingers for what is still on its way, beyond the warm-up.
        model.engine.run_until(Instant::from_millis(2000));
        reading.stop(&mut model);
        let result = reading.finish(&mut model);
        assert_eq!(result.measured_s, 1.5);
        assert!(result.totals.goodput_mbps > 1.0, "{:?}", result.totals);
    }
}
