//! Addresses of an emulation. An emulation inside a station of another one has addresses of its own, so that
//! its programs reach the hosts of all emulations around it. Block 0 is that of an emulation with none around
//! it; an emulation inside has a block with a larger number, by the index of its station:
//!
//! ```text
//! block 0      host side 198.18.0.1, 2001:2::1         stations 198.18.128.0/17, 2001:2:0:2::/64
//! block 1..16  host side 198.19.(16 (block-1)).1, 2001:2:0:(16 block)::1
//!              stations 198.19.(16 (block-1) + 8).0/22, 2001:2:0:(16 block + 2)::/64
//! ```
//!
//! All are parts of the ranges for benchmarks, 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).

use anyhow::ensure;
use paceline_linux::network::netns;
use paceline_sim::address;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest number of a block: 198.19.0.0/16 has 16 blocks of 4096 addresses.
const MAX_BLOCK: u8 = 16;

/// The addresses of one emulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Number of the block, larger than those of the emulations around this one.
    block: u8,
}

impl Range {
    /// The range of an emulation in the calling thread's namespace: one inside that of the station whose
    /// address a device here has.
    pub fn here() -> anyhow::Result<Self> {
        let devices = netns::ip_output("-o addr show")?;
        let addresses = devices.split_whitespace().filter_map(|word| word.split_once('/')?.0.parse().ok());
        let stations: Vec<(Self, u32)> = addresses.filter_map(Self::of_station).collect();
        let Some((around, index)) = stations.into_iter().max_by_key(|(range, _)| range.block) else {
            return Ok(Self { block: 0 });
        };
        ensure!(around.siblings() > 0, "no addresses are left for an emulation inside this station");
        Ok(around.inside(index))
    }
    /// The range of an emulation inside the station with this index.
    fn inside(self, index: u32) -> Self {
        Self { block: self.block + 1 + (index % self.siblings()) as u8 }
    }
    /// The number of stations in succession inside which emulations have different addresses. Chosen: half of
    /// the free blocks, the others for emulations inside those.
    pub fn siblings(self) -> u32 {
        u32::from(MAX_BLOCK - self.block).div_ceil(2)
    }
    /// Whether another emulation is around this one.
    pub fn is_inside(self) -> bool {
        self.block > 0
    }
    /// Addresses of the host side.
    pub fn host(self) -> (Ipv4Addr, Ipv6Addr) {
        if self.block == 0 { address::HOST } else { (self.v4(0, 1), self.v6(0, 1)) }
    }
    /// Addresses of a station.
    pub fn station(self, index: usize) -> (Ipv4Addr, Ipv6Addr) {
        if self.block == 0 {
            return address::station(index);
        }
        // A scenario has at most 1000 stations.
        (self.v4(8, index as u32 + 1), self.v6(2, index as u32 + 1))
    }
    /// The networks of the stations and of emulations inside this one, IPv4 and IPv6.
    pub fn networks(self) -> (Vec<String>, Vec<String>) {
        let (v4, v6) = self.stations();
        let (block, end) = (u32::from(self.block), u32::from(MAX_BLOCK));
        let v4_inside = blocks(block, end)
            .map(|(first, bits)| format!("{}/{}", Self { block: first as u8 + 1 }.v4(0, 0), 20 - bits));
        let v6_inside = blocks(block + 1, end + 1)
            .map(|(first, bits)| format!("{}/{}", Self { block: first as u8 }.v6(0, 0), 60 - bits));
        (std::iter::once(v4).chain(v4_inside).collect(), std::iter::once(v6).chain(v6_inside).collect())
    }
    fn stations(self) -> (String, String) {
        match self.block {
            0 => (String::from("198.18.128.0/17"), format!("{}/64", self.v6(2, 0))),
            _ => (format!("{}/22", self.v4(8, 0)), format!("{}/64", self.v6(2, 0))),
        }
    }
    /// Whether an address belongs to an emulation inside this one.
    pub fn has_inside(self, address: IpAddr) -> bool {
        Self::of(address).is_some_and(|range| range.block > self.block)
    }
    /// The range whose stations have this address, and the station's index.
    fn of_station(address: IpAddr) -> Option<(Self, u32)> {
        let range = Self::of(address)?;
        let number = match (address, range.station(0)) {
            (IpAddr::V4(v4), (first, _)) => u32::from(v4).checked_sub(first.into()),
            (IpAddr::V6(v6), (_, first)) => u128::from(v6).checked_sub(first.into())?.try_into().ok(),
        };
        // A scenario has at most 1000 stations.
        number.filter(|index| *index < 1000).map(|index| (range, index))
    }
    /// The range of an address.
    fn of(address: IpAddr) -> Option<Self> {
        let block = match address {
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
        (block <= MAX_BLOCK).then_some(Self { block })
    }
    /// An address of a block, from the third octet and the number in the part that begins there.
    fn v4(self, third: u32, number: u32) -> Ipv4Addr {
        let block = u32::from(self.block).saturating_sub(1) * 16 + third;
        (u32::from(Ipv4Addr::new(198, 19, 0, 0)) + (block << 8) + number).into()
    }
    fn v6(self, subnet: u16, number: u32) -> Ipv6Addr {
        let fourth = u16::from(self.block) * 16 + subnet;
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
    fn ranges_of_all_blocks_are_apart_and_are_found_by_the_addresses_of_their_stations() {
        for block in 0..=MAX_BLOCK {
            let range = Range { block };
            let (host, (first, last)) = (range.host(), (range.station(0), range.station(999)));
            for (address, index) in
                [(first.0.into(), 0), (first.1.into(), 0), (last.0.into(), 999), (last.1.into(), 999)]
            {
                assert_eq!(Range::of_station(address), Some((range, index)), "{address}");
                assert!(
                    (0..=MAX_BLOCK)
                        .all(|other| Range { block: other }.has_inside(address) == (other < block))
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
        let outer = Range { block: 0 };
        let (v4, v6) = outer.networks();
        assert_eq!(v4, ["198.18.128.0/17", "198.19.0.0/16"]);
        let v6_inside = ["2001:2:0:10::/60", "2001:2:0:20::/59", "2001:2:0:40::/58", "2001:2:0:80::/57"];
        assert_eq!(v6, [&["2001:2:0:2::/64"][..], &v6_inside, &["2001:2:0:100::/60"]].concat());
        let inner = Range { block: 2 };
        let v4 = ["198.19.24.0/22", "198.19.32.0/19", "198.19.64.0/18", "198.19.128.0/17"];
        assert_eq!(inner.networks().0, v4);
        assert_eq!(Range { block: MAX_BLOCK }.networks().0, ["198.19.248.0/22"]);
        assert_eq!(inner.host().0, Ipv4Addr::new(198, 19, 16, 1));
        assert_eq!(inner.station(0), (Ipv4Addr::new(198, 19, 24, 1), "2001:2:0:22::1".parse().unwrap()));
        assert_eq!(Range::of_station("192.168.1.1".parse().unwrap()), None);
    }
    #[test]
    fn emulations_inside_neighbouring_stations_have_ranges_of_their_own_down_to_the_last_block() {
        let outer = Range { block: 0 };
        let inside: Vec<u8> = (0..9).map(|index| outer.inside(index).block).collect();
        assert_eq!(inside, [1, 2, 3, 4, 5, 6, 7, 8, 1]);
        let innermost = (0..16).fold(outer, |around, _| around.inside(0));
        assert_eq!((innermost.block, innermost.siblings()), (MAX_BLOCK, 0));
        for block in 0..MAX_BLOCK {
            let around = Range { block };
            let last = around.inside(around.siblings() - 1).block;
            assert!((block + 1..=MAX_BLOCK).contains(&last), "{block}: {last}");
        }
    }
}
