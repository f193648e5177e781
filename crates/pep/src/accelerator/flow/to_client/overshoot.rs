//! Overshoot: sending past the client's advertised window ("opportunistic transmission", Liu and Lee 2011).
//!
//! The window seen here is older than the ACK's delay: a client that reads at once has advertised more since.
//! The overshoot relies on ACKs in flight, not on free memory: Linux from 6.17 on drops every segment that
//! ends past the edge that it last advertised. The overshoot grows by the acknowledged bytes, one window each
//! round trip, up to the useful window, while the window is near its largest. At a sign of a drop it ends;
//! everything sent past the edge is sent again, and the next attempt comes after a pause. The pause doubles
//! with each drop and is reset after a long time without one, since a radio outage may look like a drop.

use paceline_net::{Duration, Instant};

/// Pause after the first drop. Chosen: several round trips.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause. Chosen: a client that always drops costs one flight in five minutes.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// Divisor of the growth after a drop. Chosen: the next drop costs an eighth.
const CAUTION_DIVISOR: u64 = 8;
/// Multiple of the last pause without a drop after which the pause is reset. Chosen: real drops recur sooner.
const RESET_PAUSES: u64 = 30;
/// Divisor of the decay of the largest window at each ACK that advances. Chosen: a client that has halved its
/// buffer is sent past its window again after about a hundred ACKs.
const MAX_WINDOW_DECAY: u64 = 256;

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
    /// The first flight may exceed the window by half: a new client has no unread data.
    pub fn new(window: u64) -> Self {
        Self { extra: window / 2, max_window: window, ..Self::default() }
    }
    /// Whether a drop was seen recently.
    pub fn is_paused(&self, now: Instant) -> bool {
        now < self.paused_until
    }
    /// Bytes beyond the advertised edge that may be sent now.
    pub fn extra(&self, now: Instant, window: u64) -> u64 {
        let open = window > 0 && 4 * window >= 3 * self.max_window;
        if open && now >= self.paused_until { self.extra } else { 0 }
    }
    /// An ACK advanced by `acked` bytes and advertises `window` bytes. `useful` is the useful window.
    pub fn on_progress(&mut self, now: Instant, window: u64, acked: u64, useful: u64) {
        self.max_window = window.max(self.max_window - self.max_window / MAX_WINDOW_DECAY);
        if now >= self.paused_until + self.pause * RESET_PAUSES {
            self.pause = Duration::ZERO;
        }
        if now >= self.paused_until {
            let grown = if self.pause.is_zero() { acked } else { acked / CAUTION_DIVISOR };
            self.extra = (self.extra + grown).min(useful.saturating_sub(window));
        }
    }
    /// The client dropped segments past its window.
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
    fn overshoot_grows_by_a_window_each_round_trip_up_to_the_useful_window() {
        let mut overshoot = Overshoot::default();
        let at = Instant::from_millis(1000);
        let mut seen = Vec::new();
        for _ in 0..4 {
            (0..10).for_each(|_| overshoot.on_progress(at, 17_000, 1_700, 60_000));
            seen.push(overshoot.extra(at, 17_000));
        }
        assert_eq!(seen, [17_000, 34_000, 43_000, 43_000]);
        assert_eq!(overshoot.extra(at, 12_000), 0, "the window has shrunk");
        overshoot.on_drop(at);
        assert_eq!(overshoot.extra(at, 17_000), 0);
        overshoot.on_progress(at + Duration::from_millis(900), 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(at + Duration::from_millis(900), 17_000), 0, "paused");
        let later = at + Duration::from_millis(1100);
        overshoot.on_progress(later, 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(later, 17_000), 1_700 / CAUTION_DIVISOR);
        let reset = later + FIRST_PAUSE * RESET_PAUSES;
        overshoot.on_progress(reset, 17_000, 1_700, 60_000);
        assert_eq!(overshoot.extra(reset, 17_000), 1_700 / CAUTION_DIVISOR + 1_700);
    }
}
