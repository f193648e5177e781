//! Counts by size, in buckets that double: cheap enough for every acknowledgment.

const BUCKETS: usize = 20;

/// Numbers up to `FIRST`, up to twice that, and so on; the last bucket has all the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram<const FIRST: u64> {
    counts: [u64; BUCKETS],
    /// Nanoseconds of a hundred thousand answers a second would fill 64 bits within weeks.
    sum: u128,
}

impl<const FIRST: u64> Histogram<FIRST> {
    /// Counts a number.
    pub fn record(&mut self, value: u64) {
        let doublings = u64::BITS - (value.saturating_sub(1) / FIRST).leading_zeros();
        self.counts[(doublings as usize).min(BUCKETS - 1)] += 1;
        self.sum += u128::from(value);
    }
    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }
    /// Upper bound, inclusive, and count of each bucket; the last is without bound.
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
    fn bounds_are_inclusive() {
        let mut histogram = Histogram::<10>::default();
        for value in [0, 1, 10, 11, 20, 21, 40, 41, u64::MAX] {
            histogram.record(value);
        }
        let counts: Vec<_> = histogram.buckets().collect();
        assert_eq!(counts[..4], [(Some(10), 3), (Some(20), 2), (Some(40), 2), (Some(80), 1)]);
        assert_eq!(counts.last(), Some(&(None, 1)));
        let sum = histogram.sum();
        histogram.record(u64::MAX);
        assert!(histogram.sum() > sum, "means are taken from how it grows, for years");
    }
}
