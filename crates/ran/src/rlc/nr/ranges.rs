//! Sets of byte positions of one SDU.

/// The end of a range that reaches the last byte of its SDU: the receiver need not know the SDU's length.
pub const END: u32 = u32::MAX;

/// Disjoint ranges `[from, to)` in ascending order. The first is stored in place, since most SDUs have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    first: Option<(u32, u32)>,
    rest: Vec<(u32, u32)>,
}

impl Ranges {
    /// Whether the set has no byte.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
    /// Whether the set has every byte of an SDU.
    pub fn is_complete(&self) -> bool {
        self.first == Some((0, END))
    }
    /// The first range.
    pub fn first(&self) -> Option<(u32, u32)> {
        self.first
    }
    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.first.into_iter().chain(self.rest.iter().copied())
    }
    /// Number of bytes of all ranges.
    pub fn bytes(&self) -> u32 {
        self.iter().map(|(from, to)| to - from).sum()
    }
    /// Whether a byte is missing before the last byte of the set.
    pub fn has_gap(&self) -> bool {
        self.first.is_some_and(|(from, _)| from > 0) || !self.rest.is_empty()
    }
    /// Whether all bytes of `from..to` are in the set.
    pub fn contains(&self, from: u32, to: u32) -> bool {
        self.iter().any(|(a, b)| a <= from && to <= b)
    }
    /// The ranges that the set lacks of a whole SDU.
    pub fn missing(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let starts = std::iter::once(0).chain(self.iter().map(|(_, to)| to));
        let ends = self.iter().map(|(from, _)| from).chain(std::iter::once(END));
        starts.zip(ends).filter(|(from, to)| from < to)
    }
    /// Adds a range and merges it with the ranges that it touches.
    pub fn insert(&mut self, mut from: u32, mut to: u32) {
        if from >= to {
            return;
        }
        match self.first {
            None => self.first = Some((from, to)),
            Some((a, b)) if self.rest.is_empty() && a <= to && from <= b => {
                self.first = Some((a.min(from), b.max(to)));
            }
            Some(first) => {
                self.rest.insert(0, first);
                self.rest.retain(|(a, b)| {
                    let apart = *b < from || to < *a;
                    if !apart {
                        (from, to) = (from.min(*a), to.max(*b));
                    }
                    apart
                });
                let at = self.rest.partition_point(|(a, _)| *a < from);
                self.rest.insert(at, (from, to));
                self.first = Some(self.rest.remove(0));
            }
        }
    }
    /// Removes the first `bytes` bytes, all of which lie in the first range.
    pub fn remove_front(&mut self, bytes: u32) {
        let Some((from, to)) = self.first else { return };
        self.first = if from + bytes < to {
            Some((from + bytes, to))
        } else if self.rest.is_empty() {
            None
        } else {
            Some(self.rest.remove(0))
        };
    }
    /// Removes all bytes.
    pub fn clear(&mut self) {
        self.first = None;
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_where_they_touch() {
        let mut set = Ranges::default();
        for (from, to) in [(10, 20), (40, END), (25, 30), (20, 25)] {
            set.insert(from, to);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [(10, 30), (40, END)]);
        assert_eq!(set.missing().collect::<Vec<_>>(), [(0, 10), (30, 40)]);
        assert!(set.has_gap() && set.contains(12, 30) && !set.contains(5, 12));
        set.insert(0, 40);
        assert!(set.is_complete() && !set.has_gap());
    }

    #[test]
    fn bytes_are_removed_from_the_front() {
        let mut set = Ranges::default();
        set.insert(0, 10);
        set.insert(20, 30);
        set.remove_front(4);
        assert_eq!((set.first(), set.bytes()), (Some((4, 10)), 16));
        set.remove_front(6);
        assert_eq!(set.first(), Some((20, 30)));
        set.remove_front(10);
        assert!(set.is_empty());
    }
}
