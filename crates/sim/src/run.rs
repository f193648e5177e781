//! Runs a model and reads off its figures.

use crate::counters::{self, Counters};
use crate::engine::Capture;
use crate::model::Model;
use crate::results::{self, FlowResult, PerTti, RunResult, Sample, Totals};
use crate::scenario::Scenario;
use paceline_net::{Duration, Event, FlowKey, Instant};
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
    reading.end_here(&model);
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
    per_tti: PerTti,
    last: (Instant, Vec<Counters>),
}

impl Reading {
    /// Starts reading a model.
    pub fn new(scenario: &Scenario, seed: u64, model: &Model) -> Self {
        let warmup_ends = Instant::ZERO + scenario.run.warmup;
        let (down, up) = model.cell().resource_blocks();
        Self {
            seed,
            interval: scenario.run.sample,
            warmup_ends,
            next_sample: Instant::ZERO + scenario.run.sample,
            at_warmup: None,
            samples: Vec::new(),
            per_tti: PerTti {
                downlink_prb: u64::from(down),
                uplink_prb: u64::from(up),
                uplink_grants: model.cell().uplink_grants(),
            },
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
            model.restart_rtt();
        }
        if now >= self.next_sample {
            self.samples.extend((0..model.stations()).map(|station| sample(model, station, now)));
            while self.next_sample <= now {
                self.next_sample += self.interval;
            }
        }
    }
    /// The figures are to end at the model's present, unless it is said again later.
    pub fn end_here(&mut self, model: &Model) {
        self.last = (model.engine.now(), counters::read(model));
    }
    /// The figures from the end of the warm-up to where [`Reading::end_here`] was said last.
    pub fn finish(self, model: &mut Model) -> RunResult {
        let events = model.engine.take_events();
        let (end, last) = self.last;
        // A run that ended within its warm-up counts whole, even if the model went on beyond it.
        let at_warmup = self.at_warmup.filter(|_| end > self.warmup_ends);
        let started_at = if at_warmup.is_some() { self.warmup_ends } else { Instant::ZERO };
        let first = at_warmup.unwrap_or_else(|| vec![Counters::default(); last.len()]);
        let measured: Vec<Counters> =
            last.iter().zip(&first).map(|(last, first)| last.since(first)).collect();
        let span = end.since(started_at);
        let p95 = model.monitor().rtt_us().value_at_quantile(0.95);
        RunResult {
            seed: self.seed,
            measured_s: span.as_secs_f64(),
            totals: Totals {
                stations_without_service: without_service(model, &measured) as f64,
                ..results::totals(&measured, span, self.per_tti, p95)
            },
            stations: measured
                .iter()
                .enumerate()
                .map(|(i, c)| results::station(i, c, span, model.cell()))
                .collect(),
            flows: flows(model, &events),
            samples: self.samples,
        }
    }
}

/// Stations with simulated traffic of which nothing was acknowledged.
fn without_service(model: &Model, measured: &[Counters]) -> usize {
    let silent = |(station, c): &(usize, &Counters)| {
        c.downloaded + c.uploaded == 0 && !model.flows(*station).is_empty()
    };
    measured.iter().enumerate().filter(silent).count()
}

fn sample(model: &Model, station: usize, at: Instant) -> Sample {
    let senders: Vec<_> = model.flows(station).into_iter().map(|(server, _)| server.snapshot()).collect();
    let buffer = model.cell().uplink_buffer(station);
    let named =
        |name: &str| buffer.counters().iter().find(|(n, _)| *n == name).map_or(0, |(_, count)| *count);
    Sample {
        at,
        station,
        downloaded: model.monitor().counters()[station].downloaded,
        cwnd: senders.iter().map(|sender| sender.cwnd.0).sum(),
        srtt_ms: senders.first().and_then(|sender| sender.srtt).map_or(0.0, Duration::as_millis_f64),
        downlink_queue: model.cell().downlink_queue(station).0,
        uplink_queue: buffer.bytes().0,
        acks_sent: named("acks-out"),
    }
}

fn flows(model: &Model, events: &[(Instant, Event)]) -> Vec<FlowResult> {
    let completed: BTreeMap<FlowKey, Instant> = events
        .iter()
        .filter_map(|(at, event)| match event {
            Event::TransferComplete(key) => Some((*key, *at)),
            Event::ConnectionTimedOut(_) => None,
        })
        .collect();
    let mut flows = Vec::new();
    for station in 0..model.stations() {
        for (flow, (server, host)) in model.flows(station).into_iter().enumerate() {
            let (down, up) = (server.stats(), host.stats());
            let key = server.flow_key();
            let completed_at = completed.get(&key).or_else(|| completed.get(&key.reversed()));
            flows.push(FlowResult {
                station,
                flow,
                bytes: down.bytes_acked + up.bytes_acked,
                retransmissions: down.retransmitted_segments + up.retransmitted_segments,
                timeouts: down.timeouts + up.timeouts,
                completed_s: completed_at.map(|at| at.as_secs_f64()),
            });
        }
    }
    flows
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
        reading.end_here(&model);
        // The model lingers for what is still on its way, beyond the warm-up.
        model.engine.run_until(Instant::from_millis(2000));
        reading.stop(&mut model);
        let result = reading.finish(&mut model);
        assert_eq!(result.measured_s, 1.5);
        assert!(result.totals.goodput_mbps > 1.0, "{:?}", result.totals);
    }
}
