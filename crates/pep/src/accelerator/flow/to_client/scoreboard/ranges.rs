//! A set of stream offsets as sorted, disjoint, non-adjacent ranges.

use crate::accelerator::flow::memory::shrink_if_empty;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(in crate::accelerator) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// Adds `[start, end)`. Calls `new` for each part that was not in the set; returns the range that
    /// contains it now.
    pub fn insert(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) -> (u64, u64) {
        let first = match self.ranges.back() {
            Some(last) if last.0 <= start => self.ranges.len() - usize::from(last.1 >= start),
            _ => self.ranges.partition_point(|range| range.1 < start),
        };
        let (mut merged, mut cursor, mut behind) = ((start, end), start, first);
        while let Some(&(left, right)) = self.ranges.get(behind).filter(|range| range.0 <= end) {
            if left > cursor {
                new(cursor, left);
            }
            cursor = cursor.max(right);
            merged = (merged.0.min(left), merged.1.max(right));
            behind += 1;
        }
        if cursor < end {
            new(cursor, end);
        }
        if behind == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..behind);
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
    /// Frees the memory of an empty set.
    pub fn shrink_if_empty(&mut self) {
        shrink_if_empty(&mut self.ranges);
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
    pub fn len(&self) -> usize {
        self.ranges.len()
    }
    /// The end of the highest range.
    pub fn end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.1)
    }
}
