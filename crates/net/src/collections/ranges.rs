//! A set of positions in a stream of bytes, as ranges that neither overlap nor touch: data held out of order,
//! data known to be received or lost, the rest of a segmented SDU.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Sub;

/// Disjoint half-open ranges in ascending order. The first one is stored in place, since most sets have one.
/// A call takes logarithmic time, and time for each range that it removes: a peer chooses the ranges, so that
/// none may cost the length of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges<T = u64> {
    /// The first range; without a length, the set is empty.
    first: (T, T),
    /// Ends by start of the other ranges.
    rest: BTreeMap<T, T>,
}

impl<T: Copy + Ord + Default> Ranges<T> {
    /// Whether the set has no position.
    pub fn is_empty(&self) -> bool {
        self.first.0 == self.first.1
    }
    /// The number of ranges.
    pub fn len(&self) -> usize {
        usize::from(!self.is_empty()) + self.rest.len()
    }
    /// The lowest range.
    pub fn first(&self) -> Option<(T, T)> {
        (!self.is_empty()).then_some(self.first)
    }
    /// The end of the highest range.
    pub fn end(&self) -> Option<T> {
        self.rest.last_key_value().map(|(_, end)| *end).or_else(|| self.first().map(|first| first.1))
    }
    /// The ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (T, T)> + '_ {
        self.first().into_iter().chain(self.rest.iter().map(|(start, end)| (*start, *end)))
    }
    /// The last range that starts at or before `position`.
    fn last_from(&self, position: T) -> Option<(T, T)> {
        let of_rest = self.rest.range(..=position).next_back().map(|(start, end)| (*start, *end));
        of_rest.or_else(|| self.first().filter(|first| first.0 <= position))
    }
    /// The first range that starts at or after `position`.
    fn first_from(&self, position: T) -> Option<(T, T)> {
        let first = self.first().filter(|first| first.0 >= position);
        first.or_else(|| self.rest.range(position..).next().map(|(start, end)| (*start, *end)))
    }
    /// The range that contains `position`.
    pub fn range_at(&self, position: T) -> Option<(T, T)> {
        self.last_from(position).filter(|range| range.1 > position)
    }
    /// Whether all of `[start, end)` is in the set.
    pub fn contains(&self, start: T, end: T) -> bool {
        self.last_from(start).is_some_and(|range| range.1 >= end)
    }
    /// The first part of `[start, end)` that is not in the set.
    pub fn next_gap(&self, start: T, end: T) -> Option<(T, T)> {
        let left = self.range_at(start).map_or(start, |range| range.1);
        let right = self.first_from(left).map_or(end, |range| range.0.min(end));
        (left < right).then_some((left, right))
    }
    /// All parts of `[start, end)` that are not in the set, in ascending order.
    pub fn gaps(&self, start: T, end: T) -> impl Iterator<Item = (T, T)> + '_ {
        let first = self.next_gap(start, end);
        std::iter::successors(first, move |gap| self.next_gap(gap.1, end))
    }
    /// Adds `[start, end)` and returns the range that now contains it.
    pub fn insert(&mut self, start: T, end: T) -> (T, T) {
        if start >= end {
            return (start, end);
        }
        let mut merged = (start, end);
        if self.is_empty() || merged.0 <= self.first.1 {
            if !self.is_empty() && merged.1 < self.first.0 {
                self.rest.insert(self.first.0, self.first.1);
            } else if !self.is_empty() {
                merged = (merged.0.min(self.first.0), merged.1.max(self.first.1));
            }
            self.first = self.absorbed(merged);
            return self.first;
        }
        if let Some((left, right)) = self.rest.range(..=start).next_back().filter(|range| *range.1 >= start) {
            if *right >= end {
                return (*left, *right);
            }
            merged.0 = *left;
        }
        merged = self.absorbed(merged);
        self.rest.insert(merged.0, merged.1);
        merged
    }
    /// `range`, grown by the ranges that start within it or at its end, which are removed.
    fn absorbed(&mut self, mut range: (T, T)) -> (T, T) {
        while let Some((&left, &right)) = self.rest.range(range.0..=range.1).next() {
            self.rest.remove(&left);
            range.1 = range.1.max(right);
        }
        range
    }
    /// Removes everything below `position`.
    pub fn remove_below(&mut self, position: T) {
        while !self.is_empty() && self.first.0 < position {
            if self.first.1 > position {
                self.first.0 = position;
            } else {
                self.first = self.rest.pop_first().unwrap_or_default();
            }
        }
    }
    /// Removes the first range if it begins at or below `position`, and returns its end.
    pub fn take_reached(&mut self, position: T) -> Option<T> {
        let (_, end) = self.first().filter(|first| first.0 <= position)?;
        self.remove_below(end);
        Some(end)
    }
    /// Frees the memory of an empty set.
    pub fn shrink_if_empty(&mut self) {
        if self.is_empty() {
            self.clear();
        }
    }
    /// Removes all positions.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T: Copy + Ord + Default + Sub<Output = T> + Sum> Ranges<T> {
    /// The number of positions.
    pub fn total(&self) -> T {
        self.iter().map(|(start, end)| end - start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    fn listed(set: &Ranges) -> Vec<(u64, u64)> {
        set.iter().collect()
    }

    #[test]
    fn ranges_merge_where_they_touch() {
        let mut set = Ranges::default();
        for (start, end) in [(30, 40), (10, 20), (50, 60)] {
            assert_eq!(set.insert(start, end), (start, end));
        }
        assert_eq!(set.gaps(15, 55).collect::<Vec<_>>(), [(20, 30), (40, 50)]);
        assert_eq!(set.insert(15, 55), (10, 60));
        assert_eq!((set.len(), set.total(), set.first(), set.end()), (1, 50, Some((10, 60)), Some(60)));
        assert_eq!(set.insert(12, 18), (10, 60));
        assert_eq!((set.range_at(10), set.range_at(60)), (Some((10, 60)), None));
        assert_eq!(set.insert(60, 70), (10, 70));
        assert_eq!(set.insert(0, 10), (0, 70));
        assert_eq!(set.insert(5, 5), (5, 5));
        assert_eq!(listed(&set), [(0, 70)]);
    }

    #[test]
    fn the_lowest_range_is_removed_as_far_as_it_is_reached() {
        let mut set = Ranges::default();
        set.insert(10, 20);
        set.insert(30, 40);
        assert_eq!(set.take_reached(9), None);
        assert_eq!(set.take_reached(10), Some(20));
        set.remove_below(34);
        assert_eq!(listed(&set), [(34, 40)]);
        set.remove_below(40);
        assert!(set.is_empty());
    }

    #[test]
    fn random_ranges_are_those_of_a_plain_set() {
        for seed in 0..100 {
            let mut stream = Stream::new(seed, "ranges");
            let (mut set, mut plain) = (Ranges::default(), [false; 200]);
            for _ in 0..60 {
                let start = stream.below(190);
                let end = start + 1 + stream.below(9);
                if stream.chance(0.1) {
                    set.remove_below(start);
                    plain[..start as usize].fill(false);
                }
                let gaps: Vec<(u64, u64)> = set.gaps(start, end).collect();
                let gap = |at: u64| gaps.iter().any(|(left, right)| *left <= at && at < *right);
                assert!((start..end).all(|at| gap(at) != plain[at as usize]), "seed {seed}");
                assert_eq!(set.contains(start, end), gaps.is_empty(), "seed {seed}");
                let merged = set.insert(start, end);
                assert!(merged.0 <= start && end <= merged.1 && set.contains(merged.0, merged.1));
                plain[start as usize..end as usize].fill(true);
                for at in 0..200 {
                    let range = set.range_at(at);
                    assert_eq!(range.is_some(), plain[at as usize], "seed {seed}");
                    assert!(range.is_none_or(|(left, right)| left <= at && at < right), "seed {seed}");
                }
                let all = listed(&set);
                assert!(all.windows(2).all(|two| two[0].1 < two[1].0), "seed {seed}");
                assert_eq!(set.total(), plain.iter().filter(|held| **held).count() as u64, "seed {seed}");
                assert_eq!((set.len(), set.end()), (all.len(), all.last().map(|last| last.1)));
            }
        }
    }
}
