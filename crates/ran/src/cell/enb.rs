//! The cells of the base station and their stations, slot by slot: one cell with stated SINRs, or those of
//! the served sites of a deployment, which run in lockstep.
//!
//! Each part owns its state and gets what it needs of the others as arguments; [`Enb::run_slot`] has their
//! order in a slot.

use super::air::Air;
use super::config::{Carrier, CellConfig, StationConfig};
use super::configured::ConfiguredGrants;
use super::downlink::{DownlinkScheduling, Room};
use super::mobility::{Command, HandoverCause, HandoverRecord, Handovers, Movement, accessed_at};
use super::observers::{BlockSink, Observers, StepSink};
use super::random_access::{RandomAccess, Step, resolve_by_msg4};
use super::station::{Station, Stations};
use super::uplink::{Pusch, PuschSlot, UplinkScheduling, process_feedback};
use crate::air::{Network, served_cells};
use crate::bearer::Fate;
use crate::duplex::Direction;
use crate::mac::random_access::Cause;
use crate::mac::scheduler::Policy;
use crate::mac::scheduling_request::SrOutcome;
use crate::radio::Point;
use crate::rlc::Reassembled;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Instant, Output, Packet};
use std::collections::VecDeque;

/// The served cells with their stations.
pub(super) struct Enb {
    carrier: Carrier,
    stations: Stations,
    random_access: RandomAccess,
    uplink: UplinkScheduling,
    configured: ConfiguredGrants,
    downlink: DownlinkScheduling,
    air: Air,
    /// None where stations do not move and no handover is configured.
    movement: Option<Box<Movement>>,
    handovers: Handovers,
    observers: Observers,
    output: VecDeque<Output>,
    reassembled: Vec<Reassembled>,
}

impl Enb {
    pub fn new(config: CellConfig, stations: Vec<StationConfig>, seed: u64) -> Self {
        let (air, carrier) = (Air::new(&config, seed), Carrier::new(config));
        let build = |(index, station)| Station::new(station, &carrier, air.network(), index, seed);
        let stations = stations.into_iter().enumerate().map(build).collect();
        let stations = Stations::new(stations, served_cells(air.network()));
        Self {
            random_access: RandomAccess::new(seed),
            uplink: UplinkScheduling::new(seed),
            configured: ConfiguredGrants::new(
                &carrier.config,
                stations.members(),
                carrier.config.pusch_prbs(),
            ),
            downlink: DownlinkScheduling::new(carrier.config.scheduler),
            carrier,
            stations,
            air,
            movement: None,
            handovers: Handovers::default(),
            observers: Observers::default(),
            output: VecDeque::new(),
            reassembled: Vec::new(),
        }
    }
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }
    pub fn stations(&self) -> &Stations {
        &self.stations
    }
    pub fn stations_mut(&mut self) -> &mut Stations {
        &mut self.stations
    }
    pub fn network(&self) -> Option<&Network> {
        self.air.network()
    }
    pub fn capture_blocks(&mut self, sink: BlockSink) {
        self.observers.capture(sink, self.stations.iter_mut());
    }
    pub fn watch(&mut self, index: usize, sink: StepSink) {
        self.observers.watch(index, &mut self.stations[index], sink);
    }
    pub fn output(&mut self) -> &mut VecDeque<Output> {
        &mut self.output
    }
    pub fn handovers(&self) -> &[HandoverRecord] {
        self.handovers.records()
    }
    pub fn set_scheduler(&mut self, policy: Policy) {
        self.downlink.set_policy(policy);
    }
    /// From now on stations move or are measured.
    pub fn movement(&mut self) -> &mut Movement {
        self.movement.get_or_insert_with(|| Box::new(Movement::new(self.stations.len(), &self.carrier)))
    }
    /// Whether no station has work in the slot after this one. It may come with a packet or a sample.
    pub fn idle(&self, slot: Slot) -> bool {
        let proactive = self.carrier.config.access.proactive.as_ref();
        let unasked = proactive.is_some_and(|grants| {
            self.stations.iter().any(|station| station.connected() && grants.serve(slot, station.active_at))
        });
        self.stations.iter().all(Station::idle) && !unasked
    }
    /// The first slot after this one in which stations move or are measured.
    pub fn next_sample(&self, slot: Slot) -> Option<Slot> {
        self.movement.as_ref().map(|movement| movement.next_slot(slot))
    }

    /// All events of a slot, in this order.
    pub fn run_slot(&mut self, slot: Slot) {
        for index in 0..self.stations.len() {
            self.receive(slot, index);
        }
        self.change_cells(slot);
        self.move_stations(slot);
        let Self { carrier, stations, random_access, output, .. } = self;
        process_feedback(slot, carrier, stations, random_access, output);
        self.step_random_access(slot);
        for cell in 0..self.stations.members().len() {
            self.schedule_uplink(slot, cell);
            self.schedule_downlink(slot, cell);
        }
        if self.carrier.config.duplex.has(slot, Direction::Up) {
            (0..self.stations.len()).for_each(|index| self.transmit_uplink(slot, index));
            self.random_access.send_preambles(slot, &self.carrier, &mut self.stations);
        }
        self.decode(slot);
    }
    /// Discards expired SDUs of a station, starts random access if it has data and no connection, and
    /// delivers decoded PDUs of both directions.
    fn receive(&mut self, slot: Slot, index: usize) {
        let now = self.carrier.start(slot);
        let (station, output) = (&mut self.stations[index], &mut self.output);
        self.handovers.take_forwarded(now, (index, station), output);
        if let Some(timer) = self.carrier.config.discard_timer {
            station.discard_expired(now, timer, output);
        }
        if !station.connected() {
            let has_data = station.uplink_available() > 0 || station.downlink_available() > 0;
            if has_data && station.procedure.is_none() {
                self.random_access.start(index, station, Cause::Initial, slot);
            }
            return;
        }
        if station.deliver(slot, now, &mut self.reassembled, output) {
            self.fail_link(slot, index);
        }
    }
    /// A packet arrives at its port, where it may have to wait before it enters.
    pub fn arrive(&mut self, now: Instant, index: usize, direction: Direction, packet: &Packet) {
        let Station { downlink, uplink, .. } = &mut self.stations[index];
        if direction == Direction::Down {
            self.observers.arrived(now, index, direction, packet);
            downlink.mac.stats.packets_in += 1;
        } else {
            uplink.mac.stats.packets_in += 1;
        }
    }
    /// A packet enters the buffer of its direction.
    pub fn enter(&mut self, now: Instant, index: usize, direction: Direction, packet: Packet) {
        if direction == Direction::Up {
            self.observers.arrived(now, index, direction, &packet);
        }
        self.stations[index].enter(now, direction, packet, &mut self.output);
    }
    fn step_random_access(&mut self, slot: Slot) {
        for at in 0..self.random_access.begin_slot(slot, &self.carrier) {
            let Self { carrier, stations, output, .. } = self;
            match self.random_access.step(at, slot, carrier, stations, output) {
                (_, Step::Continues) => {}
                (index, Step::Served) => {
                    let now = carrier.start(slot);
                    self.handovers.on_served(now, (index, &mut stations[index]), output);
                }
                (index, Step::LinkFailed) => self.fail_link(slot, index),
            }
        }
        self.random_access.end_steps(&self.stations);
    }
    /// A station's radio link has failed: the station disconnects, selects the strongest served cell and
    /// accesses it.
    fn fail_link(&mut self, slot: Slot, index: usize) {
        let now = self.carrier.start(slot);
        let (station, network) = (&mut self.stations[index], self.air.network());
        station.disconnect(slot, now, &mut self.output);
        let strongest = |network: &Network| Some(network.strongest_served(station.radio.placed()?));
        let to = network.and_then(strongest).unwrap_or(station.cell);
        self.handovers.on_link_failure(now, to, (index, station), network, self.movement.is_some());
        self.serve(index, to);
        let at = slot + self.carrier.config.random_access.cell_selection;
        self.random_access.start(index, &mut self.stations[index], Cause::Reestablishment, at);
    }

    /// Grants the uplink of later slots.
    fn schedule_uplink(&mut self, slot: Slot, cell: usize) {
        let Self { carrier, stations, random_access, configured, air, .. } = self;
        // The grants of one slot share its PDCCH: each uplink slot has an equal part of the rest.
        let distances = carrier.timing.k2.of(slot);
        let mut grants = carrier.config.uplink_grants;
        for (at, distance) in distances.iter().enumerate() {
            let (sent_at, max_grants) = (slot + *distance, grants.div_ceil(distances.len() - at));
            let band = random_access.unreserved_prbs(sent_at, cell, carrier, configured);
            let pusch = PuschSlot { granted_in: slot, sent_at, cell, band, max_grants };
            grants -= self.uplink.schedule(&pusch, carrier, stations, air.network_mut());
        }
    }
    fn schedule_downlink(&mut self, slot: Slot, cell: usize) {
        let Self { carrier, stations, random_access, configured, air, output, .. } = self;
        let Some(mut room) = Room::of(slot, cell, carrier) else { return };
        random_access.answer(&mut room, carrier, configured, stations, air);
        self.downlink.schedule(&mut room, carrier, stations, air, output);
    }
    fn transmit_uplink(&mut self, slot: Slot, index: usize) {
        let Self { carrier, configured, air, output, .. } = self;
        let station = &mut self.stations[index];
        match (Pusch { slot, index, carrier, configured, air, output }).transmit(station) {
            SrOutcome::None => {}
            SrOutcome::Sent => {
                self.uplink.on_request(slot, carrier, station);
                self.observers.requested(carrier.start(slot), index);
            }
            SrOutcome::Failed => {
                let at = slot + SlotSpan(1);
                self.random_access.start(index, station, Cause::SchedulingRequest, at);
            }
        }
    }
    /// Decides the fate of all transmissions of the slot, once the interference between them is known.
    fn decode(&mut self, slot: Slot) {
        if self.air.sent().is_empty() {
            return;
        }
        let Self { carrier, stations, random_access, air, .. } = self;
        air.interfere(slot, carrier, stations);
        random_access.receive_responses(slot, carrier, stations, air);
        let due = slot + SlotSpan(1) + carrier.config.decode_delay;
        for at in 0..air.sent().len() {
            let sent = air.sent()[at];
            let station = &mut stations[sent.station];
            let decoded = air.decode(slot, due, carrier, station, &sent);
            let link = match sent.direction {
                Direction::Down => &mut station.downlink,
                Direction::Up => &mut station.uplink,
            };
            self.observers.sent(carrier, (slot, due), &sent, link);
            if sent.direction == Direction::Down && decoded {
                resolve_by_msg4(slot, carrier, station, sent.process);
            }
        }
        air.clear();
    }

    /// Moves and measures the stations if it is time, and hands over those for which it is due.
    fn move_stations(&mut self, slot: Slot) {
        for index in 0..self.stations.len() {
            let Some(movement) = &mut self.movement else { return };
            let (station, network) = (&mut self.stations[index], self.air.network_mut());
            if movement.advance(slot, &self.carrier, (index, station), network) {
                self.fail_link(slot, index);
            }
            self.measure(slot, index);
        }
        let Some(how) = self.movement.as_mut().and_then(|movement| movement.take_scripted(slot)) else {
            return;
        };
        for index in 0..self.stations.len() {
            let station = &self.stations[index];
            let strongest = |network: &Network| network.strongest_but(station.radio.placed()?, station.cell);
            if let Some(to) = self.air.network().and_then(strongest) {
                let command = Command { cause: HandoverCause::Scripted, to, how };
                self.hand_over((slot, self.carrier.start(slot)), index, &command);
            }
        }
    }
    fn measure(&mut self, slot: Slot, index: usize) {
        let Some(movement) = &mut self.movement else { return };
        let due = movement.measure(slot, (index, &self.stations[index]), self.air.network());
        let Some((to, how)) = due else { return };
        let command = Command { cause: HandoverCause::EventA3, to, how };
        if self.hand_over((slot, self.carrier.start(slot)), index, &command) {
            self.movement().on_handover(index);
        }
    }
    /// Hands a station over in a slot. Returns false, and does nothing, if the station is not connected, is
    /// being handed over, or the target serves it already.
    pub fn hand_over(&mut self, at: (Slot, Instant), index: usize, command: &Command) -> bool {
        let Self { carrier, handovers, stations, air, output, .. } = self;
        let (station, network) = (&mut stations[index], air.network());
        if !station.connected() || station.cell == command.to || station.target.is_some() {
            return false;
        }
        if command.how.fate == Fate::Duplicate {
            handovers.keep(at.1, command, (index, station), network);
            let served_at = accessed_at(at.0 + command.how.interruption, carrier);
            station.prepare(at.0, (command.to, served_at), command.how.forwarding, output);
            return true;
        }
        handovers.leave(at, command, (index, station), network, output);
        self.serve(index, command.to);
        let from = at.0 + command.how.interruption;
        self.random_access.start(index, &mut self.stations[index], Cause::Handover, from);
        true
    }
    /// The stations whose random access in the target of a handover has succeeded change their cell.
    fn change_cells(&mut self, slot: Slot) {
        let now = self.carrier.start(slot);
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            let Some((to, _)) = station.target.filter(|(_, at)| *at <= slot) else { continue };
            station.change(slot, now, &mut self.output);
            self.serve(index, to);
            self.handovers.on_served(now, (index, &mut self.stations[index]), &mut self.output);
        }
    }
    fn serve(&mut self, index: usize, to: usize) {
        if self.stations.serve(index, to, self.air.network()) {
            self.configured.release(index);
        }
    }
    /// Moves a station along a straight line to a position in metres from site 0; its serving cell is kept. A
    /// station with a stated SINR has no position and stays as it is.
    pub fn move_station(&mut self, station: usize, to: Point) {
        if let (Some(placed), Some(network)) = (self.stations[station].radio.placed_mut(), self.air.network())
        {
            network.advance(placed, to);
        }
    }
}
