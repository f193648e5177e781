//! A median with the interval that 95% of the draws are in.

use paceline_fit::estimate::quantile;
use serde::Serialize;

/// A median with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Median of the draws.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Of the draws; none without one.
    pub fn of(values: &[f64]) -> Option<Self> {
        let at = |share| quantile(values, share);
        Some(Self { median: at(0.5)?, low: at(0.025)?, high: at(0.975)? })
    }
    /// With all three changed.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { median: change(self.median), low: change(self.low), high: change(self.high) }
    }
    /// Of ratios, widened by a factor of doubt above 1 to both sides.
    pub fn widened(self, doubt: f64) -> Self {
        Self { low: self.low / doubt, high: self.high * doubt, ..self }
    }
    /// Half its width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}
