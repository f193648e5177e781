//! A set of stream offsets as ranges that neither overlap nor touch. A call takes logarithmic time, and time
//! for each range that it removes: a peer chooses the ranges, so that none may cost the length of the set.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct Ranges {
    /// Ends by start.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `[start, end)`.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((left, right)) = self.last_from(start).filter(|range| range.1 >= start) {
            if right >= end {
                return;
            }
            start = left;
        }
        while let Some((left, right)) = self.first_from(start).filter(|range| range.0 <= end) {
            self.ends.remove(&left);
            end = end.max(right);
        }
        self.ends.insert(start, end);
    }
    /// The first part of `[from, until)` that is not in the set.
    pub fn next_gap(&self, from: u64, until: u64) -> Option<(u64, u64)> {
        let inside = self.last_from(from).filter(|range| range.1 > from);
        let left = inside.map_or(from, |range| range.1);
        let right = self.first_from(left).map_or(until, |range| range.0.min(until));
        (left < right).then_some((left, right))
    }
    /// Removes everything below `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        while let Some((start, end)) = self.first().filter(|range| range.0 < offset) {
            self.ends.remove(&start);
            if end > offset {
                self.ends.insert(offset, end);
            }
        }
    }
    /// Frees the memory of an empty set.
    pub fn shrink_if_empty(&mut self) {
        if self.ends.is_empty() {
            self.clear();
        }
    }
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    pub fn clear(&mut self) {
        *self = Self::default();
    }
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ends.iter().map(|(start, end)| (*start, *end))
    }
    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.iter().next()
    }
    /// The end of the highest range.
    pub fn end(&self) -> Option<u64> {
        self.iter().next_back().map(|range| range.1)
    }
    /// The first range that starts at or after `offset`.
    fn first_from(&self, offset: u64) -> Option<(u64, u64)> {
        self.ends.range(offset..).next().map(|(start, end)| (*start, *end))
    }
    /// The last range that starts at or before `offset`.
    fn last_from(&self, offset: u64) -> Option<(u64, u64)> {
        self.ends.range(..=offset).next_back().map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    /// Beside a set of single offsets.
    #[test]
    fn random_ranges_are_those_of_a_plain_set() {
        for seed in 0..50 {
            let mut stream = Stream::new(seed, "ranges");
            let (mut ranges, mut plain) = (Ranges::default(), [false; 200]);
            for _ in 0..60 {
                let start = stream.below(190);
                let end = start + 1 + stream.below(9);
                if stream.chance(0.1) {
                    ranges.remove_below(start);
                    plain[..start as usize].fill(false);
                }
                let mut cursor = start;
                while let Some((left, right)) = ranges.next_gap(cursor, end) {
                    let gap = |off: u64| off >= left && off < right;
                    assert!((cursor..right).all(|off| gap(off) != plain[off as usize]), "seed {seed}");
                    cursor = right;
                }
                assert!((cursor..end).all(|off| plain[off as usize]), "seed {seed}");
                ranges.insert(start, end);
                plain[start as usize..end as usize].fill(true);
                let listed = |off: u64| ranges.iter().any(|(left, right)| left <= off && off < right);
                assert!((0..200).all(|off| listed(off) == plain[off as usize]), "seed {seed}");
                assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(one, two)| one.1 < two.0));
            }
        }
    }
}
