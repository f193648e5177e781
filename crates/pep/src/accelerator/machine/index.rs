//! A hash table from keys to slots of entries. Look-ups cost the same for ten and for a hundred thousand
//! connections. The hash has a secret key, so that outsiders cannot construct collisions.
//!
//! Entries are boxed and contain their keys: a look-up in a large table costs one cache miss, for the entry
//! itself, and the vector of slots, which grows by doubling, stays small.

use paceline_net::HashKey;
use std::hash::{BuildHasher, Hash};

/// A place of the index. The stored hash rules out other keys without reading their entries, and serves when
/// the index grows.
#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    slot: u32,
}

const EMPTY: Place = Place { hash: 0, slot: u32::MAX };

impl Place {
    fn is_empty(self) -> bool {
        self.slot == EMPTY.slot
    }
}

/// An entry that contains its key, which does not change.
pub(in crate::accelerator) trait Keyed {
    type Key: Hash + Eq + Copy;
    fn key(&self) -> Self::Key;
}

/// Entries by slot. A slot is valid until its entry is removed, and is used again afterwards.
#[derive(Debug)]
pub(in crate::accelerator) struct Table<V> {
    slots: Vec<Option<Box<V>>>,
    free: Vec<u32>,
    /// Open addressing with linear probing; a power of two long, at most half full.
    index: Vec<Place>,
    key: HashKey,
    /// The slot of the last look-up: consecutive packets of a connection skip the search.
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
    fn hash(&self, key: &V::Key) -> u32 {
        self.key.hash_one(key) as u32
    }
    fn mask(&self) -> usize {
        self.index.len() - 1
    }
    fn home(&self, hash: u32) -> usize {
        hash as usize & self.mask()
    }
    fn position(&self, key: &V::Key) -> Option<usize> {
        let hash = self.hash(key);
        let mut at = self.home(hash);
        while !self.index[at].is_empty() {
            let place = self.index[at];
            if place.hash == hash && self.get(place.slot).is_some_and(|entry| entry.key() == *key) {
                return Some(at);
            }
            at = (at + 1) & self.mask();
        }
        None
    }
    pub fn find(&mut self, key: &V::Key) -> Option<u32> {
        if self.is_recent(key) {
            return Some(self.recent);
        }
        self.recent = self.index[self.position(key)?].slot;
        Some(self.recent)
    }
    /// The same as [`Table::find`] without remembering the slot.
    pub fn peek(&self, key: &V::Key) -> Option<u32> {
        if self.is_recent(key) { Some(self.recent) } else { Some(self.index[self.position(key)?].slot) }
    }
    pub fn holds(&self, key: &V::Key) -> bool {
        self.peek(key).is_some()
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
    /// Inserts an entry whose key is not in the table.
    pub fn insert(&mut self, entry: V) -> u32 {
        let key = entry.key();
        debug_assert!(self.position(&key).is_none(), "the key is not in the table");
        if 2 * (self.len() + 1) > self.index.len() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(Box::new(entry));
        self.place(Place { hash: self.hash(&key), slot });
        slot
    }
    pub fn remove(&mut self, slot: u32) -> Option<V> {
        let key = self.get(slot)?.key();
        let mut hole = self.position(&key)?;
        let mask = self.mask();
        // Entries after the hole move back, unless that would put them before their home place.
        let mut at = (hole + 1) & mask;
        while !self.index[at].is_empty() {
            let home = self.home(self.index[at].hash);
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
    fn place(&mut self, place: Place) {
        let mut at = self.home(place.hash);
        while !self.index[at].is_empty() {
            at = (at + 1) & self.mask();
        }
        self.index[at] = place;
    }
    fn grow(&mut self) {
        let larger = vec![EMPTY; 2 * self.index.len()];
        for place in std::mem::replace(&mut self.index, larger).into_iter().filter(|place| !place.is_empty())
        {
            self.place(place);
        }
    }
    /// All entries by slot.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, entry)| entry.as_deref().map(|entry| (slot as u32, entry)))
    }
    /// The entries of `count` slots from slot `from` on.
    pub fn range(&self, from: u32, count: u32) -> impl Iterator<Item = &V> {
        self.slots.iter().skip(from as usize).take(count as usize).flatten().map(Box::as_ref)
    }
    /// The slot after these, unless they are the last.
    pub fn after(&self, from: u32, count: u32) -> Option<u32> {
        from.checked_add(count).filter(|next| *next < self.slots())
    }
    /// Number of slots ever used.
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
