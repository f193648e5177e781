//! A keyed hash for tables of connections and addresses, which are looked up for every packet: one folded
//! multiplication per word (the construction of wyhash and ahash).
//!
//! The hashed keys come from outside. Their senders know neither the hash key nor any hash value, and so
//! cannot construct collisions. The hash is not cryptographic: it is unsuitable where hash values are
//! visible.

use std::hash::{BuildHasher, Hasher};

/// A hasher with a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyedHasher {
    state: u64,
    factor: u64,
}

/// Makes hashers with one key.
#[derive(Clone, Copy, Debug)]
pub struct HashKey(KeyedHasher);

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// One step of SplitMix64: every bit of the seed affects every bit of the result.
fn spread(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl HashKey {
    /// The key of a secret seed.
    pub fn new(seed: u64) -> Self {
        let state = spread(seed);
        Self(KeyedHasher { state, factor: spread(state) | 1 })
    }
}

impl BuildHasher for HashKey {
    type Hasher = KeyedHasher;
    fn build_hasher(&self) -> KeyedHasher {
        self.0
    }
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.factor);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn finish(&self) -> u64 {
        fold(self.state, self.factor.rotate_left(32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowKey;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// Connections with consecutive addresses and ports.
    fn keys() -> Vec<FlowKey> {
        let pair = |n: u32, v4: bool| -> (IpAddr, IpAddr) {
            if v4 {
                (Ipv4Addr::from_bits(0x0ac8_0001).into(), Ipv4Addr::from_bits(0x0a40_0000 + n / 8).into())
            } else {
                (Ipv6Addr::from_bits(1).into(), Ipv6Addr::from_bits(u128::from(n / 8) << 64).into())
            }
        };
        (0..40_000)
            .map(|n| {
                let (src, dst) = pair(n, n % 3 > 0);
                FlowKey { src, dst, src_port: 443, dst_port: 10_000 + (n % 8) as u16 }
            })
            .collect()
    }

    #[test]
    fn consecutive_keys_fill_a_table_evenly_with_any_hash_key() {
        let keys = keys();
        for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            let key = HashKey::new(seed);
            for shift in [0, 20, 48] {
                let mut loads = vec![0u32; 1 << 12];
                keys.iter().for_each(|flow| loads[(key.hash_one(flow) >> shift) as usize & 0xfff] += 1);
                // About ten keys per bucket; random hashing leaves none with more than thirty.
                let most = loads.iter().max().copied().unwrap_or(0);
                assert!(most <= 32, "{most} of {} in one place, seed {seed}, bits from {shift}", keys.len());
            }
        }
    }

    #[test]
    fn different_hash_keys_give_different_hashes() {
        let flow = keys()[7];
        let hashes: std::collections::BTreeSet<u64> =
            (0..1000).map(|seed| HashKey::new(seed).hash_one(flow)).collect();
        assert_eq!(hashes.len(), 1000);
    }
}
