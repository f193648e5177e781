//! Forwards by destination address; what matches no route leaves by the default port.

use paceline_net::{DropReason, Instant, Node, Output, Packet, Port};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A table of host routes.
#[derive(Debug, Default)]
pub struct Router {
    routes: BTreeMap<IpAddr, Port>,
    default: Option<Port>,
    output: VecDeque<Output>,
}

impl Router {
    /// Sends packets for `address` to `port`.
    pub fn add_route(&mut self, address: IpAddr, port: Port) {
        self.routes.insert(address, port);
    }
    /// Sends packets without a route to `port`.
    pub fn set_default(&mut self, port: Port) {
        self.default = Some(port);
    }
}

impl Node for Router {
    fn handle_packet(&mut self, _now: Instant, from: Port, packet: Packet) {
        let port = self.routes.get(&packet.ip.dst).copied().or(self.default).filter(|port| *port != from);
        self.output.push_back(match port {
            Some(port) => Output::Transmit(port, packet),
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
