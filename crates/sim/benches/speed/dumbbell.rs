//! The packet path alone: downloads through one narrow hop, without radio.
//!
//! ```text
//! server hosts - core (50 Mb/s, 20 ms) - switch - client hosts
//! ```

use paceline_net::{
    AddressTable, Bytes, DropReason, Duration, Instant, Node, Output, Packet, Port, Rate, SeqNumber,
};
use paceline_sim::core_network::{CELLS, Core, server_port};
use paceline_sim::engine::NodeId;
use paceline_sim::hops::Hops;
use paceline_sim::host::Host;
use paceline_sim::scenario::Hop;
use paceline_sim::{Engine, address};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Size of a dumbbell.
#[derive(Clone, Copy)]
pub struct Shape {
    pub flows: usize,
    pub rate: Rate,
    pub delay: Duration,
}

/// Ten flows, 50 Mb/s, 20 ms.
pub const USUAL: Shape = Shape { flows: 10, rate: Rate(50_000_000), delay: Duration::from_millis(20) };

/// A switch in place of the cell: port 0 is towards the core network, port `1 + i` towards client `i`.
#[derive(Default)]
pub struct Switch {
    clients: AddressTable,
    output: VecDeque<Output>,
}

impl Node for Switch {
    fn handle_packet(&mut self, _now: Instant, from: Port, packet: Packet) {
        let to = match from {
            Port(0) => self.clients.get(packet.ip.dst).map(|client| Port(client as u16 + 1)),
            _ => Some(Port(0)),
        };
        self.output.push_back(match to {
            Some(to) => Output::Transmit(to, packet),
            None => Output::Drop(packet, DropReason::NoRoute),
        });
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The nodes of a dumbbell.
pub enum Part {
    Host(Host),
    Core(Box<Core>),
    Switch(Switch),
}

macro_rules! forward {
    ($self:ident, $node:ident => $call:expr) => {
        match $self {
            Part::Host($node) => $call,
            Part::Core($node) => $call,
            Part::Switch($node) => $call,
        }
    };
}

impl Node for Part {
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

/// A dumbbell with one download per client, in segments of 536 bytes; `seed` shifts their starts.
pub fn dumbbell(shape: Shape, seed: u64) -> (Engine<Part>, NodeId) {
    let Shape { flows, rate, delay } = shape;
    let clients: AddressTable = (0..flows).map(|i| (address::station(i).0.into(), i)).collect();
    let servers = (0..flows).map(|i| (address::server(i), i)).collect();
    let queue = Bytes(rate.0 / 8 * 2 * delay.as_millis() / 1000); // one round-trip time
    let hop = Hop { queue, ..Hop::new(rate, delay) };
    let core = Core::new(clients.clone(), servers, vec![0; flows], Hops::new(&[hop], 1));
    let mut engine = Engine::default();
    let core = engine.add(Part::Core(Box::new(core)));
    let switch = engine.add(Part::Switch(Switch { clients, output: VecDeque::new() }));
    engine.connect((core, CELLS), (switch, Port(0)));
    for i in 0..flows {
        let addresses = [
            SocketAddr::new(address::server(i), 5001),
            SocketAddr::new(address::station(i).0.into(), 40_000),
        ];
        let config = |side: usize| EndpointConfig {
            segment_size: 536,
            start_at: Instant::from_millis(370 * i as u64 / flows as u64 + seed),
            isn: SeqNumber(seed as u32 * 77_777 + i as u32),
            ..EndpointConfig::new(addresses[side], addresses[1 - side])
        };
        let (mut server, mut client) = (Host::default(), Host::default());
        server.add(Endpoint::listen(config(0), Source::Bulk));
        client.add(Endpoint::connect(config(1), Source::Nothing));
        let server = engine.add(Part::Host(server));
        let client = engine.add(Part::Host(client));
        engine.connect((core, server_port(i)), (server, Port(0)));
        engine.connect((switch, Port(i as u16 + 1)), (client, Port(0)));
    }
    (engine, core)
}

/// Goodput of all clients, Mb/s, from the core network's monitor.
pub fn goodput_mbps(engine: &Engine<Part>, core: NodeId) -> f64 {
    let Part::Core(core) = engine.node(core) else { return 0.0 };
    let bytes: u64 = core.monitor().counters().iter().map(|counters| counters.downloaded).sum();
    bytes as f64 * 8e-6 / engine.now().as_secs_f64()
}
