//! Radio time: LTE counts transmission time intervals of one subframe, 1 ms (TS 36.211 §4). Nanoseconds are
//! derived from the count, never accumulated.

use paceline_net::Instant;
use std::ops::{Add, Sub};

/// Length of a transmission time interval.
const TTI_NS: u64 = 1_000_000;

/// The number of a transmission time interval since the start of the run: `10 * SFN + subframe`, unwrapped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tti(pub u64);

impl Tti {
    /// When the interval begins.
    pub const fn starts_at(self) -> Instant {
        Instant::from_nanos(self.0 * TTI_NS)
    }
    /// The first interval that begins at or after `instant`.
    pub const fn at_or_after(instant: Instant) -> Self {
        Self(instant.as_nanos().div_ceil(TTI_NS))
    }
    /// Intervals since `earlier`, zero if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Tti {
    type Output = Self;
    fn add(self, intervals: u64) -> Self {
        Self(self.0 + intervals)
    }
}
impl Sub<u64> for Tti {
    type Output = Self;
    fn sub(self, intervals: u64) -> Self {
        Self(self.0.saturating_sub(intervals))
    }
}
