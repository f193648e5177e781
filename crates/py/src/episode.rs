//! Episodes: the steps of a run under a learning agent, for `paceline.gym`.
//!
//! A step returns the observation as the bytes of 32-bit floats, which NumPy reads without a loop, and its
//! terms in SI units as a dict. The tables [`RATE`] and [`SCHEDULING`] define the observations: the spaces of
//! the Python package are made from them.

use crate::error::scenario_error;
use crate::results::{Results, series};
use crate::scenario::Scenario;
use paceline_net::{Bytes, Duration, Rate};
use paceline_sim::episode::{self, RateReport, StationReport};
use paceline_sim::{RunResult, ScenarioError};
use paceline_tcp::Setting;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, PoisonError};

/// A component of an observation: name with unit, and bounds, to which values are clipped.
type Component = (&'static str, f32, f32);

/// The observation of rate control. Chosen: the bounds are beyond every path that a scenario can have, except
/// those of the gradient, which a step with few samples can exceed.
const RATE: [Component; 10] = [
    ("sent_mbps", 0.0, 1e6),
    ("acked_mbps", 0.0, 1e6),
    ("loss_share", 0.0, 1.0),
    ("rtt_mean_ms", 0.0, 1e6),
    ("rtt_min_ms", 0.0, 1e6),
    ("rtt_gradient", -10.0, 10.0),
    ("in_flight_kb", 0.0, 1e6),
    ("cwnd_kb", 0.0, 1e6),
    ("pacing_mbps", 0.0, 1e6),
    ("step_ms", 0.0, 1e6),
];

/// The observation of each station of scheduling. Chosen: as above; MCS indices end at 31.
const SCHEDULING: [Component; 5] = [
    ("queue_kb", 0.0, 1e6),
    ("head_wait_ms", 0.0, 1e6),
    ("mcs", -1.0, 31.0),
    ("mean_rate_mbps", 0.0, 1e6),
    ("delivered_mbps", 0.0, 1e6),
];

/// The bytes of values in the bounds of their components.
fn clipped<'a, const N: usize>(
    values: [f64; N],
    components: &'a [Component; N],
) -> impl Iterator<Item = u8> + use<'a, N> {
    let clip = |(value, (_, low, high)): (f64, &Component)| (value as f32).clamp(*low, *high).to_ne_bytes();
    values.into_iter().zip(components).flat_map(clip)
}

/// Megabits per second; zero over no time.
fn mbps(bytes: Bytes, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes.0 as f64 * 8e-6 / time.as_secs_f64() }
}

fn step_of(text: &str) -> PyResult<Duration> {
    text.parse().map_err(|error| PyValueError::new_err(format!("step = {text:?}: {error}")))
}

/// The results of one run.
fn results_of(scenario: &Bound<'_, Scenario>, mut run: RunResult) -> Results {
    let samples = series(&mut run);
    Results::new(scenario.get(), vec![run], vec![samples])
}

/// The exception of an episode whose results were taken.
fn ended() -> PyErr {
    PyValueError::new_err("the episode has ended with its results; reset() starts another one")
}

fn refused(py: Python<'_>, error: &ScenarioError) -> PyErr {
    scenario_error(py, &error.to_string(), Some(error))
}

type RateStep<'py> = (Bound<'py, PyBytes>, Bound<'py, PyDict>, bool, bool);

/// Window and pacing rate of some stations' senders, set between steps.
#[pyclass(module = "paceline._paceline")]
pub struct RateEpisode {
    /// In a mutex, since classes of Python are shared between threads.
    episode: Mutex<Option<episode::RateEpisode>>,
    senders: Vec<Senders>,
}

/// The senders of a station.
struct Senders {
    /// Payload of a full segment.
    segment: u64,
    /// Segments.
    initial_window: u32,
    /// The last mean of round-trip times in seconds; zero before the first one.
    rtt_s: f64,
}

impl Senders {
    fn observation(&mut self, report: &RateReport, rate: Option<Rate>) -> Vec<u8> {
        self.rtt_s = report.rtt_mean_s.unwrap_or(self.rtt_s);
        let ended = report.lost.0 + report.acked.0;
        let values = [
            mbps(report.sent, report.step),
            mbps(report.acked, report.step),
            if ended > 0 { report.lost.0 as f64 / ended as f64 } else { 0.0 },
            self.rtt_s * 1e3,
            report.rtt_min_s.unwrap_or(0.0) * 1e3,
            report.rtt_gradient,
            report.in_flight.0 as f64 * 1e-3,
            report.cwnd.0 as f64 * 1e-3,
            rate.map_or(0.0, |rate| rate.0 as f64 * 1e-6 * report.connections as f64),
            report.step.as_secs_f64() * 1e3,
        ];
        clipped(values, &RATE).collect()
    }
}

/// The terms of a station's senders after a step, in SI units.
fn terms<'py>(py: Python<'py>, report: &RateReport) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    info.set_item("time_s", report.at.as_nanos() as f64 * 1e-9)?;
    info.set_item("step_s", report.step.as_secs_f64())?;
    info.set_item("sent_bytes", report.sent.0)?;
    info.set_item("acked_bytes", report.acked.0)?;
    info.set_item("lost_bytes", report.lost.0)?;
    info.set_item("rtt_mean_s", report.rtt_mean_s)?;
    info.set_item("rtt_least_s", report.rtt_least_s)?;
    info.set_item("rtt_min_s", report.rtt_min_s)?;
    info.set_item("rtt_gradient", report.rtt_gradient)?;
    info.set_item("in_flight_bytes", report.in_flight.0)?;
    info.set_item("cwnd_bytes", report.cwnd.0)?;
    info.set_item("connections", report.connections)?;
    Ok(info)
}

#[pymethods]
impl RateEpisode {
    /// Components of an observation: name with unit, least and largest value.
    #[classattr]
    #[pyo3(name = "COMPONENTS")]
    fn components() -> [Component; RATE.len()] {
        RATE
    }

    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Bound<'_, Scenario>,
        seed: u64,
        stations: Vec<usize>,
        step: &str,
    ) -> PyResult<Self> {
        let scenario = &*scenario.get().scenario;
        let episode = episode::RateEpisode::new(scenario, seed, &stations, step_of(step)?)
            .map_err(|error| refused(py, &error))?;
        let groups = scenario.group_of_stations();
        let senders = |station| {
            let tcp = scenario.tcp_of(&scenario.stations[groups[station]]);
            Senders { segment: tcp.segment_size.0, initial_window: tcp.initial_window, rtt_s: 0.0 }
        };
        let senders = stations.into_iter().map(senders).collect();
        Ok(Self { episode: Mutex::new(Some(episode)), senders })
    }
    /// Payload of a full segment and the initial window in segments, of each station.
    #[getter]
    fn senders(&self) -> Vec<(u64, u32)> {
        self.senders.iter().map(|senders| (senders.segment, senders.initial_window)).collect()
    }
    /// Ends the episode: the figures of its run so far.
    fn results(&mut self, scenario: &Bound<'_, Scenario>) -> PyResult<Results> {
        let episode = self.episode.get_mut().unwrap_or_else(PoisonError::into_inner);
        Ok(results_of(scenario, episode.take().ok_or_else(ended)?.finish()))
    }
    /// Sets for each station the window of a connection in bytes and its pacing rate in bits per second, or
    /// neither, and advances by a step. For each station: observation, terms, whether all transfers are
    /// complete, whether the run is over.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        settings: Vec<(Option<u64>, Option<u64>)>,
    ) -> PyResult<Vec<RateStep<'py>>> {
        if settings.len() != self.senders.len() {
            let message =
                format!("{} settings: one for each of {} stations", settings.len(), self.senders.len());
            return Err(PyValueError::new_err(message));
        }
        let settings: Vec<Setting> = settings
            .into_iter()
            .map(|(window, rate)| Setting { window: window.map(Bytes), rate: rate.map(Rate) })
            .collect();
        let episode = self.episode.get_mut().unwrap_or_else(PoisonError::into_inner);
        let episode = episode.as_mut().ok_or_else(ended)?;
        let reports = py.detach(|| episode.step(&settings));
        let stations = self.senders.iter_mut().zip(&settings).zip(&reports);
        stations
            .map(|((senders, setting), report)| {
                let observation = PyBytes::new(py, &senders.observation(report, setting.rate));
                Ok((observation, terms(py, report)?, report.complete, report.over))
            })
            .collect()
    }
}

type State<'py> = (Bound<'py, PyBytes>, Bound<'py, PyDict>);

/// Weights of the downlink scheduler, set between steps.
#[pyclass(module = "paceline._paceline")]
pub struct SchedulingEpisode(Mutex<Option<episode::SchedulingEpisode>>);

impl SchedulingEpisode {
    fn episode(&mut self) -> PyResult<&mut episode::SchedulingEpisode> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().ok_or_else(ended)
    }
    fn state_after<'py>(&mut self, py: Python<'py>, step: Duration) -> PyResult<State<'py>> {
        let reports = self.episode()?.reports();
        let row = |report: &StationReport| {
            let StationReport { state, delivered } = report;
            let values = [
                state.queued.0 as f64 * 1e-3,
                state.head_wait.as_secs_f64() * 1e3,
                state.mcs.map_or(-1.0, f64::from),
                state.mean_rate.0 as f64 * 1e-6,
                mbps(*delivered, step),
            ];
            clipped(values, &SCHEDULING)
        };
        let observation: Vec<u8> = reports.iter().flat_map(row).collect();
        let info = PyDict::new(py);
        info.set_item("time_s", self.episode()?.elapsed().as_secs_f64())?;
        info.set_item("step_s", step.as_secs_f64())?;
        let of = |value: fn(&StationReport) -> u64| reports.iter().map(value).collect::<Vec<_>>();
        info.set_item("queue_bytes", of(|report| report.state.queued.0))?;
        info.set_item("delivered_bytes", of(|report| report.delivered.0))?;
        let of = |value: fn(&StationReport) -> f64| reports.iter().map(value).collect::<Vec<_>>();
        info.set_item("head_wait_s", of(|report| report.state.head_wait.as_secs_f64()))?;
        info.set_item("mean_rate_mbps", of(|report| report.state.mean_rate.0 as f64 * 1e-6))?;
        Ok((PyBytes::new(py, &observation), info))
    }
}

#[pymethods]
impl SchedulingEpisode {
    /// Components of a station's part of an observation: name with unit, least and largest value.
    #[classattr]
    #[pyo3(name = "COMPONENTS")]
    fn components() -> [Component; SCHEDULING.len()] {
        SCHEDULING
    }

    #[new]
    fn new(py: Python<'_>, scenario: &Bound<'_, Scenario>, seed: u64, step: &str) -> PyResult<Self> {
        let episode = episode::SchedulingEpisode::new(&scenario.get().scenario, seed, step_of(step)?);
        episode.map(|episode| Self(Mutex::new(Some(episode)))).map_err(|error| refused(py, &error))
    }
    #[getter]
    fn stations(&mut self) -> PyResult<usize> {
        Ok(self.episode()?.stations())
    }
    /// Ends the episode: the figures of its run so far.
    fn results(&mut self, scenario: &Bound<'_, Scenario>) -> PyResult<Results> {
        let episode = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        Ok(results_of(scenario, episode.take().ok_or_else(ended)?.finish()))
    }
    /// Observation and terms at the start.
    fn state<'py>(&mut self, py: Python<'py>) -> PyResult<State<'py>> {
        self.state_after(py, Duration::ZERO)
    }
    /// Sets one weight for each station and advances by a step: observation, terms, whether the run is over.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        weights: Vec<f64>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyDict>, bool)> {
        let episode = self.episode()?;
        if weights.len() != episode.stations() {
            let message =
                format!("{} weights: one for each of {} stations", weights.len(), episode.stations());
            return Err(PyValueError::new_err(message));
        }
        let bad = weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0);
        if let Some(station) = bad {
            let message = format!("weight of station {station} = {}: a number from 0", weights[station]);
            return Err(PyValueError::new_err(message));
        }
        let step = py.detach(|| episode.step(&weights));
        let (observation, info) = self.state_after(py, step)?;
        Ok((observation, info, self.episode()?.is_over()))
    }
}
