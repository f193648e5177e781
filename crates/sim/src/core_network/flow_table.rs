//! Flows by their addresses and ports, in an order that does not depend on the process.
//!
//! Mostly a packet belongs to the flow of the packet before it, so that flow is compared first.

use paceline_net::FlowKey;
use std::collections::BTreeMap;

/// States of flows.
#[derive(Debug)]
pub struct FlowTable<T> {
    flows: Vec<(FlowKey, T)>,
    /// Index of each flow in `flows`.
    places: BTreeMap<FlowKey, usize>,
    /// Index of the flow that was looked up last.
    latest: usize,
}

impl<T> Default for FlowTable<T> {
    fn default() -> Self {
        Self { flows: Vec::new(), places: BTreeMap::new(), latest: 0 }
    }
}

impl<T> FlowTable<T> {
    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }
    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
    /// The state of a flow.
    #[inline]
    pub fn get_mut(&mut self, key: &FlowKey) -> Option<&mut T> {
        if self.flows.get(self.latest).is_none_or(|(latest, _)| latest != key) {
            self.latest = *self.places.get(key)?;
        }
        self.flows.get_mut(self.latest).map(|(_, state)| state)
    }
    /// Adds a flow that the table does not have.
    pub fn insert(&mut self, key: FlowKey, state: T) -> &mut T {
        self.latest = self.flows.len();
        let known = self.places.insert(key, self.latest);
        debug_assert!(known.is_none(), "{key} is in the table");
        self.flows.push((key, state));
        &mut self.flows[self.latest].1
    }
    /// Removes a flow; returns whether the table had it.
    pub fn remove(&mut self, key: &FlowKey) -> bool {
        let Some(place) = self.places.remove(key) else { return false };
        self.flows.swap_remove(place);
        if let Some((moved, _)) = self.flows.get(place) {
            self.places.insert(*moved, place);
        }
        true
    }
    /// Keeps the flows whose state fulfils a condition.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.flows.retain(|(_, state)| keep(state));
        self.places = self.flows.iter().enumerate().map(|(place, (key, _))| (*key, place)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn the_table_agrees_with_an_ordered_map() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for seed in 0..50 {
            let mut stream = Stream::new(seed, "flows");
            let (mut table, mut map) = (FlowTable::default(), BTreeMap::new());
            for step in 0..400u64 {
                let src_port = stream.below(12) as u16;
                let key = FlowKey { src: address, dst: address, src_port, dst_port: 80 };
                match stream.below(20) {
                    0..5 => assert_eq!(table.remove(&key), map.remove(&key).is_some(), "seed {seed}"),
                    5 => {
                        table.retain(|value| value % 3 != 0);
                        map.retain(|_, value| *value % 3 != 0);
                    }
                    6..12 if !map.contains_key(&key) => {
                        assert_eq!(*table.insert(key, step), step);
                        map.insert(key, step);
                    }
                    _ => assert_eq!(table.get_mut(&key), map.get_mut(&key), "seed {seed}"),
                }
                assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()), "seed {seed}");
            }
        }
    }
}
