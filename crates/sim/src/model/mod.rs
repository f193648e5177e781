//! The network of a scenario: servers, core network, access, stations, as nodes of an engine.
//!
//! ```text
//! server hosts - core network - [proxy - hops behind it] - access: cell or link - station hosts
//! ```
//!
//! [`Model::new`] (in `build`, with the cell's configuration from `cell_config`) makes the nodes and wires.
//! The engine moves packets; the accessors here expose the nodes, and `counters` reads them. In the emulator
//! some stations are real: their port of the access, and the core network's port for everything else, lead
//! outside the engine.

mod build;
mod cell_config;
mod hint;
mod mobility;
mod sidelink_config;

use crate::core_network::{self, Core, Monitor};
use crate::endpoints::{Host, Udp, UdpStats};
use crate::engine::{Engine, NodeId, PacketSink};
use crate::link::Link;
use crate::pings::{Ping, Trace};
use crate::proxy::Pep;
use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port, ServingCell};
use paceline_ran::sidelink::Sidelink;
use paceline_ran::{BlockSink, Cell, StepSink, station_port};
use paceline_tcp::Endpoint;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Port of the engine to which the core network's default route leads: the emulator's own host.
pub const HOST_SIDE: Port = Port(0);

/// Port of the engine towards a real station.
pub fn real_station(station: usize) -> Port {
    station_port(station)
}

/// A node of a model. All are boxed: the engine finds a small element of its list fastest.
pub enum ModelNode {
    /// A host with TCP endpoints.
    Host(Box<Host>),
    /// One side of UDP flows.
    Udp(Box<Udp>),
    /// A core network.
    Core(Box<Core>),
    /// A cell.
    Cell(Box<Cell>),
    /// An access link in place of a cell.
    Link(Box<Link>),
    /// Pairs of stations in place of a cell.
    Sidelink(Box<Sidelink>),
    /// A proxy.
    Pep(Box<Pep>),
}

/// The access of a model: the node between the core network and the stations.
#[derive(Clone, Copy)]
pub enum Access<'a> {
    /// A cell.
    Cell(&'a Cell),
    /// An access link in place of a cell.
    Link(&'a Link),
    /// Pairs of stations in place of a cell.
    Sidelink(&'a Sidelink),
}

macro_rules! forward {
    ($self:ident, $node:ident => $call:expr) => {
        match $self {
            ModelNode::Host($node) => $call,
            ModelNode::Core($node) => $call,
            ModelNode::Cell($node) => $call,
            ModelNode::Udp($node) => $call,
            ModelNode::Link($node) => $call,
            ModelNode::Sidelink($node) => $call,
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
    fn handle_serving_cell(&mut self, now: Instant, of: ServingCell) {
        forward!(self, node => node.handle_serving_cell(now, of));
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        forward!(self, node => node.poll_output(now))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        forward!(self, node => node.poll_timeout())
    }
    fn poll_all(&mut self, now: Instant, output: impl FnMut(Output)) -> Option<Instant> {
        forward!(self, node => node.poll_all(now, output))
    }
    fn deliver(
        &mut self,
        now: Instant,
        from: Port,
        packet: Packet,
        output: impl FnMut(Output),
    ) -> Option<Instant> {
        forward!(self, node => node.deliver(now, from, packet, output))
    }
    fn expire(&mut self, now: Instant, output: impl FnMut(Output)) -> Option<Instant> {
        forward!(self, node => node.expire(now, output))
    }
}

/// The receivers of a capture.
pub struct Capture {
    /// Receives the packets.
    pub packets: PacketSink,
    /// Receives the blocks of an NR cell.
    pub blocks: Option<BlockSink>,
}

/// State of the kernel's senders at the servers of a real station.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KernelState {
    /// Congestion windows, summed, bytes.
    pub cwnd_bytes: u64,
    /// Smoothed round-trip time of the first connection.
    pub srtt: Option<Duration>,
}

/// The network of a scenario.
pub struct Model {
    /// Runs the nodes.
    pub engine: Engine<ModelNode>,
    core: NodeId,
    pep: Option<NodeId>,
    /// The hops behind the proxy, if there are any.
    behind: Option<NodeId>,
    /// Number of hops before the proxy.
    hops_before: usize,
    access: NodeId,
    /// Per station, the nodes of its server and of the station itself; none for a real station.
    hosts: Vec<Option<(NodeId, NodeId)>>,
    /// Per station, the size of each of its transfers; none for transfers without end.
    sizes: Vec<Vec<Option<Bytes>>>,
    /// Per real station with an open connection, the last reading of the kernel's senders.
    kernel: BTreeMap<usize, KernelState>,
    /// The ways of the pings, by station.
    pings: Vec<(usize, Trace)>,
}

impl Model {
    /// The access.
    pub fn access(&self) -> Access<'_> {
        match self.engine.node(self.access) {
            ModelNode::Cell(cell) => Access::Cell(cell),
            ModelNode::Link(link) => Access::Link(link),
            ModelNode::Sidelink(sidelink) => Access::Sidelink(sidelink),
            _ => unreachable!("the access's id names a cell, a link or a sidelink"),
        }
    }
    /// The cell.
    ///
    /// # Panics
    /// If the scenario has a `[link]` or a `[sidelink]` in place of a cell.
    pub fn cell(&self) -> &Cell {
        match self.access() {
            Access::Cell(cell) => cell,
            _ => panic!("a scenario with [link] or [sidelink] has no cell"),
        }
    }
    /// The pairs of stations in place of a cell, if there are any.
    pub fn sidelink(&self) -> Option<&Sidelink> {
        match self.access() {
            Access::Sidelink(sidelink) => Some(sidelink),
            _ => None,
        }
    }
    /// Records the messages of the sidelink from now on.
    pub fn record_messages(&mut self) {
        if let ModelNode::Sidelink(sidelink) = self.engine.node_mut(self.access) {
            sidelink.record_messages();
        }
    }
    /// The access link, for reading its capacity, which advances a copy of its service; none for a cell.
    pub(crate) fn link_mut(&mut self) -> Option<&mut Link> {
        match self.engine.node_mut(self.access) {
            ModelNode::Link(link) => Some(link),
            _ => None,
        }
    }
    /// The proxy, if there is one.
    pub fn pep(&self) -> Option<&Pep> {
        match self.engine.node(self.pep?) {
            ModelNode::Pep(pep) => Some(pep),
            _ => unreachable!("the id of a proxy names one"),
        }
    }
    /// The proxy, for look-ups that move its caches.
    pub fn pep_mut(&mut self) -> Option<&mut Pep> {
        match self.engine.node_mut(self.pep?) {
            ModelNode::Pep(pep) => Some(pep),
            _ => unreachable!("the id of a proxy names one"),
        }
    }
    /// The monitor nearest to the stations: that of the proxy, else of the core network.
    pub fn monitor(&self) -> &Monitor {
        self.pep().map_or_else(|| self.core_monitor(), Pep::monitor)
    }
    /// The monitor between the servers and the core network.
    fn core_monitor(&self) -> &Monitor {
        self.core(self.core).monitor()
    }
    /// The hops between the servers and the access or the proxy, and those behind the proxy.
    pub(crate) fn cores(&self) -> (&Core, Option<&Core>) {
        (self.core(self.core), self.behind.map(|id| self.core(id)))
    }
    pub(crate) fn hops_before_proxy(&self) -> usize {
        self.hops_before
    }
    fn core(&self, id: NodeId) -> &Core {
        match self.engine.node(id) {
            ModelNode::Core(core) => core,
            _ => unreachable!("the id of a core names one"),
        }
    }
    /// Clears the distributions of round-trip times, of a link's delays and of managed queues.
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
        for id in [Some(self.core), self.behind].into_iter().flatten() {
            if let ModelNode::Core(core) = self.engine.node_mut(id) {
                core.restart_queues();
            }
        }
    }
    /// Per TCP connection of a station, the endpoints of its server and of the station; none for a real
    /// station.
    pub fn flows(&self, station: usize) -> Vec<(&Endpoint, &Endpoint)> {
        let Some((server, host)) = self.hosts[station] else { return Vec::new() };
        match (self.engine.node(server), self.engine.node(host)) {
            (ModelNode::Host(server), ModelNode::Host(host)) => {
                server.endpoints().zip(host.endpoints()).collect()
            }
            _ => Vec::new(),
        }
    }
    /// Changes the endpoints that send a station's data: those of its server, or with `upload` its own.
    pub(crate) fn change_senders(&mut self, station: usize, upload: bool, change: impl FnMut(&mut Endpoint)) {
        let Some((server, host)) = self.hosts[station] else { return };
        self.engine.change(if upload { host } else { server }, |node| {
            if let ModelNode::Host(host) = node {
                host.change(change);
            }
        });
    }
    /// Reads these endpoints, for readings that change them.
    pub(crate) fn read_senders(&mut self, station: usize, upload: bool, read: impl FnMut(&mut Endpoint)) {
        let Some((server, host)) = self.hosts[station] else { return };
        if let ModelNode::Host(host) = self.engine.node_mut(if upload { host } else { server }) {
            host.endpoints_mut().for_each(read);
        }
    }
    /// The cell, for the weights of its scheduler; none for another access.
    pub(crate) fn cell_mut(&mut self) -> Option<&mut Cell> {
        match self.engine.node_mut(self.access) {
            ModelNode::Cell(cell) => Some(cell),
            _ => None,
        }
    }
    /// UDP counters of a station's server and of the station; none without UDP flows.
    pub fn udp(&self, station: usize) -> Option<(&UdpStats, &UdpStats)> {
        let (server, host) = self.hosts[station]?;
        match (self.engine.node(server), self.engine.node(host)) {
            (ModelNode::Udp(server), ModelNode::Udp(host)) => Some((server.stats(), host.stats())),
            _ => None,
        }
    }
    /// The answered pings of each station that has some.
    pub(crate) fn pings(&self) -> Vec<(usize, Vec<Ping>)> {
        let of = |(station, trace): &(usize, Trace)| {
            let (server, host) = self.hosts[*station]?;
            match (self.engine.node(server), self.engine.node(host)) {
                (ModelNode::Udp(server), ModelNode::Udp(host)) => {
                    Some((*station, trace.answered(server.log()?, host.log()?)))
                }
                _ => None,
            }
        };
        self.pings.iter().filter_map(of).collect()
    }
    /// Size of the transfer of a station's connection; none for one without end.
    pub fn transfer_size(&self, station: usize, connection: usize) -> Option<Bytes> {
        self.sizes[station].get(connection).copied().flatten()
    }
    /// Adds an address of a real station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        for node in self.engine.nodes_mut() {
            match node {
                ModelNode::Core(core) => core.add_route(address, station),
                ModelNode::Pep(pep) => pep.add_route(address, station),
                ModelNode::Cell(cell) => cell.add_route(address, station),
                ModelNode::Link(link) => link.add_route(address, station),
                ModelNode::Sidelink(sidelink) => sidelink.add_route(address, station),
                ModelNode::Host(_) | ModelNode::Udp(_) => {}
            }
        }
    }
    /// Whether a station is one of real programs, outside the model.
    pub fn is_real(&self, station: usize) -> bool {
        self.hosts[station].is_none()
    }
    /// Sets the state of the kernel's senders, by station.
    pub fn set_kernel_states(&mut self, states: BTreeMap<usize, KernelState>) {
        self.kernel = states;
    }
    /// The state of the kernel's senders at the servers of a station; none of a simulated station, or without
    /// a reading.
    pub fn kernel_state(&self, station: usize) -> Option<KernelState> {
        self.kernel.get(&station).copied()
    }
    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.hosts.len()
    }
    /// Gives the packets at one station and at its server, and the steps of its packets through the cell, to
    /// two receivers.
    pub(crate) fn watch(&mut self, station: usize, packets: PacketSink, steps: StepSink) {
        if self.hosts[station].is_some() {
            self.engine.capture_at((self.core, core_network::server_port(station)), 0);
        }
        self.engine.capture_at((self.access, station_port(station)), 1);
        self.engine.set_capture(packets);
        if let ModelNode::Cell(cell) = self.engine.node_mut(self.access) {
            cell.watch(station, steps);
        }
    }
    /// Captures packets at the servers (interface 0) and at every station (interface `1 + index`), and the
    /// blocks of an NR cell.
    pub fn capture(&mut self, capture: Capture) {
        self.engine.capture_at((self.core, core_network::OUTSIDE), 0);
        for station in 0..self.stations() {
            if self.hosts[station].is_some() {
                self.engine.capture_at((self.core, core_network::server_port(station)), 0);
            }
            self.engine.capture_at((self.access, station_port(station)), station as u32 + 1);
        }
        self.engine.set_capture(capture.packets);
        if let (ModelNode::Cell(cell), Some(sink)) = (self.engine.node_mut(self.access), capture.blocks) {
            cell.capture_blocks(sink);
        }
    }
}
