//! Several uploads through one bottleneck. The opposite direction has a delay only.

use super::{Arrivals, Direction};
use paceline_net::{Duration, Instant, Node, Output, Packet, Port};
use paceline_tcp::{Endpoint, EndpointConfig, Source, Variant};

/// Clients (even) and servers (odd) around one link.
pub struct Shared {
    pub sides: Vec<Endpoint>,
    pub link: Direction,
    pub now: Instant,
    /// Delay from servers to clients.
    back: Duration,
    /// Receiving side and packet.
    arrivals: Arrivals<(usize, Packet)>,
}

impl Shared {
    /// An upload without end for each variant and start time, to one server.
    pub fn new(flows: &[(Variant, Instant)], link: Direction) -> Self {
        let mut sides = Vec::new();
        for (flow, (variant, start_at)) in flows.iter().enumerate() {
            let client = format!("198.18.0.1:{}", 40_000 + flow).parse().expect("an address");
            let server = "198.18.0.2:80".parse().expect("an address");
            let config = |local, remote| {
                let (variant, start_at) = (*variant, *start_at);
                EndpointConfig { variant, start_at, ..EndpointConfig::new(local, remote) }
            };
            sides.push(Endpoint::connect(config(client, server), Source::Bulk));
            sides.push(Endpoint::listen(config(server, client), Source::Nothing));
        }
        let back = link.delay;
        Self { sides, link, now: Instant::ZERO, back, arrivals: Arrivals::default() }
    }
    fn drain(&mut self) {
        for side in 0..self.sides.len() {
            while let Some(output) = self.sides[side].poll_output(self.now) {
                let Output::Transmit(_, packet) = output else { continue };
                let at = if side % 2 == 0 {
                    self.link.accept(self.now, &packet)
                } else {
                    Some(self.now + self.back)
                };
                if let Some(at) = at {
                    self.arrivals.push(at, (side ^ 1, packet));
                }
            }
        }
    }
    /// Runs until `end`.
    pub fn run(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrival = self.arrivals.next_at();
            let timeouts = self.sides.iter().filter_map(Node::poll_timeout);
            let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= end) else { return };
            self.now = next;
            if arrival == Some(next) {
                let (side, packet) = self.arrivals.pop().expect("an arrival is due");
                self.sides[side].handle_packet(next, Port(0), packet);
            } else {
                self.sides.iter_mut().for_each(|side| side.handle_timeout(next));
            }
        }
    }
    /// Bytes that each server received between now and `end`.
    pub fn received_until(&mut self, end: Instant) -> Vec<u64> {
        let received = |shared: &Self| -> Vec<u64> {
            shared.sides.iter().skip(1).step_by(2).map(|server| server.stats().bytes_received).collect()
        };
        let before = received(self);
        self.run(end);
        received(self).iter().zip(before).map(|(after, before)| after - before).collect()
    }
}
