//! The queue to keep: what the radio draws from until the first ACK tells of a higher capacity. How long it must be follows
//! from the link itself: round trips within a packet's time of the minimum say that the queue ran empty, and few of them are
//! wanted. A steady link is left with a short queue, a bursty one gets a longer one.
//!
//! A radio that serves in turns, or stops now and then, must find enough when it comes back (`pause`); where layer 2 delivers
//! late and in order the queue is no shorter than that takes (`stalls`).

use crate::accelerator::rate::fading::LEAST_SILENCE;
use crate::accelerator::rate::in_order_stalls::Stalls;
use paceline_net::{Duration, Instant};
use std::hint::black_box;

/// A pause counts if the radio would have taken so many bytes in it, no more than so much of it, and is forgotten within this
/// time.
const LEAST_PAUSED: f64 = 6_000.0;
pub(in crate::accelerator) const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MEMORY: f64 = 1.0;
/// A stretch of the rate is no shorter than so many halves of the pauses, or the rate would be that of the turns, and the
/// budget may reach as far, or the queue would not last until the next. The budget is no shorter than a quarter of them: where
/// every round trip has a pause in it none is short, and the queue is never found empty.
const PAUSE_HALVES: u64 = 3;
const PAUSE_PARTS: u64 = 4;
/// Quarters of a stall that the budget is at least: what the path itself holds meanwhile, and a little.
const STALL_QUARTERS: u64 = 5;
/// Of `starvation`, what is wanted where the radio fades.
const FADING_SHARE: f64 = 0.4;
/// A radio that changes within a round trip asks for a queue as long as that: on long paths the budget may reach so many
/// halves of it.
const LONG_PATH: u64 = 3;
/// Growth of the budget for a round trip throughout which the queue was empty.
const STEP: f64 = 0.2;

/// An acknowledgment came after a while without any.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Silence {
    pub lasted: Duration,
    /// Bytes delivered before it, in all, and those that the radio would have taken in it.
    pub delivered: u64,
    pub missed: f64,
    /// It was no fade, and there was enough on its way.
    pub paused: bool,
    /// Without SACK a hole that is filled looks like layer 2 that delivers late.
    pub selective: bool,
}

#[derive(Clone, Debug)]
pub(in crate::accelerator) struct Budget {
    least: Duration,
    most: Duration,
    starvation: f64,
    seconds: f64,
    sampled_at: Instant,
    /// The queue was empty then.
    empty: bool,
    /// Longest pause of the radio lately.
    pause: Duration,
    stalls: Stalls,
}

impl Budget {
    /// Queueing delays between which it may be, and the share of round trips that may find the queue empty.
    pub fn new(least: Duration, most: Duration, starvation: f64) -> Self {
        let least = least.max(Duration::from_millis(1));
        let most = most.max(least);
        Self {
            least,
            most,
            starvation: if starvation > 0.0 { starvation.min(0.5) } else { 0.001 },
            seconds: (least * 2).min(most).as_secs_f64(),
            sampled_at: Instant::ZERO,
            empty: false,
            pause: Duration::ZERO,
            stalls: Stalls::default(),
        }
    }
    /// Queueing delay to keep, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
    /// The shortest that it may be.
    pub fn least(&self) -> Duration {
        self.least
    }
    /// Shortest stretch over which a rate is that of the radio's turns and pauses.
    pub fn stretch(&self) -> Duration {
        self.pause * PAUSE_HALVES / 2
    }

    pub fn on_ack(&mut self, now: Instant, silence: &Silence) {
        let Silence { lasted, delivered, missed, paused, selective } = *silence;
        self.stalls.on_ack(now, lasted, delivered);
        let forgotten = (lasted.as_secs_f64() / PAUSE_MEMORY).min(1.0);
        self.pause = Duration::from_secs_f64(self.pause.as_secs_f64() * (1.0 - forgotten));
        if lasted > LEAST_SILENCE && missed > LEAST_PAUSED && paused {
            self.pause = self.pause.max(lasted.min(LONGEST_PAUSE));
            if selective {
                self.stalls.on_pause(now, lasted, delivered, missed);
            }
        }
    }
    /// A round trip told whether the queue was empty: it grows for the time in which it was found so, and shrinks for the time
    /// in which it was not.
    pub fn on_queue(&mut self, now: Instant, empty: bool, min_rtt: Duration, fades: bool) {
        let share = now.since(self.sampled_at).min(min_rtt).as_secs_f64() / min_rtt.as_secs_f64().max(1e-4);
        // The time until now belongs to the state that it began with: a radio that serves in turns is found empty at the
        // end of one, and what it could have sent more is not seen.
        let starvation = self.starvation * if fades { FADING_SHARE } else { 1.0 };
        let step = if std::mem::replace(&mut self.empty, empty) { share } else { -starvation * share };
        let stall = self.stalls.longest() * STALL_QUARTERS / 4;
        let least = self.least.max(self.pause / PAUSE_PARTS).max(stall);
        let most = self.most.max(min_rtt * LONG_PATH / 2).max(self.stretch());
        self.seconds =
            (self.seconds * (1.0 + STEP * step)).clamp(least.as_secs_f64(), most.max(least).as_secs_f64());
        self.sampled_at = now;
    }
    /// A round trip told nothing of that.
    pub fn on_other(&mut self, now: Instant) {
        self.sampled_at = now;
    }
    /// Reads each of its cache lines.
    pub fn look_at(&self) {
        black_box((self.least, self.pause, self.stalls.longest()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn budget() -> Budget {
        Budget::new(Duration::from_millis(15), Duration::from_millis(100), 0.04)
    }
    /// Round trips of so many, the queue found empty in one of `every`.
    fn found_empty(budget: &mut Budget, round_trips: u64, every: u64) {
        for n in 1..=round_trips {
            budget.on_queue(Instant::from_millis(40 * n), n % every == 0, RTT, false);
        }
    }

    #[test]
    fn an_empty_queue_makes_it_grow_and_one_in_twenty_five_is_wanted() {
        let mut rarely = budget();
        found_empty(&mut rarely, 2_000, 100);
        assert!(rarely.seconds() < 0.02, "{rarely:?}");
        let mut often = budget();
        found_empty(&mut often, 2_000, 10);
        assert!((often.seconds() - 0.1).abs() < 0.01, "{often:?}");
    }

    #[test]
    fn a_pause_of_the_radio_is_bridged_and_forgotten() {
        let mut budget = budget();
        let silence =
            |lasted, missed, paused| Silence { lasted, delivered: 0, missed, paused, selective: true };
        let pause = Duration::from_millis(120);
        budget.on_ack(Instant::from_millis(120), &silence(pause, 1e6, false));
        budget.on_ack(Instant::from_millis(240), &silence(pause, 1e3, true));
        assert_eq!(budget.stretch(), Duration::ZERO, "a fade, and a slow radio");
        budget.on_ack(Instant::from_millis(360), &silence(pause, 1e6, true));
        budget.on_queue(Instant::from_millis(360), false, RTT, false);
        assert_eq!(budget.stretch(), pause * 3 / 2);
        assert!(budget.seconds() >= 0.03, "{budget:?}");
        for ms in 361..3_000 {
            budget.on_ack(Instant::from_millis(ms), &silence(Duration::from_millis(1), 0.0, true));
        }
        assert!(budget.stretch() < Duration::from_millis(20), "{budget:?}");
    }

    #[test]
    fn what_is_asked_for_in_vain_is_mended() {
        let budget = Budget::new(Duration::ZERO, Duration::ZERO, f64::NAN);
        assert_eq!(budget.least(), Duration::from_millis(1));
        assert!(budget.seconds() > 0.0 && budget.starvation > 0.0, "{budget:?}");
    }
}
