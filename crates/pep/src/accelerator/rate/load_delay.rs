//! How the path answers a larger window, found by trying: on a full link more data in flight is a longer queue and
//! nothing else, on a path whose delay grows with its load it is a higher rate. Round-trip times alone cannot tell the
//! two apart; a control that takes every delay for a queue of its own starves itself on the second.
//!
//! Now and then the window is a quarter larger for two round trips. What is sent in the second of them, against what
//! was sent before, is the answer: 1 if the rate follows the window, 0 if it does not. While it follows, the delay
//! that is taken for the path's own (`reach`) grows; when it does not, it shrinks.

use paceline_net::{Duration, Instant};

/// Factor of the window in a trial.
const TRIAL: f64 = 1.25;
/// Weight of a new answer.
const WEIGHT: f64 = 0.2;
/// Answers above which there is no queue, and below which there is one.
const FOLLOWS: f64 = 0.5;
const STANDS: f64 = 0.25;
/// Growth of `reach` after a trial, as a share of the round trip, and its decay.
const GROWTH: f64 = 0.1;
const DECAY: f64 = 0.8;
const MOST_REACH: f64 = 0.2;
/// Phases without a trial between two of them while the window does not matter.
const REST: u8 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Response {
    /// The phase: its beginning, the round trip then, whether it is a trial.
    since: Instant,
    rtt: Duration,
    high: bool,
    /// Bytes of its second half; something else than the window bounded the rate.
    bytes: u64,
    spoiled: bool,
    latest_rtt: Duration,
    /// Rate of the last phase without a trial.
    low: Option<f64>,
    rest: u8,
    answer: f64,
    reach: f64,
}

impl Response {
    /// Delay that is the path's own beyond its minimum, in seconds.
    pub fn reach(&self) -> f64 {
        self.reach
    }
    /// The minimum is shorter by so many seconds, and the path's own delay is not.
    pub fn shift(&mut self, by: f64) {
        self.reach = (self.reach + by).clamp(0.0, MOST_REACH);
    }
    /// Factor of the window.
    pub fn factor(&self) -> f64 {
        if self.high { TRIAL } else { 1.0 }
    }
    /// `bytes` were delivered. `spoiled`: the window is not what bounds the rate.
    pub fn on_ack(&mut self, now: Instant, bytes: u64, rtt: Option<Duration>, spoiled: bool) {
        self.latest_rtt = rtt.unwrap_or(self.latest_rtt);
        self.spoiled |= spoiled;
        let age = now.since(self.since);
        if age > self.rtt {
            self.bytes += bytes;
        }
        if age >= self.rtt * 2 {
            self.end_phase(now, age);
        }
    }
    fn end_phase(&mut self, now: Instant, age: Duration) {
        let seconds = age.saturating_sub(self.rtt).as_secs_f64();
        let usable = !self.spoiled && self.bytes > 0 && seconds > 0.0;
        let rate = usable.then(|| self.bytes as f64 / seconds);
        if self.high {
            self.high = false;
            if let (Some(before), Some(tried)) = (self.low, rate) {
                self.learn(((tried / before - 1.0) / (TRIAL - 1.0)).clamp(-1.0, 2.0));
            }
        } else {
            self.low = rate;
            self.rest = self.rest.saturating_sub(1);
            if self.rest == 0 && rate.is_some() {
                self.high = true;
                self.rest = if self.answer < STANDS { REST } else { 0 };
            }
        }
        (self.since, self.rtt, self.bytes, self.spoiled) = (now, self.latest_rtt, 0, false);
    }
    fn learn(&mut self, answer: f64) {
        self.answer += WEIGHT * (answer - self.answer);
        if self.answer > FOLLOWS {
            self.reach = (self.reach + GROWTH * self.latest_rtt.as_secs_f64()).min(MOST_REACH);
        } else if self.answer < STANDS {
            self.reach *= DECAY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 50 ms, an acknowledgment each millisecond, at a rate that depends on the window's factor.
    fn tried(mut rate: impl FnMut(f64) -> u64, spoiled: bool, ms: u64) -> Response {
        let mut response = Response::default();
        for now in 1..ms {
            let bytes = rate(response.factor());
            response.on_ack(Instant::from_millis(now), bytes, Some(Duration::from_millis(50)), spoiled);
        }
        response
    }

    #[test]
    fn a_rate_that_follows_the_window_is_no_queue() {
        let follows = tried(|factor| (1000.0 * factor) as u64, false, 10_000);
        assert!(follows.answer > 0.9, "{follows:?}");
        assert_eq!(follows.reach(), MOST_REACH);
    }

    #[test]
    fn a_full_link_answers_with_nothing_and_is_tried_less_often() {
        let mut trials = 0;
        let full = tried(
            |factor| {
                trials += u32::from(factor > 1.0);
                1000
            },
            false,
            10_000,
        );
        assert!(full.answer.abs() < 0.01 && full.reach() < 1e-6, "{full:?}");
        // One phase of four.
        assert!((2_000..3_000).contains(&trials), "{trials} ms of 10 s with a larger window");
    }

    #[test]
    fn what_was_learned_is_unlearned_when_the_link_fills() {
        let mut at = 0;
        let response = tried(
            |factor| {
                at += 1;
                if at < 5_000 { (1000.0 * factor) as u64 } else { 1000 }
            },
            false,
            20_000,
        );
        assert!(response.reach() < 0.01, "{response:?}");
    }

    #[test]
    fn another_minimum_leaves_the_sum() {
        let mut response = tried(|factor| (1000.0 * factor) as u64, false, 2_000);
        let reach = response.reach();
        response.shift(0.02);
        assert!((response.reach() - reach - 0.02).abs() < 1e-9);
        response.shift(-0.5);
        assert_eq!(response.reach(), 0.0);
    }

    #[test]
    fn phases_that_something_else_bounds_teach_nothing() {
        let spoiled = tried(|factor| (1000.0 * factor) as u64, true, 10_000);
        assert_eq!((spoiled.answer, spoiled.reach()), (0.0, 0.0));
    }
}
