//! CUBIC (RFC 9438) with the integer arithmetic of Linux `tcp_cubic`: C = 0.4, beta = 717/1024, fast
//! convergence, the Reno-friendly region, and HyStart or HyStart++. The curve's time has a resolution of 1 ms
//! and excludes idle times.
//!
//! Where Linux and RFC 9438 differ, this follows Linux: whole segments, a curve that is evaluated every 31
//! ms, a Reno estimate that keeps its slope above the former window (§4.3 raises it to one segment per round
//! trip), a timeout that resets W_max, and an undo that does not restore K. A window that counts bytes
//! follows the RFC ([`Curve`](super::cubic_curve::Curve)).

use super::cubic_curve::Curve;
use super::hystart::HyStart;
use super::hystart_pp::HyStartPlusPlus;
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::{CwndUnit, Window};
use paceline_net::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// beta_cubic in 1/1024 (Linux `beta`; 0.7 in RFC 9438 §4.6).
const BETA: u64 = 717;
/// Scale of [`BETA`] (Linux `BICTCP_BETA_SCALE`).
const BETA_SCALE: u64 = 1024;
/// C in 1/1024 segment per s^3 (Linux `cube_rtt_scale`; 0.4 in RFC 9438 §5).
const CUBE_RTT_SCALE: u64 = 410;
/// The curve's time counts 2^-10 s (Linux `BICTCP_HZ`).
const TIME_SHIFT: u32 = 10;
/// Acknowledged segments per segment of the Reno estimate and segment of window, in 1/8: the inverse of
/// 3 (1 - beta) / (1 + beta) (Linux `beta_scale`; alpha_cubic of RFC 9438 §4.3).
const RENO_SCALE: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// Time for which the curve is not evaluated again while the window is unchanged (Linux `bictcp_update`, HZ /
/// 32).
const REFRESH_MS: u64 = 31;
/// Time after the start of an epoch in which RTT samples are ignored (Linux `cubictcp_acked`, HZ).
const SAMPLE_DELAY_MS: u64 = 1000;
/// Most acknowledged segments per increase by one while W_max is unknown, which is growth by 5% per round
/// trip (Linux `bictcp_update`).
const MAX_ACKED_PER_INCREASE_INITIALLY: u32 = 20;
/// Fewest acknowledged segments per increase by one, which is growth by half a window per round trip (RFC
/// 9438 §4.4).
const MIN_ACKED_PER_INCREASE: u32 = 2;

/// Detection that ends slow start before a loss.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum SlowStartExit {
    /// None.
    #[serde(rename = "off")]
    Off,
    /// By ACK trains and by delay, as Linux.
    #[default]
    #[serde(rename = "hystart")]
    HyStart,
    /// By delay, after five round trips of slower growth (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
}

/// The selected detector.
#[derive(Clone, Debug)]
enum Detector {
    Off,
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    detector: Detector,
    fast_convergence: bool,
    delay_min: Option<Duration>,
    /// W_max after fast convergence; zero before the first reduction.
    last_max: u32,
    epoch: Option<Epoch>,
    /// Acknowledged segments per increase by one (Linux `cnt`).
    acked_per_increase: u32,
    /// Window and time of the last evaluation of the curve.
    last_cwnd: u32,
    last_ms: u64,
    last_sent_ms: u64,
    snd_nxt: u64,
    /// With a window in bytes: the current congestion avoidance stage, and the one that an undo restores.
    curve: Option<Curve>,
    undo_curve: Option<Curve>,
    /// The window before the last reduction, in window units.
    cwnd_prior: u32,
}

/// One congestion avoidance stage: the growth between two reductions.
#[derive(Clone, Debug)]
struct Epoch {
    start_ms: u64,
    /// K in 1/1024 s.
    k: u64,
    /// W_max, or the window at the start if that is larger (Linux `bic_origin_point`).
    origin: u32,
    /// W_est, and segments acknowledged towards its next increase.
    reno_cwnd: u32,
    reno_acked: u64,
}

impl Cubic {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(unit: CwndUnit, mss: u32, initial: u32, exit: SlowStartExit, fast_convergence: bool) -> Self {
        let detector = match exit {
            SlowStartExit::Off => Detector::Off,
            SlowStartExit::HyStart => Detector::HyStart(HyStart::default()),
            SlowStartExit::HyStartPlusPlus => Detector::PlusPlus(HyStartPlusPlus::default()),
        };
        Self {
            window: Window::counting(unit, mss, initial),
            detector,
            fast_convergence,
            delay_min: None,
            last_max: 0,
            epoch: None,
            acked_per_increase: 0,
            last_cwnd: 0,
            last_ms: 0,
            last_sent_ms: 0,
            snd_nxt: 0,
            curve: None,
            undo_curve: None,
            cwnd_prior: 0,
        }
    }
    /// Sets W_max and returns the ssthresh of a reduction.
    fn reduced(&mut self) -> u32 {
        self.epoch = None;
        self.undo_curve = self.curve.take();
        self.cwnd_prior = self.window.cwnd;
        let cwnd = u64::from(self.window.cwnd);
        self.last_max = if self.fast_convergence && self.window.cwnd < self.last_max {
            // Fast convergence (RFC 9438 §4.7).
            (cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            self.window.cwnd
        };
        self.window.share(BETA, BETA_SCALE)
    }
    /// Resets the curve and begins a new slow start, after a timeout.
    fn reset(&mut self, now: Instant) {
        (self.epoch, self.curve) = (None, None);
        self.delay_min = None;
        (self.last_max, self.acked_per_increase, self.last_cwnd, self.last_ms) = (0, 0, 0, 0);
        if let Detector::HyStart(hystart) = &mut self.detector {
            hystart.restart(now, self.snd_nxt);
        }
    }
    fn on_rtt(&mut self, now: Instant, sample: &AckSample, rtt: Duration) {
        let now_ms = now.as_millis();
        // Shortly after a recovery the samples include its queueing delay.
        if self.epoch.as_ref().is_some_and(|epoch| now_ms - epoch.start_ms < SAMPLE_DELAY_MS) {
            return;
        }
        let delay_min = self.delay_min.map_or(rtt, |min| min.min(rtt));
        self.delay_min = Some(delay_min);
        if let Detector::HyStart(hystart) = &mut self.detector
            && !hystart.found()
            && self.window.in_slow_start()
            && hystart.on_ack(now, sample, rtt, delay_min, &self.window)
        {
            self.window.ssthresh = self.window.cwnd;
        }
    }
    /// Evaluates the curve and sets the number of acknowledged segments per increase by one.
    fn update(&mut self, now: Instant, acked: u32) {
        let (now_ms, cwnd) = (now.as_millis(), self.window.cwnd);
        if let Some(epoch) = &mut self.epoch {
            epoch.reno_acked += u64::from(acked);
            if self.last_cwnd == cwnd && now_ms - self.last_ms <= REFRESH_MS {
                return;
            }
        }
        let fresh = self.epoch.is_some() && now_ms == self.last_ms;
        let (last_max, delay_ms) = (self.last_max, self.delay_min.map_or(0, Duration::as_millis));
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now_ms, cwnd, last_max, acked));
        if !fresh {
            (self.last_cwnd, self.last_ms) = (cwnd, now_ms);
            let target = epoch.target(now_ms + delay_ms);
            self.acked_per_increase =
                if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            if last_max == 0 {
                self.acked_per_increase = self.acked_per_increase.min(MAX_ACKED_PER_INCREASE_INITIALLY);
            }
        }
        let reno = epoch.reno_window(cwnd);
        if reno > cwnd {
            self.acked_per_increase = self.acked_per_increase.min(cwnd / (reno - cwnd));
        }
        self.acked_per_increase = self.acked_per_increase.max(MIN_ACKED_PER_INCREASE);
    }
}

impl Cubic {
    /// Sets the window in bytes after `acked` bytes were acknowledged.
    fn follow_curve(&mut self, now: Instant, acked: u32, srtt: Duration) {
        let mss = f64::from(self.window.mss);
        let segments = |bytes: u32| f64::from(bytes) / mss;
        let (cwnd, last_max, prior) = (self.window.cwnd, self.last_max, self.cwnd_prior);
        let begin = || Curve::new(now, segments(cwnd), segments(last_max), segments(prior));
        let curve = self.curve.get_or_insert_with(begin);
        self.window.set((curve.grow(now, segments(acked), srtt) * mss) as u64);
    }
}

impl Epoch {
    fn new(now_ms: u64, cwnd: u32, last_max: u32, acked: u32) -> Self {
        let below = u64::from(last_max.saturating_sub(cwnd));
        // K = cbrt((W_max - cwnd) / C), in 1/1024 s.
        let k = libm::cbrt((below << 40) as f64 / CUBE_RTT_SCALE as f64);
        Self {
            start_ms: now_ms,
            k: k as u64,
            origin: last_max.max(cwnd),
            reno_cwnd: cwnd,
            reno_acked: u64::from(acked),
        }
    }
    /// W_cubic at a time, in segments.
    fn target(&self, at_ms: u64) -> u32 {
        let t = ((at_ms - self.start_ms) << TIME_SHIFT) / 1000;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(CUBE_RTT_SCALE) * offset * offset * offset) >> (10 + 3 * TIME_SHIFT);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX / 4);
        if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }
    /// W_est: the window of Reno with the same average.
    fn reno_window(&mut self, cwnd: u32) -> u32 {
        let per_segment = (u64::from(cwnd) * RENO_SCALE) >> 3;
        if per_segment > 0 && self.reno_acked > per_segment {
            let steps = (self.reno_acked - 1) / per_segment;
            self.reno_acked -= steps * per_segment;
            self.reno_cwnd = self.reno_cwnd.saturating_add(steps as u32);
        }
        self.reno_cwnd
    }
}

impl CongestionControl for Cubic {
    fn on_transmit_start(&mut self, now: Instant, _app_limited: bool) {
        let now_ms = now.as_millis();
        if let Some(epoch) = &mut self.epoch {
            // The curve's time excludes idle times (RFC 9438 §5.8).
            let pause = now_ms.saturating_sub(self.last_sent_ms);
            epoch.start_ms = (epoch.start_ms + pause).min(now_ms);
        }
        if let Some(curve) = &mut self.curve {
            curve.pause(now, Duration::from_millis(now_ms.saturating_sub(self.last_sent_ms)));
        }
    }
    fn on_sent(&mut self, now: Instant, _len: Bytes, _in_flight: Bytes) {
        self.last_sent_ms = now.as_millis();
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.snd_nxt = sample.snd_nxt;
        if let Some(rtt) = sample.rtt {
            self.on_rtt(now, sample, rtt);
        }
        if let Detector::PlusPlus(detector) = &mut self.detector
            && self.window.is_initial()
            && detector.on_ack(sample)
        {
            self.window.ssthresh = self.window.cwnd;
        }
        if sample.in_recovery || !sample.advanced || !sample.cwnd_limited {
            return;
        }
        let mut acked = self.window.counts(sample.acked);
        if self.window.in_slow_start() {
            acked = match &mut self.detector {
                Detector::PlusPlus(detector) if self.window.is_initial() => {
                    detector.growth(acked, self.window.segment)
                }
                _ => acked,
            };
            acked = self.window.slow_start(acked);
        }
        if acked == 0 {
            return;
        }
        if self.window.counts_bytes() {
            self.follow_curve(now, acked, sample.srtt.unwrap_or(Duration::ZERO));
        } else {
            self.update(now, acked);
            self.window.increase(self.acked_per_increase, acked);
        }
    }
    fn on_congestion(&mut self, now: Instant, event: CongestionEvent, in_flight: Bytes) {
        match event {
            CongestionEvent::FastRecovery => {
                let ssthresh = self.reduced();
                self.window.reduce(ssthresh);
            }
            CongestionEvent::Ecn => {
                let ssthresh = self.reduced();
                self.window.reduce(ssthresh);
                self.window.end_recovery(); // without a loss there is no recovery that would end
            }
            CongestionEvent::RecoveryEnd => self.window.end_recovery(),
            CongestionEvent::Timeout => {
                let ssthresh = self.reduced();
                self.window.restart(Some(ssthresh), in_flight);
                self.reset(now);
            }
            CongestionEvent::RepeatedTimeout => {
                self.window.restart(None, in_flight);
                self.reset(now);
            }
            CongestionEvent::Undo => {
                self.window.undo();
                self.curve = self.undo_curve.take();
            }
        }
    }
    fn on_idle(&mut self, _now: Instant, cwnd: Bytes) {
        self.curve = None;
        self.window.shrink(cwnd);
    }
    fn cwnd(&self) -> Bytes {
        self.window.bytes()
    }
    fn ssthresh(&self) -> Bytes {
        self.window.ssthresh_bytes()
    }
}

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
