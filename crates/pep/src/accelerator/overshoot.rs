//! Sending past the client's advertised window.
//!
//! The window that we have seen is old by the way of the ACK: a client that reads at once has opened it further.
//! That is a bet on ACKs under way, never on free memory, since Linux from 6.17 on drops whatever ends beyond the
//! edge that it last sent. So the overshoot grows by a window each round trip up to what the path holds, only while
//! the window stays near its largest and no hole is open; the first sign of a drop ends it, what was sent beyond
//! the edge is sent again, and the next try waits, twice as long each time.

use paceline_net::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overshoot {
    /// Bytes beyond the advertised edge that may be sent.
    extra: u64,
    /// Grown last at.
    grown_at: Instant,
    paused_until: Instant,
    pause: Duration,
    /// Largest window seen.
    max_window: u64,
}

impl Overshoot {
    /// Bytes beyond the advertised edge that may be sent now.
    pub fn extra(&self, now: Instant, window: u64, hole: bool) -> u64 {
        let open = window > 0 && 4 * window >= 3 * self.max_window;
        if open && !hole && now >= self.paused_until { self.extra } else { 0 }
    }
    /// An acknowledgment advanced. `useful` is what the path holds.
    pub fn on_progress(&mut self, now: Instant, window: u64, srtt: Duration, useful: u64) {
        // The largest window fades, so that a receiver that shrank its buffer is not distrusted for good.
        self.max_window = window.max(self.max_window - self.max_window / 256);
        if now >= self.paused_until && now.since(self.grown_at) >= srtt {
            self.grown_at = now;
            self.extra = (self.extra + window).min(useful.saturating_sub(window).max(self.extra / 2));
        }
    }
    /// The client dropped what was sent beyond its edge.
    pub fn on_drop(&mut self, now: Instant) {
        self.extra = 0;
        self.pause = (self.pause * 2).max(FIRST_PAUSE).min(MAX_PAUSE);
        self.paused_until = now + self.pause;
        self.grown_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_a_window_each_round_trip_and_stops_at_what_is_useful() {
        let (mut overshoot, rtt) = (Overshoot::default(), Duration::from_millis(60));
        let mut at = Instant::from_millis(1000);
        let mut seen = Vec::new();
        for _ in 0..4 {
            overshoot.on_progress(at, 17_000, rtt, 60_000);
            overshoot.on_progress(at + rtt / 2, 17_000, rtt, 60_000);
            seen.push(overshoot.extra(at, 17_000, false));
            at += rtt;
        }
        assert_eq!(seen, [17_000, 34_000, 43_000, 43_000]);
        assert_eq!(overshoot.extra(at, 17_000, true), 0, "a hole is repaired first");
        assert_eq!(overshoot.extra(at, 12_000, false), 0, "the window shrinks");
        overshoot.on_drop(at);
        assert_eq!(overshoot.extra(at, 17_000, false), 0);
        overshoot.on_progress(at + Duration::from_millis(900), 17_000, rtt, 60_000);
        assert_eq!(overshoot.extra(at + Duration::from_millis(900), 17_000, false), 0, "it waits");
        let later = at + Duration::from_millis(1100);
        overshoot.on_progress(later, 17_000, rtt, 60_000);
        assert_eq!(overshoot.extra(later, 17_000, false), 17_000);
    }
}
