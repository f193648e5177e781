//! High-water mark of the buffer ahead of the radio: the most bytes that it has recently held without losing
//! any.
//!
//! Packets lost while the buffer holds less than that were lost by the radio: on a fading channel or under
//! interference it loses a part of the packets for some time, without a silence. Such losses mean neither a
//! short buffer (`short_buffer`) nor a rate above capacity.
//!
//! Buffers hold bytes: the bytes delivered while a packet waited had been ahead of it. Delay times rate would
//! say less, since the rate changes while a queue grows. The mark is forgotten after a while: other traffic
//! may fill the same buffer, and some buffers are bounded by time. Devices without losses have no state here.
//!
//! A buffer that overflows holds as many bytes each time. `had_evident_room` therefore compares with the most
//! that any delivered packet found ahead of it, also in round trips that lost others: random losses leave no
//! round trip without a loss where many packets are in flight.

use paceline_net::{Duration, Instant};
use std::collections::VecDeque;
use std::hint::black_box;

/// A high-water mark is forgotten after this time to twice this time. Chosen: several bursts of losses fall
/// into that time.
const PERIOD: Duration = Duration::from_secs(10);
/// The queue is tracked for this long after a lossy round trip. Chosen: the longest life of a mark.
const TRACKED_FOR: Duration = Duration::from_secs(20);
/// Spacing and number of the remembered delivery totals. A longer wait than both together gives no upper
/// bound of the queue. Chosen: 256 ms covers the default maximum of the target delay.
const TOTAL_SPACING: Duration = Duration::from_millis(4);
const TOTAL_COUNT: usize = 64;
/// A buffer that has held this many times its present content clearly had room. Chosen: beyond the error of
/// the queue's upper bound.
const CLEAR_FACTOR: u64 = 2;
/// A buffer that holds less than this share of the most that a delivered packet found evidently had room.
/// Chosen: on traces of millimetre waves buffers of 1 and 4 MB overflow at 0.77 to 1.3 of it, where ACKs that
/// come together make the most too large; random losses are found at 0.1 to 1.1.
const EVIDENT_SHARE: f64 = 0.75;

/// Round trips that refute a mark: more than the mark is in flight beyond the path, packets are lost, and the
/// delivered ones find less than a part of it. Chosen: a queue of ACKs, or of a path that the packets no
/// longer take, has set the mark; a radio that loses half of its packets still holds the others.
const REFUTING_ROUNDS: u8 = 3;
const REFUTING_PART: u64 = 4;

/// High-water mark of one device's buffer.
#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct BufferHighWater {
    tracker: Option<Box<Tracker>>,
}

#[derive(Clone, Debug, Default)]
struct Tracker {
    until: Instant,
    /// Bytes held without loss: the maxima of this period and the previous one, and when this one began.
    high_water: [u64; 2],
    period_start: Instant,
    /// In this round trip: bytes of the queue that every packet found at least.
    standing_queue: Option<u64>,
    /// Bytes that a delivered packet found ahead of it at least: the maxima of this period and the previous
    /// one.
    most_found: [u64; 2],
    /// Bytes of the longest queue in this round trip, and in the last one with a sample: a packet that is
    /// found lost was sent in either.
    longest_queue: [Option<u64>; 2],
    /// Consecutive round trips that refute the mark.
    refuting_rounds: u8,
    /// When how many bytes had been delivered in total, the oldest first.
    totals: VecDeque<(Instant, u64)>,
}

impl BufferHighWater {
    /// A packet was delivered that had waited for `queueing_delay`; with it, `delivered` bytes were in total.
    /// `is_queue`: the delay is sure to be that of a queue.
    pub fn on_delivered(&mut self, now: Instant, queueing_delay: Duration, delivered: u64, is_queue: bool) {
        if let Some(tracker) = &mut self.tracker {
            tracker.on_delivered(now, queueing_delay, delivered, is_queue);
        }
    }
    /// A round trip ended. `lost`: bytes found lost in it; `lossy`: enough for the cause to matter; `excess`:
    /// bytes in flight beyond those that the path without a queue holds.
    pub fn on_round(&mut self, now: Instant, lost: u64, lossy: bool, excess: u64) {
        self.tracker = self.tracker.take().filter(|tracker| now < tracker.until);
        if lossy {
            self.tracker.get_or_insert_default().until = now + TRACKED_FOR;
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.on_round(now, lost, excess);
        }
    }
    /// Nothing was in flight for a while.
    pub fn on_idle(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.totals.clear();
        }
    }
    /// Whether the buffer has held more than it did when the latest losses happened.
    pub fn had_room(&self, now: Instant) -> bool {
        self.has_held(now, 1)
    }
    /// Whether it has held more than twice as much.
    pub fn had_clear_room(&self, now: Instant) -> bool {
        self.has_held(now, CLEAR_FACTOR)
    }
    /// Whether some packet has recently found clearly more ahead of it than the latest losses can have.
    pub fn had_evident_room(&self, now: Instant) -> bool {
        self.tracker.as_ref().is_some_and(|tracker| now < tracker.until && tracker.had_evident_room())
    }
    /// Bytes of a queue that the buffer surely holds: a part of the most that a delivered packet has recently
    /// found. 0 if not known.
    pub fn safe(&self, now: Instant) -> u64 {
        let tracker = self.tracker.as_ref().filter(|tracker| now < tracker.until);
        tracker.map_or(0, |tracker| (EVIDENT_SHARE * tracker.most_found() as f64) as u64)
    }
    fn has_held(&self, now: Instant, factor: u64) -> bool {
        // After a long silence the mark may be that of another path.
        self.tracker.as_ref().is_some_and(|tracker| now < tracker.until && tracker.has_held(factor))
    }
    /// Loads the cache line that every device has.
    pub fn prefetch(&self) {
        black_box(self.tracker.is_some());
    }
}

impl Tracker {
    fn on_delivered(&mut self, now: Instant, queueing_delay: Duration, delivered: u64, is_queue: bool) {
        if self.totals.back().is_some_and(|(at, _)| now.since(*at) < TOTAL_SPACING) {
            return;
        }
        if self.totals.len() == TOTAL_COUNT {
            self.totals.pop_front();
        }
        self.totals.push_back((now, delivered));
        let queued_at = Instant::from_nanos(now.as_nanos().saturating_sub(queueing_delay.as_nanos()));
        let after = self.totals.partition_point(|(at, _)| *at < queued_at);
        // The packet was queued between two remembered totals, which bound the bytes ahead of it.
        let at_least = delivered - self.totals.get(after).map_or(delivered, |(_, bytes)| *bytes);
        let at_most = after.checked_sub(1).map_or(u64::MAX, |before| delivered - self.totals[before].1);
        self.longest_queue[0] = self.longest_queue[0].max(Some(at_most));
        if is_queue {
            self.most_found[0] = self.most_found[0].max(at_least);
            self.standing_queue = Some(self.standing_queue.map_or(at_least, |bytes| bytes.min(at_least)));
        }
    }
    fn on_round(&mut self, now: Instant, lost: u64, excess: u64) {
        self.refute(lost, excess);
        if now.since(self.period_start) > PERIOD {
            (self.high_water, self.period_start) = ([0, self.high_water[0]], now);
            self.most_found = [0, self.most_found[0]];
        }
        if let (Some(bytes), 0) = (self.standing_queue.take(), lost) {
            self.high_water[0] = self.high_water[0].max(bytes);
        }
        if self.longest_queue[0].is_some() {
            self.longest_queue = [None, self.longest_queue[0]];
        }
    }
    /// Forgets a mark that the buffer evidently cannot hold.
    fn refute(&mut self, lost: u64, excess: u64) {
        let marks = self.high_water.iter().chain(&self.most_found);
        let mark = marks.max().copied().unwrap_or(0);
        let [this, last] = self.longest_queue;
        let is_far_below = this.max(last).is_some_and(|longest| longest < mark / REFUTING_PART);
        let refutes = lost > 0 && excess > mark && is_far_below;
        self.refuting_rounds = if refutes { self.refuting_rounds + 1 } else { 0 };
        if self.refuting_rounds >= REFUTING_ROUNDS {
            (self.high_water, self.most_found, self.refuting_rounds) = ([0, 0], [0, 0], 0);
        }
    }
    fn has_held(&self, factor: u64) -> bool {
        let [this, last] = self.longest_queue;
        let high_water = self.high_water[0].max(self.high_water[1]);
        last.is_some_and(|last| last.max(this.unwrap_or(0)).saturating_mul(factor) < high_water)
    }
    fn most_found(&self) -> u64 {
        self.most_found[0].max(self.most_found[1])
    }
    fn had_evident_room(&self) -> bool {
        let [this, last] = self.longest_queue;
        this.max(last).is_some_and(|longest| (longest as f64) < EVIDENT_SHARE * self.most_found() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_MS: u64 = 100;
    /// Bytes per millisecond.
    const RATE: u64 = 10_000;

    struct MeasuredPath {
        buffer: BufferHighWater,
        ms: u64,
        delivered: u64,
        excess: u64,
    }

    impl MeasuredPath {
        fn new() -> Self {
            Self { buffer: BufferHighWater::default(), ms: 0, delivered: 0, excess: 0 }
        }
        /// After a second in which packets waited for 40 ms and none was lost: 400,000 bytes.
        fn with_high_water() -> Self {
            let mut path = Self::new();
            path.round(RATE, Some(40), 1);
            (0..10).for_each(|_| path.round(RATE, Some(40), 0));
            path
        }
        /// A round trip at `rate`, in which packets waited for `waited_ms`; `None` without an RTT sample.
        fn deliver(&mut self, rate: u64, waited_ms: Option<u64>) {
            for _ in 0..RTT_MS {
                self.ms += 1;
                self.delivered += rate;
                if let Some(ms) = waited_ms {
                    let waited = Duration::from_millis(ms);
                    self.buffer.on_delivered(self.now(), waited, self.delivered, true);
                }
            }
        }
        fn now(&self) -> Instant {
            Instant::from_millis(self.ms)
        }
        fn had_room(&self) -> bool {
            self.buffer.had_room(self.now())
        }
        fn had_clear_room(&self) -> bool {
            self.buffer.had_clear_room(self.now())
        }
        fn round(&mut self, rate: u64, waited_ms: Option<u64>, lost: u64) {
            self.deliver(rate, waited_ms);
            self.buffer.on_round(self.now(), lost, lost > 0, self.excess);
        }
    }

    #[test]
    fn a_queue_below_the_high_water_mark_leaves_room() {
        let mut path = MeasuredPath::with_high_water();
        path.round(RATE, Some(25), 1);
        assert!(path.had_room() && !path.had_clear_room());
        (0..2).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(path.had_clear_room());
        path.round(RATE, Some(45), 1);
        path.deliver(RATE, Some(10));
        assert!(!path.had_room(), "a lost packet may have been sent in the round trip before");
    }

    #[test]
    fn the_mark_counts_bytes_and_not_time() {
        let mut path = MeasuredPath::with_high_water();
        (0..2).for_each(|_| path.round(RATE / 4, Some(50), 1));
        assert!(path.had_clear_room(), "a longer wait at a quarter of the rate");
        (0..2).for_each(|_| path.round(RATE * 2, Some(30), 1));
        assert!(!path.had_room(), "a shorter wait and more bytes");
    }

    #[test]
    fn without_rtt_samples_the_queue_is_taken_as_unchanged() {
        let mut path = MeasuredPath::with_high_water();
        (0..2).for_each(|_| path.round(RATE, Some(45), 1));
        (0..5).for_each(|_| path.round(RATE, None, 1));
        assert!(!path.had_room(), "only retransmissions were acknowledged");
        assert!(!BufferHighWater::default().had_room(Instant::ZERO));
    }

    #[test]
    fn a_queue_that_lost_packets_sets_no_mark() {
        let mut path = MeasuredPath::new();
        (0..10).for_each(|_| path.round(RATE, Some(40), 1));
        (0..2).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(!path.had_room());
    }

    #[test]
    fn without_a_round_trip_that_loses_nothing_room_is_evident_from_delivered_packets() {
        let mut path = MeasuredPath::new();
        (0..10).for_each(|_| path.round(RATE, Some(40), 1));
        assert!(!path.buffer.had_evident_room(path.now()), "as full as ever");
        (0..2).for_each(|_| path.round(RATE * 2, Some(20), 1));
        assert!(!path.buffer.had_evident_room(path.now()), "as many bytes in half of the time");
        (0..2).for_each(|_| path.round(RATE, Some(25), 1));
        assert!(path.buffer.had_evident_room(path.now()) && !path.had_room());
    }

    #[test]
    fn a_wait_longer_than_the_remembered_totals_leaves_the_queue_unknown() {
        let mut path = MeasuredPath::with_high_water();
        (0..2).for_each(|_| path.round(RATE / 100, Some(300), 1));
        assert!(!path.had_room());
        let mut path = MeasuredPath::with_high_water();
        path.buffer.on_idle();
        path.deliver(RATE / 100, Some(50));
        assert!(!path.had_room(), "totals from before idle time do not count");
    }

    #[test]
    fn a_path_without_losses_is_not_tracked() {
        let mut path = MeasuredPath::new();
        (0..10).for_each(|_| path.round(RATE, Some(40), 0));
        assert!(path.buffer.tracker.is_none() && !path.had_room());
        let mut path = MeasuredPath::with_high_water();
        (0..200).for_each(|_| path.round(RATE, Some(20), 0));
        assert!(path.buffer.tracker.is_none(), "20 s after the last loss tracking ends");
    }

    #[test]
    fn losses_at_a_low_queue_with_much_in_flight_refute_the_mark() {
        let mut path = MeasuredPath::with_high_water();
        path.excess = 300_000;
        (0..10).for_each(|_| path.round(RATE, Some(5), 1));
        assert!(path.had_clear_room(), "less in flight than the buffer has held");
        path.excess = 500_000;
        (0..2).for_each(|_| path.round(RATE, Some(5), 1));
        path.round(RATE, Some(20), 1);
        (0..2).for_each(|_| path.round(RATE, Some(5), 1));
        assert!(path.had_clear_room(), "never three in a row");
        (0..2).for_each(|_| path.round(RATE, Some(5), 1));
        assert!(!path.had_room() && !path.buffer.had_evident_room(path.now()));
    }

    #[test]
    fn the_mark_does_not_outlive_a_long_silence() {
        let mut path = MeasuredPath::with_high_water();
        (0..2).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(path.had_room());
        path.ms += 60_000;
        assert!(!path.had_room());
        (0..3).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(!path.had_room(), "the next loss does not bring it back");
    }

    #[test]
    fn the_mark_is_forgotten_within_twenty_seconds() {
        let mut path = MeasuredPath::with_high_water();
        (0..80).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(path.had_room());
        (0..120).for_each(|_| path.round(RATE, Some(10), 1));
        assert!(!path.had_room());
    }
}
