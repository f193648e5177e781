//! CUBIC (RFC 9438) with the integer arithmetic of Linux `tcp_cubic`: C = 0.4 (41 * 10 / 1024), beta = 717/1024,
//! fast convergence, the Reno-friendly region, and HyStart or HyStart++. Times of the curve have the grain of a 1 ms
//! tick; a pause in sending is no part of them.
//!
//! Where Linux and RFC 9438 part, this follows Linux: whole segments, a curve that is looked at every 31 ms, the Reno
//! estimate keeps its slope above the former window (§4.3 would raise it to one segment per round trip), a timeout
//! forgets W_max, and undoing a reduction does not bring back K. A window that counts bytes follows the RFC
//! ([`Curve`](super::cubic_curve::Curve)).

use super::cubic_curve::Curve;
use super::hystart::HyStart;
use super::hystart_pp::HyStartPlusPlus;
use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::{CwndUnit, Window};
use paceline_net::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// beta in 1/1024.
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// C in 1/1024 segment per s^3.
const CUBE_RTT_SCALE: u64 = 410;
/// Time in the curve counts 1/1024 s.
const TIME_SHIFT: u32 = 10;
/// Segments (in 1/8) acknowledged per window for one segment of the Reno estimate: 3 (1-beta)/(1+beta), inverted.
const RENO_SCALE: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// The curve is not evaluated again within this time while the window has not changed.
const REFRESH_MS: u64 = 31;

/// How slow start may end before a loss does it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub enum SlowStartExit {
    /// Not at all.
    #[serde(rename = "off")]
    Off,
    /// By ACK trains and by delay, as Linux.
    #[default]
    #[serde(rename = "hystart")]
    HyStart,
    /// By delay, after a stretch of slower growth (RFC 9406).
    #[serde(rename = "hystart++")]
    HyStartPlusPlus,
}

/// The detector at work.
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
    /// Acknowledged segments per increase by one.
    every: u32,
    last_cwnd: u32,
    last_ms: u64,
    last_sent_ms: u64,
    snd_nxt: u64,
    /// Where the window counts bytes: the stage under way, and what an undoing brings back.
    curve: Option<Curve>,
    before: Option<Curve>,
    /// The window before the last reduction, in counts.
    cwnd_prior: u32,
}

/// One stretch of growth between two reductions.
#[derive(Clone, Debug)]
struct Epoch {
    start_ms: u64,
    /// K in 1/1024 s.
    k: u64,
    origin: u32,
    /// Window of the Reno estimate, and segments acknowledged towards its next increase.
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
            every: 0,
            last_cwnd: 0,
            last_ms: 0,
            last_sent_ms: 0,
            snd_nxt: 0,
            curve: None,
            before: None,
            cwnd_prior: 0,
        }
    }
    /// Sets W_max and gives the threshold of a reduction.
    fn reduced(&mut self) -> u32 {
        self.epoch = None;
        self.before = self.curve.take();
        self.cwnd_prior = self.window.cwnd;
        let cwnd = u64::from(self.window.cwnd);
        self.last_max = if self.fast_convergence && self.window.cwnd < self.last_max {
            // Fast convergence (RFC 9438 §4.7): a flow that lost before its former peak leaves room for a new one.
            (cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            self.window.cwnd
        };
        self.window.share(BETA, BETA_SCALE)
    }
    /// Forgets the curve and begins a new slow start, after a timeout.
    fn reset(&mut self, now: Instant) {
        (self.epoch, self.curve) = (None, None);
        self.delay_min = None;
        (self.last_max, self.every, self.last_cwnd, self.last_ms) = (0, 0, 0, 0);
        if let Detector::HyStart(hystart) = &mut self.detector {
            hystart.restart(now, self.snd_nxt);
        }
    }
    fn on_rtt(&mut self, now: Instant, sample: &AckSample, rtt: Duration) {
        let now_ms = now.as_millis();
        // Right after a recovery the samples still show its queue.
        if self.epoch.as_ref().is_some_and(|epoch| now_ms - epoch.start_ms < 1000) {
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
    /// Evaluates the curve: how many acknowledged segments each increase by one takes from here.
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
            self.every = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            if last_max == 0 {
                self.every = self.every.min(20); // no peak known yet: probe at 5 % per round trip at least
            }
        }
        let reno = epoch.reno_window(cwnd);
        if reno > cwnd {
            self.every = self.every.min(cwnd / (reno - cwnd));
        }
        self.every = self.every.max(2); // at most half a window per round trip
    }
}

impl Cubic {
    /// The window after `acked` bytes were acknowledged, in bytes.
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
    /// W_cubic at a time.
    fn target(&self, at_ms: u64) -> u32 {
        let t = ((at_ms - self.start_ms) << TIME_SHIFT) / 1000;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(CUBE_RTT_SCALE) * offset * offset * offset) >> (10 + 3 * TIME_SHIFT);
        let delta = u32::try_from(delta).unwrap_or(u32::MAX / 4);
        if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }
    /// The window that Reno with the same average would have now (W_est).
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
            // The window did not grow in the pause: it is no part of the curve (RFC 9438 §5.8).
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
            self.window.increase(self.every, acked);
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
                self.window.end_recovery(); // nothing was lost: no recovery will end it
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
                self.curve = self.before.take();
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
