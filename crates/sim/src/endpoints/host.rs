//! A host with TCP endpoints; port 0 is its network interface.

use crate::engine::NEVER;
use paceline_net::{DropReason, FlowKey, Instant, Node, Output, Packet, Port};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;

/// Endpoints behind one address.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<(FlowKey, Endpoint)>,
    /// When each endpoint is due, and the earliest of these.
    due: Vec<Instant>,
    next: Option<Instant>,
    /// Endpoints that something happened to: no other one has output.
    busy: VecDeque<usize>,
    astray: VecDeque<Packet>,
}

impl Host {
    /// Adds an endpoint.
    pub fn add(&mut self, endpoint: Endpoint) {
        self.due.push(endpoint.poll_timeout().unwrap_or(NEVER));
        self.endpoints.push((endpoint.flow_key(), endpoint));
        self.find_next();
    }
    /// The endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().map(|(_, endpoint)| endpoint)
    }
    fn find_next(&mut self) {
        self.next = self.due.iter().copied().min().filter(|at| *at != NEVER);
    }
}

impl Node for Host {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        let key = packet.flow_key().map(FlowKey::reversed);
        match self.endpoints.iter().position(|(own, _)| Some(*own) == key) {
            Some(index) => {
                self.endpoints[index].1.handle_packet(now, Port(0), packet);
                self.busy.push_back(index);
            }
            None => self.astray.push_back(packet),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        for (index, (_, endpoint)) in self.endpoints.iter_mut().enumerate() {
            if self.due[index] <= now {
                endpoint.handle_timeout(now);
                self.busy.push_back(index);
            }
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        while let Some(&index) = self.busy.front() {
            let endpoint = &mut self.endpoints[index].1;
            if let Some(output) = endpoint.poll_output(now) {
                return Some(output);
            }
            self.due[index] = endpoint.poll_timeout().unwrap_or(NEVER);
            self.busy.pop_front();
            if self.busy.is_empty() {
                self.find_next();
            }
        }
        self.astray.pop_front().map(|packet| Output::Drop(packet, DropReason::NoRoute))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}
