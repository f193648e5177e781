//! Whether losses come from a buffer shorter than the delay budget, found by trying: the queue is kept shorter for
//! a few round trips, never below what the path itself holds. If the losses stop, the queue stays short and grows
//! slowly; if not, they have other causes, and are not looked at for a while.
//!
//! Less than one segment in ten, or a single burst, is let be: radios lose as much. What was found fades within
//! seconds, so that a mistake, or a buffer that was another path's, does not last.
//!
//! A client without SACK tells late, and of several round trips at once: the first of them counts, and there is no trial.

use paceline_net::{Duration, Instant};

/// Share of bytes lost in a round trip that asks for a trial, and the least number of bytes.
const SUSPICIOUS: f64 = 0.1;
/// Round trips in a row.
const IN_A_ROW: u8 = 3;
/// Growth of the queue that is kept, per second: a share of it, or of this many seconds where it is shorter.
const FADING: f64 = 0.08;
const LEAST_GROWING: f64 = 0.015;
const LEAST_LOST: u64 = 3000;
/// Round trips until what was sent before a trial has been judged, and until its end.
const SETTLING: u8 = 3;
const TRIAL: u8 = 8;
/// Of the queue that lost, what is kept.
const KEPT: f64 = 0.6;
/// Round trips with an almost empty queue after which the path is another one.
const STARVED: u8 = 4;
/// So is one whose bandwidth has become this much smaller: what was taken for a queue was no queue.
const SHRUNK: f64 = 2.0;
/// Of a segment: what waits for no more than one waits for none.
const SEGMENT_BITS: f64 = 12_000.0;
const FIRST_TRUCE: Duration = Duration::from_secs(10);
const MAX_TRUCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Share lost before it.
    loss: f64,
    rounds: u8,
    delivered: u64,
    lost: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Shallow {
    /// Longest queue to keep, in seconds, while one is known.
    cap: Option<f64>,
    /// The bandwidth when it was set.
    capped_at: f64,
    trial: Option<Trial>,
    /// Losses are not looked at until then, and for how long the last time.
    truce_until: Instant,
    truce: Duration,
    starved: u8,
    lossy: u8,
    /// Shortest queue of the last round trip that showed one.
    queue: f64,
}

/// Whether more was lost than radios lose, of so much.
pub(in crate::accelerator) fn is_lossy(delivered: u64, lost: u64) -> bool {
    lost >= LEAST_LOST && share_lost(delivered, lost) > SUSPICIOUS
}
fn share_lost(delivered: u64, lost: u64) -> f64 {
    lost as f64 / (delivered + lost).max(1) as f64
}

/// What a round trip brought.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Round {
    /// Bytes delivered and found lost.
    pub delivered: u64,
    pub lost: u64,
    /// The queue was never shorter than so many seconds, if anything told of it.
    pub queue: Option<f64>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What the path is taken to deliver, in bit/s.
    pub bandwidth: f64,
    /// Round trips of losses in a row that ask for a trial are told as one.
    pub unselective: bool,
}

impl Round {
    /// Whether more was lost than radios lose.
    pub fn is_lossy(&self) -> bool {
        is_lossy(self.delivered, self.lost)
    }
    fn loss(&self) -> f64 {
        share_lost(self.delivered, self.lost)
    }
}

impl Shallow {
    /// Longest queue to keep, in seconds.
    pub fn cap(&self) -> Option<f64> {
        self.cap
    }
    /// A round trip ended.
    pub fn on_round(&mut self, now: Instant, round: &Round) {
        let queue = round.queue.unwrap_or(self.queue);
        // What is told late was lost from the longest queue that there has been.
        self.queue = if round.unselective { queue.max(self.queue) } else { queue };
        if let Some(trial) = &mut self.trial {
            trial.rounds += 1;
            if trial.rounds > SETTLING {
                trial.delivered += round.delivered;
                trial.lost += round.lost;
            }
            if trial.rounds >= TRIAL {
                let after = trial.lost as f64 / (trial.delivered + trial.lost).max(1) as f64;
                let helped = after < trial.loss / 2.0;
                self.trial = None;
                if !helped {
                    self.truce = (self.truce * 2).max(FIRST_TRUCE).min(MAX_TRUCE);
                    self.truce_until = now + self.truce;
                    self.cap = None;
                }
            }
            return;
        }
        self.lossy = if round.is_lossy() { self.lossy.saturating_add(1) } else { 0 };
        let in_a_row = if round.unselective { 1 } else { IN_A_ROW };
        if self.lossy >= in_a_row && now >= self.truce_until {
            self.lossy = 0;
            let before = self.cap.map_or(self.queue, |cap| cap.min(self.queue));
            self.queue = if round.unselective { 0.0 } else { self.queue };
            (self.cap, self.capped_at) = (Some((KEPT * before).max(0.001)), round.bandwidth);
            // Nor could a trial tell what was lost in it, and what before.
            let trial = Trial { loss: round.loss(), rounds: 0, delivered: 0, lost: 0 };
            self.trial = (!round.unselective).then_some(trial);
        } else if let Some(cap) = &mut self.cap {
            *cap += FADING * round.seconds * cap.max(LEAST_GROWING);
            let segment = SEGMENT_BITS / round.bandwidth.max(1.0);
            let empty = round.queue.is_some_and(|queue| queue < segment.max(*cap / 4.0));
            self.starved = if empty { self.starved + 1 } else { 0 };
            if self.starved >= STARVED || SHRUNK * round.bandwidth < self.capped_at {
                (self.cap, self.starved) = (None, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 50 ms in which a full queue of 20 ms loses a fifth, until a cap is there.
    fn capped() -> (Shallow, u64) {
        let mut shallow = Shallow::default();
        let ms = go(&mut shallow, 0, 3, 20_000, Some(0.02), 1e7);
        assert!((shallow.cap().unwrap() - KEPT * 0.02).abs() < 1e-9, "{shallow:?}");
        (shallow, ms)
    }
    fn go(shallow: &mut Shallow, ms: u64, rounds: u64, lost: u64, queue: Option<f64>, bandwidth: f64) -> u64 {
        for n in 1..=rounds {
            let round =
                Round { delivered: 80_000, lost, queue, seconds: 0.05, bandwidth, unselective: false };
            shallow.on_round(Instant::from_millis(ms + 50 * n), &round);
        }
        ms + 50 * rounds
    }

    #[test]
    fn a_cap_that_ends_the_losses_stays_and_grows_slowly() {
        let (mut shallow, ms) = capped();
        go(&mut shallow, ms, 8 + 200, 0, Some(0.01), 1e7);
        let cap = shallow.cap().unwrap();
        assert!((0.015..0.05).contains(&cap), "{cap} s after ten seconds");
    }

    #[test]
    fn one_that_does_not_is_given_up_for_a_while() {
        let (mut shallow, ms) = capped();
        let ms = go(&mut shallow, ms, 8, 20_000, Some(0.01), 1e7);
        assert_eq!(shallow.cap(), None);
        let ms = go(&mut shallow, ms, 190, 20_000, Some(0.02), 1e7);
        assert_eq!(shallow.cap(), None, "{ms} ms");
        go(&mut shallow, ms, 12, 20_000, Some(0.02), 1e7);
        assert!(shallow.cap().is_some());
    }

    #[test]
    fn round_trips_that_tell_of_no_queue_tell_of_losses() {
        let mut shallow = Shallow::default();
        let ms = go(&mut shallow, 0, 1, 0, Some(0.02), 1e7);
        let ms = go(&mut shallow, ms, 3, 20_000, None, 1e7);
        assert!((shallow.cap().unwrap() - KEPT * 0.02).abs() < 1e-9, "{shallow:?}");
        go(&mut shallow, ms, 100, 0, None, 1e7);
        assert!(shallow.cap().is_some(), "and of no empty one");
    }

    #[test]
    fn a_cap_under_which_the_path_shrinks_was_none() {
        let (mut shallow, ms) = capped();
        let ms = go(&mut shallow, ms, 10, 0, Some(0.01), 6e6);
        assert!(shallow.cap().is_some());
        go(&mut shallow, ms, 1, 0, Some(0.01), 4e6);
        assert_eq!(shallow.cap(), None);
    }
}
