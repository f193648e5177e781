//! A bounded table of connections. Keys are compared in full; a connection that finds no place is simply not
//! known, and a scheme does not filter what it does not know.

use paceline_net::{Duration, FlowKey, Instant};
use std::collections::BTreeMap;

/// Connections known at once. A station has tens; a gateway's queue in front of one cell has thousands.
pub(super) const MAX_FLOWS: usize = 16_384;
/// A connection without a segment for so long is forgotten when another needs its place.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// Entries examined for one to forget when a new connection finds the table full: bounds the work per packet.
const PROBES: usize = 8;

/// Index of a connection in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlowId(pub u32);

#[derive(Clone, Debug)]
struct Entry<S> {
    key: FlowKey,
    seen: Instant,
    state: S,
}

/// The table, with a scheme's own state for each connection.
#[derive(Clone, Debug)]
pub(super) struct FlowTable<S> {
    index: BTreeMap<FlowKey, u32>,
    entries: Vec<Entry<S>>,
    /// The connection of the last look-up: trains of ACKs skip the search.
    recent: usize,
    /// Where the search for an entry to forget goes on.
    hand: usize,
}

impl<S: Default> FlowTable<S> {
    pub fn new() -> Self {
        Self { index: BTreeMap::new(), entries: Vec::new(), recent: 0, hand: 0 }
    }

    /// The connection of `key`, if it is known.
    pub fn find(&mut self, now: Instant, key: FlowKey) -> Option<FlowId> {
        let at = match self.entries.get(self.recent) {
            Some(entry) if entry.key == key => self.recent,
            _ => *self.index.get(&key)? as usize,
        };
        self.entries[at].seen = now;
        self.recent = at;
        Some(FlowId(at as u32))
    }

    /// The connection of `key`, entered if there is a place. `busy` tells whether a connection still has listed
    /// ACKs in the queue, so that its index must not be given away.
    pub fn enter(&mut self, now: Instant, key: FlowKey, busy: impl Fn(FlowId) -> bool) -> Option<FlowId> {
        if let Some(known) = self.find(now, key) {
            return Some(known);
        }
        let entry = Entry { key, seen: now, state: S::default() };
        let at = if self.is_full() {
            let at = self.forgettable(now, busy)?;
            self.index.remove(&self.entries[at].key);
            self.entries[at] = entry;
            at
        } else {
            self.entries.push(entry);
            self.entries.len() - 1
        };
        self.index.insert(key, at as u32);
        self.recent = at;
        Some(FlowId(at as u32))
    }

    /// Whether a new connection has to wait for another to be forgotten.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_FLOWS
    }

    fn forgettable(&mut self, now: Instant, busy: impl Fn(FlowId) -> bool) -> Option<usize> {
        for _ in 0..PROBES {
            self.hand = (self.hand + 1) % self.entries.len();
            if now.since(self.entries[self.hand].seen) > IDLE && !busy(FlowId(self.hand as u32)) {
                return Some(self.hand);
            }
        }
        None
    }

    pub fn state(&mut self, flow: FlowId) -> &mut S {
        &mut self.entries[flow.0 as usize].state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> FlowKey {
        let src = std::net::Ipv4Addr::from(0xc612_0000 + n).into();
        FlowKey { src, dst: "198.19.0.1".parse().unwrap(), src_port: 5000, dst_port: 80 }
    }

    #[test]
    fn a_full_table_knows_no_more_until_one_is_idle() {
        let mut table: FlowTable<u32> = FlowTable::new();
        let free = |_: FlowId| false;
        for n in 0..MAX_FLOWS as u32 {
            let flow = table.enter(Instant::ZERO, key(n), free).unwrap();
            *table.state(flow) = n;
        }
        let newcomer = key(MAX_FLOWS as u32);
        assert_eq!(table.enter(Instant::ZERO, newcomer, free), None);
        let known = table.enter(Instant::ZERO, key(7), free).unwrap();
        assert_eq!(*table.state(known), 7);

        let later = Instant::ZERO + IDLE + Duration::from_nanos(1);
        assert_eq!(table.enter(later, newcomer, |_| true), None, "busy entries stay");
        let flow = table.enter(later, newcomer, free).unwrap();
        assert_eq!(*table.state(flow), 0, "a reused entry starts afresh");
        assert_eq!(table.index.len(), MAX_FLOWS);
    }
}
