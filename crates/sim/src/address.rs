//! Addresses of hosts in a model, from the ranges for benchmarking, which no network routes: 198.18.0.0/15
//! (RFC 2544) and 2001:2::/48 (RFC 5180).

use paceline_net::AddressTable;
use paceline_scenario::Scenario;
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

/// The group of each address of a station.
pub(crate) fn station_groups(scenario: &Scenario) -> AddressTable {
    let groups = scenario.stations.iter().enumerate();
    let group_of = groups.flat_map(|(group, of)| std::iter::repeat_n(group, of.count as usize));
    table(group_of.enumerate())
}
/// The addresses of the stations as a routing table.
pub(crate) fn routes(scenario: &Scenario) -> AddressTable {
    table((0..scenario.station_count() as usize).map(|index| (index, index)))
}

/// A table with a value for each station's two addresses.
fn table(values: impl Iterator<Item = (usize, usize)>) -> AddressTable {
    let addresses = values.map(|(index, value)| (station(index), value));
    addresses.flat_map(|((v4, v6), value)| [(v4.into(), value), (v6.into(), value)]).collect()
}
