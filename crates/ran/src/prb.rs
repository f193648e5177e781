//! Physical resource blocks (PRBs, TS 36.211 §6.2.3): sets of them, their number in a carrier, and the
//! numbers that an allocation may have.
//!
//! Downlink allocations consist of resource block groups (type 0, TS 36.213 §7.1.6.1); uplink allocations
//! have a number of PRBs that the transform precoder allows (TS 36.211 §5.3.3). A set holds at most 128 PRBs:
//! one LTE carrier.

use std::ops::Range;

/// Bandwidth of a PRB in Hz: 12 subcarriers of 15 kHz (TS 36.211 §6.2.3).
pub const PRB_HZ: f64 = 180e3;
/// Largest number of PRBs in a [`PrbSet`]. Follows from its `u128`; an LTE carrier has at most 110 (TS 36.211
/// §6.2.1).
pub const MAX_PRBS: usize = 128;

/// A set of PRBs of one carrier, at most [`MAX_PRBS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrbSet(u128);

impl PrbSet {
    /// The empty set, by definition.
    pub const NONE: Self = Self(0);

    /// The set with these bits: PRB 0 in the lowest bit.
    pub(crate) fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
    /// One bit per PRB, PRB 0 in the lowest bit.
    pub(crate) fn bits(self) -> u128 {
        self.0
    }
    pub fn range(first: u32, count: u32) -> Self {
        let ones = if count >= 128 { u128::MAX } else { (1 << count) - 1 };
        Self(ones << first)
    }
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// The lowest `count` PRBs of the set; all if the set has fewer.
    #[must_use]
    pub fn lowest(self, mut count: u32) -> Self {
        // Run by run: PRBs of an allocation are mostly adjacent.
        let (mut rest, mut taken) = (self, Self::NONE);
        while count > 0 && !rest.is_empty() {
            let first = rest.0.trailing_zeros();
            let run = (!(rest.0 >> first)).trailing_zeros().min(count);
            let prbs = Self::range(first, run);
            (taken, rest, count) = (taken.with(prbs), rest.without(prbs), count - run);
        }
        taken
    }
    pub fn contains(self, prb: u32) -> bool {
        self.0 >> prb & 1 == 1
    }
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The groups of `group` PRBs from the first to the last one that the set touches; `0..0` for the empty
    /// set.
    pub fn group_span(self, group: usize) -> Range<usize> {
        if self.is_empty() {
            return 0..0;
        }
        let last = u128::BITS - 1 - self.0.leading_zeros();
        self.0.trailing_zeros() as usize / group..last as usize / group + 1
    }
    /// Number of the set's PRBs in each group of `group` PRBs (at most 4), from the group `first` to the last
    /// touched.
    pub fn counts_per_group(self, group: u32, first: usize) -> impl Iterator<Item = u32> {
        // Table of bit counts, since not every processor counts bits in one instruction.
        const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
        debug_assert!(group <= 4, "TS 36.213 Table 7.1.6.1-1 has groups of up to 4 PRBs");
        // Bits taken at a time. Chosen: the largest multiple of 1, 2, 3 and 4 in a u64.
        const WORD: u32 = 60;
        let (mut rest, mask) = (self.0 >> (first as u32 * group), (1 << group) - 1);
        let (mut word, mut left) = (0, 0);
        std::iter::from_fn(move || {
            if left == 0 {
                (word, left) = (rest as u64 & ((1 << WORD) - 1), WORD / group);
                rest >>= WORD;
            }
            let count = (word != 0 || rest != 0).then(|| u32::from(ONES[(word & mask) as usize & 15]));
            word >>= group;
            left -= 1;
            count
        })
    }
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let prb = (left != 0).then(|| left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            prb
        })
    }
}

/// Number of PRBs of a channel bandwidth in kHz (TS 36.104 Table 5.6-1); none for other bandwidths.
pub const fn resource_blocks(bandwidth_khz: u64) -> Option<u8> {
    match bandwidth_khz {
        1_400 => Some(6),
        3_000 => Some(15),
        5_000 => Some(25),
        10_000 => Some(50),
        15_000 => Some(75),
        20_000 => Some(100),
        _ => None,
    }
}

/// Resource block group size P in PRBs for a carrier of `n_prb` PRBs (TS 36.213 Table 7.1.6.1-1).
pub const fn rbg_size(n_prb: u8) -> u8 {
    match n_prb {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// The largest number of PRBs up to `n_prb` whose prime factors are 2, 3 and 5 alone (TS 36.211 §5.3.3).
pub const fn precodable(n_prb: u8) -> u8 {
    let mut candidate = n_prb;
    while candidate > 1 {
        let mut rest = candidate;
        while rest.is_multiple_of(2) {
            rest /= 2;
        }
        while rest.is_multiple_of(3) {
            rest /= 3;
        }
        while rest.is_multiple_of(5) {
            rest /= 5;
        }
        if rest == 1 {
            break;
        }
        candidate -= 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    #[test]
    fn transform_precoding_allows_products_of_two_three_and_five() {
        assert_eq!([0, 1, 7, 11, 14, 96, 97, 100].map(precodable), [0, 1, 6, 10, 12, 96, 96, 100]);
    }

    #[test]
    fn set_operations_hold_by_hand() {
        let set = PrbSet::range(3, 4).with(PrbSet::range(99, 1));
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 4, 5, 6, 99]);
        assert_eq!((set.len(), set.contains(6), set.contains(7), set.is_empty()), (5, true, false, false));
        assert_eq!(PrbSet::range(0, 128).len(), 128);
        assert_eq!([6, 15, 25, 50, 75, 100].map(rbg_size), [1, 2, 2, 3, 4, 4]);
    }

    #[test]
    fn the_lowest_prbs_are_those_of_a_linear_walk() {
        let mut stream = Stream::new(6, "blocks");
        for _ in 0..5000 {
            let mut set = PrbSet::NONE;
            for _ in 0..stream.below(5) {
                set = set.with(PrbSet::range(stream.below(100) as u32, stream.below(29) as u32));
            }
            for count in [0, 1, 2, 7, 30, 100, 128] {
                let walked = set.iter().take(count as usize);
                let expected =
                    walked.fold(PrbSet::NONE, |all, block| all.with(PrbSet::range(block as u32, 1)));
                assert_eq!(set.lowest(count), expected, "{count} of {set:?}");
            }
        }
        assert_eq!(PrbSet::range(0, 128).lowest(128), PrbSet::range(0, 128));
    }

    #[test]
    fn group_span_and_counts_agree() {
        let mut stream = Stream::new(7, "blocks");
        for group in 1..=4 {
            for _ in 0..2000 {
                let sets = [0; 3].map(|_| PrbSet::range(stream.below(100) as u32, stream.below(29) as u32));
                let set = sets[0].with(sets[1]).with(sets[2]);
                let all: Vec<u32> = set.counts_per_group(group, 0).collect();
                let span = set.group_span(group as usize);
                assert_eq!(span.end, all.len());
                assert!(
                    all[..span.start].iter().all(|blocks| *blocks == 0) && all.get(span.start) != Some(&0)
                );
                assert!(set.counts_per_group(group, span.start).eq(all[span.start..].iter().copied()));
            }
        }
    }
}
