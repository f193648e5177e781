//! A hash index from keys to slots, and the slots: constant work from ten connections to a hundred thousand, no
//! iteration, and a key of the hash that an outsider does not know.
//!
//! Entries are boxed and hold their keys: with many of them a look-up waits for memory once, for the entry itself, and
//! slots, which grow by doubling, are small.

use paceline_net::HashKey;
use std::hash::{BuildHasher, Hash};

const EMPTY: u32 = u32::MAX;

/// What is found by a key of its own, which does not change.
pub(super) trait Keyed {
    type Key: Hash + Eq + Copy;
    fn key(&self) -> Self::Key;
}

/// Entries by slot. Slots stay valid until the entry is removed.
#[derive(Debug)]
pub(super) struct Table<V> {
    slots: Vec<Option<Box<V>>>,
    free: Vec<u32>,
    /// Open addressing with linear probing; a power of two long, at most half full.
    index: Vec<u32>,
    key: HashKey,
    /// The slot of the last look-up: trains of packets skip the search.
    recent: u32,
}

impl<V: Keyed> Table<V> {
    pub fn new(seed: u64) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: vec![EMPTY; 16],
            key: HashKey::new(seed),
            recent: 0,
        }
    }
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
    fn home(&self, key: &V::Key) -> usize {
        self.key.hash_one(key) as usize & (self.index.len() - 1)
    }
    fn position(&self, key: &V::Key) -> Option<usize> {
        let mut at = self.home(key);
        while self.index[at] != EMPTY {
            if self.get(self.index[at]).is_some_and(|entry| entry.key() == *key) {
                return Some(at);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
        None
    }
    pub fn find(&mut self, key: &V::Key) -> Option<u32> {
        if self.is_recent(key) {
            return Some(self.recent);
        }
        self.recent = self.index[self.position(key)?];
        Some(self.recent)
    }
    pub fn holds(&self, key: &V::Key) -> bool {
        self.is_recent(key) || self.position(key).is_some()
    }
    fn is_recent(&self, key: &V::Key) -> bool {
        self.get(self.recent).is_some_and(|entry| entry.key() == *key)
    }
    pub fn get(&self, slot: u32) -> Option<&V> {
        self.slots.get(slot as usize)?.as_deref()
    }
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut V> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }
    /// Enters what is not there.
    pub fn insert(&mut self, entry: V) -> u32 {
        let key = entry.key();
        debug_assert!(self.position(&key).is_none(), "a key is entered once");
        if 2 * (self.len() + 1) > self.index.len() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(Box::new(entry));
        self.place(slot, &key);
        slot
    }
    pub fn remove(&mut self, slot: u32) -> Option<V> {
        let key = self.get(slot)?.key();
        let mut hole = self.position(&key)?;
        let mask = self.index.len() - 1;
        // Entries behind the hole move back unless that would put them ahead of their home.
        let mut at = (hole + 1) & mask;
        while self.index[at] != EMPTY {
            let home = self.get(self.index[at]).map_or(at, |entry| self.home(&entry.key()));
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.index[hole] = EMPTY;
        self.free.push(slot);
        self.slots[slot as usize].take().map(|entry| *entry)
    }
    fn place(&mut self, slot: u32, key: &V::Key) {
        let mut at = self.home(key);
        while self.index[at] != EMPTY {
            at = (at + 1) & (self.index.len() - 1);
        }
        self.index[at] = slot;
    }
    fn grow(&mut self) {
        self.index = vec![EMPTY; 2 * self.index.len()];
        for slot in 0..self.slots.len() as u32 {
            if let Some(key) = self.get(slot).map(Keyed::key) {
                self.place(slot, &key);
            }
        }
    }
    /// All entries by slot.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, entry)| entry.as_deref().map(|entry| (slot as u32, entry)))
    }
    /// The entries of `count` slots from one on.
    pub fn range(&self, from: u32, count: u32) -> impl Iterator<Item = &V> {
        self.slots.iter().skip(from as usize).take(count as usize).flatten().map(Box::as_ref)
    }
    /// The slot behind these, unless they are the last.
    pub fn after(&self, from: u32, count: u32) -> Option<u32> {
        from.checked_add(count).filter(|next| *next < self.slots())
    }
    /// Slots ever used; an upper bound of all indices.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;
    use std::collections::BTreeMap;

    impl Keyed for (u64, u64) {
        type Key = u64;
        fn key(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn agrees_with_an_ordered_map_on_random_operations() {
        let mut stream = Stream::new(9, "table");
        let (mut table, mut model) = (Table::<(u64, u64)>::new(3), BTreeMap::new());
        for step in 0..100_000u64 {
            let key = stream.below(700);
            match (table.find(&key), stream.chance(0.5)) {
                (Some(slot), true) => assert_eq!(table.remove(slot).map(|entry| entry.1), model.remove(&key)),
                (Some(slot), false) => assert_eq!(table.get(slot).map(|entry| &entry.1), model.get(&key)),
                (None, _) => {
                    assert!(!model.contains_key(&key));
                    table.insert((key, step));
                    model.insert(key, step);
                }
            }
            assert_eq!(table.len(), model.len());
        }
        assert!(model.iter().all(|(key, value)| {
            let slot = table.find(key).unwrap();
            table.get(slot).map(|entry| &entry.1) == Some(value)
        }));
    }
}
