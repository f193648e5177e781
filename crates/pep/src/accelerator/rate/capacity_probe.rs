//! Probes of the capacity while a delay above the minimum looks like a queue.
//!
//! Round-trip times vary by scheduling, HARQ and turns of the radio, without any queue. Where they vary by more
//! than the queue to keep, they hide that the link is idle at times, and the window that the rate gives would
//! confirm that rate. Now and then the window is a quarter larger for a round trip. If the rate follows, the next
//! probe begins at once; else the wait doubles.

use paceline_net::{Duration, Instant};

/// Factor of the window in a probe: ProbeBW_UP's pacing gain (draft-ietf-ccwg-bbr).
const GAIN: f64 = 1.25;
/// Growth of the bandwidth that counts as an answer. Chosen: above the differences between samples of a full
/// link, and a fifth of the probe.
const ANSWER: f64 = 1.05;
/// Round trips of the larger window, and until its rate is measured: the bandwidth is that of the packets sent
/// a round trip before.
const ROUNDS: u8 = 1;
const JUDGED_AFTER: u8 = 3;
/// Wait after a probe in vain: at first, and at most, which is the validity of the minimum RTT. A probe of a
/// round trip in ten seconds is beyond the 95th percentile of the delay.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct CapacityProbe {
    /// Round trips since the probe under way began, and the bandwidth before it.
    running: Option<(u8, f64)>,
    next_at: Instant,
    wait: Duration,
}

impl CapacityProbe {
    /// Factor of the window.
    pub fn window_factor(&self) -> f64 {
        if self.running.is_some_and(|(rounds, _)| rounds < ROUNDS) { GAIN } else { 1.0 }
    }
    /// A round trip ended, with this bandwidth. `may_probe`: the window limits the rate.
    pub fn on_round(&mut self, now: Instant, bandwidth: f64, may_probe: bool) {
        match &mut self.running {
            Some(_) if !may_probe => self.running = None,
            Some((rounds, before)) => {
                *rounds += 1;
                let answered = bandwidth > ANSWER * *before;
                if answered || *rounds >= JUDGED_AFTER {
                    self.running = None;
                    self.wait = match answered {
                        true => Duration::ZERO,
                        false => (self.wait * 2).max(FIRST_WAIT).min(LONGEST_WAIT),
                    };
                    self.next_at = now + self.wait;
                }
            }
            None if may_probe && now >= self.next_at => self.running = Some((0, bandwidth)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 50 ms for 60 s on a path whose rate follows the window up to `capacity`; the bandwidth at
    /// the end, and the number of round trips with a larger window.
    fn run(capacity: f64) -> (f64, usize) {
        let (mut probe, mut bandwidth, mut larger) = (CapacityProbe::default(), 1e6, 0);
        for round in 1..=1200 {
            larger += usize::from(probe.window_factor() > 1.0);
            bandwidth = (bandwidth * probe.window_factor()).min(capacity);
            probe.on_round(Instant::from_millis(50 * round), bandwidth, true);
        }
        (bandwidth, larger)
    }

    #[test]
    fn a_rate_that_follows_the_window_grows_to_the_capacity() {
        let (bandwidth, larger) = run(50e6);
        assert!(bandwidth >= 50e6 && larger < 40, "{bandwidth} bit/s, {larger} round trips");
    }

    #[test]
    fn a_full_link_is_seldom_probed() {
        let (bandwidth, larger) = run(1e6);
        assert!(bandwidth <= 1e6 && larger < 12, "{larger} round trips");
    }

    #[test]
    fn nothing_is_probed_while_something_else_limits() {
        let mut probe = CapacityProbe::default();
        for round in 1..100 {
            probe.on_round(Instant::from_millis(50 * round), 1e6, false);
            assert_eq!(probe.window_factor().to_bits(), 1.0_f64.to_bits());
        }
    }
}
