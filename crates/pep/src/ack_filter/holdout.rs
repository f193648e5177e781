//! Connections that are left unfiltered, so that the others can be compared with them.
//!
//! A hash of a connection deals it into one of two groups of the same share, held out or matched, or into neither. With
//! another salt all are dealt anew: which connections are slow or lossy by themselves then has no part in a comparison
//! over many salts. The gateway's kernel program deals in the same way (`comparison.h`).

use paceline_net::FlowKey;
use std::net::IpAddr;

/// Which connections are held out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holdout {
    /// Deals the connections.
    pub salt: u32,
    /// So many of 65536 connections, of each group; more than half leave nothing to compare with.
    pub share: u32,
}

/// What becomes of a connection in a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// It is not filtered.
    HeldOut,
    /// It is filtered, and one of as many as are held out.
    Matched,
}

impl Holdout {
    /// All connections.
    pub const ALL: Self = Self { salt: 0, share: 1 << 16 };

    /// A share from 0 to 1.
    pub fn new(salt: u32, share: f64) -> Self {
        Self { salt, share: (share.clamp(0.0, 1.0) * 65_536.0) as u32 }
    }
    /// The group of a connection, whose key is in the direction of the acknowledgments.
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

/// Of the addresses and ports of the end that is acknowledged and of the one that acknowledges.
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

/// An address, of IPv4 as `::ffff:a.b.c.d`.
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

    /// Neighbouring addresses and ports, and salts that differ in a bit.
    #[test]
    fn groups_have_their_share_and_are_dealt_anew_by_every_salt() {
        const KEYS: u16 = 20_000;
        for share in [0.02, 0.1, 0.5] {
            for salt in [0, 1, 2, 0x8000_0000, 0xdead_beef] {
                let (one, other) = (Holdout::new(salt, share), Holdout::new(salt ^ 4, share));
                let count = |group| (0..KEYS).filter(|n| one.group(&key(*n)) == Some(group)).count() as f64;
                let both = |n: &u16| {
                    let is_out = |holdout: &Holdout| holdout.group(&key(*n)) == Some(Group::HeldOut);
                    is_out(&one) && is_out(&other)
                };
                let in_both = (0..KEYS).filter(both).count() as f64;
                let likely = |count: f64, share: f64| {
                    let (mean, all) = (share * f64::from(KEYS), f64::from(KEYS));
                    (count - mean).abs() <= 5.0 * (all * share * (1.0 - share)).sqrt()
                };
                assert!(likely(count(Group::HeldOut), share), "{share} {salt}: {}", count(Group::HeldOut));
                assert!(likely(count(Group::Matched), share), "{share} {salt}: {}", count(Group::Matched));
                assert!(likely(in_both, share * share), "{share} {salt}: {in_both} twice");
            }
        }
    }

    #[test]
    fn none_and_all() {
        assert!((0..1000).all(|n| Holdout::default().group(&key(n)).is_none()));
        assert!((0..1000).all(|n| Holdout::ALL.group(&key(n)) == Some(Group::HeldOut)));
    }
}
