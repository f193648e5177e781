//! TCP Illinois (Liu, Basar and Srikant, 2008) as in Linux `tcp_illinois`: losses decide when to reduce,
//! delay decides by how much to grow and to reduce. Once per round trip, alpha (0.3 to 10 segments per round
//! trip) and beta (1/8 to 1/2) are computed from the mean queueing delay relative to the largest one.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant};

/// alpha counts 2^-7 segments per round trip (Linux `ALPHA_SHIFT`).
const ALPHA_SHIFT: u32 = 7;
/// Smallest alpha, 0.3 (Linux `ALPHA_MIN`; Liu et al. 2008).
const ALPHA_MIN: u64 = 38;
/// alpha of Reno, 1 (Linux `ALPHA_BASE`).
const ALPHA_BASE: u64 = 128;
/// Largest alpha, 10 (Linux `ALPHA_MAX`; Liu et al. 2008).
const ALPHA_MAX: u64 = 1280;
/// beta counts 1/64 of the window (Linux `BETA_SCALE`).
const BETA_SCALE: u64 = 64;
/// Smallest beta, 1/8 (Linux `BETA_MIN`; Liu et al. 2008).
const BETA_MIN: u64 = 8;
/// Largest beta, 1/2 (Linux `BETA_MAX`; Liu et al. 2008).
const BETA_MAX: u64 = 32;
/// Window in segments below which alpha and beta are those of Reno (Linux `win_thresh`).
const SMALL_WINDOW: u32 = 15;
/// Round trips of low delay after which alpha becomes its largest value again (Linux `theta`).
const THETA: u32 = 5;
/// Longest RTT sample (Linux `RTT_MAX`, which keeps sums in range).
const RTT_MAX: Duration = Duration::from_millis(3_355);
/// Largest number of acknowledged segments counted. Chosen: it keeps the product with alpha in range.
const MAX_COUNT: u64 = 1 << 40;

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    window: Window,
    alpha: u64,
    beta: u64,
    base_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Sum in ns and number of the RTT samples of the current round trip, and its end as an offset.
    sum: u64,
    samples: u64,
    round_end: u64,
    /// Round trips of low delay since the delay was last above the low threshold.
    rounds_low: u32,
    was_above: bool,
    /// Segments acknowledged since the window last grew.
    count: u64,
}

impl Illinois {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Window::new(mss, initial),
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt: None,
            max_rtt: Duration::ZERO,
            sum: 0,
            samples: 0,
            round_end: 0,
            rounds_low: 0,
            was_above: false,
            count: 0,
        }
    }
    /// alpha for a mean queueing delay `mean` and the largest one `most`, in microseconds (Linux `alpha`).
    fn alpha_at(&mut self, mean: u64, most: u64) -> u64 {
        let low = most / 100;
        if mean > low {
            self.was_above = true;
            let (mean, most) = (mean - low, most - low);
            return most * ALPHA_MAX / (most + mean * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        }
        if self.was_above {
            // A single round trip of low delay does not change alpha.
            self.rounds_low += 1;
            if self.rounds_low < THETA {
                return self.alpha;
            }
            (self.rounds_low, self.was_above) = (0, false);
        }
        ALPHA_MAX
    }
    fn update(&mut self) {
        if self.window.cwnd < SMALL_WINDOW {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_MAX);
        } else if let Some(base) = self.base_rtt
            && let Some(mean) = self.sum.checked_div(self.samples)
        {
            let most = (self.max_rtt - base).as_nanos() / 1000;
            let mean = Duration::from_nanos(mean).saturating_sub(base).as_nanos() / 1000;
            self.alpha = self.alpha_at(mean, most);
            self.beta = beta_at(mean, most);
        }
    }
    fn begin_round(&mut self, snd_nxt: u64) {
        (self.round_end, self.sum, self.samples) = (snd_nxt, 0, 0);
    }
}

/// beta for a mean queueing delay `mean` and the largest one `most`, in microseconds (Linux `beta`).
fn beta_at(mean: u64, most: u64) -> u64 {
    let (low, high) = (most / 10, most * 8 / 10);
    if mean <= low {
        return BETA_MIN;
    }
    if mean >= high || high <= low {
        return BETA_MAX;
    }
    (BETA_MIN * (high - mean) + BETA_MAX * (mean - low)) / (high - low)
}

impl CongestionControl for Illinois {
    fn on_ack(&mut self, _now: Instant, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.min(RTT_MAX);
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
            self.sum += rtt.as_nanos();
            self.samples += 1;
        }
        if sample.in_recovery || !sample.advanced {
            return;
        }
        if sample.snd_una > self.round_end {
            self.update();
            self.begin_round(sample.snd_nxt);
        }
        if !sample.cwnd_limited {
            return;
        }
        let acked = self.window.after_slow_start(sample.acked);
        self.count = self.count.saturating_add(u64::from(acked)).min(MAX_COUNT);
        let (due, cwnd) = ((self.count * self.alpha) >> ALPHA_SHIFT, u64::from(self.window.cwnd));
        if due >= cwnd {
            self.window.set(cwnd + due / cwnd);
            self.count = 0;
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        let ssthresh = self.window.share(BETA_SCALE - self.beta, BETA_SCALE);
        self.window.react(event, ssthresh, in_flight);
        if matches!(event, CongestionEvent::Timeout | CongestionEvent::RepeatedTimeout) {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_MAX);
            (self.rounds_low, self.was_above, self.count) = (0, false, 0);
            (self.sum, self.samples) = (0, 0);
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

    #[test]
    fn alpha_falls_from_ten_to_three_tenths_with_the_delay() {
        let at = |mean| Illinois::new(1000, 10).alpha_at(mean, 100_000);
        // d1 = 1 ms: (99 * 1280) / (99 + (d - 1) * 1242 / 38).
        assert_eq!((at(0), at(1000)), (1280, 1280));
        assert_eq!(at(50_000), 99_000 * 1280 / (99_000 + 49_000 * 1242 / 38));
        assert!((at(100_000) as f64 / 128.0 - 0.3).abs() < 0.01);
    }

    #[test]
    fn beta_rises_from_an_eighth_to_a_half() {
        let at = |mean| beta_at(mean, 100_000);
        assert_eq!((at(10_000), at(45_000), at(80_000), at(100_000)), (8, 20, 32, 32));
        assert_eq!(beta_at(0, 0), 8);
    }

    #[test]
    fn low_delay_must_last_five_round_trips_before_alpha_is_largest() {
        let mut illinois = Illinois::new(1000, 10);
        illinois.alpha = illinois.alpha_at(90_000, 100_000);
        let slow = illinois.alpha;
        for _ in 0..4 {
            assert_eq!(illinois.alpha_at(0, 100_000), slow);
        }
        assert_eq!(illinois.alpha_at(0, 100_000), ALPHA_MAX);
    }

    #[test]
    fn without_delay_the_window_grows_by_ten_segments_per_round_trip_and_loses_an_eighth() {
        let mut illinois = Illinois::new(1000, 80);
        illinois.window.ssthresh = 80;
        let mut una = 0;
        let mut round = |illinois: &mut Illinois| {
            for _ in 0..illinois.window.cwnd {
                una += 1000;
                let sample = AckSample {
                    acked: Bytes(1000),
                    advanced: true,
                    cwnd_limited: true,
                    rtt: Some(Duration::from_millis(50)),
                    snd_una: una,
                    snd_nxt: una + illinois.cwnd().0,
                    ..Default::default()
                };
                illinois.on_ack(Instant::ZERO, &sample);
            }
        };
        let before = illinois.window.cwnd;
        round(&mut illinois);
        assert!((9..=10).contains(&(illinois.window.cwnd - before)), "{}", illinois.window.cwnd);
        let cwnd = illinois.window.cwnd;
        illinois.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(illinois.window.ssthresh, cwnd * 56 / 64);
        illinois.on_congestion(Instant::ZERO, CongestionEvent::Timeout, Bytes(0));
        assert_eq!((illinois.alpha, illinois.beta), (ALPHA_BASE, BETA_MAX));
    }
}
