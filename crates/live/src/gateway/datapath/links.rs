//! The link headers of connections: what the accelerator makes leaves as the last packet of its direction came.
//!
//! The table is bounded. Connections of which nothing has come since the table last filled up are forgotten, except
//! those that the accelerator holds.

use super::frame::Link;
use paceline_net::{FlowKey, HashKey};
use paceline_pep::accelerator::Side;
#[allow(clippy::disallowed_types)]
// with a key that outsiders, who choose what is in it, do not know; never iterated in order
use std::collections::HashMap;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// By the side where they leave.
    links: [Option<Link>; 2],
}

#[allow(clippy::disallowed_types)]
type Entries = HashMap<FlowKey, Entry, HashKey>;

/// Link headers by connection, in the direction from server to mobile.
pub struct Links {
    recent: Entries,
    older: Entries,
    key: HashKey,
    limit: usize,
}

impl Links {
    /// An empty table for so many connections at once, and as many forgotten ones.
    pub fn new(limit: usize, seed: u64) -> Self {
        let key = HashKey::new(seed);
        Self { recent: Entries::with_hasher(key), older: Entries::with_hasher(key), key, limit }
    }
    /// Another limit, from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    /// A packet of the connection leaves by `side` with this header. False if the connection's other packets belong
    /// to another network: one connection cannot be told from the other then. A `syn` may begin one in another network
    /// if the accelerator does not hold the old one.
    pub fn learn(
        &mut self,
        key: FlowKey,
        side: Side,
        link: Link,
        syn: bool,
        held: impl Fn(&FlowKey) -> bool,
    ) -> bool {
        if let Some(entry) = self.recent.get_mut(&key) {
            if entry.learn(side, link) {
                return true;
            }
            let anew = syn && !held(&key);
            if anew {
                *entry = Entry::default();
            }
            return anew && entry.learn(side, link);
        }
        if self.recent.len() >= self.limit {
            let recent = std::mem::replace(&mut self.recent, Entries::with_hasher(self.key));
            let older = std::mem::replace(&mut self.older, recent);
            self.recent.extend(older.into_iter().filter(|(key, _)| held(key)));
        }
        let mut entry = self.older.remove(&key).unwrap_or_default();
        let known = entry.learn(side, link);
        self.recent.insert(key, entry);
        known
    }
    /// The header for a packet that leaves by `side`.
    pub fn find(&self, key: &FlowKey, side: Side) -> Option<Link> {
        self.recent.get(key).or_else(|| self.older.get(key))?.links[side as usize]
    }
}

impl Entry {
    fn learn(&mut self, side: Side, link: Link) -> bool {
        if self.links[side as usize] == Some(link) {
            return true;
        }
        if self.links.iter().flatten().any(|known| !known.networks().eq(link.networks())) {
            return false;
        }
        self.links[side as usize] = Some(link);
        true
    }
}
