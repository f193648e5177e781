//! State and quantities of a rate control, for its observers.

use paceline_net::{Duration, Rate};

/// Why a rate control sends at its present rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlState {
    /// The published control: the operator's numbers decide.
    Published,
    /// The capacity is not known yet: the window doubles in a round trip.
    Startup,
    /// No queue is seen: the window grows, to find whether the capacity has risen.
    Growing,
    /// The target delay is kept.
    Steady,
    /// The window is reduced, to measure the minimum RTT.
    MinRtt,
    /// A buffer has overflowed: the bytes in flight are bounded.
    ShortBuffer,
    /// Losses may be those of a shared queue: a smaller window tells.
    Trial,
    /// Other devices fill the queue too: CUBIC.
    SharedQueue,
    /// A queue marks packets (CE): CUBIC.
    Marked,
}

impl ControlState {
    /// Its name; part of the interface, never changed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Startup => "startup",
            Self::Growing => "growing",
            Self::Steady => "steady",
            Self::MinRtt => "min-rtt",
            Self::ShortBuffer => "short-buffer",
            Self::Trial => "trial",
            Self::SharedQueue => "shared-queue",
            Self::Marked => "marked",
        }
    }
}

/// The quantities of a rate control at a moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControlSnapshot {
    /// Its state.
    pub state: ControlState,
    /// Pacing rate.
    pub rate: Rate,
    /// Bytes that may be in flight; `u64::MAX` of the published control, which has no window.
    pub window: u64,
    /// Estimated capacity of the path; zero before the first sample.
    pub capacity: Rate,
    /// Round-trip time without a queue.
    pub min_rtt: Duration,
    /// Queueing delay to keep.
    pub target_delay: Duration,
}
