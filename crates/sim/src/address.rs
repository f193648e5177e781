//! Addresses of hosts in a model, from the ranges for benchmarking, which no network routes: 198.18.0.0/15
//! (RFC 2544) and 2001:2::/48 (RFC 5180).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The emulator's own host, IPv4 and IPv6: the first addresses of the ranges.
pub const HOST: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 18, 0, 1), Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1));

/// Addresses of the station with this index, IPv4 and IPv6.
pub fn station(index: usize) -> (Ipv4Addr, Ipv6Addr) {
    let n = index as u32 + 1;
    let v4 = u32::from(Ipv4Addr::new(198, 18, 128, 0)) + n;
    (v4.into(), Ipv6Addr::new(0x2001, 2, 0, 2, 0, 0, (n >> 16) as u16, n as u16))
}
/// Address of the simulated server of the station with this index.
pub fn server(station: usize) -> IpAddr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 64, 0)) + station as u32 + 1).into()
}
