//! Distributions of times and sizes in little memory.

use std::collections::BTreeMap;

/// Bits of the mantissa that a bucket keeps. Chosen: 16 buckets in a doubling, so that a quantile is at most
/// 3% from the value; figures of a capture vary by more.
const MANTISSA_BITS: u32 = 4;

/// The bucket of a value; buckets grow with the values.
pub fn bucket(value: u64) -> u16 {
    let value = value.max(1 << MANTISSA_BITS);
    let exponent = 63 - value.leading_zeros() - MANTISSA_BITS;
    let mantissa = (value >> exponent) as u16 & ((1 << MANTISSA_BITS) - 1);
    (exponent as u16) << MANTISSA_BITS | mantissa
}

/// The middle of a bucket.
pub fn middle(bucket: u16) -> f64 {
    let exponent = u32::from(bucket >> MANTISSA_BITS);
    let mantissa = u64::from(bucket & ((1 << MANTISSA_BITS) - 1)) | 1 << MANTISSA_BITS;
    (mantissa as f64 + 0.5) * (1u64 << exponent.min(59)) as f64
}

/// Values with weights: exact extremes, and quantiles to within 3%.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    buckets: BTreeMap<u16, u64>,
    weight: u64,
    count: u64,
    least: u64,
    most: u64,
}

impl Quantiles {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.add_weighted(value, 1);
    }
    /// Adds a value with a weight, such as the time for which it held.
    pub fn add_weighted(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.count += 1;
        self.weight += weight;
        *self.buckets.entry(bucket(value)).or_default() += weight;
    }
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The least value.
    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }
    /// The value below which a share of the weight lies.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let target = share * self.weight as f64;
        let mut sum = 0.0;
        let found = self.buckets.iter().find(|(_, weight)| {
            sum += **weight as f64;
            sum >= target
        });
        found.map(|(at, _)| middle(*at).clamp(self.least as f64, self.most as f64))
    }
    /// The mean, to within 3%.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.buckets.iter().map(|(at, weight)| middle(*at) * *weight as f64).sum();
        (self.weight > 0).then(|| (sum / self.weight as f64).clamp(self.least as f64, self.most as f64))
    }
    /// Adds the values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.weight += other.weight;
        for (at, weight) in &other.buckets {
            *self.buckets.entry(*at).or_default() += weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_percent() {
        let mut quantiles = Quantiles::default();
        (1..=100_000u64).for_each(|value| quantiles.add(1000 * value));
        for share in [0.05, 0.5, 0.95] {
            let (found, exact) = (quantiles.quantile(share).unwrap(), 1e8 * share);
            assert!((found / exact - 1.0).abs() < 0.035, "{share}: {found}, {exact}");
        }
        assert_eq!((quantiles.least(), quantiles.count()), (Some(1000), 100_000));
    }

    #[test]
    fn every_value_has_a_bucket() {
        for value in [0, 1, 15, 16, 17, 1 << 20, u64::MAX] {
            assert!(middle(bucket(value)) > 0.0);
        }
        assert!(bucket(1000) < bucket(1100) && bucket(u64::MAX / 2) < bucket(u64::MAX));
    }
}
