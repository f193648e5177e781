//! Differences between results by pairs of runs with equal seeds.
//!
//! Runs with the same seed have the same places, fading and start times, whose chance adds to both runs of a
//! pair and cancels in its difference. The mean of the pairs' differences therefore has a narrower interval
//! than the difference of the means (Student's t over pairs; A. Law, Simulation Modeling and Analysis, 5th
//! ed., §10.2.1).

mod grid;

pub use grid::{PointDifference, of_grid};

use paceline_sim::Totals;
use paceline_sim::results::mean_and_half;

/// Part of the first mean up to which a difference is none. Chosen: a reader takes one percent for none; the
/// words of a sentence alone depend on it, its figures do not.
const UNCHANGED_PERCENT: f64 = 1.0;

/// The mean of a figure's differences, second minus first, over pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the first runs.
    pub first: f64,
    /// Mean of the second runs.
    pub second: f64,
    /// Mean difference.
    pub mean: f64,
    /// Half width of its 95% confidence interval; none with one pair.
    pub half: Option<f64>,
}

impl Difference {
    /// The difference of these pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let mean = |value: fn(&(f64, f64)) -> f64| pairs.iter().map(value).sum::<f64>() / pairs.len() as f64;
        let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
        let (difference, half) = mean_and_half(&differences);
        Self { first: mean(|pair| pair.0), second: mean(|pair| pair.1), mean: difference, half }
    }
    /// The difference and the ends of its interval in percent of the mean of the first runs; none where that
    /// is zero.
    pub fn percent(&self) -> Option<(f64, f64, f64)> {
        // No total is negative: nothing falls by more than all of it.
        let percent = |value: f64| (100.0 * value / self.first.abs()).max(-100.0);
        let half = self.half.unwrap_or(0.0);
        (self.first != 0.0)
            .then(|| (percent(self.mean), percent(self.mean - half), percent(self.mean + half)))
    }
    /// Whether the interval includes zero; false without one.
    pub fn may_be_zero(&self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() <= half)
    }
    /// The difference in words, such as `52% lower (49 to 55%)`; none of a figure that neither side has.
    pub fn words(&self) -> Option<String> {
        if !self.mean.is_finite() || (self.first == 0.0 && self.second == 0.0) {
            return None;
        }
        let Some((percent, low, high)) = self.percent() else { return Some(String::from("up from zero")) };
        if low.abs().max(high.abs()) <= UNCHANGED_PERCENT {
            return Some(String::from("unchanged"));
        }
        if self.may_be_zero() {
            return Some(format!("not clearly different ({} to {}%)", signed(low), signed(high)));
        }
        let (word, from, to) = if percent < 0.0 { ("lower", -high, -low) } else { ("higher", low, high) };
        let interval =
            self.half.map_or(String::new(), |_| format!(" ({} to {}%)", rounded(from), rounded(to)));
        Some(format!("{}% {word}{interval}", rounded(percent.abs())))
    }
}

/// A percentage without decimals, below ten with one.
fn rounded(percent: f64) -> String {
    if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn signed(percent: f64) -> String {
    if percent > 0.0 { format!("+{}", rounded(percent)) } else { rounded(percent) }
}

/// Differences of all totals between two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// Seeds that both results have.
    pub seeds: Vec<u64>,
    /// Mean differences, second minus first.
    pub mean: Totals,
    /// Half widths of their 95% confidence intervals; none with one pair.
    pub ci95: Option<Totals>,
    differences: Vec<Difference>,
}

/// A figure of a sentence: name, value.
type Figure = (&'static str, fn(&Totals) -> f64);

/// Chosen: the totals that answer whether a change helps.
const SENTENCE: [Figure; 4] = [
    ("RTT", |t| t.rtt_mean_ms),
    ("goodput", |t| t.goodput_mbps),
    ("upload", |t| t.upload_mbps),
    ("retransmissions", |t| t.retransmission_share),
];

impl Paired {
    /// The pairs of two results, whose runs are seeds with totals; none without equal seeds.
    pub fn of(first: &[(u64, Totals)], second: &[(u64, Totals)]) -> Option<Self> {
        let partner = |seed: u64| second.iter().find(|(other, _)| *other == seed).map(|(_, totals)| totals);
        let pairs: Vec<(u64, &Totals, &Totals)> =
            first.iter().filter_map(|(seed, totals)| Some((*seed, totals, partner(*seed)?))).collect();
        if pairs.is_empty() {
            return None;
        }
        let rows: Vec<(Vec<f64>, Vec<f64>)> =
            pairs.iter().map(|(_, first, second)| (first.values(), second.values())).collect();
        let figure = |index: usize| {
            let of_figure: Vec<(f64, f64)> = rows.iter().map(|(a, b)| (a[index], b[index])).collect();
            Difference::of(&of_figure)
        };
        let differences: Vec<Difference> = (0..Totals::names().len()).map(figure).collect();
        let halves: Option<Vec<f64>> = differences.iter().map(|difference| difference.half).collect();
        Some(Self {
            seeds: pairs.iter().map(|(seed, ..)| *seed).collect(),
            mean: Totals::from_values(&differences.iter().map(|own| own.mean).collect::<Vec<_>>()),
            ci95: halves.map(|halves| Totals::from_values(&halves)),
            differences,
        })
    }
    /// The difference of a figure that is a total times a factor.
    pub fn difference(&self, of: fn(&Totals) -> f64) -> Difference {
        let totals = |value: fn(&Difference) -> f64| {
            of(&Totals::from_values(&self.differences.iter().map(value).collect::<Vec<_>>()))
        };
        Difference {
            first: totals(|own| own.first),
            second: totals(|own| own.second),
            mean: of(&self.mean),
            half: self.ci95.as_ref().map(of),
        }
    }
    /// The difference in a sentence, such as `RTT 52% lower (49 to 55%), goodput unchanged (8 pairs of equal
    /// seeds, 95% intervals).`
    pub fn sentence(&self) -> String {
        let parts = SENTENCE.iter().filter_map(|(name, of)| Some((*name, self.difference(*of).words()?)));
        let (same, other): (Vec<_>, Vec<_>) = parts.partition(|(_, words)| words == "unchanged");
        let mut said: Vec<String> = other.iter().map(|(name, words)| format!("{name} {words}")).collect();
        let same: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
        if !same.is_empty() {
            said.push(format!("{} unchanged", same.join(" and ")));
        }
        let pairs = match self.seeds.len() {
            1 => String::from("one pair of equal seeds: no interval"),
            count => format!("{count} pairs of equal seeds, 95% intervals"),
        };
        let said = if said.is_empty() { String::from("no figure of TCP or UDP") } else { said.join(", ") };
        let mut letters = said.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        format!("{first}{} ({pairs}).", letters.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[(u64, f64, f64)]) -> Vec<(u64, Totals)> {
        let totals = |goodput_mbps, rtt_mean_ms| Totals { goodput_mbps, rtt_mean_ms, ..Totals::default() };
        values.iter().map(|(seed, goodput, rtt)| (*seed, totals(*goodput, *rtt))).collect()
    }

    #[test]
    fn the_interval_is_that_of_the_differences_of_equal_seeds() {
        let first = runs(&[(1, 10.0, 100.0), (2, 20.0, 200.0), (3, 30.0, 300.0), (9, 0.0, 0.0)]);
        let second = runs(&[(3, 30.0, 151.0), (2, 20.0, 100.0), (1, 10.0, 49.0), (4, 7.0, 7.0)]);
        let paired = Paired::of(&first, &second).unwrap();
        assert_eq!(paired.seeds, [1, 2, 3]);
        assert_eq!(paired.mean.rtt_mean_ms, -100.0);
        // t(0.975, 2) = 4.30265; the differences -51, -100, -149 have s = 49.
        let half = paired.ci95.as_ref().unwrap().rtt_mean_ms;
        assert!((half - 4.30265 * 49.0 / 3f64.sqrt()).abs() < 1e-3, "{half}");
        assert_eq!(
            paired.sentence(),
            "RTT not clearly different (-100 to +11%), goodput unchanged (3 pairs of equal seeds, 95% intervals)."
        );
        assert_eq!(Paired::of(&first, &runs(&[(7, 1.0, 1.0)])), None);
    }

    #[test]
    fn a_sentence_says_by_how_much_and_whether_there_is_an_interval() {
        let first = runs(&[(1, 10.0, 100.0), (2, 10.0, 100.0), (3, 10.0, 100.0)]);
        let second = runs(&[(1, 10.0, 48.0), (2, 10.01, 47.0), (3, 10.0, 49.0)]);
        let said = Paired::of(&first, &second).unwrap().sentence();
        assert_eq!(
            said,
            "RTT 52% lower (50 to 54%), goodput unchanged (3 pairs of equal seeds, 95% intervals)."
        );
        let said = Paired::of(&first[..1], &runs(&[(1, 12.0, 100.0)])).unwrap().sentence();
        assert_eq!(said, "Goodput 20% higher, RTT unchanged (one pair of equal seeds: no interval).");
    }
}
