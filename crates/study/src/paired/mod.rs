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
/// Percentage of the first mean from which on a difference is stated in the figure's unit. Chosen: above a
/// tenfold, a percentage says more on the small first mean than on the difference.
const MAX_PERCENT: f64 = 900.0;

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
    /// Whether the interval includes zero; false without one.
    pub fn may_be_zero(&self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() <= half)
    }
    /// The difference and the ends of its interval. No total is negative: nothing falls by more than all of
    /// it.
    fn ends(&self) -> [f64; 3] {
        let half = self.half.unwrap_or(0.0);
        [self.mean, self.mean - half, self.mean + half].map(|value| value.max(-self.first.abs()))
    }
    /// How the difference of a figure is stated.
    fn scale(&self, figure: &Figure) -> Scale {
        let percent = 100.0 / self.first.abs();
        let [mean, ..] = self.ends();
        let scale = |factor, decimals, unit| Scale { factor, decimals, unit };
        match figure.unit {
            "%" => scale(1.0, Some(figure.decimals), " points"),
            _ if percent.is_finite() && (percent * mean).abs() <= MAX_PERCENT => scale(percent, None, "%"),
            unit => scale(1.0, Some(figure.decimals), unit),
        }
    }
    /// The size of the difference, such as `52%`, `0.51 points` or `3.20 Mb/s`.
    pub fn size(&self, figure: &Figure) -> String {
        let scale = self.scale(figure);
        scale.number(self.mean.abs()) + &scale.unit()
    }
    /// Whether the difference is too small to be named.
    pub fn is_unchanged(&self, figure: &Figure) -> bool {
        let Scale { factor, decimals, .. } = self.scale(figure);
        let least = decimals.map_or(UNCHANGED_PERCENT, half_of_last_digit);
        self.ends().iter().all(|end| (end * factor).abs() <= least)
    }
    /// The difference in words, such as `52% lower (49 to 55%)`, of a share `0.00% -> 0.51%, +0.51 points
    /// (0.29 to 0.72)`; none of a figure that neither side has.
    pub fn words(&self, figure: &Figure) -> Option<String> {
        if !self.mean.is_finite() || (self.first == 0.0 && self.second == 0.0) {
            return None;
        }
        if self.is_unchanged(figure) {
            return Some(String::from("unchanged"));
        }
        let scale = self.scale(figure);
        let ([mean, low, high], unit) = (self.ends(), scale.unit());
        if self.may_be_zero() {
            return Some(format!(
                "not clearly different ({} to {}{unit})",
                scale.signed(low),
                scale.signed(high)
            ));
        }
        let interval = |from: f64, to: f64, unit: &str| {
            self.half
                .map_or(String::new(), |_| format!(" ({} to {}{unit})", scale.number(from), scale.number(to)))
        };
        if scale.decimals.is_none() {
            let (word, from, to) = if mean < 0.0 { ("lower", -high, -low) } else { ("higher", low, high) };
            return Some(format!("{}% {word}{}", scale.number(mean.abs()), interval(from, to, "%")));
        }
        let value = |value: f64| scale.number(value) + if figure.unit == "%" { "%" } else { "" };
        let change = scale.signed(mean) + &unit;
        Some(format!("{} -> {}, {change}{}", value(self.first), value(self.second), interval(low, high, "")))
    }
}

fn half_of_last_digit(decimals: usize) -> f64 {
    (0..decimals).fold(0.5, |half, _| half / 10.0)
}

/// How a difference is stated: in percent of the first mean, in percentage points, or in the figure's unit.
struct Scale {
    /// Factor of the stated number.
    factor: f64,
    /// Decimals of the figure; none of a percentage of the first mean.
    decimals: Option<usize>,
    unit: &'static str,
}

impl Scale {
    /// A number; a percentage of the first mean without decimals, below ten with one.
    fn number(&self, value: f64) -> String {
        let value = value * self.factor;
        let decimals = self.decimals.unwrap_or(usize::from(value.abs() < 9.95));
        let text = format!("{value:.decimals$}");
        // No sign of a zero.
        match text.strip_prefix('-') {
            Some(size) if !size.contains(|digit: char| ('1'..='9').contains(&digit)) => size.to_owned(),
            _ => text,
        }
    }
    fn signed(&self, value: f64) -> String {
        if value > 0.0 { format!("+{}", self.number(value)) } else { self.number(value) }
    }
    /// The unit behind a number.
    fn unit(&self) -> String {
        match self.unit {
            "%" | " points" | "" => self.unit.to_owned(),
            unit => format!(" {unit}"),
        }
    }
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

/// A total that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name in a sentence.
    pub name: &'static str,
    /// Its unit; `%` of a share, whose differences are stated in percentage points.
    pub unit: &'static str,
    /// Decimals of its values.
    pub decimals: usize,
    /// Its value in this unit.
    pub of: fn(&Totals) -> f64,
}

/// Chosen: the totals that answer whether a change helps.
const SENTENCE: [Figure; 4] = [
    Figure { name: "RTT", unit: "ms", decimals: 1, of: |t| t.rtt_mean_ms },
    Figure { name: "goodput", unit: "Mb/s", decimals: 2, of: |t| t.goodput_mbps },
    Figure { name: "upload", unit: "Mb/s", decimals: 2, of: |t| t.upload_mbps },
    Figure { name: "retransmissions", unit: "%", decimals: 2, of: |t| 100.0 * t.retransmission_share },
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
        let words = |figure: &Figure| Some((figure.name, self.difference(figure.of).words(figure)?));
        let parts = SENTENCE.iter().filter_map(words);
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

    #[test]
    fn shares_differ_by_points_and_small_first_values_by_units() {
        let words = |unit, first: f64, second: f64, half| {
            let figure = Figure { name: "", unit, decimals: 2, of: |_| 0.0 };
            let mean = second - first;
            Difference { first, second, mean, half }.words(&figure).unwrap()
        };
        assert_eq!(words("%", 0.0, 0.51, Some(0.2)), "0.00% -> 0.51%, +0.51 points (0.31 to 0.71)");
        // Nothing falls by more than all of it.
        assert_eq!(words("%", 0.5, 0.1, Some(0.2)), "0.50% -> 0.10%, -0.40 points (-0.50 to -0.20)");
        assert_eq!(words("%", 0.5, 0.6, Some(0.2)), "not clearly different (-0.10 to +0.30 points)");
        assert_eq!(words("%", 40.0, 40.004, None), "unchanged");
        assert_eq!(words("Mb/s", 0.0, 5.0, None), "0.00 -> 5.00, +5.00 Mb/s");
        assert_eq!(words("Mb/s", 0.01, 5.0, Some(1.0)), "0.01 -> 5.00, +4.99 Mb/s (3.99 to 5.99)");
        assert_eq!(words("Mb/s", 1.0, 5.0, Some(1.0)), "400% higher (300 to 500%)");
    }
}
