//! Delay of the path that grows with its load and is no queue, measured by probing for bandwidth.
//!
//! On a full link, more data in flight lengthens the queue and nothing else. On a path whose delay grows with
//! its load (layer 2 retransmissions, scheduling), more data in flight gives a higher rate. Round-trip times
//! cannot tell the two apart, and a control that takes all delay for its own queue would send too little on
//! the second.
//!
//! Now and then the window is a quarter larger for two round trips, and the delivery rate of the second is
//! compared with that before: the response is 1 if the rate grows with the window, 0 if it stays. While it
//! grows, the estimate of the load delay grows too; otherwise it shrinks.

use paceline_net::{Duration, Instant};

/// Factor of the window in a probe, and phases without a probe between two of them where the rate does not
/// respond. Chosen: large enough to show in the rate of a single round trip.
const PROBE_GAIN: f64 = 1.25;
const PHASES_BETWEEN_PROBES: u8 = 3;
/// Weight of a new response in the smoothed one. Chosen: a single noisy probe does not decide.
const RESPONSE_WEIGHT: f64 = 0.2;
/// Smoothed responses above which the load delay grows, and below which it shrinks. Chosen: in between the
/// measurements are too noisy to decide.
const RESPONDING: f64 = 0.5;
const NOT_RESPONDING: f64 = 0.25;
/// Growth of the load delay after a probe, as a share of the round-trip time, its decay, and its maximum.
/// Chosen: the load delay grows slowly and shrinks fast, because a wrong one is a standing queue.
const GROWTH_OF_RTT: f64 = 0.1;
const DECAY: f64 = 0.8;
const MAX_LOAD_DELAY_SECONDS: f64 = 0.2;

/// Load delay of the path to a device, and the state of its bandwidth probe.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct LoadDelay {
    /// The current phase of two round trips: when it began, the RTT then, whether it is a probe.
    phase_start: Instant,
    phase_rtt: Duration,
    probing: bool,
    /// Bytes delivered in the phase's second round trip.
    phase_bytes: u64,
    /// Something other than the window limited the rate in this phase.
    invalid: bool,
    latest_rtt: Duration,
    /// Bytes per second in the last phase without a probe.
    baseline_rate: Option<f64>,
    /// Phases until the next probe.
    pause: u8,
    response: f64,
    seconds: f64,
}

impl LoadDelay {
    /// Delay of the path beyond its minimum RTT that is no queue, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    /// Adds `by` seconds, when the minimum RTT has changed by as much in the other direction.
    pub fn shift(&mut self, by: f64) {
        self.seconds = (self.seconds + by).clamp(0.0, MAX_LOAD_DELAY_SECONDS);
    }
    /// Factor of the window: above 1 during a bandwidth probe.
    pub fn window_factor(&self) -> f64 {
        if self.probing { PROBE_GAIN } else { 1.0 }
    }
    /// An acknowledgment of `bytes`. `invalid`: something other than the window limits the rate.
    pub fn on_ack(&mut self, now: Instant, bytes: u64, rtt: Option<Duration>, invalid: bool) {
        self.latest_rtt = rtt.unwrap_or(self.latest_rtt);
        self.invalid |= invalid;
        let age = now.since(self.phase_start);
        if age > self.phase_rtt {
            self.phase_bytes += bytes;
        }
        if age >= self.phase_rtt * 2 {
            self.end_phase(now, age);
        }
    }
    fn end_phase(&mut self, now: Instant, age: Duration) {
        let seconds = age.saturating_sub(self.phase_rtt).as_secs_f64();
        let usable = !self.invalid && self.phase_bytes > 0 && seconds > 0.0;
        let rate = usable.then(|| self.phase_bytes as f64 / seconds);
        if self.probing {
            self.probing = false;
            if let (Some(baseline), Some(probed)) = (self.baseline_rate, rate) {
                self.on_response(((probed / baseline - 1.0) / (PROBE_GAIN - 1.0)).clamp(-1.0, 2.0));
            }
        } else {
            self.baseline_rate = rate;
            self.pause = self.pause.saturating_sub(1);
            if self.pause == 0 && rate.is_some() {
                self.probing = true;
                self.pause = if self.response < NOT_RESPONDING { PHASES_BETWEEN_PROBES } else { 0 };
            }
        }
        (self.phase_start, self.phase_rtt) = (now, self.latest_rtt);
        (self.phase_bytes, self.invalid) = (0, false);
    }
    fn on_response(&mut self, response: f64) {
        self.response += RESPONSE_WEIGHT * (response - self.response);
        if self.response > RESPONDING {
            self.seconds =
                (self.seconds + GROWTH_OF_RTT * self.latest_rtt.as_secs_f64()).min(MAX_LOAD_DELAY_SECONDS);
        } else if self.response < NOT_RESPONDING {
            self.seconds *= DECAY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledgments each millisecond, round-trip times of 50 ms, and bytes that depend on the window's
    /// factor.
    fn probe(mut bytes: impl FnMut(f64) -> u64, invalid: bool, ms: u64) -> LoadDelay {
        let mut delay = LoadDelay::default();
        for now in 1..ms {
            let bytes = bytes(delay.window_factor());
            delay.on_ack(Instant::from_millis(now), bytes, Some(Duration::from_millis(50)), invalid);
        }
        delay
    }

    #[test]
    fn a_rate_that_grows_with_the_window_shows_load_delay() {
        let delay = probe(|factor| (1000.0 * factor) as u64, false, 10_000);
        assert!(delay.response > 0.9, "{delay:?}");
        assert_eq!(delay.seconds(), MAX_LOAD_DELAY_SECONDS);
    }

    #[test]
    fn a_full_link_shows_none_and_is_probed_less_often() {
        let mut probing_ms = 0;
        let full = probe(
            |factor| {
                probing_ms += u32::from(factor > 1.0);
                1000
            },
            false,
            10_000,
        );
        assert!(full.response.abs() < 0.01 && full.seconds() < 1e-6, "{full:?}");
        // One phase of four.
        assert!((2_000..3_000).contains(&probing_ms), "{probing_ms} ms of 10 s with a larger window");
    }

    #[test]
    fn load_delay_decays_when_the_link_becomes_full() {
        let mut at = 0;
        let delay = probe(
            |factor| {
                at += 1;
                if at < 5_000 { (1000.0 * factor) as u64 } else { 1000 }
            },
            false,
            20_000,
        );
        assert!(delay.seconds() < 0.01, "{delay:?}");
    }

    #[test]
    fn a_shift_is_added_and_stays_above_zero() {
        let mut delay = probe(|factor| (1000.0 * factor) as u64, false, 2_000);
        let seconds = delay.seconds();
        delay.shift(0.02);
        assert!((delay.seconds() - seconds - 0.02).abs() < 1e-9);
        delay.shift(-0.5);
        assert_eq!(delay.seconds(), 0.0);
    }

    #[test]
    fn phases_that_something_else_limits_do_not_count() {
        let delay = probe(|factor| (1000.0 * factor) as u64, true, 10_000);
        assert_eq!((delay.response, delay.seconds()), (0.0, 0.0));
    }
}
