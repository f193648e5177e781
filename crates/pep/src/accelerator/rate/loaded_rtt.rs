//! The delay of a path at its rate, on a radio that fades: the shortest round trip once the rate has been up for a while.
//!
//! A fade leaves the path without load and without a queue. Where delay grows with the load, the round trips right after
//! it are those of another path; those from a moment later on are an upper bound of what the path's own delay is at the
//! rate, and hold until the next looks: the silences empty the queue, and now and then a small window does (`floor`).

use paceline_net::{Duration, Instant};

/// Share of the bandwidth above which the path is loaded.
const LOADED: f64 = 0.75;
/// Least time until its delay has followed, beside four round trips.
const LOADING: Duration = Duration::from_millis(250);
/// Time between looks: some fades.
const LOOK: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Loaded {
    /// Since when the rate has been near the bandwidth.
    since: Instant,
    lowest: Duration,
    looked_at: Instant,
}

impl Default for Loaded {
    fn default() -> Self {
        Self { since: Instant::ZERO, lowest: Duration::MAX, looked_at: Instant::ZERO }
    }
}

impl Loaded {
    /// A rate was measured, in bit/s.
    pub fn on_rate(&mut self, now: Instant, rate: f64, bandwidth: f64) {
        if rate < LOADED * bandwidth {
            self.since = now;
        }
    }
    /// A round trip, and the shortest of all; whether it is one under load.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration, min_rtt: Duration) -> bool {
        let loaded = self.is_loaded(now, min_rtt);
        if loaded {
            self.lowest = self.lowest.min(rtt);
        }
        loaded
    }
    fn is_loaded(&self, now: Instant, min_rtt: Duration) -> bool {
        now.since(self.since) >= LOADING.max(min_rtt * 4)
    }
    /// A fade has emptied the queue.
    pub fn on_fade(&mut self, now: Instant) {
        self.since = now;
    }
    /// The lowest round trip under load since the last look, when it is time to look: soon if all were far above what is
    /// known.
    pub fn due(&self, now: Instant, min_rtt: Duration) -> Option<Duration> {
        let known = self.lowest < Duration::MAX && self.is_loaded(now, min_rtt);
        let wait = if self.lowest > min_rtt * 5 / 4 { LOOK } else { LOOK * 3 };
        (known && now.since(self.looked_at) >= wait).then_some(self.lowest)
    }
    /// The lowest round trip under load since the last look.
    pub fn look(&mut self, now: Instant) -> Option<Duration> {
        self.looked_at = now;
        Some(std::mem::replace(&mut self.lowest, Duration::MAX)).filter(|lowest| *lowest < Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_right_after_a_fade_and_at_low_rates_do_not_count() {
        let mut loaded = Loaded::default();
        let (ms, min) = (Duration::from_millis, Duration::from_millis(30));
        loaded.on_fade(Instant::from_millis(4_000));
        assert_eq!(loaded.due(Instant::from_millis(4_000), min), None, "nothing was seen");
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
        assert_eq!(loaded.look(now), Some(ms(80)));
        assert_eq!(loaded.look(now), None, "that was all");
    }

    #[test]
    fn what_was_expected_is_looked_at_less_often() {
        let mut loaded = Loaded::default();
        let rtt = Duration::from_millis(80);
        loaded.look(Instant::from_millis(1_000));
        loaded.on_rtt(Instant::from_millis(2_000), rtt, rtt);
        assert_eq!(loaded.due(Instant::from_millis(5_000), rtt), None);
        assert_eq!(loaded.due(Instant::from_millis(5_000), rtt / 2), Some(rtt));
        assert_eq!(loaded.due(Instant::from_millis(10_000), rtt), Some(rtt));
    }
}
