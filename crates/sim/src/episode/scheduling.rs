//! Scheduling: weights of the stations in the cell's downlink scheduler.

use super::{Stepped, refused};
use crate::model::Access;
use crate::results::RunResult;
use crate::scenario::{Scenario, ScenarioError, Scheduler};
use paceline_net::{Bytes, Duration};
use paceline_ran::DownlinkState;

/// The downlink of a station at the end of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StationReport {
    /// State as the scheduler knows it.
    pub state: DownlinkState,
    /// Bytes of the packets that the station has received in the step.
    pub delivered: Bytes,
}

/// A run in which the caller sets the weights of the downlink scheduler between steps.
pub struct SchedulingEpisode {
    run: Stepped,
    /// Per station, the bytes that it had received at the end of the last step.
    received: Vec<u64>,
}

impl SchedulingEpisode {
    /// The start of a run, in which all weights are 1.
    pub fn new(scenario: &Scenario, seed: u64, step: Duration) -> Result<Self, ScenarioError> {
        let Some(cell) = scenario.cell() else {
            let allowed = "left out: the weights are those of a cell's scheduler";
            return Err(refused(scenario.access.table(), "a table", allowed));
        };
        if cell.scheduler == Scheduler::RoundRobin {
            let allowed = "proportional-fair or max-ci, whose priorities the weights multiply";
            return Err(refused("cell.scheduler", "\"round-robin\"", allowed));
        }
        let run = Stepped::new(scenario, seed, step)?;
        let received = vec![0; run.model.stations()];
        Ok(Self { run, received })
    }
    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.received.len()
    }
    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.run.is_over()
    }
    /// Simulated time since the start.
    pub fn elapsed(&self) -> Duration {
        self.run.now().since(paceline_net::Instant::ZERO)
    }
    /// Sets the weight of each station, 0 or more, and advances by a step. Returns its length.
    ///
    /// # Panics
    /// If there is not one weight for each station.
    pub fn step(&mut self, weights: &[f64]) -> Duration {
        assert_eq!(weights.len(), self.stations(), "one weight for each station");
        if let Some(cell) = self.run.model.cell_mut() {
            weights.iter().enumerate().for_each(|(station, weight)| {
                cell.set_downlink_weight(station, *weight);
            });
        }
        self.run.advance()
    }
    /// The stations at the end of the step. A second call in a row has no bytes delivered.
    pub fn reports(&mut self) -> Vec<StationReport> {
        let now = self.run.now();
        let Access::Cell(cell) = self.run.model.access() else { return Vec::new() };
        let of_station = |(station, received): (usize, &mut u64)| {
            let total = cell.downlink(station).bytes_out;
            let delivered = Bytes(total - std::mem::replace(received, total));
            StationReport { state: cell.downlink_state(now, station), delivered }
        };
        self.received.iter_mut().enumerate().map(of_station).collect()
    }
    /// The figures of the run so far.
    pub fn finish(self) -> RunResult {
        self.run.finish()
    }
}
