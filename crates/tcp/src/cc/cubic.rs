//! CUBIC (RFC 9438) with the integer arithmetic of Linux `tcp_cubic`: C = 0.4 (41 * 10 / 1024), beta = 717/1024,
//! fast convergence, the Reno-friendly region, and HyStart or HyStart++. Times of the curve have the grain of a 1 ms
//! tick; a pause in sending is no part of them.
//!
//! Where Linux and RFC 9438 part, this follows Linux: the Reno estimate keeps its slope above the former window
//! (§4.3 would raise it to one segment per round trip), a timeout forgets W_max, and undoing a reduction does not
//! bring back K.

use super::hystart::HyStart;
use super::hystart_pp::HyStartPlusPlus;
use super::window::Window;
use super::{AckSample, CongestionControl, CongestionEvent};
use paceline_net::{Bytes, Duration, Instant};
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
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
    pub fn new(mss: u32, initial: u32, exit: SlowStartExit, fast_convergence: bool) -> Self {
        let detector = match exit {
            SlowStartExit::Off => Detector::Off,
            SlowStartExit::HyStart => Detector::HyStart(HyStart::default()),
            SlowStartExit::HyStartPlusPlus => Detector::PlusPlus(HyStartPlusPlus::default()),
        };
        Self {
            window: Window::new(mss, initial),
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
        }
    }
    /// Sets W_max and gives the threshold of a reduction.
    fn reduced(&mut self) -> u32 {
        self.epoch = None;
        let cwnd = u64::from(self.window.cwnd);
        self.last_max = if self.fast_convergence && self.window.cwnd < self.last_max {
            // Fast convergence (RFC 9438 §4.7): a flow that lost before its former peak leaves room for a new one.
            (cwnd * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            self.window.cwnd
        };
        ((cwnd * BETA / BETA_SCALE) as u32).max(2)
    }
    /// Forgets the curve and begins a new slow start, after a timeout.
    fn reset(&mut self, now: Instant) {
        self.epoch = None;
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
        let mut acked = self.window.segments(sample.acked);
        if self.window.in_slow_start() {
            acked = match &mut self.detector {
                Detector::PlusPlus(detector) if self.window.is_initial() => detector.growth(acked),
                _ => acked,
            };
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
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
            CongestionEvent::Undo => self.window.undo(),
        }
    }
    fn on_idle(&mut self, _now: Instant, cwnd: Bytes) {
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
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn ack(segments: u64, rtt_ms: u64) -> AckSample {
        AckSample {
            acked: Bytes(segments * u64::from(MSS)),
            advanced: true,
            cwnd_limited: true,
            rtt: Some(Duration::from_millis(rtt_ms)),
            srtt: Some(Duration::from_millis(rtt_ms)),
            ..Default::default()
        }
    }

    fn after_loss(cwnd: u32) -> Cubic {
        let mut cubic = Cubic::new(MSS, cwnd, SlowStartExit::Off, true);
        cubic.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        cubic.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        cubic
    }

    #[test]
    fn growth_follows_the_curve_of_rfc_9438() {
        // W_max 1000, RTT 100 ms: the cubic region rules. Feed one window of ACKs per RTT, spread over it.
        let mut cubic = after_loss(1000);
        let start = f64::from(cubic.window.cwnd);
        assert_eq!(start, 700.0);
        let k = libm::cbrt((1000.0 - start) / 0.4);
        let mut now = Instant::ZERO;
        for _ in 0..140 {
            for _ in 0..20 {
                now += Duration::from_millis(5);
                let segments = u64::from(cubic.window.cwnd) / 20;
                cubic.on_ack(now, &ack(segments, 100));
            }
            let t = now.as_secs_f64();
            let expected = 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
            let got = f64::from(cubic.window.cwnd);
            assert!((got - expected).abs() / expected < 0.03, "t={t} cwnd={got} expected={expected}");
        }
    }

    #[test]
    fn fast_convergence_lowers_the_peak_after_a_second_loss_below_it() {
        let mut cubic = after_loss(1000);
        assert_eq!((cubic.last_max, cubic.window.cwnd), (1000, 700));
        cubic.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(cubic.last_max, 700 * (1024 + 717) / 2048);
        assert_eq!(cubic.ssthresh(), Bytes(490 * 1000));
    }

    #[test]
    fn short_round_trips_grow_at_least_as_reno_would() {
        // W_max 20, RTT 10 ms: the Reno-friendly region rules, at 3 (1-beta)/(1+beta) = 0.53 segments per RTT.
        let mut cubic = after_loss(20);
        let mut now = Instant::ZERO;
        for _ in 0..40 {
            now += Duration::from_millis(10);
            cubic.on_ack(now, &ack(u64::from(cubic.window.cwnd), 10));
        }
        let expected = 14.0 + 40.0 * 0.53;
        let got = f64::from(cubic.window.cwnd);
        assert!((got - expected).abs() < 3.0, "{got} {expected}");
    }

    #[test]
    fn a_pause_is_no_part_of_the_curve() {
        let mut cubic = after_loss(1000);
        let mut other = cubic.clone();
        for control in [&mut cubic, &mut other] {
            control.on_ack(Instant::from_millis(100), &ack(700, 100));
            control.on_sent(Instant::from_millis(100), Bytes(1000), Bytes(1000));
        }
        cubic.on_transmit_start(Instant::from_millis(60_000), true);
        cubic.on_ack(Instant::from_millis(60_100), &ack(700, 100));
        other.on_ack(Instant::from_millis(200), &ack(700, 100));
        assert_eq!(cubic.window.cwnd, other.window.cwnd);
    }

    #[test]
    fn a_timeout_restarts_from_one_segment_and_forgets_the_peak() {
        let mut cubic = after_loss(100);
        cubic.on_congestion(Instant::ZERO, CongestionEvent::Timeout, Bytes(0));
        assert_eq!((cubic.cwnd(), cubic.last_max), (Bytes(1000), 0));
        assert_eq!(cubic.ssthresh(), Bytes(49_000));
        cubic.on_congestion(Instant::ZERO, CongestionEvent::RepeatedTimeout, Bytes(0));
        assert_eq!(cubic.ssthresh(), Bytes(49_000));
    }

    #[test]
    fn hystart_sets_the_threshold_to_the_window() {
        let mut cubic = Cubic::new(MSS, 20, SlowStartExit::HyStart, true);
        let mut now = Instant::ZERO;
        cubic.on_ack(now, &ack(1, 50));
        for i in 0..40 {
            now += Duration::from_millis(3);
            cubic.on_ack(now, &AckSample { snd_una: 1000, snd_nxt: 1_000_000 + i, ..ack(1, 60) });
        }
        assert!(cubic.ssthresh().0 < 60_000, "{:?}", cubic.ssthresh());
    }
}
