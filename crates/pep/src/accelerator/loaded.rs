//! The delay of a path at its rate, on a radio that fades: the shortest round trip once the rate has been up for a while.
//!
//! A fade leaves the path without load and without a queue. Where delay grows with the load, the round trips right after
//! it are those of another path; those from a moment later on are an upper bound of what the path's own delay is at the
//! rate, and hold until the next looks.

use paceline_net::{Duration, Instant};

/// Share of the bandwidth above which the path is loaded.
const LOADED: f64 = 0.75;
/// Least time until its delay has followed, beside four round trips.
const LOADING: Duration = Duration::from_millis(250);
/// Time between looks: some fades.
const LOOK: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
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
    /// A round trip, and the shortest of all.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration, min_rtt: Duration) {
        if now.since(self.since) >= LOADING.max(min_rtt * 4) {
            self.lowest = self.lowest.min(rtt);
        }
    }
    /// A fade has emptied the queue: the lowest round trip under load, when it is time to look.
    pub fn on_fade(&mut self, now: Instant) -> Option<Duration> {
        self.since = now;
        if now.since(self.looked_at) < LOOK {
            return None;
        }
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
        assert_eq!(loaded.on_fade(Instant::from_millis(4_000)), None, "nothing was seen");
        for at in 4_001..9_000 {
            let now = Instant::from_millis(at);
            loaded.on_rate(now, if (5_000..5_500).contains(&at) { 1.0 } else { 9.0 }, 10.0);
            let rtt = match at {
                ..4_250 => 30,
                5_000..5_700 => 40,
                _ => 80,
            };
            loaded.on_rtt(now, ms(rtt), min);
            if at == 6_000 {
                assert_eq!(loaded.on_fade(now), None, "too early to look");
            }
        }
        // After the fade at 6 s the rate was up again at once.
        assert_eq!(loaded.on_fade(Instant::from_millis(9_000)), Some(ms(80)));
        assert_eq!(loaded.on_fade(Instant::from_millis(13_000)), None);
    }
}
