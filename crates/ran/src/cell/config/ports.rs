//! Ports of a cell's node.

use paceline_net::Port;

/// The port towards the core network. Chosen: 0, so that the stations follow from 1 on.
pub const CORE: Port = Port(0);

/// The port of a station: 1 and its index.
pub fn station_port(station: usize) -> Port {
    Port(u16::try_from(station + 1).expect("a cell has fewer than 65,535 stations"))
}
