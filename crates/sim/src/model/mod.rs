//! The network of a scenario: servers, core network, access, stations, as nodes of an engine.
//!
//! ```text
//! server hosts - core network - [proxy - hops behind it] - access: cell or link - station hosts
//! ```
//!
//! [`Model::new`] (in `build`, with the cell's configuration from `cell_config`) makes the nodes and wires. The
//! engine moves packets; the accessors here expose the nodes, and `counters` reads them. In the emulator some stations
//! are real: their port of the access, and the core network's port for everything else, lead outside the engine.

mod build;
mod cell_config;

use crate::core_network::{self, Core, Monitor};
use crate::endpoints::{Host, Udp, UdpStats};
use crate::engine::{Engine, NodeId};
use crate::link::Link;
use crate::proxy::Pep;
use paceline_net::{Bytes, Instant, Node, Output, Packet, Port};
use paceline_ran::{Cell, station_port};
use paceline_tcp::Endpoint;

/// The engine's port towards the host side of real stations.
pub const HOST_SIDE: Port = Port(0);

/// The engine's port towards a real station.
pub fn real_station(station: usize) -> Port {
    station_port(station)
}

/// One of the kinds of node in a model.
pub enum ModelNode {
    /// TCP endpoints.
    Host(Host),
    /// UDP flows.
    Udp(Udp),
    /// The wired network.
    Core(Box<Core>),
    /// The cell.
    Cell(Box<Cell>),
    /// The link in its place.
    Link(Box<Link>),
    /// What stands before the access.
    Pep(Box<Pep>),
}

/// What stands between core and stations.
#[derive(Clone, Copy)]
pub enum Access<'a> {
    /// A cell.
    Cell(&'a Cell),
    /// Another link.
    Link(&'a Link),
}

macro_rules! forward {
    ($self:ident, $node:ident => $call:expr) => {
        match $self {
            ModelNode::Host($node) => $call,
            ModelNode::Core($node) => $call,
            ModelNode::Cell($node) => $call,
            ModelNode::Udp($node) => $call,
            ModelNode::Link($node) => $call,
            ModelNode::Pep($node) => $call,
        }
    };
}

impl Node for ModelNode {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        forward!(self, node => node.handle_packet(now, from, packet));
    }
    fn handle_timeout(&mut self, now: Instant) {
        forward!(self, node => node.handle_timeout(now));
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        forward!(self, node => node.poll_output(now))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        forward!(self, node => node.poll_timeout())
    }
}

/// The network of a scenario.
pub struct Model {
    /// Runs it.
    pub engine: Engine<ModelNode>,
    core: NodeId,
    pep: Option<NodeId>,
    access: NodeId,
    /// Per station, its server's host and its own; none for a real station.
    hosts: Vec<Option<(NodeId, NodeId)>>,
    /// Per station, what each of its transfers moves; none without end.
    sizes: Vec<Option<Bytes>>,
}

impl Model {
    /// What stands between core and stations.
    pub fn access(&self) -> Access<'_> {
        match self.engine.node(self.access) {
            ModelNode::Cell(cell) => Access::Cell(cell),
            ModelNode::Link(link) => Access::Link(link),
            _ => unreachable!("the access's id names a cell or a link"),
        }
    }
    /// The cell.
    ///
    /// # Panics
    /// If the scenario has another link in its place.
    pub fn cell(&self) -> &Cell {
        match self.access() {
            Access::Cell(cell) => cell,
            Access::Link(_) => panic!("a scenario with [link] has no cell"),
        }
    }
    /// The link in place of the cell, to ask for its capacity.
    pub(crate) fn link_mut(&mut self) -> Option<&mut Link> {
        match self.engine.node_mut(self.access) {
            ModelNode::Link(link) => Some(link),
            _ => None,
        }
    }
    /// What stands between the core and the access, if anything does.
    pub fn pep(&self) -> Option<&Pep> {
        match self.engine.node(self.pep?) {
            ModelNode::Pep(pep) => Some(pep),
            _ => unreachable!("the id of a proxy names one"),
        }
    }
    /// The monitor nearest to the stations: that of a proxy, or of the core.
    pub fn monitor(&self) -> &Monitor {
        self.pep().map_or_else(|| self.core_monitor(), Pep::monitor)
    }
    /// The monitor between the servers and the core.
    pub fn core_monitor(&self) -> &Monitor {
        match self.engine.node(self.core) {
            ModelNode::Core(core) => core.monitor(),
            _ => unreachable!("the core's id names a core"),
        }
    }
    /// Forgets the distributions of round-trip times and delays seen so far.
    pub fn restart_distributions(&mut self) {
        if let Some(link) = self.link_mut() {
            link.restart_delays();
        }
        if let Some(ModelNode::Pep(pep)) = self.pep.map(|pep| self.engine.node_mut(pep)) {
            pep.monitor_mut().restart_rtt();
        }
        if let ModelNode::Core(core) = self.engine.node_mut(self.core) {
            core.monitor_mut().restart_rtt();
        }
    }
    /// The endpoints of a station's server and of the station itself, pair by pair; none for a real station.
    pub fn flows(&self, station: usize) -> Vec<(&Endpoint, &Endpoint)> {
        let Some((server, host)) = self.hosts[station] else { return Vec::new() };
        match (self.engine.node(server), self.engine.node(host)) {
            (ModelNode::Host(server), ModelNode::Host(host)) => {
                server.endpoints().zip(host.endpoints()).collect()
            }
            _ => Vec::new(),
        }
    }
    /// What the server of a station with UDP flows has seen, and the station itself.
    pub fn udp(&self, station: usize) -> Option<(&UdpStats, &UdpStats)> {
        let (server, host) = self.hosts[station]?;
        match (self.engine.node(server), self.engine.node(host)) {
            (ModelNode::Udp(server), ModelNode::Udp(host)) => Some((server.stats(), host.stats())),
            _ => None,
        }
    }
    /// What each of a station's transfers moves; none without end.
    pub fn transfer_size(&self, station: usize) -> Option<Bytes> {
        self.sizes[station]
    }
    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.hosts.len()
    }
    /// Captures at the servers' side (interface 0) and at every station (interface `1 + index`).
    pub fn capture(&mut self, capture: crate::engine::Capture) {
        self.engine.capture_at((self.core, core_network::OUTSIDE), 0);
        for station in 0..self.stations() {
            if self.hosts[station].is_some() {
                self.engine.capture_at((self.core, core_network::server_port(station)), 0);
            }
            self.engine.capture_at((self.access, station_port(station)), station as u32 + 1);
        }
        self.engine.set_capture(capture);
    }
}
