//! The agenda: the due time of every node, as a tournament tree whose root is the earliest.
//!
//! Entering a time costs one comparison per level, half as many as a binary heap, and replaces the node's old
//! entry.

use paceline_net::Instant;

/// Due time of a node without a timeout.
pub(crate) const NEVER: Instant = Instant::MAX;

/// Bits of a node's index in an entry. Chosen: a million nodes; 44 bits are left for the serial number, which
/// last for months at a million entries in a second.
const NODE_BITS: u32 = 20;

/// From the upper half to the lowest bits: the due time of a node, the serial number of the entry, and the
/// node. One comparison orders them by time, then by serial number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

impl Entry {
    fn new(at: Instant, serial: u64, node: usize) -> Self {
        Self(u128::from(at.as_nanos()) << 64 | u128::from(serial << NODE_BITS | node as u64))
    }
    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
    fn node(self) -> usize {
        self.0 as usize & ((1 << NODE_BITS) - 1)
    }
}

/// Due times of all nodes. Of equal times, the one entered first is first.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    nodes: usize,
    /// Binary tree: place `i` has the earlier of places `2 * i` and `2 * i + 1`, place 1 the earliest of all;
    /// the second half of the places has the entries of the nodes, padded to a power of two.
    tree: Vec<Entry>,
    /// Serial number of the last entry.
    entered: u64,
}

impl Agenda {
    /// Adds a node that is not due.
    pub fn add(&mut self) {
        self.nodes += 1;
        assert!(self.nodes <= 1 << NODE_BITS, "an agenda has at most 2^{NODE_BITS} nodes");
        let before = self.tree.len() / 2;
        if self.nodes > before {
            let places = self.nodes.next_power_of_two();
            let entries = (0..places).map(|node| match self.tree.get(before + node) {
                Some(entry) if node < before => *entry,
                _ => Entry::new(NEVER, 0, node),
            });
            let padding = std::iter::repeat_n(Entry::new(NEVER, 0, 0), places);
            self.tree = padding.chain(entries).collect();
            (1..places).rev().for_each(|at| self.tree[at] = self.tree[2 * at].min(self.tree[2 * at + 1]));
        }
    }
    /// Due time of a node.
    #[inline]
    pub fn due(&self, node: usize) -> Instant {
        self.tree[self.tree.len() / 2 + node].at()
    }
    /// Replaces the due time of a node.
    #[inline]
    pub fn enter(&mut self, node: usize, at: Instant) {
        self.entered += 1;
        let mut place = self.tree.len() / 2 + node;
        let mut entry = Entry::new(at, self.entered, node);
        self.tree[place] = entry;
        while place > 1 {
            entry = entry.min(self.tree[place ^ 1]);
            place /= 2;
            if self.tree[place] == entry {
                break; // places nearer to the root stay
            }
            self.tree[place] = entry;
        }
    }
    /// The earliest due time and its node; none if no node is due.
    #[inline]
    pub fn first(&self) -> Option<(Instant, usize)> {
        let first = *self.tree.get(1)?;
        (first.at() != NEVER).then_some((first.at(), first.node()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    #[test]
    fn first_is_the_earliest_time_and_of_equal_times_the_one_entered_first() {
        for seed in 0..100 {
            let mut stream = Stream::new(seed, "agenda");
            let (mut agenda, mut naive) = (Agenda::default(), Vec::new());
            for entered in 1..400u64 {
                if naive.is_empty() || stream.chance(0.1) {
                    agenda.add();
                    naive.push((NEVER, 0));
                }
                let node = stream.below(naive.len() as u64) as usize;
                let at = match stream.below(12) {
                    0..3 => NEVER,
                    _ => Instant::from_nanos(stream.below(20)),
                };
                agenda.enter(node, at);
                naive[node] = (at, entered);
                let first = naive.iter().enumerate().map(|(node, (at, order))| (*at, *order, node)).min();
                let expected = first.filter(|first| first.0 != NEVER).map(|(at, _, node)| (at, node));
                assert_eq!(agenda.first(), expected, "seed {seed}, entry {entered}");
            }
        }
    }
}
