//! A host with TCP endpoints; port 0 is its network interface.

use paceline_net::{DropReason, FlowKey, Instant, Node, Output, Packet, Port};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;

/// Endpoints behind one address.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<(FlowKey, Endpoint)>,
    output: VecDeque<Output>,
}

impl Host {
    /// Adds an endpoint.
    pub fn add(&mut self, endpoint: Endpoint) {
        self.endpoints.push((endpoint.flow_key(), endpoint));
    }
    /// The endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().map(|(_, endpoint)| endpoint)
    }
}

impl Node for Host {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        let key = packet.flow_key().map(FlowKey::reversed);
        match self.endpoints.iter_mut().find(|(own, _)| Some(*own) == key) {
            Some((_, endpoint)) => endpoint.handle_packet(now, Port(0), packet),
            None => self.output.push_back(Output::Drop(packet, DropReason::NoRoute)),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        for (_, endpoint) in &mut self.endpoints {
            if endpoint.poll_timeout().is_some_and(|at| at <= now) {
                endpoint.handle_timeout(now);
            }
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        self.output.pop_front().or_else(|| self.endpoints.iter_mut().find_map(|(_, e)| e.poll_output(now)))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoints.iter().filter_map(|(_, endpoint)| endpoint.poll_timeout()).min()
    }
}
