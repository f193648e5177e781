//! Westwood+ (Grieco and Mascolo, 2004) as in Linux `tcp_westwood`: one bandwidth sample per round trip and
//! at least 50 ms, so that compressed ACKs have no effect, with two smoothing stages of 7/8 each. Growth as
//! Reno. After a recovery the window is the estimate times the smallest RTT; after a timeout that is
//! ssthresh.

use crate::cc::control::{AckSample, CongestionControl, CongestionEvent};
use crate::cc::window::Window;
use paceline_net::{Bytes, Duration, Instant, Rate};

/// Shortest sample (Linux `TCP_WESTWOOD_RTT_MIN`).
const SHORTEST_SAMPLE: Duration = Duration::from_millis(50);

/// Westwood+.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    window: Window,
    /// Outputs of the two smoothing stages, in bit/s; zero before the first sample.
    first_stage: u64,
    estimate: u64,
    /// Bytes acknowledged in the current sample, and its beginning.
    bytes: u64,
    since: Instant,
    rtt: Option<Duration>,
    rtt_min: Option<Duration>,
    /// The next RTT replaces the smallest one, after a timeout.
    renew_rtt_min: bool,
}

impl WestwoodPlus {
    /// A control with full segments of `mss` bytes and an initial window of `initial` segments.
    pub fn new(mss: u32, initial: u32) -> Self {
        Self {
            window: Window::new(mss, initial),
            first_stage: 0,
            estimate: 0,
            bytes: 0,
            since: Instant::ZERO,
            rtt: None,
            rtt_min: None,
            renew_rtt_min: false,
        }
    }
    fn smooth(old: u64, new: u64) -> u64 {
        ((7 * u128::from(old) + u128::from(new)) / 8) as u64
    }
    /// Ends the current sample if it is long enough.
    fn update(&mut self, now: Instant) {
        let span = now.since(self.since);
        if self.rtt.is_none_or(|rtt| span <= rtt.max(SHORTEST_SAMPLE)) {
            return;
        }
        let sample = Rate::of(Bytes(self.bytes), span).0;
        if self.first_stage == 0 && self.estimate == 0 {
            (self.first_stage, self.estimate) = (sample, sample);
        } else {
            self.first_stage = Self::smooth(self.first_stage, sample);
            self.estimate = Self::smooth(self.estimate, self.first_stage);
        }
        (self.bytes, self.since) = (0, now);
    }
    /// Bandwidth-delay product in segments: the flight that fills the path without a queue.
    fn bdp(&self) -> u32 {
        let rtt = self.rtt_min.unwrap_or_default().as_nanos();
        let bytes = u128::from(self.estimate) * u128::from(rtt) / 8_000_000_000;
        let segments = bytes / u128::from(self.window.mss);
        u32::try_from(segments).unwrap_or(u32::MAX).clamp(2, crate::cc::window::INFINITE - 1)
    }
}

impl CongestionControl for WestwoodPlus {
    fn on_established(&mut self, now: Instant, _rtt: Option<Duration>) {
        self.since = now;
    }
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.update(now);
        self.bytes += sample.acked.0;
        if let Some(rtt) = sample.rtt {
            self.rtt = Some(rtt);
            let min = self.rtt_min.filter(|_| !self.renew_rtt_min);
            self.rtt_min = Some(min.map_or(rtt, |min| min.min(rtt)));
            self.renew_rtt_min = false;
        }
        if !sample.in_recovery && sample.advanced && sample.cwnd_limited {
            self.window.grow(sample.acked);
        }
    }
    fn on_congestion(&mut self, _now: Instant, event: CongestionEvent, in_flight: Bytes) {
        // During a recovery ssthresh is that of Reno; the estimate at its end applies.
        match event {
            CongestionEvent::RecoveryEnd => {
                self.window.ssthresh = self.bdp();
                self.window.end_recovery();
            }
            CongestionEvent::Ecn => {
                let bdp = self.bdp();
                self.window.react(event, bdp, in_flight);
            }
            CongestionEvent::Timeout => {
                self.window.react(event, self.bdp(), in_flight);
                self.renew_rtt_min = true;
            }
            _ => self.window.react(event, self.window.half(), in_flight),
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

    fn ack(acked: u64, rtt: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt));
        AckSample { acked: Bytes(acked), advanced: true, cwnd_limited: true, rtt, ..Default::default() }
    }
    /// 1 MB/s for ten seconds, in trains of `train` ACKs.
    fn fed(train: u64) -> WestwoodPlus {
        let mut westwood = WestwoodPlus::new(MSS, 300);
        for i in 0..10_000 {
            westwood.on_ack(Instant::from_millis(i / train * train + train), &ack(1000, 100));
        }
        westwood
    }

    #[test]
    fn the_estimate_is_the_rate_with_compressed_acks_too() {
        for train in [1, 2, 20] {
            let rate = fed(train).estimate as f64 / 8e6;
            assert!((rate - 1.0).abs() < 0.03, "{train}: {rate}");
        }
    }

    #[test]
    fn samples_pass_two_smoothing_stages_of_one_eighth() {
        let mut westwood = WestwoodPlus::new(MSS, 10);
        westwood.on_ack(Instant::ZERO, &ack(50_500, 50));
        westwood.on_ack(Instant::from_millis(101), &ack(101_000, 50)); // 50,500 bytes in 101 ms: 4 Mb/s
        assert_eq!(westwood.estimate, 4_000_000);
        westwood.on_ack(Instant::from_millis(202), &ack(0, 50)); // 101,000 bytes: 8 Mb/s
        assert_eq!((westwood.first_stage, westwood.estimate), (4_500_000, 4_062_500));
    }

    #[test]
    fn a_recovery_ends_at_rate_times_min_rtt_and_a_timeout_sets_it_as_ssthresh() {
        let mut westwood = fed(1);
        let bdp = westwood.bdp();
        assert!((97..=100).contains(&bdp), "{bdp}");
        let mut other = westwood.clone();
        westwood.on_congestion(Instant::ZERO, CongestionEvent::FastRecovery, Bytes(0));
        assert_eq!(westwood.window.ssthresh, westwood.window.cwnd / 2);
        westwood.on_congestion(Instant::ZERO, CongestionEvent::RecoveryEnd, Bytes(0));
        assert_eq!((westwood.window.cwnd, westwood.window.ssthresh), (bdp, bdp));
        other.on_congestion(Instant::ZERO, CongestionEvent::Timeout, Bytes(0));
        assert_eq!((other.window.cwnd, other.window.ssthresh), (1, bdp));
        other.on_ack(Instant::from_millis(10_001), &ack(1000, 400));
        assert_eq!(other.rtt_min, Some(Duration::from_millis(400)));
    }
}
