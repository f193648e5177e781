//! TCP Westwood as first published (Casetti, Gerla, Mascolo, Sanadidi, Wang, MobiCom 2001): every ACK gives a
//! bandwidth sample, smoothed by a low-pass filter with the time constant 500 ms, discretised after Tustin;
//! after a loss ssthresh is the estimate times the smallest RTT.
//!
//! The paper's weakness is kept: compressed ACKs give samples above the link's rate, which the filter does
//! not remove (Mascolo and others, Computer Communications 27, 2004; see `westwood_plus`). ACKs of one
//! instant count as [`CLOCK_TICK`] apart.
//!
//! `westwood-zero` is the form in which Nardini, Stea and Virdis (IEEE VTC Spring 2016) found a window far
//! too low: the filter has a constant gain, and an ACK without a distance in time from the last one is a
//! sample of zero.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant};

/// Time constant of the filter in seconds (Casetti et al. 2001).
const TAU_S: f64 = 0.5;
/// Weight of the former estimate in the filter of constant gain: ACKs at a tenth of the time constant
/// (Casetti et al. 2001), (20 - 1) / (20 + 1).
const CONSTANT_ALPHA: f64 = 19.0 / 21.0;
/// Smallest interval between two ACKs. Chosen: one microsecond, the resolution of Linux's TCP clock.
const CLOCK_TICK: Duration = Duration::from_micros(1);
/// Time without ACKs in seconds after which a sample of zero enters the filter: TAU_S / 2 (Casetti et al.
/// 2001).
const ZERO_SAMPLE_S: f64 = TAU_S / 2.0;
/// Largest number of zero samples in a row. Chosen: 64 of them, 32 time constants, reduce the estimate below
/// 1e-13.
const MAX_ZERO_SAMPLES: u32 = 64;

/// Westwood.
#[derive(Clone, Debug)]
pub struct Westwood {
    window: Window,
    /// Smoothed bandwidth and the last raw sample, in bytes/s.
    estimate: f64,
    last_sample: f64,
    last_ack: Option<Instant>,
    /// Whether the filter has a constant gain, with samples of zero for ACKs of one instant.
    zero_samples: bool,
    rtt_min: Option<Duration>,
    /// ssthresh of the last reduction, in segments.
    reduced_ssthresh: u32,
}

impl Westwood {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Window::new(mss, initial),
            estimate: 0.0,
            last_sample: 0.0,
            last_ack: None,
            zero_samples: false,
            rtt_min: None,
            reduced_ssthresh: 0,
        }
    }
    /// The same with the filter of constant gain and samples of zero.
    pub fn with_zero_samples(mss: u32, initial: u32) -> Self {
        Self { zero_samples: true, ..Self::new(mss, initial) }
    }
    fn filter(&mut self, gap: f64, sample: f64) {
        let alpha =
            if self.zero_samples { CONSTANT_ALPHA } else { (2.0 * TAU_S - gap) / (2.0 * TAU_S + gap) };
        self.estimate = alpha * self.estimate + (1.0 - alpha) * (sample + self.last_sample) / 2.0;
        self.last_sample = sample;
    }
    fn on_delivered(&mut self, now: Instant, acked: Bytes) {
        let Some(last) = self.last_ack.replace(now) else { return };
        if self.zero_samples {
            let gap = now.since(last).as_secs_f64();
            return self.filter(gap, if gap > 0.0 { acked.0 as f64 / gap } else { 0.0 });
        }
        let gap = now.since(last).max(CLOCK_TICK).as_secs_f64();
        let mut rest = gap;
        for _ in 0..MAX_ZERO_SAMPLES {
            if rest <= ZERO_SAMPLE_S {
                break;
            }
            self.filter(ZERO_SAMPLE_S, 0.0);
            rest -= ZERO_SAMPLE_S;
        }
        self.filter(rest.min(ZERO_SAMPLE_S), acked.0 as f64 / gap);
    }
    /// Bandwidth-delay product in segments: the flight that fills the path without a queue.
    fn bdp(&self) -> u32 {
        let rtt = self.rtt_min.map_or(0.0, Duration::as_secs_f64);
        ((self.estimate * rtt / f64::from(self.window.mss)) as u32).clamp(2, crate::cc::window::INFINITE - 1)
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        if let Some(rtt) = sample.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if sample.acked > Bytes::ZERO {
            self.on_delivered(now, sample.acked);
        }
        if !sample.in_recovery && sample.advanced && sample.cwnd_limited {
            self.window.grow(sample.acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        let bdp = self.bdp();
        match event {
            CongestionEvent::Timeout => self.window.react(event, bdp, in_flight),
            // The estimate becomes ssthresh; the window is only reduced.
            CongestionEvent::FastRecovery | CongestionEvent::Ecn => {
                self.reduced_ssthresh = bdp;
                self.window.react(event, bdp.min(self.window.cwnd), in_flight);
            }
            CongestionEvent::RecoveryEnd => {
                // After an ECN echo and then a loss, ssthresh may be above the window.
                self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd);
                self.window.react(event, 0, in_flight);
            }
            _ => self.window.react(event, 0, in_flight),
        }
        if matches!(event, CongestionEvent::RecoveryEnd | CongestionEvent::Ecn) {
            self.window.ssthresh = self.reduced_ssthresh;
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

    fn ack(rtt: u64) -> AckSample {
        AckSample {
            acked: Bytes(1000),
            advanced: true,
            cwnd_limited: true,
            rtt: Some(Duration::from_millis(rtt)),
            ..Default::default()
        }
    }
    /// ACKs of 1 MB/s for `count` ms, in trains of `train` with `gap` between its ACKs.
    fn feed(westwood: &mut Westwood, count: u64, train: u64, gap: Duration) {
        for i in 0..count {
            let start = Instant::from_millis(i / train * train + train);
            westwood.on_ack(start + gap * (i % train), &ack(50));
        }
    }

    #[test]
    fn the_filter_is_the_one_of_the_paper() {
        // Two ACKs 10 ms apart: alpha = 0.99 / 1.01, one sample of 100,000 bytes/s after one of zero.
        let mut westwood = Westwood::new(MSS, 10);
        westwood.on_ack(Instant::ZERO, &ack(50));
        westwood.on_ack(Instant::from_millis(10), &ack(50));
        let expected = (0.02 / 1.01) * 50_000.0;
        assert!((westwood.estimate - expected).abs() < 1e-6, "{}", westwood.estimate);
        westwood.on_ack(Instant::from_millis(30), &ack(50)); // 50,000 bytes/s over 20 ms
        let expected = (0.98 / 1.02) * expected + (0.04 / 1.02) * 75_000.0;
        assert!((westwood.estimate - expected).abs() < 1e-6, "{}", westwood.estimate);
    }

    #[test]
    fn even_acks_give_the_rate_and_a_loss_reduces_to_rate_times_rtt() {
        let mut westwood = Westwood::new(MSS, 200);
        feed(&mut westwood, 5000, 1, Duration::ZERO);
        assert!((westwood.estimate / 1e6 - 1.0).abs() < 0.01, "{}", westwood.estimate);
        westwood.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        westwood.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        assert!((49_000..=50_000).contains(&westwood.cwnd().0), "{:?}", westwood.cwnd());
        // An estimate above the window does not raise it, but becomes ssthresh.
        westwood.estimate *= 3.0;
        westwood.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        westwood.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        assert!((49_000..=50_000).contains(&westwood.cwnd().0) && westwood.window.in_slow_start());
    }

    #[test]
    fn compressed_acks_cause_an_unbounded_overestimate() {
        // The same 1 MB/s with ACKs in pairs: the shorter the interval in a pair, the larger the estimate.
        // Without an interval the clock tick bounds it.
        let estimate = |gap| {
            let mut westwood = Westwood::new(MSS, 10);
            feed(&mut westwood, 5000, 2, gap);
            westwood.estimate
        };
        let close = estimate(Duration::from_micros(100));
        let closer = estimate(Duration::from_micros(10));
        assert!(close > 4e6 && closer > 8.0 * close, "{close} {closer}");
        assert!(estimate(Duration::ZERO) > 8.0 * closer);
    }

    #[test]
    fn acks_of_one_instant_are_samples_of_zero_in_the_form_with_constant_gain() {
        let mut westwood = Westwood::with_zero_samples(MSS, 10);
        let mut expected = (0.0, 0.0);
        // Two ACKs in each slot of 1 ms: samples of 1 MB/s and of zero in turn.
        for slot in 0..3 {
            for first in [true, false] {
                westwood.on_ack(Instant::from_millis(slot), &ack(50));
                if slot > 0 || !first {
                    let sample = if first { 1e6 } else { 0.0 };
                    expected = (19.0 / 21.0 * expected.0 + 2.0 / 21.0 * (sample + expected.1) / 2.0, sample);
                }
                assert!((westwood.estimate - expected.0).abs() < 1e-6, "{slot}: {}", westwood.estimate);
            }
        }
        // Of 2 MB/s in trains of seven ACKs the estimate is a seventh.
        let mut westwood = Westwood::with_zero_samples(MSS, 10);
        feed(&mut westwood, 7000, 7, Duration::ZERO);
        assert!((westwood.estimate * 49e-6 - 1.0).abs() < 0.9, "{}", westwood.estimate);
    }

    #[test]
    fn a_time_without_acks_decays_the_estimate() {
        let mut westwood = Westwood::new(MSS, 10);
        feed(&mut westwood, 5000, 1, Duration::ZERO);
        westwood.on_ack(Instant::from_millis(4_000_000), &ack(50));
        assert!(westwood.estimate < 1000.0, "{}", westwood.estimate);
    }
}
