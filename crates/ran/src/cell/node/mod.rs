//! The base station with its stations as a node: ports, time and what the outside asks and sets.
//!
//! Port 0 is the core network; port `1 + i` is the IP side of station `i`. Slots without work are skipped;
//! data in a buffer, unacknowledged PDUs, running timers and random access are work.

mod processing;

use super::config::{CORE, CellConfig, Handover, StationConfig};
use super::downlink::DownlinkState;
use super::enb::Enb;
use super::mobility::{Command, EventA3, HandoverCause, HandoverRecord, LinkMonitorConfig, Movement};
use super::observers::{BlockSink, StepSink};
use super::station::{Forwarding, Station};
use crate::air::Placed;
use crate::duplex::Direction;
use crate::hop::LinkStats;
use crate::mac::scheduler::Policy;
use crate::mac::scheduling_request::AccessStats;
use crate::radio::{Point, Route};
use crate::slot::{Slot, SlotClock, SlotSpan};
use paceline_net::{AddressTable, Bytes, DropReason, Instant, Node, Output, Packet, Port, SduQueue};
use processing::Processing;
use std::net::IpAddr;

/// An eNB and its stations.
pub struct Cell {
    enb: Enb,
    routes: AddressTable,
    processing: Processing,
    /// The next slot with work.
    next_slot: Option<Slot>,
    /// The first slot that has not run.
    earliest_slot: Slot,
    active_slots: u64,
}

impl Cell {
    /// A cell with these stations; `seed` determines its channels and block errors.
    pub fn new(config: CellConfig, stations: Vec<StationConfig>, seed: u64) -> Self {
        let mut routes = AddressTable::default();
        for (index, station) in stations.iter().enumerate() {
            station.addresses.iter().for_each(|address| routes.insert(*address, index));
        }
        let processing = stations.iter().map(|station| station.processing).collect();
        let processing = Processing::new(config.downlink_lead, processing);
        let enb = Enb::new(config, stations, seed);
        Self { enb, routes, processing, next_slot: None, earliest_slot: Slot(0), active_slots: 0 }
    }
    fn station(&self, station: usize) -> &Station {
        &self.enb.stations()[station]
    }
    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.enb.stations().len()
    }
    /// Number of served cells.
    pub fn cells(&self) -> usize {
        self.enb.stations().members().len()
    }
    /// PRBs of PDSCH and of the uplink per slot of all served cells: the mean over all slots, of which a
    /// direction has a part in TDD.
    pub fn resource_blocks(&self) -> (f64, f64) {
        let (downlink, uplink) = self.enb.carrier().resource_blocks();
        (self.cells() as f64 * downlink, self.cells() as f64 * uplink)
    }
    /// Largest number of uplink grants per slot of all served cells: the mean over all slots.
    pub fn uplink_grants(&self) -> f64 {
        self.cells() as f64 * self.enb.carrier().uplink_grants()
    }
    /// The serving cell of a station, as an index of the served cells.
    pub fn serving(&self, station: usize) -> usize {
        self.station(station).cell
    }
    /// Position of a station in metres from site 0 and its coupling loss in dB; none for a stated SINR.
    pub fn place(&self, station: usize) -> Option<(Point, f64)> {
        self.station(station).radio.placed().map(|placed| (placed.position(), placed.coupling_loss_db()))
    }
    /// The served cell with the strongest reference signals at a station, by path loss and shadowing; none
    /// for a stated SINR.
    pub fn strongest_cell(&self, station: usize) -> Option<usize> {
        let (placed, network) = (self.station(station).radio.placed()?, self.enb.network()?);
        Some(network.strongest_served(placed))
    }
    /// Downlink counters of a station.
    pub fn downlink(&self, station: usize) -> &LinkStats {
        &self.station(station).downlink.mac.stats
    }
    /// Uplink counters of a station.
    pub fn uplink(&self, station: usize) -> &LinkStats {
        &self.station(station).uplink.mac.stats
    }
    /// Counters of a station's uplink access.
    pub fn access(&self, station: usize) -> &AccessStats {
        &self.station(station).access.stats
    }
    /// Sum of the TPC commands to a station in dB; none for a stated SINR.
    pub fn power_correction_db(&self, station: usize) -> Option<f64> {
        self.station(station).radio.placed().map(Placed::tpc_correction_db)
    }
    /// Whether a station has a connection.
    pub fn connected(&self, station: usize) -> bool {
        self.station(station).connected()
    }
    /// The eNB's buffer for a station.
    pub fn downlink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.station(station).downlink.bearer.buffer
    }
    /// The uplink buffer of a station.
    pub fn uplink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.station(station).uplink.bearer.buffer
    }
    /// Bytes available for transmission to a station.
    pub fn downlink_queue(&self, station: usize) -> Bytes {
        Bytes(self.station(station).downlink_available())
    }
    /// The state of a station's downlink.
    pub fn downlink_state(&self, now: Instant, station: usize) -> DownlinkState {
        let clock = self.clock();
        let slot_s = clock.duration(SlotSpan(1)).as_secs_f64();
        DownlinkState::of(self.station(station), now, clock.at_or_after(now), slot_s)
    }
    /// Number of packets inside the cell: towards a station, and from it.
    pub fn held(&self, station: usize) -> (u64, u64) {
        let Station { downlink, uplink, forwarding, .. } = self.station(station);
        let forwarded = forwarding.as_ref().map_or(0, Forwarding::held);
        let (down, up) = self.processing.held(station);
        (downlink.held() + forwarded + down, uplink.held() + up)
    }
    /// The conversion between this cell's slots and time.
    pub fn clock(&self) -> SlotClock {
        self.enb.carrier().clock
    }
    /// Number of slots with work.
    pub fn active_slots(&self) -> u64 {
        self.active_slots
    }
    /// Changes of the serving cell so far, with those after a radio-link failure where stations move or are
    /// measured.
    pub fn handovers(&self) -> &[HandoverRecord] {
        self.enb.handovers()
    }

    /// Adds an address of a station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        self.routes.insert(address, station);
    }
    /// Replaces the policy of the downlink scheduler.
    pub fn set_scheduler(&mut self, policy: Policy) {
        self.enb.set_scheduler(policy);
    }
    /// Sets the factor of a station's priority in the downlink scheduler: 1 at the start, 0 or more.
    pub fn set_downlink_weight(&mut self, station: usize, weight: f64) {
        assert!(weight.is_finite() && weight >= 0.0, "a weight is 0 or more: {weight}");
        self.enb.stations_mut()[station].downlink.mac.weight = weight;
    }
    /// Captures the blocks of an NR cell from now on, in the order of their first transmissions.
    pub fn capture_blocks(&mut self, sink: BlockSink) {
        self.enb.capture_blocks(sink);
    }
    /// Gives the steps of a station's packets to `sink` from now on.
    pub fn watch(&mut self, station: usize, sink: StepSink) {
        self.enb.watch(station, sink);
    }
    /// Moves a station along a straight line to a position in metres from site 0; its serving cell is kept. A
    /// station with a stated SINR has no position and stays as it is.
    pub fn move_station(&mut self, station: usize, to: Point) {
        self.enb.move_station(station, to);
    }
    /// From now on a station moves along a route, whose first place it had at time 0.
    pub fn move_along(&mut self, station: usize, route: Route) {
        self.movement().move_along(station, route);
    }
    /// From now on event A3 hands over the stations of the deployment.
    pub fn hand_over_by(&mut self, event: EventA3, how: Handover) {
        self.movement().hand_over_by(event, how);
    }
    /// In each of these slots, ascending, every station is handed over to the strongest other cell.
    pub fn hand_over_at(&mut self, slots: Vec<Slot>, how: Handover) {
        self.movement().hand_over_at(slots, how);
    }
    /// From now on the links of the stations of the deployment are monitored.
    pub fn monitor_links(&mut self, config: LinkMonitorConfig) {
        self.movement().monitor_links(config);
    }
    fn movement(&mut self) -> &mut Movement {
        self.next_slot.get_or_insert(self.earliest_slot);
        self.enb.movement()
    }
    /// Hands a station over to the served cell `to`. Returns false, and does nothing, if the station is not
    /// connected, is being handed over, or `to` serves it already.
    ///
    /// # Panics
    /// If `to` is not a served cell.
    pub fn hand_over(&mut self, now: Instant, station: usize, to: usize, how: Handover) -> bool {
        assert!(to < self.cells(), "cell {to} is not served: there are {}", self.cells());
        let at = (self.first_slot(now), now);
        let begins = self.enb.hand_over(at, station, &Command { cause: HandoverCause::Scripted, to, how });
        if begins {
            self.wake(now);
        }
        begins
    }

    /// The first slot from a time on that has not run.
    fn first_slot(&self, from: Instant) -> Slot {
        self.clock().at_or_after(from).max(self.earliest_slot)
    }
    fn wake(&mut self, now: Instant) {
        // Movement has its next slot, which may be a later one.
        let slot = self.first_slot(now);
        self.next_slot = Some(self.next_slot.map_or(slot, |next| next.min(slot)));
    }
    fn run_slot(&mut self, slot: Slot) {
        let start = self.clock().start(slot);
        let first = self.enb.output().len();
        self.active_slots += 1;
        while let Some((at, index, direction, packet)) = self.processing.pop_arrived(start) {
            self.enb.enter(at, index, direction, packet);
        }
        self.enb.run_slot(slot);
        self.processing.hold(start, first, self.enb.output());
        self.earliest_slot = slot + SlotSpan(1);
        if !self.enb.idle(slot) {
            self.next_slot = Some(self.earliest_slot);
            return;
        }
        self.next_slot = self.enb.next_sample(slot);
        if let Some(at) = self.processing.next_arrival() {
            self.wake(at);
        }
    }
}

impl Node for Cell {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let (index, direction) = if from == CORE {
            let Some(index) = self.routes.get(packet.ip.dst) else {
                self.enb.output().push_back(Output::Drop(packet, DropReason::NoRoute));
                return;
            };
            (index, Direction::Down)
        } else {
            (usize::from(from.0) - 1, Direction::Up)
        };
        self.enb.arrive(now, index, direction, &packet);
        match self.processing.arrive(now, index, direction, packet) {
            Ok(enters_at) => self.wake(enters_at),
            Err(packet) => {
                self.enb.enter(now, index, direction, packet);
                self.wake(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(slot) = self.next_slot.filter(|slot| self.clock().start(*slot) <= now) {
            self.run_slot(slot);
        }
        self.processing.release(now, self.enb.output());
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.enb.output().pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let slot = self.next_slot.map(|slot| self.clock().start(slot));
        match self.processing.next_release() {
            Some(at) => Some(slot.map_or(at, |slot| slot.min(at))),
            None => slot,
        }
    }
}
