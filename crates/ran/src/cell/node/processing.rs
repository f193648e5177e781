//! Packets that wait for processing above the slots: in the base station for its lead (`CellConfig`), and in
//! the stack of a station in both directions (`StationConfig::processing`).
//!
//! A scheduler that decides in advance of the air knows the packets that had arrived at its decision. In a
//! model whose scheduler decides in the slot on the air this is the same as a delay of the packets in front
//! of the buffer. Reactions to receptions are delayed by `NrConfig::lead`. Left out: RLC status reports and
//! packets that another cell forwards reach the scheduler without the lead.

use crate::cell::config::{CORE, station_port};
use crate::duplex::Direction;
use paceline_net::{Duration, Instant, Output, Packet};
use std::collections::{BTreeMap, VecDeque};

/// A waiting packet: by the end of its wait, and among equal ones in the order of arrival.
type Waiting<T> = BTreeMap<(Instant, u64), T>;

/// The packets of a cell that wait for processing.
pub(super) struct Processing {
    /// The lead of the base station.
    lead: Duration,
    /// By station, the time in its stack.
    stations: Vec<Duration>,
    /// Whether a station's is not zero.
    any_station: bool,
    /// Towards the buffers.
    arriving: Waiting<(usize, Direction, Packet)>,
    /// Towards the stations' hosts.
    leaving: Waiting<(usize, Packet)>,
    arrivals: u64,
}

impl Processing {
    pub fn new(lead: Duration, stations: Vec<Duration>) -> Self {
        let any_station = stations.iter().any(|time| *time > Duration::ZERO);
        Self { lead, stations, any_station, arriving: Waiting::new(), leaving: Waiting::new(), arrivals: 0 }
    }
    /// Takes a packet that has to wait before it enters the buffer of its direction, and gives the end of its
    /// wait; gives back one that need not.
    pub fn arrive(
        &mut self,
        now: Instant,
        station: usize,
        direction: Direction,
        packet: Packet,
    ) -> Result<Instant, Packet> {
        let time = match direction {
            Direction::Down => self.lead,
            Direction::Up => self.stations[station],
        };
        if time == Duration::ZERO {
            return Err(packet);
        }
        self.arrivals += 1;
        self.arriving.insert((now + time, self.arrivals), (station, direction, packet));
        Ok(now + time)
    }
    /// The next packet whose wait before the buffer has ended by `now`, with the end.
    pub fn pop_arrived(&mut self, now: Instant) -> Option<(Instant, usize, Direction, Packet)> {
        let first = self.arriving.first_entry().filter(|first| first.key().0 <= now)?;
        let ((at, _), (station, direction, packet)) = first.remove_entry();
        Some((at, station, direction, packet))
    }
    /// The end of the next wait before a buffer.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.arriving.first_key_value().map(|((at, _), _)| *at)
    }
    /// Takes the packets towards hosts, among the outputs from `first` on, that have to wait in the stack of
    /// their station.
    pub fn hold(&mut self, now: Instant, first: usize, output: &mut VecDeque<Output>) {
        if !self.any_station || first == output.len() {
            return;
        }
        for sent in output.split_off(first) {
            match sent {
                Output::Transmit(port, packet) if port != CORE => {
                    let station = usize::from(port.0) - 1;
                    self.arrivals += 1;
                    let at = now + self.stations[station];
                    self.leaving.insert((at, self.arrivals), (station, packet));
                }
                other => output.push_back(other),
            }
        }
    }
    /// Releases the packets whose wait in a stack has ended by `now`.
    pub fn release(&mut self, now: Instant, output: &mut VecDeque<Output>) {
        while let Some(first) = self.leaving.first_entry().filter(|first| first.key().0 <= now) {
            let (station, packet) = first.remove();
            output.push_back(Output::Transmit(station_port(station), packet));
        }
    }
    /// The end of the next wait in a stack.
    pub fn next_release(&self) -> Option<Instant> {
        self.leaving.first_key_value().map(|((at, _), _)| *at)
    }
    /// Number of packets that wait before a buffer: towards a station, and from it.
    pub fn held(&self, station: usize) -> (u64, u64) {
        let count = |direction| {
            self.arriving.values().filter(|(of, way, _)| *of == station && *way == direction).count() as u64
        };
        (count(Direction::Down), count(Direction::Up))
    }
}
