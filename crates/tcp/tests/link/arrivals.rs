//! Packets in flight, in the order of their arrival.

use paceline_net::Instant;
use std::collections::BTreeMap;

/// Items by arrival time; those of one time keep the order in which they were added.
pub struct Arrivals<T> {
    by_time: BTreeMap<(Instant, u64), T>,
    count: u64,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), count: 0 }
    }
}

impl<T> Arrivals<T> {
    pub fn push(&mut self, at: Instant, item: T) {
        self.count += 1;
        self.by_time.insert((at, self.count), item);
    }
    pub fn next_at(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|(key, _)| key.0)
    }
    pub fn pop(&mut self) -> Option<T> {
        self.by_time.pop_first().map(|(_, item)| item)
    }
}
