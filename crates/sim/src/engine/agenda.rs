//! Which node is due next: a tournament of all nodes' times. To enter a time costs one comparison per round, half as
//! many as a heap, and nothing stale is ever left behind.

use paceline_net::Instant;

/// A time that never comes.
pub(crate) const NEVER: Instant = Instant::MAX;

/// The times of all nodes; equal times go in the order in which they were entered.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    nodes: usize,
    /// Per node, when it is due, and in which order that was entered; up to a power of two, without a node, never.
    due: Vec<(Instant, u64)>,
    /// A binary tree: place 1 has the winner of all, places `2 * i` and `2 * i + 1` the two that met for place `i`;
    /// the second half are the nodes themselves.
    winners: Vec<u32>,
    entered: u64,
}

impl Agenda {
    /// Adds a node, which is never due yet.
    pub fn add(&mut self) {
        self.nodes += 1;
        if self.nodes > self.due.len() {
            let places = self.nodes.next_power_of_two();
            self.due.resize(places, (NEVER, 0));
            self.winners = (0..2 * places).map(|place| place.saturating_sub(places) as u32).collect();
            (1..places).rev().for_each(|place| self.winners[place] = self.winner(place));
        }
    }
    /// When a node is due.
    #[inline]
    pub fn due(&self, node: usize) -> Instant {
        self.due[node].0
    }
    /// Enters when a node is due, in place of what was entered before.
    #[inline]
    pub fn enter(&mut self, node: usize, at: Instant) {
        self.entered += 1;
        self.due[node] = (at, self.entered);
        self.play(node);
    }
    /// The next time and its node.
    #[inline]
    pub fn first(&self) -> Option<(Instant, usize)> {
        let node = *self.winners.get(1)? as usize;
        let (at, _) = self.due[node];
        (at != NEVER).then_some((at, node))
    }
    /// Which of the two that meet for a place is due first.
    fn winner(&self, place: usize) -> u32 {
        let (a, b) = (self.winners[2 * place], self.winners[2 * place + 1]);
        if self.due[b as usize] < self.due[a as usize] { b } else { a }
    }
    /// Plays the rounds of a node again.
    #[inline]
    fn play(&mut self, node: usize) {
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
                break; // another node won as before: nothing changes further up
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
    fn the_first_is_the_earliest_and_of_equal_times_the_one_entered_first() {
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
