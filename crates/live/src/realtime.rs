//! Runs a node in real time between devices.
//!
//! Timers run at their own time, in order, however late the loop is: what the node does depends on the packets'
//! arrival times alone, as in the simulator. How late it was is recorded.

use crate::clock::Clock;
use crate::device::Device;
use crate::lateness::Lateness;
use paceline_net::{Duration, Instant, Node, Output, Packet, Port};
use std::io;

/// Longest wait, so that a stop request is seen.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A node, a clock and the devices at the node's ports.
pub struct Realtime<N, C, D> {
    /// What is run.
    pub node: N,
    clock: C,
    devices: Vec<(Port, D)>,
    lateness: Lateness,
    burst: Vec<Packet>,
    last_packet: Instant,
    /// Packets that a device refused.
    pub refused: u64,
}

impl<N: Node, C: Clock, D: Device> Realtime<N, C, D> {
    /// A loop that has not started.
    pub fn new(node: N, clock: C, devices: Vec<(Port, D)>) -> Self {
        let (lateness, burst, last_packet) = (Lateness::default(), Vec::new(), Instant::ZERO);
        Self { node, clock, devices, lateness, burst, last_packet, refused: 0 }
    }
    /// The present.
    pub fn now(&mut self) -> Instant {
        self.clock.now()
    }
    /// When the last packet came from a device or went to one.
    pub fn last_packet(&self) -> Instant {
        self.last_packet
    }
    /// How late timers ran.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
    /// Ends the loop and gives back the node.
    pub fn into_node(self) -> N {
        self.node
    }
    /// Runs what is due, takes in what has arrived, and waits for the next of either.
    pub fn turn(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.run_timers(now);
        let arrived = self.receive(now)?;
        // After a burst there may be more at once; time has passed meanwhile.
        if arrived {
            return Ok(());
        }
        let until = self.node.poll_timeout().unwrap_or(Instant::MAX).min(now + MAX_WAIT);
        let readable: Vec<_> = self.devices.iter().filter_map(|(_, device)| device.readable()).collect();
        self.clock.wait(&readable, until)
    }

    fn run_timers(&mut self, now: Instant) {
        while let Some(at) = self.node.poll_timeout().filter(|at| *at <= now) {
            self.lateness.record(now.since(at));
            self.node.handle_timeout(at);
            self.flush(at);
        }
    }
    fn receive(&mut self, now: Instant) -> io::Result<bool> {
        let mut any = false;
        for index in 0..self.devices.len() {
            let (port, device) = &mut self.devices[index];
            let port = *port;
            device.receive(&mut self.burst)?;
            let mut burst = std::mem::take(&mut self.burst);
            if !burst.is_empty() {
                any = true;
                self.last_packet = now;
            }
            for packet in burst.drain(..) {
                self.node.handle_packet(now, port, packet);
            }
            self.burst = burst;
            self.flush(now);
        }
        Ok(any)
    }
    fn flush(&mut self, now: Instant) {
        while let Some(output) = self.node.poll_output(now) {
            let Output::Transmit(port, packet) = output else { continue };
            self.last_packet = now;
            let device = self.devices.iter_mut().find(|(own, _)| *own == port);
            if device.is_none_or(|(_, device)| device.transmit(&packet).is_err()) {
                self.refused += 1;
            }
        }
    }
}
