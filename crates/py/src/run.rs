//! Runs of a scenario on threads, without the interpreter's lock.
//!
//! The calling thread looks every few milliseconds whether the user has pressed Ctrl-C, and tells the
//! progress. The threads look at [`Stop`] between steps of simulated time.

use crate::control::{Failure, controls};
use crate::results::{Results, series};
use crate::scenario::Scenario;
use paceline_net::Instant;
use paceline_sim::scenario::{Direction, Stations, Traffic};
use paceline_sim::{Run, RunResult, scenario};
use paceline_tcp::OwnControl;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which the calling thread looks for signals. Chosen: below what a user notices.
const LOOK: Duration = Duration::from_millis(50);

/// Ends runs from another thread.
#[pyclass(frozen, module = "paceline._paceline")]
#[derive(Default)]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    /// Ends the runs.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A simulation.
pub struct Job<'a> {
    pub scenario: &'a scenario::Scenario,
    pub seed: u64,
    /// The congestion control of all connections in place of the scenario's.
    pub control: Option<&'a OwnControl>,
}

impl Job<'_> {
    /// The results; none if `go_on` became false.
    fn run(&self, go_on: &mut dyn FnMut(Instant) -> bool) -> Option<RunResult> {
        let mut run = Run::new(self.scenario, self.seed, None);
        if let Some(control) = self.control {
            run.control_by(control);
        }
        while !run.is_over() {
            if !go_on(run.step()) {
                return None;
            }
        }
        Some(run.finish())
    }
}

/// Simulations, taken by threads one by one.
pub struct Jobs<'a> {
    jobs: Vec<Job<'a>>,
    next: AtomicUsize,
    /// Simulated milliseconds of all of them.
    done_ms: AtomicU64,
    whole_ms: u64,
    stop: &'a AtomicBool,
    controls: Failure,
}

impl<'a> Jobs<'a> {
    /// The jobs; `stop` ends them, and calls of controls in Python.
    pub fn new(jobs: Vec<Job<'a>>, stop: &'a AtomicBool, controls: Failure) -> Self {
        let whole_ms = jobs.iter().map(|job| job.scenario.run.duration.as_millis()).sum();
        Self { jobs, next: AtomicUsize::new(0), done_ms: AtomicU64::new(0), whole_ms, stop, controls }
    }
    /// Simulates jobs until none is left or they are stopped; hands over what `made` makes of the results.
    fn work<T>(&self, made: &dyn Fn(RunResult) -> T, results: &Sender<(usize, T)>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(index) else { return };
            let mut last = Instant::ZERO;
            let result = job.run(&mut |now| {
                self.done_ms.fetch_add(now.since(last).as_millis(), Ordering::Relaxed);
                last = now;
                !self.stop.load(Ordering::Relaxed)
            });
            let Some(result) = result else { return };
            if results.send((index, made(result))).is_err() {
                return;
            }
        }
    }
    /// Runs all jobs on `threads` threads; none if they were stopped. A signal, or an error of `progress`,
    /// ends them.
    pub fn run<T: Send>(
        &self,
        threads: usize,
        progress: Option<&Py<PyAny>>,
        made: &(dyn Fn(RunResult) -> T + Sync),
    ) -> PyResult<Option<Vec<T>>> {
        let mut slots: Vec<Option<T>> = Vec::new();
        slots.resize_with(self.jobs.len(), || None);
        std::thread::scope(|scope| {
            let (sender, results) = channel();
            for _ in 0..threads.clamp(1, self.jobs.len().max(1)) {
                let sender = sender.clone();
                scope.spawn(move || self.work(made, &sender));
            }
            drop(sender);
            let outcome = self.collect(&results, &mut slots, progress);
            if outcome.is_err() {
                self.stop.store(true, Ordering::Relaxed);
                while !matches!(results.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected)) {
                    Python::attach(|py| self.controls.interrupt(py))?;
                }
            }
            outcome
        })?;
        Ok(slots.into_iter().collect())
    }
    /// Takes results until the threads have ended.
    fn collect<T>(
        &self,
        results: &Receiver<(usize, T)>,
        slots: &mut [Option<T>],
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<()> {
        let mut looked = now();
        loop {
            match results.recv_timeout(LOOK) {
                Ok((index, result)) => slots[index] = Some(result),
                Err(RecvTimeoutError::Disconnected) => return self.look(progress),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if looked.elapsed() >= LOOK {
                looked = now();
                self.look(progress)?;
            }
        }
    }
    /// Looks for signals, and tells the progress.
    fn look(&self, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if self.stop.load(Ordering::Relaxed) {
                self.controls.interrupt(py)?;
            }
            let Some(progress) = progress else { return Ok(()) };
            let seconds = |ms: u64| ms as f64 / 1000.0;
            let done_s = seconds(self.done_ms.load(Ordering::Relaxed));
            progress.call1(py, (done_s, seconds(self.whole_ms))).map(drop)
        })
    }
}

/// The wall clock, which times the looks, not the runs.
#[allow(clippy::disallowed_types, reason = "see above")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Error of runs that another thread has stopped.
pub fn stopped() -> PyErr {
    PyKeyboardInterrupt::new_err("the runs were stopped")
}

/// Simulates a scenario with each of the seeds, on `jobs` threads. `progress` is called with the simulated
/// and the whole time of all runs in seconds. `control` makes the congestion control of each connection.
#[pyfunction]
#[pyo3(signature = (scenario, seeds, jobs, progress=None, stop=None, control=None))]
#[allow(clippy::too_many_arguments, reason = "keywords of a function in Python")]
pub fn run(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seeds: Vec<u64>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    stop: Option<&Bound<'_, Stop>>,
    control: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let scenario = scenario.get();
    let stop = stop.map_or_else(Arc::default, |stop| stop.get().0.clone());
    let has_tcp = |group: &Stations| group.traffic == Traffic::Tcp && group.direction != Direction::None;
    if control.is_some() && !scenario.scenario.stations.iter().any(has_tcp) {
        return Err(PyValueError::new_err("control: left out where no station has TCP traffic"));
    }
    let failure = Failure::default();
    let control = control.map(|class| controls(class, &failure));
    let of_seed = |seed: &u64| Job { scenario: &scenario.scenario, seed: *seed, control: control.as_ref() };
    let all = Jobs::new(seeds.iter().map(of_seed).collect(), &stop, failure.clone());
    let made = |mut result: RunResult| {
        if failure.is_set() {
            stop.store(true, Ordering::Relaxed);
        }
        let samples = series(&mut result);
        (result, samples)
    };
    let runs = py.detach(|| all.run(jobs, progress.as_ref(), &made))?;
    if let Some(error) = failure.take() {
        return Err(error);
    }
    let runs = runs.ok_or_else(stopped)?;
    if runs.is_empty() {
        return Err(PyValueError::new_err("seeds: empty; give at least one, for example range(8)"));
    }
    let (runs, samples) = runs.into_iter().unzip();
    Ok(Results::new(scenario, runs, samples))
}
