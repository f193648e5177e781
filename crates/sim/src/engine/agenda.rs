//! The agenda: the due time of every node, as a tournament tree whose root is the earliest.
//!
//! Entering a time costs one comparison per level, half as many as a binary heap, and replaces the node's old
//! entry.

use paceline_net::Instant;

/// Due time of a node without a timeout.
pub(crate) const NEVER: Instant = Instant::MAX;

/// Due times of all nodes. Of equal times, the one entered first is first.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    nodes: usize,
    /// Entry of each node; padded with those of no node to a power of two.
    entries: Vec<Entry>,
    /// Binary tree of node indices: place `i` has the earlier of places `2 * i` and `2 * i + 1`, place 1 the
    /// earliest of all; the second half of the places are the nodes themselves.
    winners: Vec<u32>,
    /// Serial number of the last entry.
    entered: u64,
}

/// The due time of a node in the upper half, and the serial number of the entry in the lower half: one
/// comparison orders both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

impl Entry {
    fn new(at: Instant, serial: u64) -> Self {
        Self(u128::from(at.as_nanos()) << 64 | u128::from(serial))
    }
    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

impl Agenda {
    /// Adds a node that is not due.
    pub fn add(&mut self) {
        self.nodes += 1;
        if self.nodes > self.entries.len() {
            let places = self.nodes.next_power_of_two();
            self.entries.resize(places, Entry::new(NEVER, 0));
            self.winners = (0..2 * places).map(|place| place.saturating_sub(places) as u32).collect();
            (1..places).rev().for_each(|place| self.winners[place] = self.winner(place));
        }
    }
    /// Due time of a node.
    #[inline]
    pub fn due(&self, node: usize) -> Instant {
        self.entries[node].at()
    }
    /// Replaces the due time of a node.
    #[inline]
    pub fn enter(&mut self, node: usize, at: Instant) {
        self.entered += 1;
        self.entries[node] = Entry::new(at, self.entered);
        self.update(node);
    }
    /// The earliest due time and its node; none if no node is due.
    #[inline]
    pub fn first(&self) -> Option<(Instant, usize)> {
        let node = *self.winners.get(1)? as usize;
        let at = self.entries[node].at();
        (at != NEVER).then_some((at, node))
    }
    /// The node that is due first of the two below a place.
    fn winner(&self, place: usize) -> u32 {
        let (a, b) = (self.winners[2 * place], self.winners[2 * place + 1]);
        if self.entries[b as usize] < self.entries[a as usize] { b } else { a }
    }
    /// Updates the places from a node to the root.
    #[inline]
    fn update(&mut self, node: usize) {
        let entries = &self.entries[..];
        let winners = &mut self.winners[..2 * entries.len()];
        let mut place = entries.len() + node;
        let (mut winner, mut entry) = (node as u32, entries[node]);
        while place > 1 {
            let other = winners[place ^ 1];
            let others = entries[other as usize];
            (winner, entry) = if others < entry { (other, others) } else { (winner, entry) };
            place /= 2;
            if winners[place] == winner && winner as usize != node {
                break; // the winner is another node, as before: places nearer to the root stay
            }
            winners[place] = winner;
        }
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
