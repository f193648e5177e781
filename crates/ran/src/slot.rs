//! Radio time. LTE counts transmission time intervals (TTIs) of one subframe, 1 ms (TS 36.211 §4). A TTI is a
//! number; times in nanoseconds are computed from it and never accumulated, so that they stay exact.

use paceline_net::Instant;
use std::ops::{Add, Sub};

/// Length of a TTI in nanoseconds: one subframe (TS 36.211 §4.1).
const TTI_NS: u64 = 1_000_000;

/// The number of a transmission time interval since the start of the run: `10 * SFN + subframe` without
/// wrap-around.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tti(pub u64);

impl Tti {
    /// The time at which the interval begins.
    pub const fn starts_at(self) -> Instant {
        Instant::from_nanos(self.0 * TTI_NS)
    }
    /// The first interval that begins at or after `instant`.
    pub const fn at_or_after(instant: Instant) -> Self {
        Self(instant.as_nanos().div_ceil(TTI_NS))
    }
    /// Number of intervals since `earlier`; zero if `earlier` is later.
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
