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

/// A timer that is later than this has missed real time, nanoseconds. Chosen: a TTI of LTE, 1 ms (TS 36.211
/// 4).
const MISSED_NS: u64 = 1_000_000;

impl Lateness {
    /// Records a timer that ran this late.
    pub fn record(&mut self, late: Duration) {
        self.histogram.saturating_record(late.as_nanos());
    }
    /// Number of recorded timers.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
    /// Number of timers that ran more than 1 ms late.
    pub fn missed(&self) -> u64 {
        self.count() - self.histogram.count_between(0, MISSED_NS)
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
            "real time missed: {} of {} timers by more than 1 ms ({:.3}%); late by {:.0} us (median), {:.0} us (99%), {:.0} us (99.9%), {:.0} us at most",
            self.missed(),
            self.count(),
            100.0 * self.missed() as f64 / self.count().max(1) as f64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_later_than_a_tti_have_missed_real_time() {
        let mut lateness = Lateness::default();
        [0, 20, 900, 1_200, 5_000].into_iter().for_each(|us| lateness.record(Duration::from_micros(us)));
        assert_eq!((lateness.count(), lateness.missed()), (5, 2));
        let text = lateness.to_string();
        assert!(
            text.starts_with("real time missed: 2 of 5 timers by more than 1 ms (40.000%); late by "),
            "{text}"
        );
        assert!(text.contains("up to   1000 us   20.000%"), "{text}");
    }
}
