//! CoDel (RFC 8289): the control of one queue. While packets stay in the queue for longer than a target over
//! a whole interval, packets become congestion signals, at intervals that shrink with the square root of
//! their number.

use super::state::{Fifo, Queued, State};
use crate::time::{Duration, Instant};

/// Intervals after the end of the dropping state within which its rate is taken up again (RFC 8289 §5.6).
const RESUME_INTERVALS: u64 = 16;

/// State of the control; the names are those of RFC 8289 §5.
#[derive(Clone, Debug)]
pub(super) struct Codel {
    target: Duration,
    interval: Duration,
    /// Time from which on the delay has been above the target for an interval; none while it is below.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Signals since the dropping state was entered.
    count: u64,
    /// `count` at this entry.
    last_count: u64,
    dropping: bool,
}

impl Codel {
    pub fn new(target: Duration, interval: Duration) -> Self {
        let (first_above, drop_next) = (None, Instant::ZERO);
        Self { target, interval, first_above, drop_next, count: 0, last_count: 0, dropping: false }
    }
    /// The packet to send next. Packets before it may be dropped, and it may be marked.
    pub fn pop(&mut self, now: Instant, fifo: &mut Fifo, state: &mut State) -> Option<Queued> {
        let (mut head, mut above) = self.take(now, fifo, state);
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked = state.mark_or_drop(head?);
                if marked.is_some() {
                    self.drop_next = self.control_law(self.drop_next);
                    return marked;
                }
                (head, above) = self.take(now, fifo, state);
                self.dropping = above;
                if above {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if above {
            head = state.mark_or_drop(head?).or_else(|| self.take(now, fifo, state).0);
            self.dropping = true;
            let since = now.since(self.drop_next);
            let signals = self.count - self.last_count;
            let resume = signals > 1 && since < self.interval * RESUME_INTERVALS;
            self.count = if resume { signals } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.control_law(now);
        }
        head
    }
    /// The packet at the head, and whether the delay has been above the target for an interval.
    fn take(&mut self, now: Instant, fifo: &mut Fifo, state: &mut State) -> (Option<Queued>, bool) {
        let Some(queued) = state.take(fifo) else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(queued.arrived) < self.target || fifo.bytes <= state.longest {
            self.first_above = None;
            return (Some(queued), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        (Some(queued), now >= first_above)
    }
    /// Time of the signal after the one at `at` (RFC 8289 §5.5).
    fn control_law(&self, at: Instant) -> Instant {
        // IEEE 754 defines the square root exactly, so that every machine has the same.
        at + Duration::from_nanos((self.interval.as_nanos() as f64 / (self.count as f64).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ManagedQueue;
    use super::super::tests::{ECT_0, config, ms, packet};
    use super::*;

    /// Times in ms of the signals of a queue that is served with a packet per ms and gets one or two per ms,
    /// so that its delay grows.
    fn signals(ecn: u8, until_ms: u64) -> (Vec<u64>, ManagedQueue) {
        let (mut queue, mut at) = (ManagedQueue::new(&config(None), 1), Vec::new());
        for now in 0..until_ms {
            (0..1 + now % 2).for_each(|_| queue.push(ms(now), packet(1, ecn), 0));
            let before = queue.counters().marks + queue.counters().drops;
            queue.pop(ms(now));
            let new = queue.counters().marks + queue.counters().drops - before;
            at.extend((0..new).map(|_| now));
        }
        (at, queue)
    }

    #[test]
    fn signals_follow_the_control_law_in_drops_and_in_marks() {
        for ecn in [0, ECT_0] {
            let (at, queue) = signals(ecn, 700);
            // Of two packets per ms half the time, the delay is first above 5 ms at about 15 ms; the first
            // signal is an interval later.
            let first = at[0];
            assert!((105..125).contains(&first), "{first}");
            // Then at 100 ms / sqrt(n) after the one before, for n = 1, 2, 3, ... (RFC 8289 §5.5).
            let mut next = first as f64;
            for (n, signal) in (1..).zip(&at[1..]) {
                next += 100.0 / f64::from(n).sqrt();
                assert!((*signal as f64 - next).abs() <= 1.0, "{n}: {signal} ms, expected {next}");
            }
            assert!(at.len() > 10, "{at:?}");
            let counters = queue.counters();
            let expected = if ecn == 0 { (0, at.len() as u64) } else { (at.len() as u64, 0) };
            assert_eq!((counters.marks, counters.drops), expected);
        }
    }

    #[test]
    fn a_burst_that_drains_within_an_interval_and_a_short_queue_get_no_signal() {
        let mut queue = ManagedQueue::new(&config(None), 1);
        (0..90).for_each(|_| queue.push(ms(0), packet(1, 0), 0));
        (1..=90).for_each(|now| assert!(queue.pop(ms(now)).is_some()));
        // Two packets, each of which waits for a second: no more than the longest one stays behind.
        for now in (100..60_000).step_by(1000) {
            (0..2).for_each(|_| queue.push(ms(now), packet(1, 0), 0));
            assert!(queue.pop(ms(now + 990)).is_some() && queue.pop(ms(now + 995)).is_some());
        }
        assert_eq!((queue.counters().drops, queue.counters().marks), (0, 0));
    }

    #[test]
    fn a_second_dropping_state_soon_after_the_first_takes_up_its_rate() {
        let mut state = State { longest: crate::Bytes(1000), ..State::default() };
        let (mut codel, mut fifo) =
            (Codel::new(Duration::from_millis(5), Duration::from_millis(100)), Fifo::default());
        // A standing delay of 20 ms until 10 ms before `until`, then none; three packets always stay behind.
        let push = |fifo: &mut Fifo, state: &mut State, arrived: Instant, packets: u64| {
            (0..packets).for_each(|_| fifo.push(Queued { packet: packet(1, ECT_0), owner: 0, arrived }));
            state.packets += packets;
            state.bytes += crate::Bytes(1000 * packets);
        };
        push(&mut fifo, &mut state, ms(80), 3);
        let mut standing = |codel: &mut Codel, from: u64, until: u64| {
            for now in from..until {
                let arrived = ms(if now + 10 < until { now - 20 } else { now });
                push(&mut fifo, &mut state, arrived, 10);
                (0..10).for_each(|_| drop(codel.pop(ms(now), &mut fifo, &mut state)));
            }
        };
        standing(&mut codel, 100, 700);
        let count = codel.count;
        assert!(!codel.dropping && count > 8, "{codel:?}");
        standing(&mut codel, 700, 815);
        assert_eq!(codel.last_count, count - 1, "the signals since the state was entered with one");
        // After 16 intervals the rate begins anew.
        standing(&mut codel, 3000, 3115);
        assert_eq!(codel.last_count, 1);
    }
}
