//! Sending past the client's advertised window.
//!
//! The window that we have seen is old by the way of the ACK: a client that reads at once has opened it further.
//! That is a bet on ACKs under way, never on free memory, since Linux from 6.17 on drops whatever ends beyond the
//! edge that it last sent. So the overshoot grows by what is acknowledged, a window each round trip, up to what the
//! path holds, and only while the window stays near its largest and no hole is open; the first sign of a drop ends it, what was sent beyond
//! the edge is sent again, and the next try waits, twice as long each time until it has gone well for thirty times as long: what
//! looked like a drop may have been a fade.

use paceline_net::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How much slower the overshoot grows after a drop.
const CAUTION: u64 = 8;
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// So many pauses without a drop, and the last one is forgotten.
const FORGOTTEN: u64 = 30;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Overshoot {
    /// Bytes beyond the advertised edge that may be sent.
    extra: u64,
    paused_until: Instant,
    pause: Duration,
    /// Largest window seen.
    max_window: u64,
}

impl Overshoot {
    /// A connection begins: its first flight may pass the window by half of it: a reader has read nothing late yet.
    pub fn new(window: u64) -> Self {
        Self { extra: window / 2, max_window: window, ..Self::default() }
    }
    /// A drop was seen not long ago.
    pub fn is_paused(&self, now: Instant) -> bool {
        now < self.paused_until
    }
    /// Bytes beyond the advertised edge that may be sent now.
    pub fn extra(&self, now: Instant, window: u64) -> u64 {
        let open = window > 0 && 4 * window >= 3 * self.max_window;
        if open && now >= self.paused_until { self.extra } else { 0 }
    }
    /// An acknowledgment advanced by so many bytes. `useful` is what the path holds.
    pub fn on_progress(&mut self, now: Instant, window: u64, acked: u64, useful: u64) {
        // The largest window fades, so that a receiver that shrank its buffer is not distrusted for good.
        self.max_window = window.max(self.max_window - self.max_window / 256);
        if now >= self.paused_until + self.pause * FORGOTTEN {
            self.pause = Duration::ZERO;
        }
        if now >= self.paused_until {
            // Once bitten, so slowly that the next drop costs little.
            let grown = if self.pause.is_zero() { acked } else { acked / CAUTION };
            self.extra = (self.extra + grown).min(useful.saturating_sub(window));
        }
    }
    /// The client dropped what was sent beyond its edge.
    pub fn on_drop(&mut self, now: Instant) {
        self.extra = 0;
        self.pause = (self.pause * 2).max(FIRST_PAUSE).min(MAX_PAUSE);
        self.paused_until = now + self.pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_a_window_each_round_trip_and_stops_at_what_is_useful() {
        let mut overshoot = Overshoot::default();
        let at = Instant::from_millis(1000);
        let mut seen = Vec::new();
        for _ in 0..4 {
            (0..10).for_each(|_| overshoot.on_progress(at, 17_000, 1_700, 60_000));
            seen.push(overshoot.extra(at, 17_000));
        }
        assert_eq!(seen, [17_000, 34_000, 43_000, 43_000]);
        assert_eq!(overshoot.extra(at, 12_000), 0, "the window shrinks");
        overshoot.on_drop(at);
        assert_eq!(overshoot.extra(at, 17_000), 0);
        overshoot.on_progress(at + Duration::from_millis(900), 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(at + Duration::from_millis(900), 17_000), 0, "it waits");
        let later = at + Duration::from_millis(1100);
        overshoot.on_progress(later, 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(later, 17_000), 1_700 / CAUTION);
        let forgotten = later + FIRST_PAUSE * FORGOTTEN;
        overshoot.on_progress(forgotten, 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(forgotten, 17_000), 1_700 / CAUTION + 1_700);
    }
}
