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
    /// Due time of each node and the serial number of its entry; padded with [`NEVER`] to a power of two.
    due: Vec<(Instant, u64)>,
    /// Binary tree of node indices: place `i` has the earlier of places `2 * i` and `2 * i + 1`, place 1 the
    /// earliest of all; the second half of the places are the nodes themselves.
    winners: Vec<u32>,
    /// Serial number of the last entry.
    entered: u64,
}

impl Agenda {
    /// Adds a node that is not due.
    pub fn add(&mut self) {
        self.nodes += 1;
        if self.nodes > self.due.len() {
            let places = self.nodes.next_power_of_two();
            self.due.resize(places, (NEVER, 0));
            self.winners = (0..2 * places).map(|place| place.saturating_sub(places) as u32).collect();
            (1..places).rev().for_each(|place| self.winners[place] = self.winner(place));
        }
    }
    /// Due time of a node.
    #[inline]
    pub fn due(&self, node: usize) -> Instant {
        self.due[node].0
    }
    /// Replaces the due time of a node.
    #[inline]
    pub fn enter(&mut self, node: usize, at: Instant) {
        self.entered += 1;
        self.due[node] = (at, self.entered);
        self.update(node);
    }
    /// The earliest due time and its node; none if no node is due.
    #[inline]
    pub fn first(&self) -> Option<(Instant, usize)> {
        let node = *self.winners.get(1)? as usize;
        let (at, _) = self.due[node];
        (at != NEVER).then_some((at, node))
    }
    /// The node that is due first of the two below a place.
    fn winner(&self, place: usize) -> u32 {
        let (a, b) = (self.winners[2 * place], self.winners[2 * place + 1]);
        if self.due[b as usize] < self.due[a as usize] { b } else { a }
    }
    /// Updates the places from a node to the root.
    #[inline]
    fn update(&mut self, node: usize) {
        let mut place = self.due.len() + node;
        let (mut winner, mut due) = (node as u32, self.due[node]);
        while place > 1 {
            let other = self.winners[place ^ 1];
            let other_due = self.due[other as usize];
            if other_due < due {
                (winner, due) = (other, other_due);
            }
            place /= 2;
            if self.winners[place] == winner && winner as usize != node {
                break; // the winner is another node, as before: places nearer to the root stay
            }
            self.winners[place] = winner;
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
