//! What the buffer before the radio has lately held without losing any of it. What is lost while less than that waits is not
//! lost there: radios lose a part of what they send for some time, on a fading channel or through interference, and no
//! silence tells of it. Such losses are no sign of a buffer that is too short (`shallow`), nor of a rate that is too high.
//!
//! Buffers hold bytes: what was delivered while a packet waited had been before it. The rate says less, as it was another one
//! while the queue grew. What a buffer was seen to hold is forgotten in time: others may fill it as well, and some are
//! bounded by time.

use paceline_net::{Duration, Instant};
use std::collections::VecDeque;
use std::hint::black_box;

/// What was held is forgotten after this time, or twice as long.
const MEMORY: Duration = Duration::from_secs(10);
/// No one asks where nothing is lost: for so long after a loss queues are watched.
const WATCHED: Duration = Duration::from_secs(20);
/// Of packets that arrive sooner after each other only the first is looked at, and what was delivered is remembered for so
/// many. Where a queue lasts for longer than that nothing is said of it.
const APART: Duration = Duration::from_millis(4);
const REMEMBERED: usize = 64;
/// What was lost while so much less waited than was held leaves no doubt.
const CLEARLY: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct Held {
    /// Most devices lose little, and have none.
    watch: Option<Box<Watch>>,
}

#[derive(Clone, Debug, Default)]
struct Watch {
    until: Instant,
    /// Bytes held without loss, in this time and in that before it, and when this one began.
    most: [u64; 2],
    since: Instant,
    /// In this round trip: the shortest queue that a packet has found, in bytes.
    shortest: Option<u64>,
    /// The longest in it, and in the last one that told of any. What is found lost was sent in either.
    longest: [Option<u64>; 2],
    /// When how much had been delivered in all, the oldest first.
    past: VecDeque<(Instant, u64)>,
}

impl Held {
    /// A packet has arrived that had waited for so long; with it so many bytes were delivered in all. `counts`: its wait was
    /// that of a queue, for sure.
    pub fn on_queue(&mut self, now: Instant, waited: Duration, delivered: u64, counts: bool) {
        if let Some(watch) = &mut self.watch {
            watch.on_queue(now, waited, delivered, counts);
        }
    }
    /// A round trip ended in which so much was found lost; whether that was more than radios lose.
    pub fn on_round(&mut self, now: Instant, lost: u64, lossy: bool) {
        self.watch = self.watch.take().filter(|watch| now < watch.until);
        if lossy {
            self.watch.get_or_insert_default().until = now + WATCHED;
        }
        if let Some(watch) = &mut self.watch {
            watch.on_round(now, lost);
        }
    }
    /// Nothing was on its way for a while.
    pub fn on_idle(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.past.clear();
        }
    }
    /// Whether the buffer has held more than it did lately.
    pub fn had_room(&self, now: Instant) -> bool {
        self.had_held(now, 1)
    }
    /// Whether it has held far more.
    pub fn had_much_room(&self, now: Instant) -> bool {
        self.had_held(now, CLEARLY)
    }
    /// What was seen before a long silence may be another path's.
    fn had_held(&self, now: Instant, times: u64) -> bool {
        self.watch.as_ref().is_some_and(|watch| now < watch.until && watch.has_held(times))
    }
    /// Reads each of its cache lines that most devices have.
    pub fn look_at(&self) {
        black_box(self.watch.is_some());
    }
}

impl Watch {
    fn on_queue(&mut self, now: Instant, waited: Duration, delivered: u64, counts: bool) {
        if self.past.back().is_some_and(|(at, _)| now.since(*at) < APART) {
            return;
        }
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((now, delivered));
        let came_at = Instant::from_nanos(now.as_nanos().saturating_sub(waited.as_nanos()));
        let after = self.past.partition_point(|(at, _)| *at < came_at);
        // It came between two of them: so much at least had been before it, and no more than so much.
        let least = delivered - self.past.get(after).map_or(delivered, |(_, bytes)| *bytes);
        let most = after.checked_sub(1).map_or(u64::MAX, |before| delivered - self.past[before].1);
        self.longest[0] = self.longest[0].max(Some(most));
        if counts {
            self.shortest = Some(self.shortest.map_or(least, |shortest| shortest.min(least)));
        }
    }
    fn on_round(&mut self, now: Instant, lost: u64) {
        if now.since(self.since) > MEMORY {
            (self.most, self.since) = ([0, self.most[0]], now);
        }
        if let (Some(shortest), 0) = (self.shortest.take(), lost) {
            self.most[0] = self.most[0].max(shortest);
        }
        if self.longest[0].is_some() {
            self.longest = [None, self.longest[0]];
        }
    }
    /// So many times as much as lately.
    fn has_held(&self, times: u64) -> bool {
        let [this, last] = self.longest;
        let most = self.most[0].max(self.most[1]);
        last.is_some_and(|last| last.max(this.unwrap_or(0)).saturating_mul(times) < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_MS: u64 = 100;
    /// Bytes a millisecond.
    const RATE: u64 = 10_000;

    struct Bed {
        held: Held,
        ms: u64,
        delivered: u64,
    }
    impl Bed {
        /// After a second in which a packet waits for 40 ms, and none is lost: 400,000 bytes.
        fn new() -> Self {
            let mut bed = Self { held: Held::default(), ms: 0, delivered: 0 };
            bed.round(RATE, Some(40), 1);
            (0..10).for_each(|_| bed.round(RATE, Some(40), 0));
            bed
        }
        /// A round trip at a rate, in which packets that count wait for so long, if any arrives that tells.
        fn pass(&mut self, rate: u64, waited: Option<u64>) {
            for _ in 0..RTT_MS {
                self.ms += 1;
                self.delivered += rate;
                if let Some(waited) = waited {
                    let now = Instant::from_millis(self.ms);
                    self.held.on_queue(now, Duration::from_millis(waited), self.delivered, true);
                }
            }
        }
        fn now(&self) -> Instant {
            Instant::from_millis(self.ms)
        }
        fn had_room(&self) -> bool {
            self.held.had_room(self.now())
        }
        /// It ends, and something was lost.
        fn round(&mut self, rate: u64, waited: Option<u64>, lost: u64) {
            self.pass(rate, waited);
            self.held.on_round(Instant::from_millis(self.ms), lost, lost > 0);
        }
    }

    #[test]
    fn while_less_waits_than_was_held_without_loss_there_is_room() {
        let mut bed = Bed::new();
        bed.round(RATE, Some(25), 1);
        assert!(bed.had_room() && !bed.held.had_much_room(bed.now()));
        (0..2).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(bed.held.had_much_room(bed.now()));
        bed.round(RATE, Some(45), 1);
        bed.pass(RATE, Some(10));
        assert!(!bed.had_room(), "what is lost may have been sent in the round trip before");
    }

    #[test]
    fn it_is_bytes_that_a_buffer_holds() {
        let mut bed = Bed::new();
        (0..2).for_each(|_| bed.round(RATE / 4, Some(50), 1));
        assert!(bed.held.had_much_room(bed.now()), "a quarter of the rate, and it takes longer");
        (0..2).for_each(|_| bed.round(RATE * 2, Some(30), 1));
        assert!(!bed.had_room(), "less time, and more bytes");
    }

    #[test]
    fn without_word_of_a_queue_it_is_what_it_was() {
        let mut bed = Bed::new();
        (0..2).for_each(|_| bed.round(RATE, Some(45), 1));
        (0..5).for_each(|_| bed.round(RATE, None, 1));
        assert!(!bed.had_room(), "only answers to repetitions came");
        assert!(!Held::default().had_room(Instant::ZERO));
    }

    #[test]
    fn what_lost_something_has_not_held_it() {
        let mut bed = Bed { held: Held::default(), ms: 0, delivered: 0 };
        (0..10).for_each(|_| bed.round(RATE, Some(40), 1));
        (0..2).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(!bed.had_room());
    }

    #[test]
    fn a_longer_wait_than_is_remembered_says_nothing() {
        let mut bed = Bed::new();
        (0..2).for_each(|_| bed.round(RATE / 100, Some(300), 1));
        assert!(!bed.had_room());
        let mut bed = Bed::new();
        bed.held.on_idle();
        bed.pass(RATE / 100, Some(50));
        assert!(!bed.had_room(), "of before it was idle nothing is remembered");
    }

    #[test]
    fn where_nothing_is_lost_nothing_is_watched() {
        let mut bed = Bed { held: Held::default(), ms: 0, delivered: 0 };
        (0..10).for_each(|_| bed.round(RATE, Some(40), 0));
        assert!(bed.held.watch.is_none() && !bed.had_room());
        let mut bed = Bed::new();
        (0..200).for_each(|_| bed.round(RATE, Some(20), 0));
        assert!(bed.held.watch.is_none(), "nor later than some time after a loss");
    }

    #[test]
    fn after_a_long_silence_it_may_be_another_path() {
        let mut bed = Bed::new();
        (0..2).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(bed.had_room());
        bed.ms += 60_000;
        assert!(!bed.had_room());
        (0..3).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(!bed.had_room(), "the next loss does not bring it back");
    }

    #[test]
    fn what_was_held_is_forgotten() {
        let mut bed = Bed::new();
        (0..80).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(bed.had_room());
        (0..120).for_each(|_| bed.round(RATE, Some(10), 1));
        assert!(!bed.had_room());
    }
}
