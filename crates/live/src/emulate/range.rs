//! Addresses of an emulation. An emulation inside a station of another one has addresses of its own, so that
//! its programs reach the hosts of all emulations around it:
//!
//! ```text
//! depth 0      host side 198.18.0.1, 2001:2::1         stations 198.18.128.0/17, 2001:2:0:2::/64
//! depth 1..16  host side 198.19.(16 (depth-1)).1, 2001:2:0:(16 depth)::1
//!              stations 198.19.(16 (depth-1) + 8).0/22, 2001:2:0:(16 depth + 2)::/64
//! ```
//!
//! All are parts of the ranges for benchmarks, 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).

use crate::netns;
use anyhow::ensure;
use paceline_sim::address;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest depth: 198.19.0.0/16 has 16 blocks of 4096 addresses.
const MAX_DEPTH: u8 = 16;

/// The addresses of one emulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Number of emulations around this one.
    depth: u8,
}

impl Range {
    /// The range of an emulation in the calling thread's namespace: the one inside that of the station whose
    /// address a device here has.
    pub fn here() -> anyhow::Result<Self> {
        let devices = netns::ip_output("-o addr show")?;
        let stations = devices.split_whitespace().filter_map(|word| word.split_once('/')?.0.parse().ok());
        let depth = stations.filter_map(Self::of_station).map(|around| around.depth + 1).max().unwrap_or(0);
        ensure!(depth <= MAX_DEPTH, "{MAX_DEPTH} emulations are around this one, as many as are possible");
        Ok(Self { depth })
    }
    /// Whether another emulation is around this one.
    pub fn is_inside(self) -> bool {
        self.depth > 0
    }
    /// Addresses of the host side.
    pub fn host(self) -> (Ipv4Addr, Ipv6Addr) {
        if self.depth == 0 { address::HOST } else { (self.v4(0, 1), self.v6(0, 1)) }
    }
    /// Addresses of a station.
    pub fn station(self, index: usize) -> (Ipv4Addr, Ipv6Addr) {
        if self.depth == 0 {
            return address::station(index);
        }
        // A scenario has at most 1000 stations.
        (self.v4(8, index as u32 + 1), self.v6(2, index as u32 + 1))
    }
    /// The networks of the stations and of emulations inside this one, IPv4 and IPv6.
    pub fn networks(self) -> (Vec<String>, Vec<String>) {
        let (v4, v6) = self.stations();
        let (depth, end) = (u32::from(self.depth), u32::from(MAX_DEPTH));
        let v4_inside = blocks(depth, end)
            .map(|(first, bits)| format!("{}/{}", Self { depth: first as u8 + 1 }.v4(0, 0), 20 - bits));
        let v6_inside = blocks(depth + 1, end + 1)
            .map(|(first, bits)| format!("{}/{}", Self { depth: first as u8 }.v6(0, 0), 60 - bits));
        (std::iter::once(v4).chain(v4_inside).collect(), std::iter::once(v6).chain(v6_inside).collect())
    }
    fn stations(self) -> (String, String) {
        match self.depth {
            0 => (String::from("198.18.128.0/17"), format!("{}/64", self.v6(2, 0))),
            _ => (format!("{}/22", self.v4(8, 0)), format!("{}/64", self.v6(2, 0))),
        }
    }
    /// Whether an address belongs to an emulation inside this one.
    pub fn has_inside(self, address: IpAddr) -> bool {
        Self::of(address).is_some_and(|range| range.depth > self.depth)
    }
    /// The range whose stations have this address.
    fn of_station(address: IpAddr) -> Option<Self> {
        let range = Self::of(address)?;
        let of_station = match address {
            IpAddr::V4(v4) if range.depth == 0 => v4.octets()[2] >= 128,
            IpAddr::V4(v4) => v4.octets()[2] % 16 >= 8,
            IpAddr::V6(v6) => v6.segments()[3] % 16 == 2,
        };
        of_station.then_some(range)
    }
    /// The range of an address.
    fn of(address: IpAddr) -> Option<Self> {
        let depth = match address {
            IpAddr::V4(v4) => match v4.octets() {
                [198, 18, ..] => 0,
                [198, 19, third, _] => third / 16 + 1,
                _ => return None,
            },
            IpAddr::V6(v6) => match v6.segments() {
                [0x2001, 2, 0, fourth, ..] => u8::try_from(fourth / 16).ok()?,
                _ => return None,
            },
        };
        (depth <= MAX_DEPTH).then_some(Self { depth })
    }
    /// An address of a block, from the third octet and the number in the part that begins there.
    fn v4(self, third: u32, number: u32) -> Ipv4Addr {
        let block = u32::from(self.depth).saturating_sub(1) * 16 + third;
        (u32::from(Ipv4Addr::new(198, 19, 0, 0)) + (block << 8) + number).into()
    }
    fn v6(self, subnet: u16, number: u32) -> Ipv6Addr {
        let fourth = u16::from(self.depth) * 16 + subnet;
        Ipv6Addr::new(0x2001, 2, 0, fourth, 0, 0, (number >> 16) as u16, number as u16)
    }
}

/// The fewest aligned blocks of a power of two of numbers that make up `first..end`: first number and the
/// binary logarithm of the size.
fn blocks(first: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut next = first;
    std::iter::from_fn(move || {
        let first = next;
        let fits = |bits: &u32| first.is_multiple_of(1 << bits) && first + (1 << bits) <= end;
        let bits = (0..8).rev().find(fits)?;
        next += 1 << bits;
        Some((first, bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_all_depths_are_apart_and_are_found_by_the_addresses_of_their_stations() {
        for depth in 0..=MAX_DEPTH {
            let range = Range { depth };
            let (host, (first, last)) = (range.host(), (range.station(0), range.station(999)));
            for address in [first.0.into(), first.1.into(), last.0.into(), last.1.into()] {
                assert_eq!(Range::of_station(address), Some(range), "{address}");
                assert!(
                    (0..=MAX_DEPTH)
                        .all(|other| Range { depth: other }.has_inside(address) == (other < depth))
                );
            }
            for address in [host.0.into(), host.1.into()] {
                assert_eq!(
                    (Range::of(address), Range::of_station(address)),
                    (Some(range), None),
                    "{address}"
                );
            }
        }
        let outer = Range { depth: 0 };
        let (v4, v6) = outer.networks();
        assert_eq!(v4, ["198.18.128.0/17", "198.19.0.0/16"]);
        let v6_inside = ["2001:2:0:10::/60", "2001:2:0:20::/59", "2001:2:0:40::/58", "2001:2:0:80::/57"];
        assert_eq!(v6, [&["2001:2:0:2::/64"][..], &v6_inside, &["2001:2:0:100::/60"]].concat());
        let inner = Range { depth: 2 };
        let v4 = ["198.19.24.0/22", "198.19.32.0/19", "198.19.64.0/18", "198.19.128.0/17"];
        assert_eq!(inner.networks().0, v4);
        assert_eq!(Range { depth: MAX_DEPTH }.networks().0, ["198.19.248.0/22"]);
        assert_eq!(inner.host().0, Ipv4Addr::new(198, 19, 16, 1));
        assert_eq!(inner.station(0), (Ipv4Addr::new(198, 19, 24, 1), "2001:2:0:22::1".parse().unwrap()));
        assert_eq!(Range::of_station("192.168.1.1".parse().unwrap()), None);
    }
}
