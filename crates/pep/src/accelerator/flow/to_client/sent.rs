//! One segment on its way to the client, and what is said of such segments.

use paceline_net::{Duration, Instant};

pub(in crate::accelerator) const SACKED: u8 = 1;
pub(in crate::accelerator) const LOST: u8 = 2;
pub(in crate::accelerator) const RESENT: u8 = 4;
/// Sent past the right edge that the client had advertised.
pub(in crate::accelerator) const BEYOND: u8 = 8;
/// The FIN: a byte of the sequence space without payload.
pub(in crate::accelerator) const FIN: u8 = 16;
/// Sent again on suspicion: its acknowledgment may be that of the first transmission, come late.
pub(in crate::accelerator) const DOUBTED: u8 = 32;
/// Repeated on suspicion, having been repeated before.
pub(in crate::accelerator) const AGAIN: u8 = 64;

/// One segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Sent {
    pub off: u64,
    pub at: Instant,
    pub len: u32,
    /// Between the last two times that it was sent; a minute at most.
    pub gap_ms: u16,
    pub state: u8,
}

impl Sent {
    pub fn send_again(&mut self, now: Instant) {
        self.gap_ms = u16::try_from(now.since(self.at).as_millis()).unwrap_or(u16::MAX);
        self.at = now;
    }
    pub fn gap(&self) -> Duration {
        Duration::from_millis(u64::from(self.gap_ms))
    }
    pub fn end(&self) -> u64 {
        self.off + u64::from(self.len)
    }
    pub fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }
    pub fn in_flight(&self) -> bool {
        !self.is(SACKED | LOST)
    }
}

/// What an acknowledgment said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Delivery {
    /// Bytes that were not known to be delivered before.
    pub bytes: u64,
    /// The highest end that had been delivered: an acknowledgment may tell of several segments in any order.
    pub highest_before: u64,
    /// Round-trip time of the newest segment of those, if it was sent only once.
    pub rtt: Option<Duration>,
    /// When that segment was sent.
    pub sent_at: Option<Instant>,
    /// Bytes found lost since the last acknowledgment: within the client's edge as it was when they were sent,
    pub lost: u64,
    /// and past it, which the client may have dropped.
    pub lost_beyond: u64,
    /// Of the first, those in runs as long as a silence of the radio makes them.
    pub lost_in_runs: u64,
    /// Bytes missing between all that had been delivered before and the newest segment, if that was sent once.
    pub skipped: Option<u64>,
    /// Bytes that were sent again and had not been lost.
    pub in_vain: u64,
    /// Length of the longest of those segments.
    pub longest: u32,
    /// It showed that longer segments are swallowed.
    pub black_hole: bool,
    /// A segment was acknowledged that had been sent again on suspicion.
    pub doubtful: bool,
}

/// How long answers take: an acknowledgment of what was sent several times does not say which copy it answers.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Answers {
    /// The shortest round trip that was ever seen.
    pub least: Duration,
    /// One to a repetition takes hardly less than this where radios fade and much is repeated on suspicion,
    pub shortest: Duration,
    /// and no longer than this elsewhere.
    pub longest: Duration,
    /// Where radios fade, the copy before is answered within this time, or it was lost. As long as it may be the one that is
    /// answered, the round trip of the last would look short; by that more would be repeated, and so on.
    pub usual: Duration,
}

/// When a segment counts as lost though nothing sent after it has arrived: where radios fade and lose, waiting for an
/// answer costs the round trips in which the window is full.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Patience {
    /// Time since its sending.
    pub age: Duration,
    /// And not before.
    pub from: Instant,
}

/// A segment to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct Repeat {
    pub off: u64,
    pub len: u32,
    pub fin: bool,
}
