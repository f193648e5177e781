//! Round-trip times without the variation that a TDD pattern causes: the least of the last two periods.

use crate::{Duration, Instant};

/// Parts of a period whose minima are kept. Chosen: the window is then two periods within an eighth.
const PARTS: u64 = 8;
/// Kept minima: those of two periods, by definition.
const BINS: usize = 2 * PARTS as usize;

/// The least round-trip time of the last two periods, as a signal of delay for congestion controls.
#[derive(Clone, Debug)]
pub struct CleanDelay {
    /// Nanoseconds of one part of a period.
    part_ns: u64,
    /// Number of the newest part since time zero.
    newest: u64,
    least: [Duration; BINS],
}

impl CleanDelay {
    /// For a pattern with this period.
    pub fn new(period: Duration) -> Self {
        let part_ns = (period.as_nanos() / PARTS).max(1);
        Self { part_ns, newest: 0, least: [Duration::MAX; BINS] }
    }
    /// Records a sample and returns the least one of the last two periods.
    pub fn on_sample(&mut self, now: Instant, rtt: Duration) -> Duration {
        let part = now.as_nanos() / self.part_ns;
        for passed in self.newest.saturating_add(1)..=part.min(self.newest.saturating_add(BINS as u64)) {
            self.least[(passed % BINS as u64) as usize] = Duration::MAX;
        }
        if part > self.newest.saturating_add(BINS as u64) {
            self.least = [Duration::MAX; BINS];
        }
        self.newest = self.newest.max(part);
        let bin = &mut self.least[(self.newest % BINS as u64) as usize];
        *bin = rtt.min(*bin);
        self.least.iter().copied().fold(rtt, Duration::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sawtooth of 5 ms over a base of 10 ms, as ACKs that wait for uplink slots have.
    #[test]
    fn the_sawtooth_of_a_pattern_disappears_and_a_queue_remains() {
        let mut clean = CleanDelay::new(Duration::from_millis(5));
        for step in 0..4000_u64 {
            let now = Instant::from_nanos(step * 100_000);
            let queue = if step < 2000 { 0 } else { 3_000_000 };
            let wait = 5_000_000 - now.as_nanos() % 5_000_000;
            let shown = clean.on_sample(now, Duration::from_nanos(10_000_000 + wait + queue));
            if (50..2000).contains(&step) {
                assert_eq!(shown, Duration::from_nanos(10_100_000), "step {step}");
            }
            if step > 2100 {
                assert_eq!(shown, Duration::from_nanos(13_100_000), "step {step}");
            }
        }
    }

    #[test]
    fn a_pause_or_a_step_back_of_time_gives_a_sample_and_no_panic() {
        let mut clean = CleanDelay::new(Duration::ZERO);
        let ms = Duration::from_millis;
        assert_eq!(clean.on_sample(Instant::from_millis(1), ms(9)), ms(9));
        assert_eq!(clean.on_sample(Instant::MAX, ms(20)), ms(20));
        assert_eq!(clean.on_sample(Instant::ZERO, ms(30)), ms(20));
    }
}
