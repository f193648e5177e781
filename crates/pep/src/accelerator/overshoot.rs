//! Sending past the client's advertised window.
//!
//! The window that we have seen is old by the way of the ACK: a client that reads at once has opened it
//! further. That is a bet on ACKs under way, never on free memory, since Linux from 6.17 on drops whatever ends beyond the
//! edge that it last sent. So the overshoot grows by a window each round trip up to what the path holds, only while the
//! window stays near its largest and no hole is open; the first sign of a drop ends it, what was sent
//! beyond the edge is sent again, and the next try waits, twice as long each time.

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
