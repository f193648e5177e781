//! The flight after a repair that opens the client's window at once.
//!
//! A lost segment shuts a window that is about as large as the path, and the path runs empty. Its repair
//! opens the whole window. At several times the bandwidth that flight overflows a queue that is shorter than
//! the window, a segment of it is lost, and its repair does the same: a link of 1 Gb/s with 80 ms and a queue
//! of 1 MB was used to 20%, and 46% of the segments were sent again. The flight therefore leaves at several
//! times the bandwidth only until it has built the queue that delivered packets have lately found, and then
//! at the bandwidth.

use paceline_net::{Duration, Instant};

/// The pause before such a repair follows the loss by this many minimum round trips at most. Chosen: a loss
/// is found a round trip after it, its repair takes another, and both have the queue ahead of them.
const MAX_ROUNDS: u64 = 4;
/// A window that opens by less than the bandwidth delivers in this time is no refill. Chosen: half of the
/// shortest interval of a rate sample; bursts of less are common.
const MIN_REFILL: Duration = Duration::from_millis(20);

/// An acknowledgment that may begin a refill. All in bytes, but for the bandwidth.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Opening {
    /// By which the client's window moved forward.
    pub opened: u64,
    pub in_flight: u64,
    /// In flight at other times: what the path holds without a queue, or the client's window.
    pub usual: u64,
    /// In bit/s.
    pub bandwidth: f64,
    /// Of the queue that the flight may build at once; 0 where none has been seen.
    pub queue: u64,
}

/// Whether such a flight is under way.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Refill {
    last_loss_at: Instant,
    /// When the queue is built, and the end of the flight's round trip.
    from: Instant,
    until: Instant,
    active: bool,
}

impl Refill {
    /// Packets were found lost.
    pub fn on_loss(&mut self, now: Instant) {
        self.last_loss_at = now;
    }
    /// An acknowledgment; `rate` is the pacing rate in bit/s until the queue is built.
    pub fn on_ack(&mut self, now: Instant, ack: &Opening, min_rtt: Duration, rate: f64) {
        let after_loss = now.since(self.last_loss_at) < min_rtt * MAX_ROUNDS;
        let shortest = ack.bandwidth / 8.0 * MIN_REFILL.as_secs_f64();
        let half = ack.usual / 2;
        if after_loss && ack.opened > half.max(shortest as u64) && ack.in_flight < half {
            // The bytes sent above the bandwidth are queued.
            let seconds = ack.queue as f64 * 8.0 / (rate - ack.bandwidth).max(1.0);
            self.from = now + Duration::from_secs_f64(seconds.min(min_rtt.as_secs_f64()));
            self.until = now + min_rtt;
        }
        self.on_time(now);
    }
    /// Time has passed.
    pub fn on_time(&mut self, now: Instant) {
        self.active = self.from <= now && now < self.until;
    }
    /// Whether packets leave at the bandwidth.
    pub fn is_at_bandwidth(&self) -> bool {
        self.active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(80);
    /// 1 Gb/s and 80 ms.
    const OPENING: Opening =
        Opening { opened: 6_000_000, in_flight: 0, usual: 10_000_000, bandwidth: 1e9, queue: 500_000 };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn refill(ack: Opening, loss_ms: u64) -> Refill {
        let mut refill = Refill::default();
        refill.on_loss(at(loss_ms));
        refill.on_ack(at(1_000), &ack, RTT, 3e9);
        refill
    }

    #[test]
    fn the_flight_leaves_at_the_bandwidth_once_it_has_built_the_queue() {
        let mut refill = refill(OPENING, 850);
        // 500,000 bytes grow at 2 Gb/s in 2 ms.
        let active = [1_001, 1_003, 1_079, 1_081].map(|ms| {
            refill.on_time(at(ms));
            refill.is_at_bandwidth()
        });
        assert_eq!(active, [false, true, true, false]);
    }

    #[test]
    fn it_is_a_refill_only_after_a_loss_with_an_empty_path_and_for_much_of_the_path() {
        let starts = |ack, loss_ms| {
            let mut refill = refill(ack, loss_ms);
            refill.on_time(at(1_010));
            refill.is_at_bandwidth()
        };
        assert!(starts(OPENING, 850));
        assert!(!starts(OPENING, 600), "long after the loss");
        assert!(!starts(Opening { in_flight: 6_000_000, ..OPENING }, 850), "the path is not empty");
        assert!(!starts(Opening { opened: 4_000_000, ..OPENING }, 850), "the window opens by little");
    }
}
