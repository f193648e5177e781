//! Sets of byte positions as disjoint ranges.

/// Disjoint ranges `[from, to)` of byte positions in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ranges(pub(super) Vec<(u32, u32)>);

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn first(&self) -> Option<(u32, u32)> {
        self.0.first().copied()
    }
    pub(super) fn bytes(&self) -> u32 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }
    pub(super) fn contains(&self, from: u32, to: u32) -> bool {
        self.0.iter().any(|(a, b)| *a <= from && to <= *b)
    }
    /// Adds a range and merges it with the ranges that it touches.
    pub(super) fn insert(&mut self, mut from: u32, mut to: u32) {
        self.0.retain(|(a, b)| {
            let apart = *b < from || to < *a;
            if !apart {
                (from, to) = (from.min(*a), to.max(*b));
            }
            apart
        });
        let at = self.0.partition_point(|(a, _)| *a < from);
        self.0.insert(at, (from, to));
    }
    /// Removes the first `bytes` bytes, all of which lie in the first range.
    pub(super) fn remove_front(&mut self, bytes: u32) {
        self.0[0].0 += bytes;
        if self.0[0].0 == self.0[0].1 {
            self.0.remove(0);
        }
    }
}
