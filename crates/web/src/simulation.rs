//! Runs of a scenario, one seed after the other, in steps.

use crate::results::Results;
use crate::scenario::parse;
use paceline_sim::journey::Journeys;
use paceline_sim::{Run, RunResult, Scenario, Summary};
use wasm_bindgen::prelude::wasm_bindgen;

/// Runs that are under way.
#[wasm_bindgen]
pub struct Simulation {
    name: String,
    scenario: Scenario,
    seeds: u64,
    run: Option<Run>,
    /// The way of packets of the first station, in the first run.
    journeys: Journeys,
    done: Vec<RunResult>,
    time_s: f64,
}

#[wasm_bindgen]
impl Simulation {
    /// Runs of a scenario with so many seeds from `run.seed` on.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, text: &str, seeds: u32) -> Result<Simulation, String> {
        let scenario = parse(name, text).map_err(|error| error.to_string())?;
        let mut run = Run::new(&scenario, scenario.run.seed, None);
        let journeys = run.watch(0);
        let run = Some(run);
        let (name, seeds) = (name.to_owned(), u64::from(seeds.max(1)));
        Ok(Self { name, scenario, seeds, run, journeys, done: Vec::new(), time_s: 0.0 })
    }
    /// Runs for up to 10 ms of simulated time; false once all seeds have come to their ends.
    pub fn step(&mut self) -> bool {
        let Some(run) = &mut self.run else { return false };
        self.time_s = run.step().as_secs_f64();
        if run.is_over() {
            self.done.extend(self.run.take().map(Run::finish));
            let next = self.done.len() as u64;
            if next < self.seeds {
                self.run = Some(Run::new(&self.scenario, self.scenario.run.seed + next, None));
            }
        }
        self.run.is_some()
    }
    /// Simulated time of the present seed, seconds.
    #[wasm_bindgen(getter)]
    pub fn time_s(&self) -> f64 {
        self.time_s
    }
    /// Number of seeds that have come to their ends.
    #[wasm_bindgen(getter)]
    pub fn finished(&self) -> u32 {
        self.done.len() as u32
    }
    /// The stations at the present time: the time in seconds, then for each station bytes acknowledged,
    /// smoothed round-trip time in ms (NaN without), congestion window, downlink and uplink queue in bytes,
    /// ACKs discarded, ACKs sent. Empty between runs.
    pub fn view(&self) -> Vec<f64> {
        let Some(run) = &self.run else { return Vec::new() };
        let view = run.view();
        let stations = view.stations.iter().flat_map(|station| {
            [
                station.acknowledged as f64,
                station.srtt_ms.unwrap_or(f64::NAN),
                station.cwnd as f64,
                station.downlink_queue as f64,
                station.uplink_queue as f64,
                station.acks_discarded as f64,
                station.acks_sent as f64,
            ]
        });
        std::iter::once(view.at.as_secs_f64()).chain(stations).collect()
    }
    /// The results of all seeds; ends the simulation.
    pub fn finish(self) -> Results {
        let (origin, scenario) = (paceline_study::origin(), self.scenario);
        let summary = Summary::new(origin, &self.name, "simulated", &scenario, self.done);
        Results::new(scenario, summary, self.journeys.all())
    }
}
