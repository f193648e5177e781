//! How much of the congestion window a sender uses (RFC 7661, RFC 2861, as Linux does them).

use paceline_net::{Duration, Instant};

/// The use of the window in the current round trip, and since the window was last full. Sizes in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::sender) struct WindowUsage {
    limited: bool,
    most_outstanding: u64,
    /// End of the round trip that the two fields above describe, as an offset.
    round_end: u64,
    /// Most bytes outstanding since the window was last full, and when it was.
    used: u64,
    filled_at: Instant,
    /// A segment was sent since the usage was last recorded.
    sent_since: bool,
}

impl WindowUsage {
    /// Whether the window was full in the current round trip.
    pub fn is_limited(&self) -> bool {
        self.limited
    }
    /// Most bytes outstanding in the current round trip.
    pub fn most_outstanding(&self) -> u64 {
        self.most_outstanding
    }
    /// Most bytes outstanding since the window was last full.
    pub fn used(&self) -> u64 {
        self.used
    }
    pub fn time_since_full(&self, now: Instant) -> Duration {
        now.since(self.filled_at)
    }
    /// Whether a segment was sent since the usage was last recorded.
    pub fn sent_since_record(&self) -> bool {
        self.sent_since
    }
    pub fn on_sent(&mut self) {
        self.sent_since = true;
    }
    /// Records `outstanding` bytes; `limited` if they fill the window.
    pub fn record(&mut self, limited: bool, outstanding: u64, snd_una: u64, snd_nxt: u64) {
        self.sent_since = false;
        let more = !self.limited && outstanding > self.most_outstanding;
        if snd_una >= self.round_end || limited || more {
            (self.limited, self.most_outstanding, self.round_end) = (limited, outstanding, snd_nxt);
        }
    }
    /// The window is not full with `outstanding` bytes.
    pub fn record_not_full(&mut self, outstanding: u64) {
        self.used = self.used.max(outstanding);
    }
    /// The window is full, or has been reduced to its use.
    pub fn restart(&mut self, now: Instant) {
        (self.used, self.filled_at) = (0, now);
    }
}
