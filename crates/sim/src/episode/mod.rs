//! Runs that a caller steers: the simulated time advances by a fixed step, and between two steps the caller
//! reads the state and acts. Learning agents use them as their environment.
//!
//! [`RateEpisode`] sets window and pacing rate of some stations' senders, [`SchedulingEpisode`] weights of
//! the stations in the cell's downlink scheduler. Everything else is as in a run of the same scenario and
//! seed: equal actions give equal observations. One caller acts; the other senders have the congestion
//! control of the scenario.

mod rate;
mod scheduling;

pub use rate::{RateEpisode, RateReport};
pub use scheduling::{SchedulingEpisode, StationReport};

use crate::model::Model;
use crate::results::RunResult;
use crate::run::Recorder;
use crate::scenario::{Scenario, ScenarioError};
use paceline_net::{Duration, Instant};

/// The shortest step. Chosen: a slot of LTE, the shortest time in which a scheduler acts.
const LEAST_STEP: Duration = Duration::from_millis(1);

/// A run that advances by steps.
struct Stepped {
    model: Model,
    recorder: Recorder,
    step: Duration,
    end: Instant,
}

impl Stepped {
    fn new(scenario: &Scenario, seed: u64, step: Duration) -> Result<Self, ScenarioError> {
        if step < LEAST_STEP || step > scenario.run.duration {
            let allowed = format!("1 ms to {}, the duration of a run", scenario.run.duration);
            return Err(refused("step", &step.to_string(), &allowed));
        }
        Ok(Self {
            model: Model::new(scenario, seed, &[]),
            recorder: Recorder::new(scenario, seed),
            step,
            end: Instant::ZERO + scenario.run.duration,
        })
    }
    fn now(&self) -> Instant {
        self.model.engine.now()
    }
    fn is_over(&self) -> bool {
        self.now() >= self.end
    }
    /// Advances by a step, the last one up to the end of the run. Returns its length, which is zero after the
    /// end.
    fn advance(&mut self) -> Duration {
        let from = self.now();
        let until = (from + self.step).min(self.end);
        while self.recorder.next_at() <= until {
            self.model.engine.run_until(self.recorder.next_at());
            self.recorder.record(&mut self.model);
        }
        self.model.engine.run_until(until);
        until.since(from)
    }
    /// The figures of the run so far.
    fn finish(mut self) -> RunResult {
        self.recorder.record_end(&mut self.model);
        self.recorder.finish(&mut self.model)
    }
}

/// An argument, or a key of the scenario, with which there is no such episode.
fn refused(key: &str, value: &str, allowed: &str) -> ScenarioError {
    ScenarioError {
        file: "episode".to_owned(),
        line: None,
        key: Some(key.to_owned()),
        value: Some(value.to_owned()),
        message: format!("allowed: {allowed}"),
    }
}

/// The group of a station, and its index among the `[[station]]` tables.
fn group_of(scenario: &Scenario, station: usize) -> Result<usize, ScenarioError> {
    let groups = scenario.group_of_stations();
    groups.get(station).copied().ok_or_else(|| {
        let allowed = format!("0 to {}, one of the scenario's stations", groups.len() - 1);
        refused("station", &station.to_string(), &allowed)
    })
}
