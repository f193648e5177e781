//! Builds the network of a scenario: servers, core network, cell, stations.
//!
//! ```text
//! server hosts - core (routes, monitor, hops) - cell, or another link - station hosts
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
use crate::link::Link;
use crate::monitor::Monitor;
use crate::pep::{self, Pep};
use crate::scenario::{self, Direction, Scenario, Stations, Traffic};
use crate::split::Split;
use crate::udp::{Udp, UdpFlow, UdpStats};
use paceline_net::{AddressTable, Bytes, Duration, Instant, Node, Output, Packet, Port, SeqNumber, Stream};
use paceline_pep::Accelerator;
use paceline_ran::{CORE, Cell, station_port};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
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
    /// Builds the network. Stations listed in `real` have no simulated traffic; their packets pass the engine's
    /// ports [`real_station`] and [`HOST_SIDE`].
    pub fn new(scenario: &Scenario, seed: u64, real: &[usize]) -> Self {
        let mut engine = Engine::default();
        let groups: Vec<&Stations> =
            scenario.stations.iter().flat_map(|g| std::iter::repeat_n(g, g.count as usize)).collect();
        let (access, serving, cells) = match &scenario.link {
            Some(link) => {
                let link = Link::new(link, scenario.routes(), groups.len(), seed);
                (ModelNode::Link(Box::new(link)), vec![0; groups.len()], 1)
            }
            None => {
                let cell = cell::cell(scenario, &groups, seed);
                let serving = (0..groups.len()).map(|station| cell.serving(station)).collect();
                let cells = cell.cells();
                (ModelNode::Cell(Box::new(cell)), serving, cells)
            }
        };
        let servers = (0..groups.len()).map(|index| (address::server(index), index)).collect();
        let pep = pep(scenario, groups.len(), seed);
        let (before, behind) = match &pep {
            Some(_) => scenario.core.around_path(),
            None => (&scenario.core.hops[..], &[][..]),
        };
        let part = |servers: AddressTable, hops| {
            let hops = Hops::new(hops, cells);
            ModelNode::Core(Box::new(Core::new(scenario.routes(), servers, serving.clone(), hops)))
        };
        let core = engine.add(part(servers, before));
        engine.expose((core, core_network::OUTSIDE), HOST_SIDE);
        let access = engine.add(access);
        let pep = pep.map(|pep| engine.add(ModelNode::Pep(Box::new(pep))));
        let mut towards_cells = (core, core_network::CELLS);
        if let Some(pep) = pep {
            engine.connect(towards_cells, (pep, pep::SERVERS));
            towards_cells = (pep, pep::STATIONS);
        }
        if !behind.is_empty() {
            let far = engine.add(part(AddressTable::default(), behind));
            engine.connect(towards_cells, (far, core_network::OUTSIDE));
            towards_cells = (far, core_network::CELLS);
        }
        engine.connect(towards_cells, (access, CORE));
        let sizes = groups.iter().map(|group| group.file).collect();
        let mut model = Self { engine, core, pep, access, hosts: Vec::new(), sizes };
        for (index, group) in groups.iter().enumerate() {
            if real.contains(&index) {
                model.engine.expose((access, station_port(index)), real_station(index));
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
        let flows = if group.direction == Direction::None { 0 } else { group.flows };
        if group.traffic == Traffic::Udp {
            let [server, station] = udp(group, index, flows, &mut stream).map(ModelNode::Udp);
            return self.attach(index, server, station);
        }
        let (mut server, mut station) = (Host::default(), Host::default());
        for flow in 0..flows {
            let (at_server, at_station) = endpoints(scenario, group, index, flow as u16, &mut stream);
            server.add(at_server);
            station.add(at_station);
        }
        self.attach(index, ModelNode::Host(server), ModelNode::Host(station))
    }
    fn attach(&mut self, index: usize, server: ModelNode, station: ModelNode) -> (NodeId, NodeId) {
        let (server, station) = (self.engine.add(server), self.engine.add(station));
        self.engine.connect((self.core, core_network::server_port(index)), (server, Port(0)));
        self.engine.connect((self.access, station_port(index)), (station, Port(0)));
        (server, station)
    }

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

/// What the scenario puts before the access.
fn pep(scenario: &Scenario, stations: usize, seed: u64) -> Option<Pep> {
    match scenario.core.path {
        scenario::Path::Direct => None,
        scenario::Path::Accelerator => {
            let config = scenario.accelerator.config(seed);
            Some(Pep::accelerator(Accelerator::new(config), scenario.routes(), stations))
        }
        scenario::Path::SplitTcp => {
            let (tcp, split) = (&scenario.tcp, &scenario.split_tcp);
            let (control, buffer) =
                (split.congestion_control.unwrap_or(tcp.congestion_control), split.buffer);
            let segment_size = tcp.segment_size.0 as u32;
            let configure = move |local, remote, side| EndpointConfig {
                variant: if side == pep::STATIONS { control } else { Default::default() },
                segment_size,
                receive_buffer: buffer,
                send_buffer: buffer,
                ..EndpointConfig::new(local, remote)
            };
            let split = Split::new(Box::new(configure), buffer, Stream::new(seed, "split-tcp"));
            Some(Pep::split(split, scenario.routes(), stations))
        }
    }
}

/// Both sides of a station's UDP flows: the server's and the station's.
fn udp(group: &Stations, index: usize, flows: u32, stream: &mut Stream) -> [Udp; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    for flow in 0..flows as u16 {
        let server = SocketAddr::new(address::server(index), SERVER_PORT + flow);
        let station = SocketAddr::new(address::station(index).0.into(), 40_000 + flow);
        let spread = Duration::from_secs_f64(group.start_spread.as_secs_f64() * stream.uniform());
        let upload = group.direction == Direction::Upload;
        let (local, remote) = if upload { (station, server) } else { (server, station) };
        sides[usize::from(upload)].push(UdpFlow {
            local,
            remote,
            rate: group.udp_rate,
            payload: group.udp_payload,
            start: Instant::ZERO + group.start + spread,
            file: group.file,
        });
    }
    sides.map(Udp::new)
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
        _ => {
            at_server.request = group.request.unwrap_or(Bytes::ZERO);
            let request = group.request.map_or(Source::Nothing, Source::Request);
            (Endpoint::listen(at_server, data), Endpoint::connect(at_station, request))
        }
    }
}
