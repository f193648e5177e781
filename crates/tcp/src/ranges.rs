//! A set of byte offsets as sorted, disjoint, non-adjacent ranges: data that a receiver holds out of order,
//! and data that a sender knows to be sacked.

use std::collections::VecDeque;

/// Disjoint half-open ranges in ascending order.
#[derive(Clone, Default, Debug)]
pub(crate) struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// Adds `[start, end)`, writes the new parts of it into `gaps`, and returns the range that now contains
    /// it.
    pub fn insert(&mut self, start: u64, end: u64, gaps: &mut Vec<(u64, u64)>) -> (u64, u64) {
        gaps.clear();
        // Most insertions extend the last range or lie above it.
        let first = match self.ranges.back() {
            Some(last) if last.0 <= start => self.ranges.len() - usize::from(last.1 >= start),
            _ => self.ranges.partition_point(|range| range.1 < start),
        };
        let (mut merged, mut cursor, mut next) = ((start, end), start, first);
        while let Some(&(left, right)) = self.ranges.get(next).filter(|range| range.0 <= end) {
            if left > cursor {
                gaps.push((cursor, left));
            }
            cursor = cursor.max(right);
            merged = (merged.0.min(left), merged.1.max(right));
            next += 1;
        }
        if cursor < end {
            gaps.push((cursor, end));
        }
        if next == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if next > first + 1 {
                self.ranges.drain(first + 1..next);
            }
        }
        merged
    }
    /// Removes everything below `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 > offset {
                front.0 = front.0.max(offset);
                return;
            }
            self.ranges.pop_front();
        }
    }
    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }
    /// Removes the first range if it begins at or below `offset`, and returns its end.
    pub fn take_reached(&mut self, offset: u64) -> Option<u64> {
        self.ranges.front().filter(|front| front.0 <= offset)?;
        self.ranges.pop_front().map(|front| front.1)
    }
    /// The ranges, highest first.
    pub fn iter_down(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().rev().copied()
    }
    /// The range that contains `offset`.
    pub fn range_at(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= offset);
        self.ranges.get(index).copied().filter(|range| range.0 <= offset)
    }
    /// End of the highest range.
    pub fn highest(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(set: &RangeSet) -> Vec<(u64, u64)> {
        set.ranges.iter().copied().collect()
    }

    #[test]
    fn insertions_merge_and_report_the_new_parts() {
        let (mut set, mut gaps) = (RangeSet::default(), Vec::new());
        assert_eq!(set.insert(10, 20, &mut gaps), (10, 20));
        assert_eq!(set.insert(30, 40, &mut gaps), (30, 40));
        assert_eq!(set.insert(50, 60, &mut gaps), (50, 60));
        assert_eq!(gaps, [(50, 60)]);
        assert_eq!(set.insert(15, 55, &mut gaps), (10, 60));
        assert_eq!(gaps, [(20, 30), (40, 50)]);
        assert_eq!(ranges(&set), [(10, 60)]);
        assert_eq!(set.insert(12, 18, &mut gaps), (10, 60));
        assert!(gaps.is_empty());
        assert_eq!((set.range_at(10), set.range_at(60), set.highest()), (Some((10, 60)), None, Some(60)));
        assert_eq!(set.insert(60, 70, &mut gaps), (10, 70)); // adjacent ranges join
        assert_eq!(set.insert(0, 10, &mut gaps), (0, 70));
        assert_eq!(ranges(&set), [(0, 70)]);
    }

    #[test]
    fn agrees_with_a_bitmap_on_random_ranges() {
        let mut stream = paceline_net::Stream::new(5, "ranges");
        for _ in 0..200 {
            let (mut set, mut gaps, mut bits) = (RangeSet::default(), Vec::new(), [false; 100]);
            for _ in 0..20 {
                let start = stream.below(90);
                let end = start + 1 + stream.below(10);
                let merged = set.insert(start, end, &mut gaps);
                assert!(merged.0 <= start && end <= merged.1);
                for &(left, right) in &gaps {
                    assert!((left..right).all(|i| !bits[i as usize]));
                }
                let new: u64 = gaps.iter().map(|gap| gap.1 - gap.0).sum();
                assert_eq!(new as usize, (start..end).filter(|i| !bits[*i as usize]).count());
                bits[start as usize..end as usize].fill(true);
                if stream.chance(0.2) {
                    let below = stream.below(40);
                    set.remove_below(below);
                    bits[..below as usize].fill(false);
                }
                assert!(ranges(&set).iter().zip(ranges(&set).iter().skip(1)).all(|(a, b)| a.1 < b.0));
                let held: u64 = ranges(&set).iter().map(|range| range.1 - range.0).sum();
                assert_eq!(held as usize, bits.iter().filter(|bit| **bit).count());
            }
        }
    }

    #[test]
    fn a_reached_range_is_removed_as_a_whole() {
        let (mut set, mut gaps) = (RangeSet::default(), Vec::new());
        set.insert(10, 20, &mut gaps);
        assert_eq!(set.take_reached(9), None);
        assert_eq!(set.take_reached(10), Some(20));
        assert!(set.is_empty());
    }
}
