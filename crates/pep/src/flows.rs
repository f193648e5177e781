//! A bounded table of connections with the state that a scheme keeps of each. Keys are compared in full
//! (safety rule 1). A connection for which the table has no room has no state and is not filtered (safety
//! rule 19).

use paceline_net::{Duration, FlowKey, Instant};
use std::collections::BTreeMap;

/// Connections in the table at once. Chosen: a station has tens, a gateway's queue ahead of one cell has
/// thousands.
pub(crate) const MAX_FLOWS: usize = 16_384;
/// A connection without a segment for this long may be replaced by another. Chosen: the filter stands down on
/// sparse connections anyway, so that little is lost.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
/// Entries examined for one to replace when a new connection finds the table full. Chosen: bounds the work
/// per packet.
const PROBES: usize = 8;

/// Index of a connection in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlowId(pub u32);

#[derive(Clone, Debug)]
struct Entry<S> {
    key: FlowKey,
    seen: Instant,
    state: S,
}

/// The table, with a scheme's own state for each connection.
#[derive(Clone, Debug)]
pub(crate) struct FlowTable<S> {
    index: BTreeMap<FlowKey, u32>,
    entries: Vec<Entry<S>>,
    /// The connection of the last look-up: a train of ACKs of one connection skips the search.
    recent: usize,
    /// Where the search for an entry to replace continues (as a clock hand).
    hand: usize,
}

impl<S: Default> FlowTable<S> {
    pub fn new() -> Self {
        Self { index: BTreeMap::new(), entries: Vec::new(), recent: 0, hand: 0 }
    }

    /// The connection of `key`, if the table has it.
    pub fn find(&mut self, now: Instant, key: FlowKey) -> Option<FlowId> {
        let at = match self.entries.get(self.recent) {
            Some(entry) if entry.key == key => self.recent,
            _ => *self.index.get(&key)? as usize,
        };
        self.entries[at].seen = now;
        self.recent = at;
        Some(FlowId(at as u32))
    }

    /// The connection of `key`, inserted if there is room. `busy`: whether a connection has candidates in the
    /// queue, so that its index must not be reused.
    pub fn find_or_insert(
        &mut self,
        now: Instant,
        key: FlowKey,
        busy: impl Fn(FlowId) -> bool,
    ) -> Option<FlowId> {
        if let Some(known) = self.find(now, key) {
            return Some(known);
        }
        let entry = Entry { key, seen: now, state: S::default() };
        let at = if self.is_full() {
            let at = self.replaceable(now, busy)?;
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

    /// Whether a new connection needs the place of another.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_FLOWS
    }

    fn replaceable(&mut self, now: Instant, busy: impl Fn(FlowId) -> bool) -> Option<usize> {
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

    // keeps: ack-filter.19
    #[test]
    fn a_full_table_takes_a_new_connection_only_in_place_of_an_idle_one() {
        let mut table: FlowTable<u32> = FlowTable::new();
        let free = |_: FlowId| false;
        for n in 0..MAX_FLOWS as u32 {
            let flow = table.find_or_insert(Instant::ZERO, key(n), free).unwrap();
            *table.state(flow) = n;
        }
        let newcomer = key(MAX_FLOWS as u32);
        assert_eq!(table.find_or_insert(Instant::ZERO, newcomer, free), None);
        let known = table.find_or_insert(Instant::ZERO, key(7), free).unwrap();
        assert_eq!(*table.state(known), 7);

        let later = Instant::ZERO + IDLE + Duration::from_nanos(1);
        assert_eq!(table.find_or_insert(later, newcomer, |_| true), None, "busy entries stay");
        let flow = table.find_or_insert(later, newcomer, free).unwrap();
        assert_eq!(*table.state(flow), 0, "a reused entry has new state");
        assert_eq!(table.index.len(), MAX_FLOWS);
    }
}
