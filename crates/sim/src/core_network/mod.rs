//! The core network as one node: routes, a monitor at the servers' side, and the wired hops towards the
//! cells.
//!
//! ```text
//! servers, outside - routes - monitor - hops - cells
//! ```
//!
//! A packet for a station's address passes the monitor and then the hops, and leaves by [`CELLS`]. A packet
//! from a station passes the hops, then the monitor, and leaves by the port of the server that has its
//! destination address, or by [`OUTSIDE`]. There is no route from station to station.

mod direction;
mod flow_table;
mod hop_policer;
pub mod hops;
mod monitor;
mod queued_hops;
mod router;

pub(crate) use hop_policer::PolicerReading;
pub use monitor::Monitor;
pub(crate) use router::RouterReading;

use crate::managed::ManagedReading;
use direction::{DOWN, UP};
use hops::Hops;
use paceline_net::{AddressTable, DropReason, Duration, Instant, Node, Output, Packet, Port, ServingCell};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Port towards the cells.
pub const CELLS: Port = Port(0);
/// Port of the default route: to real servers in an emulation, or towards the servers behind a proxy.
pub const OUTSIDE: Port = Port(1);

/// Port towards a server.
pub fn server_port(server: usize) -> Port {
    Port(u16::try_from(server + 2).expect("a core has fewer than 65,534 servers"))
}

/// The core network.
pub struct Core {
    stations: AddressTable,
    servers: AddressTable,
    /// The cell whose hops each station's packets pass, in the downlink and in the uplink.
    serving: Vec<[usize; 2]>,
    /// Whether each station's packets pass the hops.
    wired: Vec<bool>,
    hops: Hops,
    monitor: Monitor,
    /// Packets of each station that a full queue of a hop has dropped.
    drops: Vec<u64>,
    output: VecDeque<Output>,
}

impl Core {
    /// A core network with routes to these addresses; `serving` has the cell of each station.
    pub fn new(stations: AddressTable, servers: AddressTable, serving: Vec<usize>, hops: Hops) -> Self {
        let (monitor, drops) = (Monitor::new(serving.len()), vec![0; serving.len()]);
        let wired = vec![true; serving.len()];
        let serving = serving.into_iter().map(|cell| [cell; 2]).collect();
        Self { stations, servers, serving, wired, hops, monitor, drops, output: VecDeque::new() }
    }
    /// The packets of these stations do not pass the hops: the other end is in the same cell.
    #[must_use]
    pub fn without_hops(mut self, stations: impl Iterator<Item = usize>) -> Self {
        stations.for_each(|station| self.wired[station] = false);
        self
    }
    /// Packets of a station that full queues have dropped, both directions.
    pub fn drops(&self, station: usize) -> u64 {
        self.drops[station]
    }
    /// Time for which the busiest hop on a station's path has been sending, of both directions.
    pub fn busiest_hop(&self, station: usize) -> Duration {
        self.hops.busiest(self.serving[station][DOWN])
    }
    /// Adds an address of a station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        self.stations.insert(address, station);
    }
    /// The monitor between the servers and the hops.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
    /// The monitor, for restarting its distribution.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// Starts the figures of the hops' managed queues, routers and policers anew.
    pub(crate) fn restart_queues(&mut self) {
        self.hops.restart_queues();
    }
    /// Figures of the hops' managed queues; `first` is the index of the first hop.
    pub(crate) fn read_queues(&self, first: usize) -> Vec<ManagedReading> {
        self.hops.read_queues(first)
    }
    /// Figures of the hops' routers, likewise.
    pub(crate) fn read_routers(&self, first: usize) -> Vec<RouterReading> {
        self.hops.read_routers(first)
    }
    /// Figures of the hops' ACK policers, likewise.
    pub(crate) fn read_policers(&self, first: usize) -> Vec<PolicerReading> {
        self.hops.read_policers(first)
    }
    fn downlink(&mut self, now: Instant, from: Port, packet: Packet) {
        let Some(station) = self.stations.get(packet.ip.dst) else {
            return self.route(from, packet);
        };
        self.monitor.observe(now, &packet, station, true);
        if !self.wired[station] {
            return self.output.push_back(Output::Transmit(CELLS, packet));
        }
        if let Err(packet) = self.hops.downlink(now, self.serving[station][DOWN], packet) {
            self.drop_packet(Some(station), packet, DropReason::QueueFull);
        }
    }
    fn uplink(&mut self, now: Instant, packet: Packet) {
        // A real station may send from any address: packets from an unknown one pass the hops of the first
        // cell.
        let station = self.stations.get(packet.ip.src);
        if station.is_some_and(|station| !self.wired[station]) {
            return self.at_servers(now, packet);
        }
        let cell = station.map_or(0, |station| self.serving[station][UP]);
        if let Err(packet) = self.hops.uplink(now, cell, packet) {
            self.drop_packet(station, packet, DropReason::QueueFull);
        }
    }
    fn drop_packet(&mut self, station: Option<usize>, packet: Packet, reason: DropReason) {
        if reason == DropReason::QueueFull {
            station.into_iter().for_each(|station| self.drops[station] += 1);
        }
        self.output.push_back(Output::Drop(packet, reason));
    }
    fn at_servers(&mut self, now: Instant, packet: Packet) {
        if let Some(station) = self.stations.get(packet.ip.src) {
            self.monitor.observe(now, &packet, station, false);
        }
        match self.stations.get(packet.ip.dst) {
            Some(_) => self.output.push_back(Output::Drop(packet, DropReason::NoRoute)),
            None => self.route(CELLS, packet),
        }
    }
    /// Sends a packet to a server or outside, unless that is where it came from.
    fn route(&mut self, from: Port, packet: Packet) {
        let port = self.servers.get(packet.ip.dst).map_or(OUTSIDE, server_port);
        self.output.push_back(match port == from {
            true => Output::Drop(packet, DropReason::NoRoute),
            false => Output::Transmit(port, packet),
        });
    }
}

impl Node for Core {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        match from {
            CELLS => self.uplink(now, packet),
            _ => self.downlink(now, from, packet),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        while let Some(packet) = self.hops.poll_at_cell(now) {
            self.output.push_back(Output::Transmit(CELLS, packet));
        }
        while let Some((packet, reason)) = self.hops.poll_dropped(now) {
            let station = self.stations.get(packet.ip.src).or_else(|| self.stations.get(packet.ip.dst));
            self.drop_packet(station, packet, reason);
        }
        while let Some(packet) = self.hops.poll_at_servers(now) {
            self.at_servers(now, packet);
        }
    }
    fn handle_serving_cell(&mut self, _now: Instant, of: ServingCell) {
        self.serving[of.station][if of.uplink { UP } else { DOWN }] = of.cell;
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.hops.next_arrival()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Hop;
    use paceline_net::{Rate, TcpHeader};

    /// The ms in which a packet of 125 bytes arrives that enters a core at 0.
    fn arrival(core: &mut Core, from: Port, [src, dst]: [IpAddr; 2]) -> f64 {
        let tcp = TcpHeader { payload_len: 85, ..TcpHeader::default() };
        core.handle_packet(Instant::ZERO, from, Packet::tcp(src, dst, tcp));
        let mut last = Instant::ZERO;
        while let Some(at) = core.poll_timeout() {
            core.handle_timeout(at);
            while let Some(output) = core.poll_output(at) {
                assert!(matches!(output, Output::Transmit(..)), "{output:?}");
                last = at;
            }
        }
        last.as_secs_f64() * 1e3
    }

    #[test]
    fn packets_pass_the_own_hops_of_the_present_cell_in_each_direction() {
        let [station, server] = ["198.18.128.1", "198.18.64.1"].map(|text| text.parse().unwrap());
        // 1 ms per packet.
        let hop = Hop { per_cell: true, ..Hop::new(Rate(1_000_000), Duration::ZERO) };
        let mut stations = AddressTable::default();
        stations.insert(station, 0);
        let hops = Hops::new(&[hop], 2);
        let mut core = Core::new(stations, AddressTable::default(), vec![0], hops);
        let down = |core: &mut Core| arrival(core, OUTSIDE, [server, station]);
        let up = |core: &mut Core| arrival(core, CELLS, [station, server]);
        assert_eq!([down(&mut core), down(&mut core), up(&mut core)], [1.0, 2.0, 1.0], "one queue each");
        core.handle_serving_cell(Instant::ZERO, ServingCell { station: 0, cell: 1, uplink: true });
        assert_eq!([down(&mut core), up(&mut core), up(&mut core)], [3.0, 1.0, 2.0]);
        core.handle_serving_cell(Instant::ZERO, ServingCell { station: 0, cell: 1, uplink: false });
        assert_eq!(down(&mut core), 1.0, "the other cell's hop is free");
    }
}
