//! Pauses after which all comes at once that was sent meanwhile: layer 2 waited for a block that was sent again, and
//! delivers in order (RLC in acknowledged mode, 3GPP TS 36.322, section 5.1.3.2; reordering after HARQ, TS 25.321, section
//! 11.6.2). The radio went on: a path that stalls holds as much more as it sends in a stall, and round trips as short as the
//! shortest are rare without any queue.
//!
//! A radio that serves in turns looks alike where a turn takes next to no time, and asks for the same.

use paceline_net::{Duration, Instant};

/// What was missed has come within this part of the pause,
const AT_ONCE: u64 = 24;
/// this share of it.
const CAUGHT_UP: f64 = 0.6;
/// That is at least so many bytes: of a few packets none can say how fast they come.
pub(in crate::accelerator) const LEAST_MISSED: f64 = 15_000.0;
/// And the pause is no longer: what is sent again comes sooner, or the radio was away.
const LONGEST: Duration = Duration::from_millis(100);
/// A stall is forgotten within so much time, in seconds.
const MEMORY: f64 = 3.0;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Stalls {
    longest: Duration,
    /// The last pause, until it is known what followed.
    ended: Option<Ended>,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    pause: Duration,
    at: Instant,
    /// Bytes delivered before that, and what the radio would have taken in it.
    delivered: u64,
    missed: f64,
}

impl Stalls {
    /// The longest of late.
    pub fn longest(&self) -> Duration {
        self.longest
    }
    /// An acknowledgment, after `silent`; `delivered` without what it acknowledges.
    pub fn on_ack(&mut self, now: Instant, silent: Duration, delivered: u64) {
        let forgotten = (silent.as_secs_f64() / MEMORY).min(1.0);
        self.longest = Duration::from_secs_f64(self.longest.as_secs_f64() * (1.0 - forgotten));
        if let Some(ended) = self.ended.filter(|ended| now.since(ended.at) >= ended.pause / AT_ONCE) {
            self.ended = None;
            if (delivered - ended.delivered) as f64 >= CAUGHT_UP * ended.missed {
                self.longest = self.longest.max(ended.pause);
            }
        }
    }
    /// The radio delivered nothing for so long, and would have taken so many bytes.
    pub fn on_pause(&mut self, now: Instant, pause: Duration, delivered: u64, missed: f64) {
        self.ended = (missed >= LEAST_MISSED && pause <= LONGEST).then_some(Ended {
            pause,
            at: now,
            delivered,
            missed,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(60);

    /// Pauses of 60 ms, after each 60,000 bytes within so long, and then the rate of 1,000 bytes a millisecond for as long.
    fn paused(within: Duration) -> Stalls {
        let (mut stalls, mut now, mut delivered) = (Stalls::default(), Instant::from_millis(1), 0);
        for _ in 0..10 {
            now += PAUSE;
            stalls.on_ack(now, PAUSE, delivered);
            stalls.on_pause(now, PAUSE, delivered, 60_000.0);
            for _ in 0..60 {
                delivered += 1_000;
                now += within / 60;
                stalls.on_ack(now, within / 60, delivered);
            }
            for _ in 0..60 {
                delivered += 1_000;
                now += Duration::from_millis(1);
                stalls.on_ack(now, Duration::from_millis(1), delivered);
            }
        }
        stalls
    }

    #[test]
    fn what_comes_at_once_was_held_up() {
        let stalls = paused(Duration::from_millis(2));
        assert!(stalls.longest() > PAUSE * 3 / 4, "{stalls:?}");
    }

    #[test]
    fn what_comes_as_fast_as_the_link_is_was_in_its_queue() {
        assert_eq!(paused(Duration::from_millis(50)).longest(), Duration::ZERO);
    }

    #[test]
    fn a_stall_is_forgotten() {
        let (mut stalls, mut now) = (paused(Duration::from_millis(2)), Instant::from_millis(5_000));
        for _ in 0..20_000 {
            now += Duration::from_millis(1);
            stalls.on_ack(now, Duration::from_millis(1), 2_000_000);
        }
        assert!(stalls.longest() < Duration::from_millis(5), "{stalls:?}");
    }
}
