//! A performance-enhancing proxy as a node, with a monitor on its stations' side.

use super::ledger::{AcceleratedSender, Ledger};
use super::split::Split;
use super::{SERVERS, STATIONS};
use crate::core_network::Monitor;
use paceline_net::{AddressTable, FlowKey, Instant, Node, Output, Packet, Port};
use paceline_pep::Accelerator;
use paceline_pep::accelerator::{DeviceSnapshot, FlowSnapshot};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;
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
    ledger: Ledger,
    /// Stations whose packets pass untouched, and packets that do.
    left_alone: Vec<bool>,
    passing: VecDeque<(Port, Packet)>,
}

/// The proxy's part in one connection, as a sender.
pub(crate) enum Relay<'a> {
    /// Endpoints towards the station and towards the server.
    Split(&'a Endpoint, &'a Endpoint),
    /// The accelerator's sender towards the station.
    Accelerated(AcceleratedSender),
}

impl Pep {
    /// An accelerator in front of stations with these addresses, of which it leaves some alone.
    pub fn accelerator(accelerator: Accelerator, stations: AddressTable, left_alone: Vec<bool>) -> Self {
        Self::new(Function::Accelerator(Box::new(accelerator)), stations, left_alone)
    }
    /// Split TCP in front of stations with these addresses, of which it leaves some alone.
    pub fn split(split: Split, stations: AddressTable, left_alone: Vec<bool>) -> Self {
        Self::new(Function::Split(Box::new(split)), stations, left_alone)
    }
    fn new(function: Function, stations: AddressTable, left_alone: Vec<bool>) -> Self {
        let monitor = Monitor::new(left_alone.len());
        let (ledger, passing) = (Ledger::default(), VecDeque::new());
        Self { function, stations, monitor, ledger, left_alone, passing }
    }
    /// Whether the proxy is an accelerator.
    pub(crate) fn is_accelerator(&self) -> bool {
        matches!(self.function, Function::Accelerator(_))
    }
    /// The proxy's part in a connection (key from server to station) until `now`; none if the connection
    /// passes untouched.
    pub(crate) fn relay(&self, key: &FlowKey, now: Instant) -> Option<Relay<'_>> {
        match &self.function {
            Function::Split(split) => {
                split.endpoints(&key.reversed()).map(|(mobile, wired)| Relay::Split(mobile, wired))
            }
            Function::Accelerator(_) => self.ledger.account(key, now).map(Relay::Accelerated),
        }
    }
    /// The accelerator's state of a device.
    pub(crate) fn device(&mut self, address: IpAddr) -> Option<DeviceSnapshot> {
        match &mut self.function {
            Function::Accelerator(accelerator) => accelerator.device(address),
            Function::Split(_) => None,
        }
    }
    /// The accelerated connections with their stations.
    pub(crate) fn accelerated(&self) -> Vec<(Option<usize>, FlowSnapshot)> {
        match &self.function {
            Function::Accelerator(accelerator) => {
                accelerator.flows().map(|flow| (self.stations.get(flow.key.dst), flow)).collect()
            }
            Function::Split(_) => Vec::new(),
        }
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
        let station = self.stations.get(if from == STATIONS { packet.ip.src } else { packet.ip.dst });
        if let Some(station) = station.filter(|_| from == STATIONS) {
            self.monitor.observe(now, &packet, station, false);
        }
        if let Some(station) = station.filter(|station| self.left_alone[*station]) {
            let to = if from == STATIONS { SERVERS } else { STATIONS };
            if to == STATIONS {
                self.monitor.observe(now, &packet, station, true);
            }
            return self.passing.push_back((to, packet));
        }
        if let (Function::Accelerator(_), Some(key)) = (&self.function, packet.flow_key()) {
            self.ledger.touch(if from == STATIONS { key.reversed() } else { key });
        }
        self.node().handle_packet(now, from, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.node().handle_timeout(now);
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        if let Some((to, packet)) = self.passing.pop_front() {
            return Some(Output::Transmit(to, packet));
        }
        let Some(output) = self.node().poll_output(now) else {
            if let Function::Accelerator(accelerator) = &mut self.function {
                self.ledger.update(now, accelerator);
            }
            return None;
        };
        if let (Function::Accelerator(_), Output::Transmit(port, packet)) = (&self.function, &output)
            && let Some(key) = packet.flow_key()
        {
            self.ledger.touch(if *port == STATIONS { key } else { key.reversed() });
        }
        if let (Function::Accelerator(accelerator), Output::Transmit(STATIONS, packet)) =
            (&mut self.function, &output)
            && packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0)
            && let Some(key) = packet.flow_key()
            && let Some(age) = accelerator.data_age(&key)
        {
            self.ledger.on_data(&key, age);
        }
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
