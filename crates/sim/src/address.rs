//! Addresses of a model. They come from the benchmarking ranges 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180),
//! which no network routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The host side of real stations, IPv4 and IPv6.
pub const HOST: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 18, 0, 1), Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1));

/// A station, IPv4 and IPv6.
pub fn station(index: usize) -> (Ipv4Addr, Ipv6Addr) {
    let n = index as u32 + 1;
    let v4 = u32::from(Ipv4Addr::new(198, 18, 128, 0)) + n;
    (v4.into(), Ipv6Addr::new(0x2001, 2, 0, 2, 0, 0, (n >> 16) as u16, n as u16))
}
/// A simulated server.
pub fn server(station: usize) -> IpAddr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 64, 0)) + station as u32 + 1).into()
}
