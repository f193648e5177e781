//! Statistics of an experiment: a studentised permutation test of two groups of devices, or of pairs of
//! periods, with the confidence interval that belongs to it, and Holm's correction.
//!
//! Each device contributes one value, since devices were assigned at random: transfers of one device
//! resemble each other (Hayes and Moulton, "Cluster Randomised Trials", 2nd edition, 2017, chapter 10). If
//! acceleration has no effect on any device, every assignment of the values to the groups was equally likely,
//! so that the share of assignments with a statistic as large is an exact p-value for any distribution, heavy
//! tails included (Ernst, "Permutation Methods: A Basis for Exact Inference", 2004). The statistic is
//! Welch's, so that the test stays valid for many devices if the groups differ in variance only (Chung and
//! Romano, "Exact and asymptotically robust permutation tests", 2013). The interval is the difference plus
//! and minus the permutation distribution's quantile of the statistic times the standard error.
//!
//! The periods of a pair have a random order, so that without an effect the difference of each pair has
//! either sign with the same probability (Fisher, "The Design of Experiments", 1935, section 21).
//!
//! The minimum detectable effect of a comparison is the critical value of the statistic and the normal
//! quantile of the power, times the standard error (Bloom, "Minimum Detectable Effects", 1995).

use paceline_net::Stream;

/// The normal distribution's quantile of 0.8, the power for which a detectable difference is stated. Chosen:
/// the usual one of plans of experiments.
const POWER_QUANTILE: f64 = 0.841_621_233_572_914_2;

/// A comparison of two groups of values.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Mean of the first group.
    pub first: f64,
    /// Mean of the second group.
    pub second: f64,
    /// Mean of the first group less that of the second.
    pub difference: f64,
    /// Half the width of the confidence interval of the difference.
    pub margin: f64,
    /// Probability of a statistic as large, of either sign, if there is no effect.
    pub chance: f64,
    /// Standard error of the difference.
    error: f64,
    /// The largest statistics of random assignments, in falling order; the level of the interval gives how
    /// many.
    largest: Vec<f64>,
    permutations: usize,
    /// The least possible p-value: the share of assignments with the largest statistic.
    least_chance: f64,
}

impl Comparison {
    /// The true difference that a test at `level`, which is at most that of the interval, would have found
    /// with a probability of 80%. None if no difference, however large, could have been found: there are too
    /// few assignments.
    pub fn detectable(&self, level: f64) -> Option<f64> {
        let significant = libm::floor(level * (self.permutations + 1) as f64) as usize;
        if level < self.least_chance || significant == 0 {
            return None;
        }
        // As many random assignments less one may have a statistic as large as the one that took place.
        let critical = self.largest.get(significant - 1).filter(|critical| critical.is_finite())?;
        Some((critical + POWER_QUANTILE) * self.error)
    }
}

/// The share of the assignments to groups of these sizes that have the largest statistic: one, and with equal
/// sizes the one with exchanged groups.
fn least_chance(first: usize, second: usize) -> f64 {
    let smaller = first.min(second);
    let larger = first.max(second);
    let assignments: f64 = (1..=smaller).map(|n| (larger + n) as f64 / n as f64).product();
    if first == second { 2.0 / assignments } else { 1.0 / assignments }
}

/// Sum and sum of squares of a group.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        values.iter().fold(Self::default(), |moments, value| Self {
            count: moments.count + 1.0,
            sum: moments.sum + value,
            squares: moments.squares + value * value,
        })
    }
    fn less(self, part: Self) -> Self {
        Self {
            count: self.count - part.count,
            sum: self.sum - part.sum,
            squares: self.squares - part.squares,
        }
    }
    fn mean(self) -> f64 {
        self.sum / self.count
    }
    /// The squared standard error of the mean.
    fn squared_error(self) -> f64 {
        let variance = (self.squares - self.sum * self.sum / self.count) / (self.count - 1.0);
        variance.max(0.0) / self.count
    }
}

/// Difference of means and its standard error (Welch 1947).
fn difference(first: Moments, second: Moments) -> (f64, f64) {
    (first.mean() - second.mean(), libm::sqrt(first.squared_error() + second.squared_error()))
}

/// The statistic: the difference in standard errors. Without variance, infinite unless there is no
/// difference.
fn studentised((difference, error): (f64, f64), scale: f64) -> f64 {
    // Chosen: differences below 1e-12 of the values' size are rounding.
    if difference.abs() <= 1e-12 * scale {
        0.0
    } else if error <= 1e-12 * scale {
        f64::INFINITY
    } else {
        difference.abs() / error
    }
}

/// Compares two groups of at least two values each by `permutations` random assignments; the interval covers
/// the difference with probability `1 - level`. None if a group has fewer than two values.
pub fn compare(
    first: &[f64],
    second: &[f64],
    level: f64,
    permutations: usize,
    stream: &mut Stream,
) -> Option<Comparison> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    // About their mean the values are small, so that sums of squares lose no digits.
    let centre = Moments::of(&[first, second].concat()).mean();
    let centred = |values: &[f64]| values.iter().map(|value| value - centre).collect::<Vec<f64>>();
    let (first, second) = (centred(first), centred(second));
    let mut pooled = [first.clone(), second.clone()].concat();
    let scale = pooled.iter().fold(centre.abs(), |most, value| most.max(value.abs()));
    let (observed, error) = difference(Moments::of(&first), Moments::of(&second));
    let statistic = studentised((observed, error), scale);
    let all = Moments::of(&pooled);
    let smaller = first.len().min(second.len());
    let statistics: Vec<f64> = (0..permutations)
        .map(|_| {
            for n in 0..smaller {
                let other = n + stream.below((pooled.len() - n) as u64) as usize;
                pooled.swap(n, other);
            }
            let part = Moments::of(&pooled[..smaller]);
            studentised(difference(part, all.less(part)), scale)
        })
        .collect();
    let least_chance = least_chance(first.len(), second.len());
    let means = [&first, &second].map(|values| centre + Moments::of(values).mean());
    Some(judge(means, (observed, error), statistic, statistics, (level, least_chance)))
}

/// Compares pairs of values, of which the first belongs to one treatment and the second to the other, by
/// `permutations` random signs of their differences. None with fewer than two pairs.
pub fn compare_pairs(
    pairs: &[(f64, f64)],
    level: f64,
    permutations: usize,
    stream: &mut Stream,
) -> Option<Comparison> {
    if pairs.len() < 2 {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| first - second).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let means = [mean(|pair| pair.0), mean(|pair| pair.1)];
    let scale = pairs.iter().fold(0.0f64, |most, (first, second)| most.max(first.abs()).max(second.abs()));
    let one_sample = |moments: Moments| (moments.mean(), libm::sqrt(moments.squared_error()));
    let found = one_sample(Moments::of(&differences));
    let statistic = studentised(found, scale);
    let mut signed = differences.clone();
    let statistics = (0..permutations)
        .map(|_| {
            for (signed, difference) in signed.iter_mut().zip(&differences) {
                *signed = if stream.chance(0.5) { *difference } else { -difference };
            }
            studentised(one_sample(Moments::of(&signed)), scale)
        })
        .collect();
    let least_chance = libm::exp2(1.0 - pairs.len() as f64);
    Some(judge(means, found, statistic, statistics, (level, least_chance)))
}

/// A comparison with an observed difference and its standard error, whose `statistic` is one of those of all
/// assignments.
fn judge(
    [first, second]: [f64; 2],
    (difference, error): (f64, f64),
    statistic: f64,
    mut statistics: Vec<f64>,
    (level, least_chance): (f64, f64),
) -> Comparison {
    let permutations = statistics.len();
    // The assignment that took place is one of the possible ones (Phipson and Smyth 2010).
    let as_large = statistics.iter().filter(|other| **other >= statistic * (1.0 - 1e-9)).count();
    statistics.sort_unstable_by(f64::total_cmp);
    let rank = libm::ceil((1.0 - level) * (permutations + 1) as f64) as usize;
    let quantile = statistics.get(rank.clamp(1, permutations.max(1)) - 1).copied().unwrap_or(f64::INFINITY);
    let margin = if error > 0.0 { quantile * error } else { 0.0 };
    let needed = libm::ceil(level * (permutations + 1) as f64) as usize;
    let largest = statistics.iter().rev().take(needed).copied().collect();
    Comparison {
        first,
        second,
        difference,
        margin,
        chance: (as_large + 1) as f64 / (permutations + 1) as f64,
        error,
        largest,
        permutations,
        least_chance,
    }
}

/// Holm's adjustment of p-values (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979): the
/// hypotheses with an adjusted value of at most `a` contain a true one with probability at most `a`.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut adjusted = vec![0.0; chances.len()];
    let mut least = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((chances.len() - rank) as f64 * chances[index]).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(seed: u64) -> Stream {
        Stream::new(seed, "statistics test")
    }

    /// The values 1 to 6 can be divided into groups of three in 20 ways. By hand, their statistics are 3.674
    /// (2 ways, one of them observed), 1.871 (2), 1.118 (4), 0.612 (6) and 0.196 (6): for {4, 5, 6} and
    /// {1, 2, 3} the difference 3 by the standard error sqrt(1/3 + 1/3). So the p-value is 2/20, and 1.118 is
    /// the quantile of 75%.
    #[test]
    fn a_small_comparison_has_the_values_computed_by_hand() {
        let found = compare(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0], 0.25, 19_999, &mut stream(1)).unwrap();
        assert_eq!((found.first, found.second, found.difference), (5.0, 2.0, 3.0));
        assert!((found.chance - 0.1).abs() < 0.01, "{found:?}");
        let quantile = found.margin / libm::sqrt(2.0 / 3.0);
        assert!((quantile - 1.118).abs() < 0.001, "{quantile}");
    }

    #[test]
    fn equal_values_are_no_difference_and_values_without_variance_a_certain_one() {
        let same = compare(&[2.0; 5], &[2.0; 5], 0.05, 999, &mut stream(1)).unwrap();
        assert_eq!((same.difference, same.margin, same.chance), (0.0, 0.0, 1.0));
        let other = compare(&[2.0; 8], &[3.0; 8], 0.05, 999, &mut stream(1)).unwrap();
        assert!(other.difference == -1.0 && other.chance < 0.01, "{other:?}");
        assert_eq!(compare(&[1.0], &[1.0, 2.0], 0.05, 9, &mut stream(1)), None);
    }

    /// Of six pairs that all differ in the same direction, the signs have 64 assignments, of which two are as
    /// extreme.
    #[test]
    fn pairs_are_compared_by_the_signs_of_their_differences() {
        let pairs: Vec<(f64, f64)> = (0..6).map(|n| (2.0 + 0.1 * f64::from(n), 1.0)).collect();
        let found = compare_pairs(&pairs, 0.05, 19_999, &mut stream(1)).unwrap();
        assert!(
            (found.difference - 1.25).abs() < 1e-12 && (found.chance - 2.0 / 64.0).abs() < 0.005,
            "{found:?}"
        );
        assert!((found.first - 2.25).abs() < 1e-12 && found.second == 1.0);
        assert_eq!(found.detectable(0.02), None, "fewer than 1 of 32");
        let same = compare_pairs(&[(1.0, 1.0); 6], 0.05, 999, &mut stream(1)).unwrap();
        assert_eq!((same.difference, same.margin, same.chance), (0.0, 0.0, 1.0));
    }

    /// Differences with a heavy tail, 8 pairs, no effect: 5% of 2000 comparisons at most are significant, +-
    /// 5 standard deviations of 0.5%.
    #[test]
    fn pairs_without_an_effect_give_no_false_alarms() {
        let mut alarms = 0;
        for seed in 0..2000 {
            let mut random = stream(seed);
            let mut value = || libm::pow(1.0 - random.uniform(), -1.0 / 1.5);
            let pairs: Vec<(f64, f64)> = (0..8).map(|_| (value(), value())).collect();
            let found = compare_pairs(&pairs, 0.05, 199, &mut stream(seed + 1_000_000)).unwrap();
            alarms += usize::from(found.chance <= 0.05);
        }
        assert!((50..=150).contains(&alarms), "{alarms} of 2000");
    }

    /// Holm 1979: 0.01, 0.02, 0.03 and 0.4 are multiplied by 4, 3, 2 and 1, and must not fall.
    #[test]
    fn holm_adjusts_by_hand() {
        let adjusted = holm(&[0.4, 0.03, 0.01, 0.02]);
        let wanted = [0.4, 0.06, 0.04, 0.06];
        assert!(adjusted.iter().zip(wanted).all(|(is, must)| (is - must).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    /// Groups of five and five have 252 assignments, of which two have the largest statistic; of five and
    /// six, 462, of which one has it.
    #[test]
    fn with_too_few_assignments_no_difference_can_be_found() {
        for (sizes, wanted) in [((5, 5), 2.0 / 252.0), ((6, 5), 1.0 / 462.0), ((5000, 5000), 0.0)] {
            assert!((least_chance(sizes.0, sizes.1) - wanted).abs() < 1e-9, "{sizes:?}");
        }
        let few =
            compare(&[1.0, 2.0, 3.0, 4.0, 5.0], &[3.0, 4.0, 5.0, 6.0, 7.0], 0.05, 19_999, &mut stream(1));
        let few = few.unwrap();
        assert_eq!(few.detectable(0.007), None);
        assert!(few.detectable(0.05).unwrap() > few.margin, "{few:?}");
        assert!(few.detectable(0.02).unwrap() > few.detectable(0.05).unwrap(), "{few:?}");
    }

    /// The difference that is said to be detectable is found in 80% of 600 pairs of groups that differ by it,
    /// +- 4 standard deviations of 1.6%, at a level of the report (0.025 / 21 is 0.0012) and a usual one.
    #[test]
    fn a_detectable_difference_is_found_as_often_as_said() {
        for (level, permutations) in [(0.05, 399), (0.005, 1999)] {
            let mut found = 0;
            for seed in 0..600 {
                let mut random = stream(seed);
                let mut group = |shift: f64| (0..25).map(|_| random.normal() + shift).collect::<Vec<f64>>();
                let without =
                    compare(&group(0.0), &group(0.0), level, permutations, &mut stream(seed + 1000));
                let difference = without.unwrap().detectable(level).unwrap();
                let with =
                    compare(&group(difference), &group(0.0), level, permutations, &mut stream(seed + 2000));
                found += usize::from(with.unwrap().chance <= level);
            }
            println!("level {level}: {found} of 600");
            assert!((441..=519).contains(&found), "{found} of 600 at {level}");
        }
    }

    /// Pareto values with infinite variance (shape 1.5), 8 and 12 devices, no effect: 5% of 2000 comparisons
    /// at the level of 5% are significant, +- 5 standard deviations of 0.5%.
    #[test]
    fn heavy_tails_give_no_false_alarms() {
        let mut alarms = 0;
        for seed in 0..2000 {
            let mut random = stream(seed);
            let mut values = |count| {
                (0..count).map(|_| libm::pow(1.0 - random.uniform(), -1.0 / 1.5)).collect::<Vec<f64>>()
            };
            let (first, second) = (values(8), values(12));
            let found = compare(&first, &second, 0.05, 199, &mut stream(seed + 1_000_000)).unwrap();
            alarms += usize::from(found.chance <= 0.05);
        }
        assert!((50..=150).contains(&alarms), "{alarms} of 2000");
    }
}
