//! The path of a capture: the fitted scenario, and values of it drawn within their confidence.

use crate::measured::Measured;
use paceline_fit::{Confidence, Estimate, Fit, Fitted, Position};
use paceline_net::{Bytes, Duration, Stream};
use paceline_sim::Scenario;
use paceline_sim::scenario::{Access, Transfer};

/// Bound within which 100% of the fit's capacities are, taken as two standard deviations. Measured by
/// scripts/measure/fit_grid.py (docs/fit.md).
const CAPACITY: f64 = 0.05;
/// The same of 97% of its buffers. Measured by scripts/measure/fit_grid.py (docs/fit.md).
const BUFFER: f64 = 0.15;
/// The same of 94% of its round trips, the larger of a share and of a time in ms. Measured by
/// scripts/measure/fit_grid.py (docs/fit.md).
const RTT: f64 = 0.05;
/// That time, ms. Measured by scripts/measure/fit_grid.py (docs/fit.md).
const RTT_MS: f64 = 1.0;
/// The same of a value that is no claim, as a multiple. Chosen: no claim has no bound; a wide interval
/// then claims no gain.
const UNCLAIMED: f64 = 3.0;
/// Pieces in which an application writes, s. Chosen: results are insensitive to pieces far shorter than the
/// transfer.
const PIECE_S: f64 = 0.1;
/// The run goes on after the last measured acknowledgment by this factor and time: for slower variants.
const LONGER: f64 = 2.0;
const AFTER_S: f64 = 5.0;

/// Values of the path for one replicate.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Seed of the simulation.
    pub seed: u64,
    capacity: f64,
    buffer: f64,
    loss: f64,
    rtt_ms: f64,
    /// Share of the delay on the servers' side, where the capture does not tell it.
    core_share: f64,
}

/// An interpretation of a capture. That with the simulation nearest the capture is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    /// Congestion control of the sender.
    pub control: &'static str,
    /// Whether losses that are no claim of the fit are the path's, with a buffer that never overflows where
    /// its size is not known; else the buffer has the default, and causes them.
    pub has_losses: bool,
}

/// Buffer that no transfer fills: the receive window of Linux is 6 MiB.
const ENDLESS: &str = "16 MB";

/// The path.
#[derive(Debug)]
pub struct Path {
    fitted: Fitted,
    scenario: Scenario,
    /// Capacity, Mb/s.
    pub capacity: f64,
    /// Base round trip, ms.
    pub rtt_ms: f64,
    /// Buffer, bytes, where it is known.
    pub buffer: Option<f64>,
    /// Whether it has a cell in TDD.
    pub is_tdd: bool,
    is_upload: bool,
    deviations: [f64; 4],
    place_is_known: bool,
    transfers: Vec<Transfer>,
    /// Losses without a full buffer, percent.
    loss_percent: f64,
    end_s: f64,
    window: Option<f64>,
}

/// Half of the bound of a claim: the standard deviation.
fn deviation<T>(estimate: Option<&Estimate<T>>, bound: f64) -> f64 {
    match estimate.map(|estimate| estimate.confidence) {
        Some(Confidence::High | Confidence::Medium) => bound / 2.0,
        Some(Confidence::Low) | None => UNCLAIMED * bound / 2.0,
    }
}

impl Path {
    /// The path of a fit with the measured transfers; or the lack in the captures that prevents it.
    pub fn new(fit: &Fit, measured: &Measured) -> Result<Self, String> {
        let fitted = fit.scenario().ok_or("the captures show neither rate nor round trip")?;
        let scenario = fitted.load(&[]).map_err(|error| error.to_string())?;
        let busiest = fit.rates.iter().map(|window| window.mbps).fold(0.0, f64::max);
        let rtt_ms = fit.base_rtt_ms.as_ref().map_or(50.0, |rtt| rtt.value);
        let losses =
            fit.loss_percent.as_ref().map_or(0.0, |loss| loss.value / 100.0 * measured.segments as f64);
        let deviations = [
            deviation(fit.capacity_mbps.as_ref(), CAPACITY),
            deviation(fit.buffer_bytes.as_ref(), BUFFER),
            // A count of losses is known as a Poisson variable is.
            1.0 / libm::sqrt(losses.max(1.0)),
            deviation(fit.base_rtt_ms.as_ref(), (RTT * rtt_ms).max(RTT_MS)),
        ];
        let is_link = matches!(scenario.access, Access::Link(_));
        let is_tdd = fit.pattern.as_ref().is_some_and(|pattern| !pattern.value.letters.is_empty());
        let end_s = measured.transfers.iter().map(|own| own.start_s + own.completion_s).fold(0.0, f64::max);
        Ok(Self {
            capacity: fit.capacity_mbps.as_ref().map_or(busiest, |capacity| capacity.value),
            rtt_ms,
            buffer: fit.buffer_bytes.as_ref().map(|buffer| buffer.value),
            is_tdd: is_tdd && !is_link,
            is_upload: measured.is_upload,
            deviations,
            place_is_known: !is_link || fit.position == Position::Between,
            transfers: measured.transfers.iter().map(transfer).collect(),
            loss_percent: fit.loss_percent.as_ref().map_or(0.0, |loss| loss.value),
            end_s: LONGER * end_s + AFTER_S,
            window: measured.window,
            fitted,
            scenario,
        })
    }
    /// Assumptions of the fitted scenario.
    pub fn assumptions(&self) -> &[String] {
        &self.fitted.assumptions
    }
    /// Whether the access is a link.
    pub fn is_link(&self) -> bool {
        matches!(self.scenario.access, Access::Link(_))
    }
    /// Whether its rate follows a trace.
    fn is_traced(&self) -> bool {
        self.fitted.trace.is_some()
    }
    /// The values of one replicate.
    pub fn draw(&self, number: u64) -> Draw {
        let mut stream = Stream::new(number, "gain/path");
        let [capacity, buffer, loss, rtt] = self.deviations;
        let mut factor = |deviation: f64| libm::exp(deviation * stream.normal());
        let (capacity, buffer, loss) = (factor(capacity), factor(buffer), factor(loss));
        let rtt_ms = rtt * stream.normal();
        Draw { seed: 1 + number, capacity, buffer, loss, rtt_ms, core_share: stream.uniform() }
    }
    /// The scenario of a replicate with a congestion control and the settings of a remedy.
    pub(crate) fn scenario(
        &self,
        draw: &Draw,
        reading: Reading,
        remedy: &[String],
    ) -> Result<Scenario, String> {
        let mut set = self.settings(draw, reading);
        set.push(format!("station.tcp.congestion_control={}", reading.control));
        if let Some(window) = self.window {
            set.push(format!("station.tcp.receive_buffer={:.0} B", window.max(2000.0)));
            set.push("station.tcp.autotune=false".into());
        }
        for own in remedy {
            // The settings of a remedy replace those of the path.
            let key = own.split('=').next().unwrap_or(own);
            set.retain(|other| other.split('=').next() != Some(key));
            set.push(own.clone());
        }
        let mut scenario = self.fitted.load(&set).map_err(|error| error.to_string())?;
        if let Some(station) = scenario.stations.first_mut() {
            (station.start_spread, station.transfers) = (Duration::ZERO, self.transfers.clone());
        }
        Ok(scenario)
    }
    /// Whether both readings of losses differ.
    pub(crate) fn has_doubtful_losses(&self) -> bool {
        let claimed = matches!(&self.scenario.access, Access::Link(link) if link.loss_percent > 0.0);
        self.is_link() && (self.buffer.is_none() || self.loss_percent > 0.0 && !claimed)
    }
    fn settings(&self, draw: &Draw, reading: Reading) -> Vec<String> {
        let mut set = vec![format!("run.duration={:.0} ms", 1e3 * self.end_s), "run.warmup=0 s".to_owned()];
        let hop = self.scenario.core.hops.first();
        let (rate, core_ms) =
            hop.map_or((1e9, 0.0), |hop| (hop.rate.0 as f64, hop.delay.as_secs_f64() * 1e3));
        let buffer = self.buffer.map(|buffer| (buffer * draw.buffer).max(2000.0));
        let core = match &self.scenario.access {
            Access::Link(link) => {
                let link_ms = link.delay.map_or(0.0, |delay| delay.as_secs_f64() * 1e3);
                let total = (core_ms + link_ms + draw.rtt_ms / 2.0).max(0.1);
                let share = if self.place_is_known {
                    core_ms / (core_ms + link_ms).max(f64::MIN_POSITIVE)
                } else {
                    draw.core_share
                };
                set.push(format!("link.delay={:.0} us", 1e3 * total * (1.0 - share)));
                if !self.is_traced() {
                    let rate = 1e3 * self.capacity * draw.capacity;
                    set.push(format!("link.fixed.downlink_rate={rate:.0} kb/s"));
                    if self.is_upload {
                        set.push(format!("link.fixed.uplink_rate={rate:.0} kb/s"));
                    }
                }
                let loss = if reading.has_losses { self.loss_percent } else { link.loss_percent };
                set.push(format!("link.loss_percent={:.5}", (loss * draw.loss).min(100.0)));
                if reading.has_losses && buffer.is_none() {
                    set.push(format!("link.queue={ENDLESS}"));
                }
                total * share
            }
            _ => {
                set.push(self.sinr(draw));
                (core_ms + draw.rtt_ms / 2.0).max(0.0)
            }
        };
        set.push(format!("core.hops=[{{ rate = \"{rate:.0} b/s\", delay = \"{:.0} us\" }}]", 1e3 * core));
        if let Some(buffer) = buffer {
            set.push(format!("{}={buffer:.0} B", self.buffer_key()));
        }
        set
    }
    /// The SINR at which the capacity is the drawn one, by Shannon's formula: d(capacity) / capacity =
    /// d(SINR) / ((1 + SINR) ln(1 + SINR)).
    fn sinr(&self, draw: &Draw) -> String {
        let station = self.scenario.stations.first();
        let (key, range) = match station {
            Some(own) if self.is_upload => ("uplink_sinr", own.uplink_sinr.low.0),
            own => ("downlink_sinr", own.map_or(20.0, |own| own.downlink_sinr.low.0)),
        };
        let linear = libm::pow(10.0, range / 10.0);
        let change = libm::log(draw.capacity) * (1.0 + linear) * libm::log(1.0 + linear) / linear;
        let db = (range + 10.0 * change / std::f64::consts::LN_10).clamp(-30.0, 60.0);
        format!("station.{key}={db:.2} dB")
    }
    /// The key of the bottleneck's buffer.
    pub fn buffer_key(&self) -> &'static str {
        match (self.is_link(), self.is_upload) {
            (true, _) => "link.queue",
            (false, true) => "cell.uplink_buffer",
            (false, false) => "cell.downlink_buffer",
        }
    }
    /// The transfers as the scenario has them.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }
}

fn transfer(own: &crate::measured::Transfer) -> Transfer {
    let pieces = own.written_s.map_or(1, |seconds| (seconds / PIECE_S) as u64 + 1).min(own.bytes.max(1));
    let start = Duration::from_secs_f64(own.start_s);
    let chunk = Bytes(own.bytes.max(1) / pieces);
    match own.written_s.filter(|_| pieces > 1) {
        Some(seconds) => Transfer {
            start,
            file: Bytes(chunk.0 * pieces),
            chunk: Some(chunk),
            chunk_interval: Some(Duration::from_secs_f64(seconds / (pieces - 1) as f64)),
        },
        None => Transfer { start, file: Bytes(own.bytes.max(1)), chunk: None, chunk_interval: None },
    }
}
