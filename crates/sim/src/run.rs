//! The run of one seed: advances the model, and reads it at the end of the warm-up, at every sample, and at
//! the end.

use crate::counters::{self, Reading, View};
use crate::event_trace::{EventSink, EventTrace};
use crate::journey::Journeys;
use crate::model::{Capture, Model};
use crate::results::{Record, RunResult, Sample};
use crate::scenario::Scenario;
use paceline_net::{Duration, Instant};
use paceline_ran::Policy;
use paceline_tcp::OwnControl;

/// Simulated time after which [`simulate_while`] looks whether to go on. Chosen: milliseconds of wall time
/// with a thousand stations, and no cost beside the packets.
const STEP: Duration = Duration::from_millis(10);

/// Simulates one seed. `progress` is called with the simulated time every [`STEP`] or at each sample, where
/// that is sooner; `capture` receives the packets and blocks.
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    capture: Option<Capture>,
    progress: &mut dyn FnMut(Instant),
) -> RunResult {
    let go_on = &mut |now| {
        progress(now);
        true
    };
    simulate_while(scenario, seed, capture, go_on).expect("the run goes on to its end")
}

/// Simulates one seed as [`simulate`] does, while `go_on` is true. Gives no result if it became false.
pub fn simulate_while(
    scenario: &Scenario,
    seed: u64,
    capture: Option<Capture>,
    go_on: &mut dyn FnMut(Instant) -> bool,
) -> Option<RunResult> {
    let mut run = Run::new(scenario, seed, capture);
    while !run.is_over() {
        let now = run.step();
        if !go_on(now) {
            return None;
        }
    }
    Some(run.finish())
}

/// The run of one seed in steps, between which the caller may stop, show progress, or read the network.
pub struct Run {
    model: Model,
    recorder: Recorder,
    events: Option<EventTrace>,
    end: Instant,
}

impl Run {
    /// A run at its start. `capture` receives the packets and blocks.
    pub fn new(scenario: &Scenario, seed: u64, capture: Option<Capture>) -> Self {
        let mut model = Model::new(scenario, seed, &[]);
        if let Some(capture) = capture {
            model.capture(capture);
        }
        let end = Instant::ZERO + scenario.run.duration;
        Self { model, recorder: Recorder::new(scenario, seed), events: None, end }
    }
    /// Passes the events of the run to `sink`, before the first step.
    pub fn trace_events(&mut self, scenario: &Scenario, sink: EventSink) {
        self.events = Some(EventTrace::start(scenario, &mut self.model, sink));
    }
    /// Whether the run has come to its end.
    pub fn is_over(&self) -> bool {
        self.model.engine.now() >= self.end
    }
    /// Runs to the next sample, to the next reading of an event trace, to the end, or for [`STEP`], to the
    /// earliest of these; gives its time.
    pub fn step(&mut self) -> Instant {
        let read_at = self.events.as_ref().map_or(self.end, EventTrace::next_at).min(self.end);
        let next = (self.model.engine.now() + STEP).min(self.recorder.next_at()).min(read_at);
        self.model.engine.run_until(next);
        if let Some(events) = self.events.as_mut().filter(|_| next == read_at) {
            events.read(&mut self.model);
        }
        if next == self.recorder.next_at() {
            self.recorder.record(&mut self.model);
        }
        next
    }
    /// Replaces the congestion control of all connections, before the first step.
    pub fn control_by(&mut self, control: &OwnControl) {
        for station in 0..self.model.stations() {
            for upload in [false, true] {
                self.model.change_senders(station, upload, |endpoint| endpoint.control_by(control.clone()));
            }
        }
    }
    /// Replaces the policy of the downlink scheduler. Whether the access is a cell.
    pub fn schedule_by(&mut self, policy: Policy) -> bool {
        let cell = self.model.cell_mut();
        cell.map(|cell| cell.set_scheduler(policy)).is_some()
    }
    /// The network, for readings that change nothing.
    pub fn model(&self) -> &Model {
        &self.model
    }
    /// The present state of all stations, for a picture while the run goes on.
    pub fn view(&self) -> View {
        View::of(&self.model)
    }
    /// Records the way of the packets of a station from now on; the first ones, up to a bound. Replaces a
    /// capture.
    pub fn watch(&mut self, station: usize) -> Journeys {
        let journeys = Journeys::default();
        let (packets, steps) = journeys.sinks(self.recorder.warmup_ends);
        self.model.watch(station, packets, steps);
        journeys
    }
    /// The figures up to the present time.
    pub fn finish(mut self) -> RunResult {
        self.recorder.record_end(&mut self.model);
        self.recorder.finish(&mut self.model)
    }
}

/// Schedules the readings of one run. The emulator drives it in real time as [`simulate`] does in simulated
/// time.
pub struct Recorder {
    seed: u64,
    /// Per station, the index of its `[[station]]` table.
    groups: Vec<usize>,
    /// Names of the groups.
    group_names: Vec<String>,
    sample_interval: Duration,
    warmup_ends: Instant,
    next_sample: Instant,
    at_warmup: Option<Reading>,
    last_sample: Option<Reading>,
    samples: Vec<Sample>,
    at_end: Reading,
}

impl Recorder {
    /// A recorder for one run of a scenario.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            seed,
            groups: scenario.group_of_stations(),
            group_names: scenario.group_names(),
            sample_interval: scenario.run.sample,
            warmup_ends: Instant::ZERO + scenario.run.warmup,
            next_sample: Instant::ZERO + scenario.run.sample,
            at_warmup: None,
            last_sample: None,
            samples: Vec::new(),
            at_end: Reading::default(),
        }
    }
    /// Time at which [`Recorder::record`] is due next.
    pub fn next_at(&self) -> Instant {
        if self.at_warmup.is_none() { self.warmup_ends.min(self.next_sample) } else { self.next_sample }
    }
    /// Takes the readings that are due at the model's present time.
    pub fn record(&mut self, model: &mut Model) {
        let reading = counters::read(model);
        let now = reading.at;
        if self.at_warmup.is_none() && now >= self.warmup_ends {
            model.restart_distributions();
            self.at_warmup = Some(reading.clone());
        }
        if now >= self.next_sample {
            self.samples.extend(Sample::of_stations(&reading, self.last_sample.as_ref()));
            self.last_sample = Some(reading);
            while self.next_sample <= now {
                self.next_sample += self.sample_interval;
            }
        }
    }
    /// Ends the measured interval at the model's present time. A later call moves the end.
    pub fn record_end(&mut self, model: &mut Model) {
        self.at_end = counters::read(model);
    }
    /// Figures from the end of the warm-up to the last call of [`Recorder::record_end`], without later
    /// samples. A run that ended within its warm-up counts from its start, even if the model ran on beyond
    /// the warm-up.
    pub fn finish(mut self, model: &mut Model) -> RunResult {
        let ended_after_warmup = self.at_end.at > self.warmup_ends;
        self.samples.retain(|sample| sample.at <= self.at_end.at);
        let first = self.at_warmup.filter(|_| ended_after_warmup);
        RunResult::new(Record {
            seed: self.seed,
            groups: self.groups,
            group_names: self.group_names,
            first: first.map(|reading| (self.warmup_ends, reading)),
            last: self.at_end,
            end: counters::read_end(model),
            samples: self.samples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::KernelState;
    use crate::results::Totals;

    #[test]
    fn a_run_that_ends_within_its_warmup_counts_from_its_start() {
        let text = "[run]\nduration = \"10 s\"\nwarmup = \"2 s\"\n[[station]]\n";
        let scenario = crate::scenario::load("test.toml", text, &[]).unwrap();
        let mut model = Model::new(&scenario, 1, &[]);
        let mut recorder = Recorder::new(&scenario, 1);
        model.engine.run_until(Instant::from_millis(1500));
        recorder.record_end(&mut model);
        // The model runs on beyond the warm-up, as an emulation does for packets that are still under way.
        model.engine.run_until(Instant::from_millis(2000));
        recorder.record(&mut model);
        let result = recorder.finish(&mut model);
        assert_eq!(result.measured_s, 1.5);
        assert_eq!(result.measured_from_s, None, "a simulation counts from the end of its warm-up");
        assert!(result.samples.iter().all(|sample| sample.at <= Instant::from_millis(1500)));
        assert!(result.totals.goodput_mbps > 1.0, "{:?}", result.totals);
    }

    /// A run whose first station is real and silent, and whose second one is simulated if it has traffic.
    fn emulated(second: &str) -> RunResult {
        let text =
            format!("[run]\nwarmup = \"1 s\"\n[[station]]\ndirection = \"none\"\n[[station]]\n{second}\n");
        let scenario = crate::scenario::load("test.toml", &text, &[]).unwrap();
        let mut model = Model::new(&scenario, 1, &[0]);
        let mut recorder = Recorder::new(&scenario, 1);
        for ms in [1000, 2000] {
            model.engine.run_until(Instant::from_millis(ms));
            if ms == 2000 && second.is_empty() {
                let state = KernelState { cwnd_bytes: 14_480, srtt: Some(Duration::from_millis(30)) };
                model.set_kernel_states([(0, state)].into());
            }
            recorder.record(&mut model);
        }
        recorder.record_end(&mut model);
        recorder.finish(&mut model)
    }

    #[test]
    fn figures_that_an_emulation_does_not_measure_are_empty() {
        let result = emulated("direction = \"none\"");
        assert_eq!((result.measured_from_s, result.measured_s), (Some(1.0), 1.0));
        let unmeasured: Vec<&str> = Totals::names()
            .iter()
            .zip(result.totals.values())
            .filter_map(|(name, value)| value.is_nan().then_some(*name))
            .collect();
        assert_eq!(unmeasured.len(), 19, "{unmeasured:?}");
        assert!(unmeasured.contains(&"congestion_window_share") && unmeasured.contains(&"rtt_mean_ms"));
        assert!(result.stations[0].rtt_mean_ms.is_nan());
        let of_real = |station: usize| {
            let own = result.samples.iter().filter(move |sample| sample.station == station);
            own.map(|sample| (sample.cwnd, sample.srtt_ms)).collect::<Vec<_>>()
        };
        assert!(of_real(0).iter().all(|values| *values == (None, None)));
        assert!(of_real(1).iter().all(|(cwnd, srtt)| cwnd.is_some() && srtt.is_some()));
        // JSON has null for them, and reading it gives the same.
        let json = serde_json::to_value(&result).unwrap();
        assert!(json["totals"]["rtt_mean_ms"].is_null() && json["stations"][0]["rtt_mean_ms"].is_null());
        let read: RunResult = serde_json::from_value(json).unwrap();
        assert!(read.totals.rtt_mean_ms.is_nan() && read.stations[0].rtt_mean_ms.is_nan());
        // Simulated traffic beside it has limits and a round-trip time.
        let result = emulated("");
        let of_kernel: Vec<_> = result.samples.iter().filter(|sample| sample.station == 0).collect();
        assert_eq!((of_kernel[0].cwnd, of_kernel[0].srtt_ms), (None, None));
        let last = of_kernel.last().unwrap();
        assert_eq!((last.cwnd, last.srtt_ms), (Some(14_480), Some(30.0)));
        let totals = result.totals.values();
        assert_eq!(totals.iter().filter(|value| value.is_nan()).count(), 2, "UDP alone: {:?}", result.totals);
    }
}
