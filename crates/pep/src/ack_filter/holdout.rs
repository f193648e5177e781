//! Holdout: a share of the connections whose ACKs are not filtered, so that filtered ones can be compared
//! with them.
//!
//! A hash of addresses, ports and a salt assigns a connection to one of two groups of equal share (held out
//! or matched), or to neither. Another salt draws new groups, so that over many salts slow or lossy
//! connections fall into both alike. The gateway's kernel program has the same hash in C
//! (`crates/gateway/bpf/holdout.h`); `crates/gateway/tests/holdout.rs` compares the two.

use paceline_net::FlowKey;
use std::net::IpAddr;

/// The choice of the connections that are held out and of those compared with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdout {
    /// Salt of the hash.
    pub salt: u32,
    /// Size of each group, of 65536 connections. Above one half, the matched group is smaller.
    pub share: u32,
}

/// The groups of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Connections whose ACKs are not filtered.
    HeldOut,
    /// Connections whose ACKs are filtered, as many as are held out.
    Matched,
}

impl Holdout {
    /// All connections are held out. By definition of `share`.
    pub const ALL: Self = Self { salt: 0, share: 1 << 16 };

    /// A holdout with a share from 0 to 1.
    pub fn new(salt: u32, share: f64) -> Self {
        Self { salt, share: (share.clamp(0.0, 1.0) * 65_536.0) as u32 }
    }
    /// The group of a connection; its key has the direction of the ACKs.
    pub fn group(&self, key: &FlowKey) -> Option<Group> {
        if self.share == 0 {
            return None;
        }
        match hash(self.salt, key) >> 16 {
            hash if hash < self.share => Some(Group::HeldOut),
            hash if hash < 2 * self.share => Some(Group::Matched),
            _ => None,
        }
    }
}

/// Hash of the addresses and ports: first those of the ACKs' destination, then those of their source.
fn hash(salt: u32, key: &FlowKey) -> u32 {
    let step = |hash: u32, word: u32| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b1);
        hash ^ hash >> 15
    };
    let ports = u32::from(key.dst_port) << 16 | u32::from(key.src_port);
    let words = words(key.dst).into_iter().chain(words(key.src)).chain([ports]);
    let hash = words.fold(salt, step).wrapping_mul(0x85eb_ca6b);
    hash ^ hash >> 13
}

/// The words of an IPv6 address, or of an IPv4 address as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
fn words(address: IpAddr) -> [u32; 4] {
    let v6 = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let bits = v6.to_bits();
    [96, 64, 32, 0].map(|shift| (bits >> shift) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u16) -> FlowKey {
        let device = [10, 64, (n >> 12) as u8, (n >> 4) as u8];
        FlowKey { src: device.into(), dst: [10, 9, 0, 1].into(), src_port: 40_000 + n % 16, dst_port: 443 }
    }

    /// The worst case for a hash: neighbouring addresses and ports, and salts that differ in one bit.
    #[test]
    fn groups_have_their_share_and_are_independent_of_the_groups_of_another_salt() {
        const KEYS: u16 = 20_000;
        for share in [0.02, 0.1, 0.5] {
            for salt in [0, 1, 2, 0x8000_0000, 0xdead_beef] {
                let (one, other) = (Holdout::new(salt, share), Holdout::new(salt ^ 4, share));
                let count = |group| (0..KEYS).filter(|n| one.group(&key(*n)) == Some(group)).count() as f64;
                let both = |n: &u16| {
                    let held_out = |holdout: &Holdout| holdout.group(&key(*n)) == Some(Group::HeldOut);
                    held_out(&one) && held_out(&other)
                };
                let twice_held_out = (0..KEYS).filter(both).count() as f64;
                let likely = |count: f64, share: f64| {
                    let (mean, all) = (share * f64::from(KEYS), f64::from(KEYS));
                    (count - mean).abs() <= 5.0 * (all * share * (1.0 - share)).sqrt()
                };
                assert!(likely(count(Group::HeldOut), share), "{share} {salt}: {}", count(Group::HeldOut));
                assert!(likely(count(Group::Matched), share), "{share} {salt}: {}", count(Group::Matched));
                assert!(likely(twice_held_out, share * share), "{share} {salt}: {twice_held_out} twice");
            }
        }
    }

    #[test]
    fn a_share_of_zero_holds_out_no_connection_and_all_holds_out_each() {
        assert!((0..1000).all(|n| Holdout::default().group(&key(n)).is_none()));
        assert!((0..1000).all(|n| Holdout::ALL.group(&key(n)) == Some(Group::HeldOut)));
    }
}
