//! CUBIC's window as in RFC 9438 §4: in fractions of segments, set at every acknowledgment.
//! [`Cubic`](super::Cubic) uses it if its window counts bytes.
//!
//! Left out: the Reno estimate with the beta of ECN (§4.5), and the limit of the window by the flight (§5.7),
//! which is the sender's.

use paceline_net::{Duration, Instant};

/// beta_cubic (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// C in segments per s^3 (RFC 9438 §5).
const C: f64 = 0.4;
/// alpha_cubic, with which W_est has the average of Reno (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// One congestion avoidance stage; windows in segments, times in seconds.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    epoch_start: Instant,
    k: f64,
    w_max: f64,
    /// The window before the last reduction.
    cwnd_prior: f64,
    w_est: f64,
    cwnd: f64,
}

impl Curve {
    /// A stage that begins with the window `cwnd`; `w_max` is zero without a known peak (§4.8, after a
    /// timeout).
    pub fn new(now: Instant, cwnd: f64, w_max: f64, cwnd_prior: f64) -> Self {
        let w_max = w_max.max(cwnd);
        Self { epoch_start: now, k: libm::cbrt((w_max - cwnd) / C), w_max, cwnd_prior, w_est: cwnd, cwnd }
    }
    /// Excludes an idle time of length `pause` from the stage (§5.8).
    pub fn pause(&mut self, now: Instant, pause: Duration) {
        self.epoch_start = (self.epoch_start + pause).min(now);
    }
    fn w_cubic(&self, t: f64) -> f64 {
        let offset = t - self.k;
        self.w_max + C * offset * offset * offset
    }
    /// The window after `acked` segments were acknowledged.
    pub fn grow(&mut self, now: Instant, acked: f64, srtt: Duration) -> f64 {
        let t = now.since(self.epoch_start).as_secs_f64();
        // §4.3: from the former window on, W_est has the slope of Reno.
        let alpha = if self.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        self.w_est += alpha * acked / self.cwnd;
        if self.w_cubic(t) < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
        } else {
            // §4.2, §4.4, §4.5.
            let target = self.w_cubic(t + srtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) * acked / self.cwnd;
        }
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_window_reaches_w_max_at_k_and_is_flat_there() {
        let mut curve = Curve::new(Instant::ZERO, 700.0, 1000.0, 1000.0);
        let k = libm::cbrt(300.0 / 0.4);
        let mut now = Instant::ZERO;
        let mut at_k = 0.0;
        while now.as_secs_f64() < k + 1.0 {
            now += RTT / 700;
            let cwnd = curve.grow(now, 1.0, RTT);
            if now.as_secs_f64() < k {
                at_k = cwnd;
            }
        }
        assert!((at_k - 1000.0).abs() < 0.5, "{at_k}");
        assert!((curve.cwnd - 1000.4).abs() < 0.5, "C t^3 a second later: {}", curve.cwnd);
    }

    #[test]
    fn with_a_short_rtt_the_window_follows_reno_and_above_the_former_window_has_its_slope() {
        let rtt = Duration::from_millis(10);
        let mut curve = Curve::new(Instant::ZERO, 7.0, 10.0, 10.0);
        let mut now = Instant::ZERO;
        let mut windows = Vec::new();
        for _ in 0..12 {
            let before = curve.cwnd;
            for _ in 0..1000 {
                now += rtt / 1000;
                curve.grow(now, curve.cwnd / 1000.0, rtt);
            }
            windows.push(curve.cwnd - before);
        }
        assert!(windows[..5].iter().all(|more| (more - ALPHA).abs() < 1e-9), "{windows:?}");
        assert!(windows[7..].iter().all(|more| (more - 1.0).abs() < 1e-9), "{windows:?}");
    }

    #[test]
    fn growth_is_at_most_half_a_window_per_round_trip() {
        let mut curve = Curve::new(Instant::ZERO, 10.0, 0.0, 10.0);
        let cwnd = curve.grow(Instant::from_millis(100_000), 10.0, RTT);
        assert!((cwnd - 15.0).abs() < 1e-9, "{cwnd}");
    }
}
