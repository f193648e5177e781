//! Builds the nodes of a model and their wires.

use super::hint::{accelerator_hint, pacing_hint};
use super::{HOST_SIDE, Model, ModelNode, cell_config, real_station, sidelink_config};
use crate::address;
use crate::core_network::hops::Hops;
use crate::core_network::{self, Core};
use crate::endpoints::{Arrivals, Host, Udp, UdpFlow};
use crate::engine::{Engine, NodeId};
use crate::link::Link;
use crate::pings::Trace;
use crate::proxy::{self, Configure, Pep, Split};
use crate::scenario::{self, Access, Direction, Scenario, Stations, Traffic, UdpArrivals};
use paceline_net::pacing::Hint;
use paceline_net::{AddressTable, Bytes, Duration, Instant, Port, SeqNumber, Stream};
use paceline_pep::{Accelerator, AcceleratorConfig};
use paceline_ran::{CORE, station_port};
use paceline_tcp::{Endpoint, EndpointConfig, Source, Variant};
use std::net::SocketAddr;

/// TCP or UDP port of a server's first flow. Chosen: the port of an iperf 2 server.
const SERVER_PORT: u16 = 5001;
/// TCP or UDP port of a station's first flow. Chosen: within Linux's default `ip_local_port_range`.
const STATION_PORT: u16 = 40_000;

impl Model {
    /// Builds the network of a scenario. Stations listed in `real` have no simulated traffic: their packets
    /// pass the engine's ports [`real_station`] and [`HOST_SIDE`].
    pub fn new(scenario: &Scenario, seed: u64, real: &[usize]) -> Self {
        let mut engine = Engine::default();
        let groups: Vec<&Stations> =
            scenario.stations.iter().flat_map(|g| std::iter::repeat_n(g, g.count as usize)).collect();
        let (access, serving, cells) = match &scenario.access {
            Access::Link(link) => {
                let link = Link::new(link, crate::address::routes(scenario), groups.len(), seed);
                (ModelNode::Link(Box::new(link)), vec![0; groups.len()], 1)
            }
            Access::Pairs(pairs) => {
                let sidelink = sidelink_config::sidelink(scenario, pairs, &groups, seed);
                (ModelNode::Sidelink(Box::new(sidelink)), vec![0; groups.len()], 1)
            }
            Access::Cells(cells) => {
                let cell = cell_config::cell(scenario, cells, &groups, seed);
                let serving = (0..groups.len()).map(|station| cell.serving(station)).collect();
                let cells = cell.cells();
                (ModelNode::Cell(Box::new(cell)), serving, cells)
            }
        };
        let servers = (0..groups.len()).map(|index| (address::server(index), index)).collect();
        let pep = pep(scenario, &groups, seed);
        let (hops_before, hops_behind) = match &pep {
            Some(_) => scenario.core.around_path(),
            None => (&scenario.core.hops[..], &[][..]),
        };
        let group_of = crate::address::station_groups(scenario);
        let part = |servers: AddressTable, hops| {
            let hops = Hops::with_groups(hops, cells, group_of.clone());
            let core = Core::new(crate::address::routes(scenario), servers, serving.clone(), hops);
            let paired = |index: &usize| scenario.pairs().is_some() && groups[*index].peer;
            ModelNode::Core(Box::new(core.without_hops((0..groups.len()).filter(paired))))
        };
        let core = engine.add(part(servers, hops_before));
        engine.expose((core, core_network::OUTSIDE), HOST_SIDE);
        engine.follow_cells(core);
        let access = engine.add(access);
        let pep = pep.map(|pep| engine.add(ModelNode::Pep(Box::new(pep))));
        let mut towards_cells = (core, core_network::CELLS);
        if let Some(pep) = pep {
            engine.connect(towards_cells, (pep, proxy::SERVERS));
            towards_cells = (pep, proxy::STATIONS);
        }
        let behind =
            (!hops_behind.is_empty()).then(|| engine.add(part(AddressTable::default(), hops_behind)));
        if let Some(behind) = behind {
            engine.follow_cells(behind);
            engine.connect(towards_cells, (behind, core_network::OUTSIDE));
            towards_cells = (behind, core_network::CELLS);
        }
        engine.connect(towards_cells, (access, CORE));
        let sizes =
            |group: &&Stations| (0..group.connections() as usize).map(|own| group.file_of(own)).collect();
        let sizes = groups.iter().map(sizes).collect();
        let hosts = Vec::new();
        let (hops_before, kernel, pings) = (hops_before.len(), Default::default(), Vec::new());
        let mut model = Self { engine, core, pep, behind, hops_before, access, hosts, sizes, kernel, pings };
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
        let flows = if group.direction == Direction::None { 0 } else { group.connections() };
        if group.traffic != Traffic::Tcp {
            let sides = udp(group, index, flows, &mut stream, seed);
            if group.traffic == Traffic::Ping {
                self.trace_pings(index);
            }
            let [server, station] = sides.map(|side| ModelNode::Udp(Box::new(side)));
            return self.attach(index, server, station);
        }
        let (mut server, mut station) = (Host::default(), Host::default());
        for flow in 0..flows {
            let (at_server, at_station) = endpoints(scenario, group, index, flow as u16, &mut stream);
            server.add(at_server);
            station.add(at_station);
        }
        self.attach(index, ModelNode::Host(Box::new(server)), ModelNode::Host(Box::new(station)))
    }
    fn trace_pings(&mut self, station: usize) {
        let trace = Trace::default();
        if let ModelNode::Cell(cell) = self.engine.node_mut(self.access) {
            cell.watch(station, trace.sink());
        }
        self.pings.push((station, trace));
    }
    fn attach(&mut self, index: usize, server: ModelNode, station: ModelNode) -> (NodeId, NodeId) {
        let (server, station) = (self.engine.add(server), self.engine.add(station));
        self.engine.connect((self.core, core_network::server_port(index)), (server, Port(0)));
        self.engine.connect((self.access, station_port(index)), (station, Port(0)));
        (server, station)
    }
}

/// The proxy of a scenario, if it has one.
fn pep(scenario: &Scenario, groups: &[&Stations], seed: u64) -> Option<Pep> {
    let left_alone = groups.iter().map(|group| !group.proxy).collect();
    match scenario.core.proxy {
        scenario::Proxy::None => None,
        scenario::Proxy::Accelerator => {
            let config = scenario.accelerator.config(seed);
            let config = AcceleratorConfig { pacing_hint: accelerator_hint(scenario), ..config };
            Some(Pep::accelerator(Accelerator::new(config), crate::address::routes(scenario), left_alone))
        }
        scenario::Proxy::SplitTcp => {
            let buffer = scenario.split_tcp.buffer;
            let configure = split_endpoints(scenario, groups);
            let split = Split::new(configure, buffer, Stream::new(seed, "split-tcp"));
            Some(Pep::split(split, crate::address::routes(scenario), left_alone))
        }
    }
}

/// The endpoints of split TCP: congestion control towards a station and segment size are those of the
/// station's own TCP.
fn split_endpoints(scenario: &Scenario, groups: &[&Stations]) -> Configure {
    let (routes, buffer) = (crate::address::routes(scenario), scenario.split_tcp.buffer);
    let of_group = |group: &&Stations| {
        let tcp = scenario.tcp_of(group);
        let control = scenario.split_tcp.congestion_control.unwrap_or(tcp.congestion_control);
        (control, tcp.segment_size.0 as u32)
    };
    let own: Vec<(Variant, u32)> = groups.iter().map(of_group).collect();
    Box::new(move |local, remote, side| {
        let config = EndpointConfig::new(local, remote);
        let station = if side == proxy::STATIONS { remote } else { local };
        let (control, segment_size) = match routes.get(station.ip()) {
            Some(station) => own[station],
            None => (config.variant, config.segment_size),
        };
        EndpointConfig {
            variant: if side == proxy::STATIONS { control } else { config.variant },
            segment_size,
            receive_buffer: buffer,
            send_buffer: buffer,
            ..config
        }
    })
}

/// UDP nodes of a station's server and of the station, of pings too.
fn udp(group: &Stations, index: usize, flows: u32, stream: &mut Stream, seed: u64) -> [Udp; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    let pings = group.traffic == Traffic::Ping;
    for flow in 0..flows as u16 {
        let server = SocketAddr::new(address::server(index), SERVER_PORT + flow);
        let station = SocketAddr::new(address::station(index).0.into(), STATION_PORT + flow);
        let spread = Duration::from_secs_f64(group.start_spread.as_secs_f64() * stream.uniform());
        let upload = group.direction == Direction::Upload;
        let (local, remote) = if upload { (station, server) } else { (server, station) };
        sides[usize::from(upload)].push(UdpFlow {
            local,
            remote,
            rate: group.udp_rate,
            interval: pings.then_some(group.ping_interval),
            payload: if pings { group.ping_payload } else { group.udp_payload },
            arrivals: match group.udp_arrivals {
                UdpArrivals::Constant => Arrivals::Constant,
                UdpArrivals::Poisson => {
                    Arrivals::Poisson(Stream::new(seed, &format!("station{index}/udp{flow}/arrivals")))
                }
            },
            start: Instant::ZERO + group.start + spread,
            file: group.file,
        });
    }
    sides.map(if pings { Udp::pings } else { Udp::new })
}

/// Endpoints of one TCP connection: the server's and the station's.
fn endpoints(
    scenario: &Scenario,
    group: &Stations,
    index: usize,
    flow: u16,
    stream: &mut Stream,
) -> (Endpoint, Endpoint) {
    let server = SocketAddr::new(address::server(index), SERVER_PORT + flow);
    let station = SocketAddr::new(address::station(index).0.into(), STATION_PORT + flow);
    let spread = Duration::from_secs_f64(group.start_spread.as_secs_f64() * stream.uniform());
    let tcp = scenario.tcp_of(group);
    let mut at_server = tcp.config(server, station);
    let mut at_station = tcp.config(station, server);
    at_server.pacing_hint = pacing_hint(scenario, &tcp);
    // A station's segments wait for uplink slots: of the pattern it uses the period alone.
    at_station.pacing_hint = at_server.pacing_hint.period().map_or(Hint::None, Hint::Period);
    let listed = group.transfers.get(usize::from(flow));
    // A transfer of a list begins at its time.
    at_station.start_at = Instant::ZERO + listed.map_or(group.start + spread, |own| own.start);
    at_server.isn = SeqNumber(stream.next_u64() as u32);
    at_station.isn = SeqNumber(stream.next_u64() as u32);
    let pieces = group.chunk.map(|chunk| (chunk, group.chunk_interval));
    let pieces = listed.map_or(pieces, |own| own.chunk.zip(own.chunk_interval));
    let data = match (pieces, group.file_of(usize::from(flow))) {
        (None, file) => file.map_or(Source::Bulk, Source::File),
        (Some((size, interval)), file) => {
            let count = file.map_or(u64::MAX, |file| file.0.div_ceil(size.0));
            Source::Chunks { size, interval, count }
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
