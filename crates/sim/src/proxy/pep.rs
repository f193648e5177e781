//! A performance-enhancing proxy as a node, with a monitor on its stations' side.

use super::STATIONS;
use super::split::Split;
use crate::core_network::Monitor;
use paceline_net::{AddressTable, Instant, Node, Output, Packet, Port};
use paceline_pep::Accelerator;
use std::net::IpAddr;

/// Kind of proxy.
enum Function {
    Accelerator(Box<Accelerator>),
    Split(Box<Split>),
}

/// A proxy and its monitor.
pub struct Pep {
    function: Function,
    stations: AddressTable,
    monitor: Monitor,
}

impl Pep {
    /// An accelerator in front of `count` stations with these addresses.
    pub fn accelerator(accelerator: Accelerator, stations: AddressTable, count: usize) -> Self {
        let function = Function::Accelerator(Box::new(accelerator));
        Self { function, stations, monitor: Monitor::new(count) }
    }
    /// Split TCP in front of `count` stations with these addresses.
    pub fn split(split: Split, stations: AddressTable, count: usize) -> Self {
        Self { function: Function::Split(Box::new(split)), stations, monitor: Monitor::new(count) }
    }
    /// Adds an address of a station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        self.stations.insert(address, station);
    }
    /// The monitor on the stations' side.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
    /// The monitor, for restarting its distribution.
    pub fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }
    fn node(&mut self) -> &mut dyn Node {
        match &mut self.function {
            Function::Accelerator(accelerator) => &mut **accelerator,
            Function::Split(split) => &mut **split,
        }
    }
}

impl Node for Pep {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        if from == STATIONS
            && let Some(station) = self.stations.get(packet.ip.src)
        {
            self.monitor.observe(now, &packet, station, false);
        }
        self.node().handle_packet(now, from, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        let output = self.node().poll_output(now)?;
        if let Output::Transmit(STATIONS, packet) = &output
            && let Some(station) = self.stations.get(packet.ip.dst)
        {
            self.monitor.observe(now, packet, station, true);
        }
        Some(output)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match &self.function {
            Function::Accelerator(accelerator) => accelerator.poll_timeout(),
            Function::Split(split) => split.poll_timeout(),
        }
    }
}
