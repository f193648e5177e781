//! The unit of numbers that state none: the one whose length and rates are the most usual among those that a
//! link can have.

use super::units::{RateUnit, TimeUnit};
use paceline_net::trace::OPPORTUNITY_BYTES;
use std::ops::RangeInclusive;

/// Highest rate of a link, b/s. Chosen: 10 Gb/s, the fastest published radio links, and a tenth for rounding.
const MOST_BPS: f64 = 1.1e10;
/// Longest trace, s. Must match the longest one of `Trace`, a day.
pub const LONGEST_S: f64 = 86_400.0;
/// Usual lengths, s, and mean rates, b/s, of published traces. Chosen: from runs of some seconds to ten
/// minutes, from bad 3G links to mmWave.
const LENGTHS_S: RangeInclusive<f64> = 5.0..=600.0;
const MEANS_BPS: RangeInclusive<f64> = 3e5..=2e9;
/// Usual medians of recorded rates, b/s. Chosen: from 3G to mmWave.
const MEDIANS_BPS: RangeInclusive<f64> = 5e5..=1e9;
/// Opportunities over which the highest rate counts. Chosen: longer than the bursts that a receiver reports
/// at one time, shorter than the time for which a cell is fast.
const WINDOW: usize = 1000;

/// Scores of units are decades by which length or rate is outside of the usual. The following parts are
/// chosen such that a file of milliseconds, mahimahi's unit, is taken for one unless another unit is a good
/// part of a decade more usual.
const SHORT_WEIGHT: f64 = 0.3;
/// Part of the score, decades. Traces above an hour are rare.
const HOUR_SCORE: f64 = 0.6;
/// Part of the score, decades. Whole numbers in a unit other than ms.
const FINE_SCORE: f64 = 0.8;
/// Part of the score, decades. Whole seconds are too coarse for opportunities.
const WHOLE_SECONDS_SCORE: f64 = 1.0;
/// Part of the score, decades. Fractions of microseconds are rare.
const FRACTION_SCORE: f64 = 1.8;
/// Part of the score, decades. Steps of one are missing: the clock is finer than the unit.
const COARSE_SCORE: f64 = 0.5;
/// Part of the score, decades. Steps of one and equal times are frequent: in us they are bursts above
/// 10 Gb/s.
const TICKS_SCORE: f64 = 1.0;
/// Difference of scores below which another unit is named too. Chosen: a factor of three.
const CLOSE: f64 = 0.5;

/// The unit of times of opportunities, which do not decrease, and the reason for it.
pub fn time_unit(values: &[f64]) -> (TimeUnit, String) {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let shape = Shape::of(values);
    let mut scores: Vec<(f64, TimeUnit)> = [Millisecond, Second, Microsecond, Nanosecond]
        .into_iter()
        .filter_map(|unit| Some((shape.score(unit)?, unit)))
        .collect();
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let figures = |unit: TimeUnit| {
        let (length, rate) = shape.figures(unit);
        format!("{} s at {:.3} Mb/s", rounded(length), rate / 1e6)
    };
    match scores[..] {
        [] => (Millisecond, "as in mahimahi's format; no unit gives a possible length and rate".into()),
        [(best, unit), (next, other), ..] if next - best < CLOSE => {
            (unit, format!("by length and rate: {}; perhaps in {other}: {}", figures(unit), figures(other)))
        }
        [(_, unit), ..] => (unit, format!("by length and rate: {}", figures(unit))),
    }
}

/// Three significant digits of a length.
fn rounded(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// Properties of times, in their own unit.
struct Shape {
    count: f64,
    /// Time from the first to the last, and one mean step.
    span: f64,
    /// Whole numbers.
    whole: bool,
    /// Opportunities per unit over the fastest part, at least.
    peak: f64,
    /// Share of opportunities at the time of the one before.
    equal: f64,
    /// Share of ones among the other steps; 1 where there are too few to count.
    ones: f64,
}

impl Shape {
    fn of(values: &[f64]) -> Self {
        let (first, last) = (values[0], values[values.len() - 1]);
        let count = values.len() as f64;
        let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
        let (mut equal, mut ones, mut least) = (0.0, 0.0, f64::INFINITY);
        for step in steps {
            equal += f64::from(u8::from(step == 0.0));
            ones += f64::from(u8::from(step == 1.0));
            least = if step > 0.0 { least.min(step) } else { least };
        }
        let whole = values.iter().all(|value| value.fract() == 0.0);
        let different = count - 1.0 - equal;
        let span = if last > first { (last - first) * (different + 1.0) / different } else { last };
        let window = WINDOW.min(values.len() - 1);
        let shortest =
            values.windows(window + 1).map(|part| part[window] - part[0]).fold(f64::INFINITY, f64::min);
        // The times are rounded: the part may have taken a tick more.
        let tick = if whole { 1.0 } else { least };
        // Chosen: fewer steps are no statistics.
        let ones = if different < 50.0 { 1.0 } else { ones / different };
        Self { count, span, whole, peak: window as f64 / (shortest + tick), equal: equal / count, ones }
    }
    /// Length in s and mean rate in b/s.
    fn figures(&self, unit: TimeUnit) -> (f64, f64) {
        let length = self.span * unit.nanos() / 1e9;
        (length, self.count * OPPORTUNITY_BYTES as f64 * 8.0 / length)
    }
    /// The score of a unit, 0 for the most usual; none if it is impossible.
    fn score(&self, unit: TimeUnit) -> Option<f64> {
        let (length, rate) = self.figures(unit);
        let peak = self.peak * OPPORTUNITY_BYTES as f64 * 8.0 * 1e9 / unit.nanos();
        if !(length > 0.0 && length <= LONGEST_S && rate.max(peak) <= MOST_BPS) {
            return None;
        }
        let mut score = outside(rate, &MEANS_BPS);
        score += outside(length, &LENGTHS_S) * if length < *LENGTHS_S.start() { SHORT_WEIGHT } else { 1.0 };
        let is_fine = matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond);
        for (applies, part) in [
            (length > 3600.0, HOUR_SCORE),
            (is_fine, if self.whole { FINE_SCORE } else { FRACTION_SCORE }),
            (unit == TimeUnit::Second && self.whole, WHOLE_SECONDS_SCORE),
            (unit == TimeUnit::Millisecond && self.whole && self.ones < 0.01, COARSE_SCORE),
            (is_fine && self.ones > 0.2 && self.equal > 0.01, TICKS_SCORE),
        ] {
            score += if applies { part } else { 0.0 };
        }
        Some(score)
    }
}

/// Decades by which a value is outside of a range.
fn outside(value: f64, range: &RangeInclusive<f64>) -> f64 {
    libm::log10(range.start() / value).max(libm::log10(value / range.end())).max(0.0)
}

/// The unit of rates without one, and the reason for it.
pub fn rate_unit(values: &[Option<f64>]) -> Result<(RateUnit, String), String> {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().filter(|value| *value > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let most = sorted.last().copied().unwrap_or(1.0);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
    let whole = sorted.iter().all(|value| value.fract() == 0.0);
    // Chosen: Mb/s is the unit of "cooked" files, and fractions of bits per second are rare.
    let known = [("Mb/s", 1e6, 0.0), ("kb/s", 1e3, 0.45), ("b/s", 1.0, if whole { 0.35 } else { 0.85 })];
    let possible = known.into_iter().filter(|(_, bits, _)| most * bits <= MOST_BPS);
    let mut scores: Vec<(f64, &str, f64)> = possible
        .map(|(name, bits, part)| (part + outside(median * bits, &MEDIANS_BPS), name, bits))
        .collect();
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let figures =
        |bits: f64| format!("median {:.3} Mb/s, highest {:.3} Mb/s", median * bits / 1e6, most * bits / 1e6);
    let (name, why) = match scores[..] {
        [] => {
            return Err(format!(
                "{most} without a unit is above 10 Gb/s even in b/s; --rate-unit states the unit"
            ));
        }
        [(best, name, bits), (next, other, _), ..] if next - best < CLOSE => {
            (name, format!("{}, or perhaps {other}", figures(bits)))
        }
        [(_, name, bits), ..] => (name, figures(bits)),
    };
    Ok((RateUnit::named(name).expect("a known unit"), why))
}

#[cfg(test)]
mod tests {
    use super::{rate_unit, time_unit};
    use crate::units::TimeUnit::{self, Microsecond, Millisecond, Nanosecond, Second};

    /// Times of a constant rate in bursts, in a unit.
    fn bursts(unit: TimeUnit, mbps: f64, seconds: f64, burst: usize, decimals: bool) -> Vec<f64> {
        let step = 1504.0 * 8.0 * burst as f64 / (mbps * 1e6) * 1e9 / unit.nanos();
        let count = (seconds * 1e9 / unit.nanos() / step) as usize;
        let times = (1..=count).map(|n| if decimals { n as f64 * step } else { (n as f64 * step).floor() });
        times.flat_map(|at| std::iter::repeat_n(at, burst)).collect()
    }

    #[test]
    fn the_unit_of_times_is_found_also_where_packets_share_a_time() {
        for unit in [Millisecond, Microsecond, Nanosecond] {
            for burst in [1, 2, 10, 60] {
                for (mbps, seconds) in [
                    (0.5, 60.0),
                    (1.0, 20.0),
                    (12.0, 20.0),
                    (40.0, 600.0),
                    (500.0, 5.0),
                    (500.0, 60.0),
                    (9000.0, 5.0),
                ] {
                    let (found, why) = time_unit(&bursts(unit, mbps, seconds, burst, false));
                    assert_eq!(found, unit, "{burst} at {mbps} Mb/s for {seconds} s: {why}");
                }
            }
        }
        for (mbps, seconds) in [(1.0, 20.0), (12.0, 60.0), (300.0, 30.0)] {
            for unit in [Second, Millisecond] {
                assert_eq!(time_unit(&bursts(unit, mbps, seconds, 2, true)).0, unit, "{mbps} Mb/s");
            }
        }
        // A short loop of mahimahi's, a single time, and a drive of two hours with bursts of 1 ms.
        assert_eq!(time_unit(&[1.0, 3.0, 3.0, 4.0, 8.0]).0, Millisecond);
        assert_eq!(time_unit(&[5.0]).0, Millisecond);
        let drive: Vec<f64> =
            (0..7200).flat_map(|s| (0..200).map(move |n| f64::from(s * 1000 + n / 3))).collect();
        assert_eq!(time_unit(&drive).0, Millisecond);
    }

    #[test]
    fn the_unit_of_rates_is_a_possible_and_usual_one() {
        for (values, unit) in [
            (&[8.0, 16.0, 0.0, 4.0][..], "Mb/s"),
            (&[0.05, 0.7], "Mb/s"),
            (&[490.0, 1900.0, 800.0], "Mb/s"),
            (&[8000.0, 9000.0], "kb/s"),
            (&[2000.0, 40_000.0, 15_000.0], "kb/s"),
            (&[120_000.0, 800_000.0, 90_000.0], "kb/s"),
            (&[8e6, 9e6, 12e6], "b/s"),
            (&[5e5, 2e6, 1e6], "b/s"),
            (&[5e7, 1.2e8], "b/s"),
            (&[9.9e9, 9.8e9], "b/s"),
        ] {
            let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
            assert_eq!(rate_unit(&values).unwrap().0.to_string(), unit, "{values:?}");
        }
        assert!(rate_unit(&[Some(5e10)]).err().unwrap().contains("--rate-unit"));
        assert!(rate_unit(&[Some(0.0), None]).is_ok());
    }
}
