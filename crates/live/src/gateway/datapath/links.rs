//! The link headers of connections: a packet that the accelerator makes leaves with the link header of the
//! last packet that arrived in its direction.
//!
//! The table is bounded and has a recent and an older half; when the recent half is full, it becomes the
//! older one, and the connections of the former older half are forgotten, except those that the accelerator
//! has.

use super::frame::Link;
use paceline_net::{FlowKey, HashKey};
use paceline_pep::accelerator::Side;
#[allow(clippy::disallowed_types)]
// keyed with a secret, since outsiders choose the entries; the order of iteration does not matter
use std::collections::HashMap;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// By the side where the packets leave.
    links: [Option<Link>; 2],
}

#[allow(clippy::disallowed_types)]
type Entries = HashMap<FlowKey, Entry, HashKey>;

/// Link headers by connection (key from server to mobile).
pub struct Links {
    recent: Entries,
    older: Entries,
    key: HashKey,
    limit: usize,
}

impl Links {
    /// An empty table, whose halves have up to `limit` connections each.
    pub fn new(limit: usize, seed: u64) -> Self {
        let key = HashKey::new(seed);
        Self { recent: Entries::with_hasher(key), older: Entries::with_hasher(key), key, limit }
    }
    /// Changes the limit.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }
    /// Records that packets of the connection leave by `side` with this header. False if other packets of
    /// these addresses and ports are in another network (VLAN): the two connections cannot be distinguished
    /// then. A SYN opens a new connection, which may be in another network, unless `is_accelerated` is true
    /// for the old one.
    pub fn learn(
        &mut self,
        key: FlowKey,
        side: Side,
        link: Link,
        syn: bool,
        is_accelerated: impl Fn(&FlowKey) -> bool,
    ) -> bool {
        if let Some(entry) = self.recent.get_mut(&key) {
            if entry.learn(side, link) {
                return true;
            }
            let is_new = syn && !is_accelerated(&key);
            if is_new {
                *entry = Entry::default();
            }
            return is_new && entry.learn(side, link);
        }
        if self.recent.len() >= self.limit {
            let recent = std::mem::replace(&mut self.recent, Entries::with_hasher(self.key));
            let older = std::mem::replace(&mut self.older, recent);
            self.recent.extend(older.into_iter().filter(|(key, _)| is_accelerated(key)));
        }
        let mut entry = self.older.remove(&key).unwrap_or_default();
        let consistent = entry.learn(side, link);
        self.recent.insert(key, entry);
        consistent
    }
    /// The link header for a packet that leaves by `side`, if it is known.
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
