//! The core network as one node: routes between servers, the outside and the cells' stations, with the wired hops
//! towards the cells and the measuring point where the servers are.
//!
//! ```text
//! servers, outside - routes - monitor - hops - cells
//! ```
//!
//! What is for a station goes down the hops; everything else goes to the server that has its address, or outside.
//! Stations reach each other by no route.

pub mod hops;
mod monitor;

pub use monitor::Monitor;

use hops::Hops;
use paceline_net::{AddressTable, DropReason, Instant, Node, Output, Packet, Port};
use std::collections::VecDeque;

/// The port towards the cells.
pub const CELLS: Port = Port(0);
/// The port towards everything without a route of its own.
pub const OUTSIDE: Port = Port(1);

/// The port towards a server.
pub fn server_port(server: usize) -> Port {
    Port(u16::try_from(server + 2).expect("a core has fewer than 65,534 servers"))
}

/// The wired network.
pub struct Core {
    stations: AddressTable,
    servers: AddressTable,
    /// The cell of every station.
    serving: Vec<usize>,
    hops: Hops,
    monitor: Monitor,
    output: VecDeque<Output>,
}

impl Core {
    /// A core with these addresses of stations and servers; `serving` has the cell of every station.
    pub fn new(stations: AddressTable, servers: AddressTable, serving: Vec<usize>, hops: Hops) -> Self {
        let monitor = Monitor::new(serving.len());
        Self { stations, servers, serving, hops, monitor, output: VecDeque::new() }
    }
    /// What is measured between servers and hops.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
    /// The same, to restart its distributions.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    fn down(&mut self, now: Instant, from: Port, packet: Packet) {
        let Some(station) = self.stations.get(packet.ip.dst) else {
            return self.route(from, packet);
        };
        self.monitor.observe(now, &packet, station, true);
        if let Err(packet) = self.hops.downlink(now, self.serving[station], packet) {
            self.output.push_back(Output::Drop(packet, DropReason::QueueFull));
        }
    }
    fn up(&mut self, now: Instant, packet: Packet) {
        // What a real station sends under an address that it was not given passes by the first cell.
        let cell = self.stations.get(packet.ip.src).map_or(0, |station| self.serving[station]);
        if let Err(packet) = self.hops.uplink(now, cell, packet) {
            self.output.push_back(Output::Drop(packet, DropReason::QueueFull));
        }
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
    /// To a server or outside, but not back.
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
            CELLS => self.up(now, packet),
            _ => self.down(now, from, packet),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        while let Some(packet) = self.hops.poll_at_cell(now) {
            self.output.push_back(Output::Transmit(CELLS, packet));
        }
        while let Some(packet) = self.hops.poll_dropped(now) {
            self.output.push_back(Output::Drop(packet, DropReason::QueueFull));
        }
        while let Some(packet) = self.hops.poll_at_servers(now) {
            self.at_servers(now, packet);
        }
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.hops.next_arrival()
    }
}
