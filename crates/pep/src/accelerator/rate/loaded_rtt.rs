//! Minimum round-trip time under load, for a radio that fades: the lowest RTT once the rate has been near the
//! bandwidth for a while.
//!
//! A fade empties the path. Where delay grows with load, the RTTs right after a fade are those of an unloaded
//! path and too short to size the window by. RTTs from a moment later on bound the loaded path's delay from
//! above. The bound is tightened when the queue is empty: after a silence, and when `min_rtt` reduces the
//! window for a probe.

use paceline_net::{Duration, Instant};

/// Share of the bandwidth from which a rate counts as load. Chosen: below the variation of rate samples under
/// load.
const LOADED_SHARE: f64 = 0.75;
/// Shortest time under load until the delay has followed, if four round trips are shorter. Chosen: the
/// radio's buffers fill within a few round trips.
const LOADING_TIME: Duration = Duration::from_millis(250);
/// Time between two measurements. Chosen: several fades fall into that time.
const INTERVAL: Duration = Duration::from_secs(3);

/// The loaded path's RTT since the last measurement.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct LoadedRtt {
    /// Since when the rate has been near the bandwidth.
    loaded_since: Instant,
    lowest: Duration,
    measured_at: Instant,
}

impl Default for LoadedRtt {
    fn default() -> Self {
        Self { loaded_since: Instant::ZERO, lowest: Duration::MAX, measured_at: Instant::ZERO }
    }
}

impl LoadedRtt {
    /// A delivery-rate sample and the bandwidth, in bit/s.
    pub fn on_rate(&mut self, now: Instant, rate: f64, bandwidth: f64) {
        if rate < LOADED_SHARE * bandwidth {
            self.loaded_since = now;
        }
    }
    /// An RTT sample; returns whether it was taken under load.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration, min_rtt: Duration) -> bool {
        let loaded = self.is_loaded(now, min_rtt);
        if loaded {
            self.lowest = self.lowest.min(rtt);
        }
        loaded
    }
    fn is_loaded(&self, now: Instant, min_rtt: Duration) -> bool {
        now.since(self.loaded_since) >= LOADING_TIME.max(min_rtt * 4)
    }
    /// A fade ended: the path is without load.
    pub fn on_fade(&mut self, now: Instant) {
        self.loaded_since = now;
    }
    /// The lowest RTT under load since the last measurement, when another one is due: after one interval if
    /// all RTTs were far above the minimum, otherwise after three.
    pub fn due(&self, now: Instant, min_rtt: Duration) -> Option<Duration> {
        let known = self.lowest < Duration::MAX && self.is_loaded(now, min_rtt);
        let interval = if self.lowest > min_rtt * 5 / 4 { INTERVAL } else { INTERVAL * 3 };
        (known && now.since(self.measured_at) >= interval).then_some(self.lowest)
    }
    /// Ends a measurement: returns the lowest RTT under load since the previous one.
    pub fn take(&mut self, now: Instant) -> Option<Duration> {
        self.measured_at = now;
        Some(std::mem::replace(&mut self.lowest, Duration::MAX)).filter(|lowest| *lowest < Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_after_a_fade_and_at_low_rates_do_not_count() {
        let mut loaded = LoadedRtt::default();
        let (ms, min) = (Duration::from_millis, Duration::from_millis(30));
        loaded.on_fade(Instant::from_millis(4_000));
        assert_eq!(loaded.due(Instant::from_millis(4_000), min), None, "no sample yet");
        for at in 4_001..9_000 {
            let now = Instant::from_millis(at);
            let slow = (5_000..5_500).contains(&at);
            loaded.on_rate(now, if slow { 1.0 } else { 9.0 }, 10.0);
            let rtt = match at {
                ..4_250 => 30,
                5_000..5_749 => 40,
                _ => 80,
            };
            let counts = loaded.on_rtt(now, ms(rtt), min);
            assert_eq!(counts, rtt == 80, "at {at} ms");
        }
        let now = Instant::from_millis(9_000);
        assert_eq!(loaded.due(now, min), Some(ms(80)));
        assert_eq!(loaded.take(now), Some(ms(80)));
        assert_eq!(loaded.take(now), None, "a measurement forgets its samples");
    }

    #[test]
    fn an_rtt_near_the_minimum_is_measured_less_often() {
        let mut loaded = LoadedRtt::default();
        let rtt = Duration::from_millis(80);
        loaded.take(Instant::from_millis(1_000));
        loaded.on_rtt(Instant::from_millis(2_000), rtt, rtt);
        assert_eq!(loaded.due(Instant::from_millis(5_000), rtt), None);
        assert_eq!(loaded.due(Instant::from_millis(5_000), rtt / 2), Some(rtt));
        assert_eq!(loaded.due(Instant::from_millis(10_000), rtt), Some(rtt));
    }
}
