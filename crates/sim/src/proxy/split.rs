//! Split TCP (RFC 3135 section 2.4), as PEPsal does it (C. Caini, R. Firrincieli, D. Lacamera, 2006): the
//! proxy terminates a station's connection under the server's address, and opens a second connection to the
//! server under the station's address.
//!
//! The proxy reads bytes from one connection and writes them to the other, and stops reading while its buffer
//! for that direction is full. Other packets than TCP pass unchanged. Left out: connections that servers
//! open, resets across the proxy, and the payload of real programs, since a simulated endpoint has only its
//! length.

use super::{SERVERS, STATIONS};
use crate::engine::NEVER;
use paceline_net::{
    Bytes, DropReason, FlowKey, Instant, Node, Output, Packet, Port, SeqNumber, Stream, TcpFlags,
};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Function from local address, remote address and side (`SERVERS` or `STATIONS`) to the configuration of an
/// endpoint.
pub type Configure = Box<dyn Fn(SocketAddr, SocketAddr, Port) -> EndpointConfig + Send>;

/// A split-TCP proxy.
pub struct Split {
    configure: Configure,
    buffer: Bytes,
    isn: Stream,
    /// Index into `pairs` by the key from station to server.
    connections: BTreeMap<FlowKey, usize>,
    pairs: Vec<Pair>,
    output: VecDeque<Output>,
}

/// The two endpoints of one proxied connection.
struct Pair {
    mobile: Endpoint,
    wired: Endpoint,
    /// Next timeout of the two.
    due: Instant,
}

impl Split {
    /// A proxy that buffers at most `buffer` bytes per connection and direction.
    pub fn new(configure: Configure, buffer: Bytes, isn: Stream) -> Self {
        let (connections, pairs, output) = (BTreeMap::new(), Vec::new(), VecDeque::new());
        Self { configure, buffer, isn, connections, pairs, output }
    }
    /// The endpoints of a connection (key from station to server): towards the station and towards the
    /// server.
    pub fn endpoints(&self, key: &FlowKey) -> Option<(&Endpoint, &Endpoint)> {
        self.connections.get(key).map(|index| (&self.pairs[*index].mobile, &self.pairs[*index].wired))
    }
    fn open(&mut self, now: Instant, key: FlowKey) -> usize {
        let station = SocketAddr::new(key.src, key.src_port);
        let server = SocketAddr::new(key.dst, key.dst_port);
        let mut isn = || SeqNumber(self.isn.next_u64() as u32);
        let mobile = EndpointConfig { isn: isn(), ..(self.configure)(server, station, STATIONS) };
        let wired =
            EndpointConfig { isn: isn(), start_at: now, ..(self.configure)(station, server, SERVERS) };
        self.pairs.push(Pair {
            mobile: Endpoint::listen(mobile, Source::Relay),
            wired: Endpoint::connect(wired, Source::Relay),
            due: NEVER,
        });
        self.connections.insert(key, self.pairs.len() - 1);
        self.pairs.len() - 1
    }
    /// Relays bytes between the endpoints of a pair, and takes their output.
    fn relay(&mut self, now: Instant, index: usize) {
        let pair = &mut self.pairs[index];
        loop {
            relay_bytes(now, &mut pair.wired, &mut pair.mobile, self.buffer);
            relay_bytes(now, &mut pair.mobile, &mut pair.wired, self.buffer);
            let before = self.output.len();
            for (endpoint, port) in [(&mut pair.wired, SERVERS), (&mut pair.mobile, STATIONS)] {
                while let Some(output) = endpoint.poll_output(now) {
                    self.output.extend(match output {
                        Output::Transmit(_, packet) => Some(Output::Transmit(port, packet)),
                        Output::Drop(packet, reason) => Some(Output::Drop(packet, reason)),
                        Output::Event(_) => None, // the connection's own ends report events
                    });
                }
            }
            if self.output.len() == before {
                break;
            }
        }
        let due = [&pair.wired, &pair.mobile].map(|endpoint| endpoint.poll_timeout().unwrap_or(NEVER));
        pair.due = due[0].min(due[1]);
    }
}

/// Writes the bytes that `from` has received to `to`, and lets `from` read as far as the buffer allows.
fn relay_bytes(now: Instant, from: &mut Endpoint, to: &mut Endpoint, buffer: Bytes) {
    to.write_to(now, from.readable(), from.peer_closed());
    from.read_to(now, to.acknowledged().saturating_add(buffer.0));
}

impl Node for Split {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let Some(key) = packet.flow_key() else {
            let to = if from == SERVERS { STATIONS } else { SERVERS };
            self.output.push_back(Output::Transmit(to, packet));
            return;
        };
        let upwards = if from == STATIONS { key } else { key.reversed() };
        let opens = packet
            .tcp_header()
            .is_some_and(|tcp| tcp.flags.contains(TcpFlags::SYN) && !tcp.flags.contains(TcpFlags::ACK));
        let index = match self.connections.get(&upwards) {
            Some(index) => *index,
            None if opens && from == STATIONS => self.open(now, upwards),
            None => {
                self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
                return;
            }
        };
        let pair = &mut self.pairs[index];
        let endpoint = if from == STATIONS { &mut pair.mobile } else { &mut pair.wired };
        endpoint.handle_packet(now, Port(0), packet);
        self.relay(now, index);
    }
    fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.pairs.len() {
            let pair = &mut self.pairs[index];
            if pair.due <= now {
                for endpoint in [&mut pair.wired, &mut pair.mobile] {
                    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
                        endpoint.handle_timeout(now);
                    }
                }
                self.relay(now, index);
            }
        }
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.pairs.iter().map(|pair| pair.due).min().filter(|at| *at != NEVER)
    }
}
