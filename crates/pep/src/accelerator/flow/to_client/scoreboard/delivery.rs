//! The effect of one ACK of a client on the sender's state, for the rate control and the detection of fading.

use paceline_net::{Duration, Instant};

/// Segments that an ACK delivers, and segments that it shows to be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::accelerator) struct Delivery {
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// The highest offset that had been delivered before: one ACK may report several segments in any order.
    pub highest_before: u64,
    /// Round-trip time of the newest segment delivered, if it was sent once.
    pub rtt: Option<Duration>,
    /// When that segment was sent.
    pub sent_at: Option<Instant>,
    /// Bytes found lost since the last ACK that were inside the client's window when they were sent.
    pub lost: u64,
    /// Bytes found lost since the last ACK that were past the window, so that the client may have dropped
    /// them.
    pub lost_beyond_window: u64,
    /// A segment that was sent once, and past the window, is among those delivered.
    pub past_window: bool,
    /// Bytes of `lost` in runs as long as those of a radio outage.
    pub lost_in_runs: u64,
    /// Bytes missing between the highest offset delivered before and the newest segment, if that was sent
    /// once.
    pub skipped: Option<u64>,
    /// Bytes of spurious retransmissions.
    pub spurious: u64,
    /// Bytes by which the right edge of the client's window moved forward.
    pub opened: u64,
    /// Length of the longest segment delivered, in bytes.
    pub longest: u32,
    /// The client reports a CE mark, for the first time in its flight (RFC 3168).
    pub marked: bool,
    /// The path drops longer segments without a message (RFC 4821).
    pub black_hole: bool,
    /// The ACK covers a segment that was retransmitted on suspicion: it may answer either copy.
    pub ambiguous: bool,
}
