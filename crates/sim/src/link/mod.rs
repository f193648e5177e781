//! An access link in place of a cell, with the same ports: one towards the core network, one towards each
//! station.
//!
//! ```text
//! CORE - downlink queue - downlink -> station ports
//! CORE <- uplink - uplink queue - station ports
//! ```
//!
//! Each direction is a [`Pipe`]: a queue, a service (`fixed` rate, a `trace` of delivery opportunities, or a
//! `cellular` channel), then losses and delays. All stations share one pair of pipes, or each has its own.
//! `generate` makes traces. Left out: the layers of a radio; a link models the behaviour that is measured
//! between its two ends.

mod cellular;
mod drive;
mod fixed;
mod generate;
mod log_rate;
mod opportunities;
mod pipe;

pub use generate::{PREFIX, generated, generated_kinds};
pub use paceline_net::trace::{OPPORTUNITY_BYTES, Trace, TraceError};
pub use pipe::PipeStats;

use crate::engine::Agenda;
use crate::managed::{Managed, ManagedReading};
use crate::scenario;
use cellular::Downlink;
use fixed::Fixed;
use hdrhistogram::Histogram;
use opportunities::Opportunities;
use paceline_net::{AddressTable, DropReason, Instant, Node, Output, Packet, Port, Stream};
use paceline_ran::{CORE, station_port};
use pipe::{Grants, Outcome, Pipe, Service};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// Index of the downlink in a pair of directions.
const DOWN: usize = 0;
/// Index of the uplink.
const UP: usize = 1;

/// An access link as a node.
pub struct Link {
    routes: AddressTable,
    /// Downlink and uplink; with own pipes, those of each station in turn.
    pipes: Vec<Pipe>,
    per_station: bool,
    /// Word of the queues' discipline.
    discipline: &'static str,
    /// Next event of each pipe.
    agenda: Agenda,
    /// Counters per direction and station.
    stats: [Vec<PipeStats>; 2],
    output: VecDeque<Output>,
}

impl Link {
    /// The link of a scenario, with routes to the stations' addresses.
    ///
    /// # Panics
    /// If a trace file that the scenario names has not been loaded.
    pub fn new(link: &scenario::Link, routes: AddressTable, stations: usize, seed: u64) -> Self {
        let per_station = link.per_station.unwrap_or_default();
        let of = |station: usize| if per_station { format!("link/station{station}") } else { "link".into() };
        let trace = link.trace.as_ref();
        let grants = trace.and_then(|trace| {
            let delay = trace.grant_delay.unwrap_or(scenario::TraceLink::GRANT_DELAY);
            Some(Grants { sr_period: trace.sr_period?, delay })
        });
        let pair = |name: String| {
            let [down, up] = services(link, seed, &name);
            [
                Pipe::new(link, down, seed, &format!("{name}/downlink")),
                Pipe::new(link, up, seed, &format!("{name}/uplink")).with_grants(grants),
            ]
        };
        let pairs = if per_station { stations } else { 1 };
        let pipes: Vec<Pipe> = (0..pairs).flat_map(|station| pair(of(station))).collect();
        let mut agenda = Agenda::default();
        pipes.iter().for_each(|_| agenda.add());
        let stats = [DOWN, UP].map(|_| vec![PipeStats::default(); stations]);
        let discipline = link.queue_discipline.name();
        Self { routes, pipes, per_station, discipline, agenda, stats, output: VecDeque::new() }
    }
    /// Adds an address of a station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        self.routes.insert(address, station);
    }
    /// Downlink counters of a station.
    pub fn downlink(&self, station: usize) -> &PipeStats {
        &self.stats[DOWN][station]
    }
    /// Uplink counters of a station.
    pub fn uplink(&self, station: usize) -> &PipeStats {
        &self.stats[UP][station]
    }
    /// Whether each station has its own pair of pipes.
    pub fn per_station(&self) -> bool {
        self.per_station
    }
    /// Bytes that the downlink to a station could have carried by `now`. `now` must not decrease from call to
    /// call.
    pub fn downlink_capacity(&mut self, station: usize, now: Instant) -> u64 {
        let index = self.index(station, DOWN);
        self.pipes[index].capacity(now)
    }
    /// Distribution over the downlink packets of all stations of the time from arrival to the last byte sent,
    /// us, since the last [`Link::restart_delays`].
    pub fn downlink_delays_us(&self) -> Histogram<u64> {
        let mut pipes = self.pipes.iter().step_by(2).map(Pipe::delays_us);
        let mut all = pipes.next().expect("a link has a downlink").clone();
        pipes.for_each(|delays| all.add(delays).expect("the bounds are the same"));
        all
    }
    /// Clears this distribution.
    pub fn restart_delays(&mut self) {
        self.pipes.iter_mut().for_each(Pipe::restart_delays);
    }

    /// Figures of the managed queues, those of all stations together.
    pub(crate) fn read_queues(&self) -> Vec<ManagedReading> {
        let read = |(direction, word): (usize, &str)| {
            let pipes = self.pipes.iter().skip(direction).step_by(2).filter_map(Pipe::managed);
            Managed::read(&format!("link {word}"), self.discipline, pipes)
        };
        [(DOWN, "downlink"), (UP, "uplink")].into_iter().filter_map(read).collect()
    }
    fn index(&self, station: usize, direction: usize) -> usize {
        if self.per_station { 2 * station + direction } else { direction }
    }
    /// Takes the packets that have left a pipe by `now`.
    fn collect(&mut self, now: Instant, index: usize) {
        let direction = index % 2;
        while let Some(outcome) = self.pipes[index].poll(now, &mut self.stats[direction]) {
            self.output.push_back(match outcome {
                Outcome::Arrived(station, packet) if direction == DOWN => {
                    Output::Transmit(station_port(station), packet)
                }
                Outcome::Arrived(_, packet) => Output::Transmit(CORE, packet),
                Outcome::Dropped(packet, reason) => Output::Drop(packet, reason),
                Outcome::Lost(packet) => Output::Drop(packet, DropReason::LinkLoss),
            });
        }
        self.agenda.enter(index, self.pipes[index].due());
    }
}

impl Node for Link {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let (direction, station) = match from {
            CORE => (DOWN, self.routes.get(packet.ip.dst)),
            _ => (UP, station_of(from)),
        };
        let Some(station) = station.filter(|station| *station < self.stats[direction].len()) else {
            self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
            return;
        };
        let index = self.index(station, direction);
        self.collect(now, index);
        if let Err(packet) = self.pipes[index].push(now, station, packet, &mut self.stats[direction][station])
        {
            self.output.push_back(Output::Drop(packet, DropReason::QueueFull));
        }
        if self.pipes[index].managed().is_some() {
            self.collect(now, index);
        }
        self.agenda.enter(index, self.pipes[index].due());
    }
    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, index)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.collect(now, index);
        }
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| at)
    }
}

/// The station at a port; none for the core network's.
fn station_of(port: Port) -> Option<usize> {
    usize::from(port.0).checked_sub(usize::from(station_port(0).0))
}

/// Services of the downlink and the uplink.
fn services(link: &scenario::Link, seed: u64, name: &str) -> [Service; 2] {
    let stream = |direction: &str| Stream::new(seed, &format!("{name}/{direction}/interruptions"));
    if let Some(fixed) = &link.fixed {
        let uplink = fixed.uplink_rate.unwrap_or(fixed.downlink_rate);
        return [("downlink", fixed.downlink_rate), ("uplink", uplink)].map(|(direction, rate)| {
            let (length, interval) = (fixed.interruption, fixed.interruption_interval);
            Service::Fixed(Fixed::interrupted(rate, length, interval, stream(direction)))
        });
    }
    if let Some(link) = &link.trace {
        let follow = |file: &scenario::TraceFile| {
            let trace = file.trace.as_ref().expect("the traces of a scenario are read when it is loaded");
            Service::Trace(Opportunities::new(Arc::clone(trace)))
        };
        let rate = link.uplink_rate.unwrap_or(scenario::TraceLink::UPLINK_RATE);
        let uplink = link.uplink.as_ref().map_or_else(|| Service::Fixed(Fixed::new(rate)), follow);
        return [follow(&link.downlink), uplink];
    }
    let channel = link.cellular().expect("a link is checked to have a kind");
    let downlink = Downlink::new(channel, seed, &format!("{name}/downlink"));
    [Service::Cellular(Box::new(downlink)), Service::Fixed(Fixed::new(channel.uplink_rate))]
}
