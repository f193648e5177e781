//! Builds the network of a scenario: servers, core network, cell, stations.
//!
//! ```text
//! server hosts - core (routes, monitor, hops) - cell - station hosts
//! ```
//!
//! In the emulator some stations are real: their side of the cell, and the default route of the core, lead outside
//! instead of to hosts.

use crate::address;
use crate::cell;
use crate::core_network::{self, Core};
use crate::engine::{Engine, NodeId};
use crate::hops::Hops;
use crate::host::Host;
use crate::monitor::Monitor;
use crate::scenario::{Direction, Scenario, Stations};
use paceline_net::{AddressTable, Duration, Instant, Node, Output, Packet, Port, SeqNumber, Stream};
use paceline_ran::{CORE, Cell, station_port};
use paceline_tcp::{Endpoint, Source};
use std::net::SocketAddr;

/// The engine's port towards the host side of real stations.
pub const HOST_SIDE: Port = Port(0);
/// First port number of the servers.
const SERVER_PORT: u16 = 5001;

/// The engine's port towards a real station.
pub fn real_station(station: usize) -> Port {
    station_port(station)
}

/// One of the kinds of node in a model.
pub enum ModelNode {
    /// TCP endpoints.
    Host(Host),
    /// The wired network.
    Core(Box<Core>),
    /// The cell.
    Cell(Box<Cell>),
}

macro_rules! forward {
    ($self:ident, $node:ident => $call:expr) => {
        match $self {
            ModelNode::Host($node) => $call,
            ModelNode::Core($node) => $call,
            ModelNode::Cell($node) => $call,
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
    cell: NodeId,
    /// Per station, its server's host and its own; none for a real station.
    hosts: Vec<Option<(NodeId, NodeId)>>,
}

impl Model {
    /// Builds the network. Stations listed in `real` have no simulated traffic; their packets pass the engine's
    /// ports [`real_station`] and [`HOST_SIDE`].
    pub fn new(scenario: &Scenario, seed: u64, real: &[usize]) -> Self {
        let mut engine = Engine::default();
        let groups: Vec<&Stations> =
            scenario.stations.iter().flat_map(|g| std::iter::repeat_n(g, g.count as usize)).collect();
        let cell = cell::cell(scenario, &groups, seed);
        let serving: Vec<usize> = (0..groups.len()).map(|station| cell.serving(station)).collect();
        let servers = (0..groups.len()).map(|index| (address::server(index), index)).collect();
        let hops = Hops::new(&scenario.core.hops, cell.cells());
        let core = Core::new(station_addresses(groups.len()), servers, serving, hops);
        let core = engine.add(ModelNode::Core(Box::new(core)));
        engine.expose((core, core_network::OUTSIDE), HOST_SIDE);
        let cell = engine.add(ModelNode::Cell(Box::new(cell)));
        engine.connect((core, core_network::CELLS), (cell, CORE));
        let mut model = Self { engine, core, cell, hosts: Vec::new() };
        for (index, group) in groups.iter().enumerate() {
            if real.contains(&index) {
                model.engine.expose((cell, station_port(index)), real_station(index));
                model.hosts.push(None);
            } else {
                let hosts = model.add_hosts(scenario, group, index, seed);
                model.hosts.push(Some(hosts));
            }
        }
        model
    }

    fn add_hosts(
        &mut self,
        scenario: &Scenario,
        group: &Stations,
        index: usize,
        seed: u64,
    ) -> (NodeId, NodeId) {
        let mut stream = Stream::new(seed, &format!("station{index}/traffic"));
        let (mut server, mut station) = (Host::default(), Host::default());
        let flows = if group.direction == Direction::None { 0 } else { group.flows };
        for flow in 0..flows {
            let (at_server, at_station) = endpoints(scenario, group, index, flow as u16, &mut stream);
            server.add(at_server);
            station.add(at_station);
        }
        let server = self.engine.add(ModelNode::Host(server));
        let station = self.engine.add(ModelNode::Host(station));
        self.engine.connect((self.core, core_network::server_port(index)), (server, Port(0)));
        self.engine.connect((self.cell, station_port(index)), (station, Port(0)));
        (server, station)
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        match self.engine.node(self.cell) {
            ModelNode::Cell(cell) => cell,
            _ => unreachable!("the cell's id names a cell"),
        }
    }
    /// The monitor.
    pub fn monitor(&self) -> &Monitor {
        match self.engine.node(self.core) {
            ModelNode::Core(core) => core.monitor(),
            _ => unreachable!("the core's id names a core"),
        }
    }
    /// Forgets the distribution of round-trip times seen so far.
    pub fn restart_rtt(&mut self) {
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
            _ => unreachable!("a station's ids name hosts"),
        }
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
            self.engine.capture_at((self.cell, station_port(station)), station as u32 + 1);
        }
        self.engine.set_capture(capture);
    }
}

fn station_addresses(count: usize) -> AddressTable {
    let pairs = (0..count).map(|index| (index, address::station(index)));
    pairs.flat_map(|(index, (v4, v6))| [(v4.into(), index), (v6.into(), index)]).collect()
}

/// Both ends of one connection: the server's and the station's.
fn endpoints(
    scenario: &Scenario,
    group: &Stations,
    index: usize,
    flow: u16,
    stream: &mut Stream,
) -> (Endpoint, Endpoint) {
    let server = SocketAddr::new(address::server(index), SERVER_PORT + flow);
    let station = SocketAddr::new(address::station(index).0.into(), 40_000 + flow);
    let spread = Duration::from_secs_f64(group.start_spread.as_secs_f64() * stream.uniform());
    let mut at_server = scenario.tcp.config(server, station);
    let mut at_station = scenario.tcp.config(station, server);
    at_station.start_at = Instant::ZERO + group.start + spread;
    at_server.isn = SeqNumber(stream.next_u64() as u32);
    at_station.isn = SeqNumber(stream.next_u64() as u32);
    let data = match (group.chunk, group.file) {
        (None, file) => file.map_or(Source::Bulk, Source::File),
        (Some(size), file) => {
            let count = file.map_or(u64::MAX, |file| file.0.div_ceil(size.0));
            Source::Chunks { size, interval: group.chunk_interval, count }
        }
    };
    match group.direction {
        Direction::Upload => {
            (Endpoint::listen(at_server, Source::Nothing), Endpoint::connect(at_station, data))
        }
        _ => (Endpoint::listen(at_server, data), Endpoint::connect(at_station, Source::Nothing)),
    }
}
