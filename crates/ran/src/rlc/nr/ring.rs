//! Elements with consecutive numbers, of which the oldest are removed.

use std::collections::VecDeque;

/// Elements numbered from [`Ring::start`] to [`Ring::end`], exclusive. Storage is kept for reuse.
#[derive(Clone, Debug)]
pub struct Ring<E> {
    start: u64,
    elements: VecDeque<E>,
}

impl<E> Default for Ring<E> {
    fn default() -> Self {
        Self { start: 0, elements: VecDeque::new() }
    }
}

impl<E> Ring<E> {
    /// Number of the oldest element.
    pub fn start(&self) -> u64 {
        self.start
    }
    /// The number that the next element gets.
    pub fn end(&self) -> u64 {
        self.start + self.elements.len() as u64
    }
    /// Whether the ring has no element.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
    /// The element with this number, unless removed or not added yet.
    pub fn get(&self, number: u64) -> Option<&E> {
        self.elements.get(usize::try_from(number.checked_sub(self.start)?).ok()?)
    }
    /// As [`Ring::get`].
    pub fn get_mut(&mut self, number: u64) -> Option<&mut E> {
        self.elements.get_mut(usize::try_from(number.checked_sub(self.start)?).ok()?)
    }
    /// Adds an element and returns its number.
    pub fn push(&mut self, element: E) -> u64 {
        self.elements.push_back(element);
        self.end() - 1
    }
    /// The oldest element.
    pub fn front(&self) -> Option<&E> {
        self.elements.front()
    }
    /// The elements in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.elements.iter()
    }
    /// As [`Ring::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut E> {
        self.elements.iter_mut()
    }
    /// Removes the oldest element.
    pub fn pop(&mut self) -> Option<E> {
        let element = self.elements.pop_front()?;
        self.start += 1;
        Some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_numbers() {
        let mut ring = Ring::default();
        assert_eq!(['a', 'b', 'c'].map(|letter| ring.push(letter)), [0, 1, 2]);
        assert_eq!((ring.pop(), ring.get(0), ring.get(2), ring.get(3)), (Some('a'), None, Some(&'c'), None));
        assert_eq!((ring.start(), ring.end(), ring.front()), (1, 3, Some(&'b')));
    }
}
