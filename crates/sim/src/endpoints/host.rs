//! A host: the TCP endpoints behind one network interface, port 0.
//!
//! Left out: ports without an endpoint do not answer by a reset; their packets are dropped.

use crate::engine::NEVER;
use paceline_net::{DropReason, FlowKey, Instant, Node, Output, Packet, Port};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;

/// TCP endpoints, found by the four-tuple of a packet.
#[derive(Default)]
pub struct Host {
    endpoints: Vec<(FlowKey, Endpoint)>,
    /// Next timeout of each endpoint.
    due: Vec<Instant>,
    /// The earliest of these.
    next_due: Option<Instant>,
    /// Endpoints that had a packet or a timeout: only these may have output.
    active: Vec<usize>,
    /// Number of these whose output has been taken.
    polled: usize,
    /// Packets for no endpoint.
    unmatched: VecDeque<Packet>,
}

impl Host {
    /// Adds an endpoint.
    pub fn add(&mut self, endpoint: Endpoint) {
        self.due.push(endpoint.poll_timeout().unwrap_or(NEVER));
        self.endpoints.push((endpoint.flow_key(), endpoint));
        self.update_next_due();
    }
    /// The endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().map(|(_, endpoint)| endpoint)
    }
    /// The endpoints, for readings that change them.
    pub fn endpoints_mut(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        self.endpoints.iter_mut().map(|(_, endpoint)| endpoint)
    }
    /// Changes the endpoints; their output follows.
    pub fn change(&mut self, mut change: impl FnMut(&mut Endpoint)) {
        for (index, (_, endpoint)) in self.endpoints.iter_mut().enumerate() {
            change(endpoint);
            self.active.push(index);
        }
    }
    fn update_next_due(&mut self) {
        self.next_due = self.due.iter().copied().min().filter(|at| *at != NEVER);
    }
}

impl Node for Host {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        match self.endpoints.iter().position(|(own, _)| packet.is_against(own)) {
            Some(index) => {
                self.endpoints[index].1.handle_packet(now, Port(0), packet);
                self.active.push(index);
            }
            None => self.unmatched.push_back(packet),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        for (index, (_, endpoint)) in self.endpoints.iter_mut().enumerate() {
            if self.due[index] <= now {
                endpoint.handle_timeout(now);
                self.active.push(index);
            }
        }
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        while let Some(&index) = self.active.get(self.polled) {
            let endpoint = &mut self.endpoints[index].1;
            if let Some(output) = endpoint.poll_output(now) {
                return Some(output);
            }
            self.due[index] = endpoint.poll_timeout().unwrap_or(NEVER);
            self.polled += 1;
            if self.polled == self.active.len() {
                self.active.clear();
                self.polled = 0;
                self.update_next_due();
            }
        }
        self.unmatched.pop_front().map(|packet| Output::Drop(packet, DropReason::NoRoute))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }
}
