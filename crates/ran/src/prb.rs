//! Physical resource blocks (PRBs, TS 36.211 §6.2.3, TS 38.211 §4.4.4.1): sets of them, their number in a
//! carrier, and the numbers that an allocation may have.
//!
//! Downlink allocations consist of resource block groups (type 0, TS 36.213 §7.1.6.1, TS 38.214 §5.1.2.2.1);
//! LTE uplink allocations have a number of PRBs that the transform precoder allows (TS 36.211 §5.3.3).

use std::ops::Range;

/// Words of a [`PrbSet`]: enough for the 275 PRBs of the widest carrier (TS 38.331 §6.4,
/// maxNrofPhysicalResourceBlocks).
const WORDS: usize = 5;
/// Bits of a word.
const BITS: u32 = u64::BITS;
/// PRBs that a [`PrbSet`] can hold, from its words.
pub const MAX_PRBS: usize = WORDS * BITS as usize;

/// A set of PRBs of one carrier, at most [`MAX_PRBS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrbSet([u64; WORDS]);

impl PrbSet {
    /// The empty set, by definition.
    pub const NONE: Self = Self([0; WORDS]);

    /// `count` adjacent PRBs from `first` on.
    pub fn range(first: u32, count: u32) -> Self {
        let mut set = Self::NONE;
        set.insert(first, count);
        set
    }
    /// Adds `count` adjacent PRBs from `first` on.
    pub fn insert(&mut self, first: u32, count: u32) {
        let mut at = first;
        while at < first + count {
            let run = (first + count - at).min(BITS - at % BITS);
            self.0[(at / BITS) as usize] |= (u64::MAX >> (BITS - run)) << (at % BITS);
            at += run;
        }
    }
    fn zip(self, other: Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|word| operation(self.0[word], other.0[word])))
    }
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        self.zip(other, |one, other| one | other)
    }
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.zip(other, |one, other| one & !other)
    }
    /// The first PRB at or after `from` that is in the set (`member`) or not in it.
    fn next(self, from: u32, member: bool) -> Option<u32> {
        let mut mask = u64::MAX << (from % BITS);
        for word in (from / BITS) as usize..WORDS {
            let bits = if member { self.0[word] } else { !self.0[word] } & mask;
            if bits != 0 {
                return Some(word as u32 * BITS + bits.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
    fn last(self) -> Option<u32> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word as u32 * BITS + BITS - 1 - self.0[word].leading_zeros())
    }
    /// The runs of adjacent PRBs, ascending: first PRB and end of each. PRBs of an allocation are mostly
    /// adjacent, so that there are few runs.
    pub fn runs(self) -> impl Iterator<Item = (u32, u32)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = if at < MAX_PRBS as u32 { self.next(at, true)? } else { return None };
            at = self.next(first, false).unwrap_or(MAX_PRBS as u32);
            Some((first, at))
        })
    }
    /// The lowest `count` PRBs of the set; all if the set has fewer.
    #[must_use]
    pub fn lowest(self, mut count: u32) -> Self {
        let mut taken = Self::NONE;
        for (word, taken) in self.0.into_iter().zip(&mut taken.0) {
            if count == 0 {
                break;
            }
            *taken = take_lowest_ones(word, &mut count);
        }
        taken
    }
    pub fn contains(self, prb: u32) -> bool {
        self.0[(prb / BITS) as usize] >> (prb % BITS) & 1 == 1
    }
    pub fn len(self) -> u32 {
        // Most sets lie in one or two words; not every processor counts bits in one instruction.
        self.0.iter().map(|word| if *word == 0 { 0 } else { word.count_ones() }).sum()
    }
    pub fn is_empty(self) -> bool {
        // Not by comparison with the empty set, which calls memcmp.
        self.0.iter().fold(0, |any, word| any | word) == 0
    }
    /// The groups of `group` PRBs from the first to the last one that the set touches; `0..0` for the empty
    /// set.
    pub fn group_span(self, group: usize) -> Range<usize> {
        match (self.next(0, true), self.last()) {
            (Some(first), Some(last)) => first as usize / group..last as usize / group + 1,
            _ => 0..0,
        }
    }
    /// The PRBs of one group of `group` PRBs (at most 16), one bit each.
    fn group_bits(self, index: u32, group: u32) -> u64 {
        let (word, shift) = ((index * group / BITS) as usize, index * group % BITS);
        let mut bits = self.0[word] >> shift;
        if shift + group > BITS && word + 1 < WORDS {
            bits |= self.0[word + 1] << (BITS - shift);
        }
        bits & ((1 << group) - 1)
    }
    /// Number of the set's PRBs in each group of `group` PRBs (at most 16), from the group `first` to the
    /// last one that the set touches.
    pub fn counts_per_group(self, group: u32, first: usize) -> impl Iterator<Item = u32> {
        debug_assert!(group <= MAX_RBG_SIZE, "a resource block group of {group} PRBs");
        let end = self.last().map_or(0, |last| last / group + 1);
        let mut runs = self.runs();
        let (only, more) = (runs.next(), runs.next().is_some());
        (first as u32..end).map(move |index| match only {
            Some((from, to)) if !more => to.min((index + 1) * group).saturating_sub(from.max(index * group)),
            _ => count_ones(self.group_bits(index, group)),
        })
    }
    pub fn iter(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, mut left)| {
            std::iter::from_fn(move || {
                let prb = (left != 0).then(|| word * BITS as usize + left.trailing_zeros() as usize);
                left &= left.wrapping_sub(1);
                prb
            })
        })
    }
}

/// The lowest `count` ones of a word, all if it has fewer; `count` falls by their number.
fn take_lowest_ones(word: u64, count: &mut u32) -> u64 {
    // PRBs that are free are mostly adjacent.
    let (mut taken, mut rest) = (0, word);
    while rest != 0 && *count > 0 {
        let first = rest.trailing_zeros();
        let run = (rest >> first).trailing_ones().min(*count);
        taken |= (u64::MAX >> (BITS - run)) << first;
        rest &= !taken;
        *count -= run;
    }
    taken
}

/// Largest resource block group in PRBs (TS 38.214 Table 5.1.2.2.1-1).
const MAX_RBG_SIZE: u32 = 16;

/// Number of ones in the lower 16 bits. By table, since not every processor counts bits in one instruction.
fn count_ones(bits: u64) -> u32 {
    /// Ones of each number of 4 bits, by definition.
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
    let (mut rest, mut ones) = (bits, u32::from(ONES[bits as usize & 15]));
    while rest > 15 {
        rest >>= 4;
        ones += u32::from(ONES[rest as usize & 15]);
    }
    ones
}

/// Number of PRBs of a channel bandwidth in kHz (TS 36.104 Table 5.6-1); none for other bandwidths.
pub const fn resource_blocks(bandwidth_khz: u64) -> Option<u16> {
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
pub const fn rbg_size(n_prb: u16) -> u16 {
    match n_prb {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// The largest number of PRBs up to `n_prb` whose prime factors are 2, 3 and 5 alone (TS 36.211 §5.3.3).
pub const fn precodable(n_prb: u16) -> u16 {
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
        assert_eq!(PrbSet::range(0, 275).len(), 275);
        assert_eq!(PrbSet::range(60, 200).iter().collect::<Vec<_>>(), (60..260).collect::<Vec<_>>());
        assert_eq!([6, 15, 25, 50, 75, 100].map(rbg_size), [1, 2, 2, 3, 4, 4]);
    }

    #[test]
    fn the_lowest_prbs_are_those_of_a_linear_walk() {
        let mut stream = Stream::new(6, "blocks");
        for _ in 0..5000 {
            let mut set = PrbSet::NONE;
            for _ in 0..stream.below(5) {
                set = set.with(PrbSet::range(stream.below(260) as u32, stream.below(60) as u32));
            }
            for count in [0, 1, 2, 7, 30, 100, 320] {
                let walked = set.iter().take(count as usize);
                let expected =
                    walked.fold(PrbSet::NONE, |all, block| all.with(PrbSet::range(block as u32, 1)));
                assert_eq!(set.lowest(count), expected, "{count} of {set:?}");
            }
            assert_eq!(set.len() as usize, set.iter().count());
            assert_eq!(set.is_empty(), set == PrbSet::NONE);
            let runs = set.runs().fold(PrbSet::NONE, |all, (first, end)| {
                assert!(first < end && !set.contains(end), "{set:?}");
                all.with(PrbSet::range(first, end - first))
            });
            assert_eq!(runs, set);
        }
        assert_eq!(PrbSet::range(0, 320).lowest(320), PrbSet::range(0, 320));
    }

    #[test]
    fn group_span_and_counts_agree() {
        let mut stream = Stream::new(7, "blocks");
        for group in [1, 2, 3, 4, 8, 16] {
            for _ in 0..2000 {
                let sets = [0; 3].map(|_| PrbSet::range(stream.below(260) as u32, stream.below(60) as u32));
                let set = sets[0].with(sets[1]).with(sets[2]);
                let all: Vec<u32> = set.counts_per_group(group, 0).collect();
                let span = set.group_span(group as usize);
                assert_eq!(span.end, all.len());
                assert!(
                    all[..span.start].iter().all(|blocks| *blocks == 0) && all.get(span.start) != Some(&0)
                );
                assert!(set.counts_per_group(group, span.start).eq(all[span.start..].iter().copied()));
                let in_group = |index: u32| {
                    (0..group).filter(|at| set.contains((index * group + *at).min(319))).count() as u32
                };
                assert!(all.iter().zip(0..).all(|(count, index)| *count == in_group(index)), "{set:?}");
            }
        }
    }
}
