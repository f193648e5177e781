//! A histogram of the lateness of timers, which shows how closely an emulation follows real time.

use hdrhistogram::Histogram;
use paceline_net::Duration;
use std::fmt;

/// A histogram of lateness.
#[derive(Clone, Debug)]
pub struct Lateness {
    histogram: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { histogram: Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are valid") }
    }
}

/// Upper bounds, in microseconds, of the classes that are printed. Chosen: from the timer slack of Linux to
/// many TTIs.
const CLASSES_US: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 10_000];

impl Lateness {
    /// Records a timer that ran this late.
    pub fn record(&mut self, late: Duration) {
        self.histogram.saturating_record(late.as_nanos());
    }
    /// Number of recorded timers.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
    /// The quantile `share` (0 to 1) of the lateness.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(share))
    }
    /// The largest lateness.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |d: Duration| d.as_nanos() as f64 / 1000.0;
        writeln!(
            f,
            "real time missed: {} timers, late by {:.0} us (median), {:.0} us (99%), {:.0} us (99.9%), {:.0} us at most",
            self.count(),
            us(self.quantile(0.5)),
            us(self.quantile(0.99)),
            us(self.quantile(0.999)),
            us(self.max())
        )?;
        let total = self.count().max(1) as f64;
        let mut below = 0;
        for bound in CLASSES_US {
            let upto = self.histogram.count_between(0, bound * 1000);
            writeln!(f, "  up to {bound:>6} us  {:>7.3}%", 100.0 * (upto - below) as f64 / total)?;
            below = upto;
        }
        write!(f, "  more             {:>7.3}%", 100.0 * (self.count() - below) as f64 / total)
    }
}
