//! A table from IP addresses to indices, for routes to single hosts.
//!
//! Left out: prefixes. Hosts mostly have consecutive addresses, so a lookup first tries the position that
//! follows from the distance to the first address, then a binary search.

use std::net::IpAddr;

/// Indices by address, IPv4 and IPv6.
#[derive(Clone, Debug, Default)]
pub struct AddressTable {
    v4: Rows<u32>,
    v6: Rows<u128>,
}

impl AddressTable {
    /// Maps `address` to `index`; a later call for the same address replaces it.
    pub fn insert(&mut self, address: IpAddr, index: usize) {
        match address {
            IpAddr::V4(v4) => self.v4.insert(v4.into(), index),
            IpAddr::V6(v6) => self.v6.insert(v6.into(), index),
        }
    }
    /// The index of an address.
    #[inline]
    pub fn get(&self, address: IpAddr) -> Option<usize> {
        match address {
            IpAddr::V4(v4) => self.v4.get(v4.into()),
            IpAddr::V6(v6) => self.v6.get(v6.into()),
        }
    }
}

/// Addresses of one version in ascending order.
#[derive(Clone, Debug, Default)]
struct Rows<K>(Vec<(K, usize)>);

impl<K: Copy + Ord + std::ops::Sub<Output = K> + TryInto<usize>> Rows<K> {
    fn insert(&mut self, key: K, index: usize) {
        match self.0.binary_search_by_key(&key, |row| row.0) {
            Ok(at) => self.0[at].1 = index,
            Err(at) => self.0.insert(at, (key, index)),
        }
    }
    #[inline]
    fn get(&self, key: K) -> Option<usize> {
        let first = self.0.first().filter(|first| first.0 <= key)?.0;
        let direct = (key - first).try_into().ok().and_then(|at: usize| self.0.get(at));
        match direct.filter(|row| row.0 == key) {
            Some(row) => Some(row.1),
            None => self.0.binary_search_by_key(&key, |row| row.0).ok().map(|at| self.0[at].1),
        }
    }
}

impl FromIterator<(IpAddr, usize)> for AddressTable {
    fn from_iter<I: IntoIterator<Item = (IpAddr, usize)>>(rows: I) -> Self {
        let mut table = Self::default();
        rows.into_iter().for_each(|(address, index)| table.insert(address, index));
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn lookups_agree_with_an_ordered_map() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "addresses");
            // Dense and sparse, with the ends of the address space and equal numbers of both versions.
            let spread = [3, 40, 1 << 31][stream.below(3) as usize];
            let base = [0, 0xc612_8000, u64::from(u32::MAX) - spread][stream.below(3) as usize];
            let mut address = || {
                let n = (base + stream.below(spread + 1)) as u32;
                let wide = u128::MAX - u128::from(stream.below(spread)) * u128::from(stream.below(1 << 40));
                match stream.below(3) {
                    0 => IpAddr::V4(n.into()),
                    1 => IpAddr::V6(u128::from(n).into()),
                    _ => IpAddr::V6(wide.into()),
                }
            };
            let rows: Vec<(IpAddr, usize)> =
                (0..seed as usize % 60).map(|index| (address(), index)).collect();
            let (table, map): (AddressTable, BTreeMap<_, _>) =
                (rows.iter().copied().collect(), rows.iter().copied().collect());
            for asked in rows.iter().map(|row| row.0).chain((0..200).map(|_| address())) {
                assert_eq!(table.get(asked), map.get(&asked).copied(), "seed {seed}: {asked}");
            }
        }
    }
}
