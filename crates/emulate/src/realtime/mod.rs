//! The real-time loop: runs a [`Node`] between devices.
//!
//! The node's timers are run with the time for which they were set, in order, however late the loop is. So
//! the node's output depends only on the packets' arrival times, as in the simulator. The lateness is
//! recorded.

pub mod lateness;

use lateness::Lateness;
use paceline_linux::clock::Clock;
use paceline_linux::network::device::Device;
use paceline_net::{Duration, Instant, Node, Output, Packet, Port};
use std::io;

/// Longest wait. Chosen: the caller checks for signals between two turns.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// A node, a clock and the devices at the node's ports.
pub struct Realtime<N, C, D> {
    /// The node.
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
    /// The present time.
    pub fn now(&mut self) -> Instant {
        self.clock.now()
    }
    /// The time of the last packet from or to a device.
    pub fn last_packet(&self) -> Instant {
        self.last_packet
    }
    /// Lateness of timers.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }
    /// Ends the loop and returns the node.
    pub fn into_node(self) -> N {
        self.node
    }
    /// Runs due timers, handles packets that have arrived, and waits for the next of either.
    pub fn turn(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.run_timers(now);
        let arrived = self.receive(now)?;
        // More packets may have arrived meanwhile.
        if arrived {
            return Ok(());
        }
        let until = self.node.poll_timeout().unwrap_or(Instant::MAX).min(now + MAX_WAIT);
        let readable: Vec<_> = self.devices.iter().filter_map(|(_, device)| device.readable()).collect();
        self.clock.wait(&readable, until)
    }

    fn run_timers(&mut self, now: Instant) {
        while let Some(at) = self.node.poll_timeout().filter(|at| *at <= now) {
            // Timers before this one have taken time.
            self.lateness.record(self.clock.now().since(at));
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
