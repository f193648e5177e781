//! Histogram with buckets of doubling width. Recording takes constant time, so that every acknowledgment can
//! be recorded.

/// Chosen: with a first bucket of 1 ms the last one begins at 4.4 minutes.
const BUCKETS: usize = 20;

/// Counts of numbers up to `FIRST`, up to twice `FIRST`, and so on; the last bucket has no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram<const FIRST: u64> {
    counts: [u64; BUCKETS],
    /// 128 bits, because nanoseconds of a hundred thousand samples a second fill 64 bits within weeks.
    sum: u128,
}

impl<const FIRST: u64> Histogram<FIRST> {
    /// Counts a number.
    pub fn record(&mut self, value: u64) {
        let doublings = u64::BITS - (value.saturating_sub(1) / FIRST).leading_zeros();
        self.counts[(doublings as usize).min(BUCKETS - 1)] += 1;
        self.sum += u128::from(value);
    }
    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }
    /// Upper bound (inclusive) and count of each bucket; the last has no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bound = |at: usize| (at + 1 < BUCKETS).then(|| FIRST << at);
        self.counts.iter().enumerate().map(move |(at, count)| (bound(at), *count))
    }
    /// Sum of all numbers.
    pub fn sum(&self) -> u128 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_are_inclusive() {
        let mut histogram = Histogram::<10>::default();
        for value in [0, 1, 10, 11, 20, 21, 40, 41, u64::MAX] {
            histogram.record(value);
        }
        let counts: Vec<_> = histogram.buckets().collect();
        assert_eq!(counts[..4], [(Some(10), 3), (Some(20), 2), (Some(40), 2), (Some(80), 1)]);
        assert_eq!(counts.last(), Some(&(None, 1)));
        let sum = histogram.sum();
        histogram.record(u64::MAX);
        assert!(histogram.sum() > sum, "the sum does not saturate");
    }
}
