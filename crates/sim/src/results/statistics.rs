//! Statistics of figures.

use serde::{Deserialize, Deserializer};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean of values and, for two or more, half the width of its 95% confidence interval (Student's t).
pub fn mean_and_half(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let half = (values.len() > 1).then(|| {
        let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("n is above 1").inverse_cdf(0.975);
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
        // IEEE 754 defines the square root exactly, so that every machine has the same.
        six_digits(t * (variance / n).max(0.0).sqrt())
    });
    (mean, half)
}

/// Rounds to six digits: statrs computes Student's quantile with the platform's functions, whose last digits
/// differ.
fn six_digits(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// `sum / count`, or zero if the count is zero.
pub(super) fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// Mean in ms of times whose sum is `sum_ns`, or zero if the count is zero. The sum is converted first, so
/// that the mean of whole milliseconds has one rounding.
pub(super) fn mean_ms(sum_ns: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum_ns as f64 / 1e6 / count as f64 }
}

/// A figure of a results file; NaN where `null` says that there is none, as JSON has no NaN.
pub(super) fn number_or_nan<'de, D: Deserializer<'de>>(figure: D) -> Result<f64, D::Error> {
    Option::deserialize(figure).map(|number: Option<f64>| number.unwrap_or(f64::NAN))
}

/// Megabits per second, from bytes in `seconds`.
pub(super) fn mbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds / 1e6
}

/// Jain's fairness index of shares (R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984); 1 if all shares are zero.
pub fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) = shares.fold((0.0, 0.0, 0.0), |(n, s, q), x| (n + 1.0, s + x, q + x * x));
    if squares == 0.0 { 1.0 } else { sum * sum / (n * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index_is_one_for_equal_shares() {
        assert_eq!(jain([2.0, 2.0].into_iter()), 1.0);
        assert_eq!(jain([1.0, 0.0].into_iter()), 0.5);
        assert_eq!(jain([0.0, 0.0].into_iter()), 1.0);
    }
}
