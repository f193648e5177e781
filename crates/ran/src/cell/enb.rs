//! The node of a base station with its stations: one cell with stated SINRs, or the cells of the served sites
//! of a deployment, which run in lockstep.
//!
//! Port 0 is the core network; port `1 + i` is the IP side of station `i`. `Cell::run_slot` has the order of
//! events in a slot. Slots without work are skipped; data in a buffer, unacknowledged PDUs, running timers
//! and random access are work.

use super::captured::{BlockSink, CapturedBlock};
use super::config::{CellConfig, StationConfig};
use super::configured::ConfiguredGrants;
use super::mobility::{Forwarding, HandoverRecord, Moving};
use super::ports::CORE;
use super::processing::Processing;
use super::responder::Responder;
use super::station::Station;
use super::watched::{StepSink, Watched};
use crate::adaptation::LinkAdaptation;
use crate::air::{Network, Placed, Transmission, served_cells};
use crate::duplex::{Direction, Duplex};
use crate::hop::LinkStats;
use crate::lte::tdd::{AckMode, Distances};
use crate::mac::harq::BlockKind;
use crate::mac::random_access::Cause;
use crate::mac::scheduler::Candidate;
use crate::mac::scheduling_request::AccessStats;
use crate::prb::PrbSet;
use crate::radio::Point;
use crate::rat::Rat;
use crate::rlc::Reassembled;
use crate::slot::{Slot, SlotClock, SlotSpan};
use crate::timing::Timing;
use paceline_net::{AddressTable, Bytes, DropReason, Instant, Node, Output, Packet, Port, SduQueue, Stream};
use std::collections::VecDeque;
use std::net::IpAddr;

/// An eNB and its stations.
pub struct Cell {
    pub(super) config: CellConfig,
    pub(super) adaptation: LinkAdaptation,
    pub(super) clock: SlotClock,
    pub(super) timing: Timing,
    /// Whether HARQ-ACKs of the downlink are bundled.
    pub(super) bundling: bool,
    /// The uplink-downlink configuration of LTE TDD.
    pub(super) tdd_configuration: Option<u8>,
    pub(super) stations: Vec<Station>,
    routes: AddressTable,
    /// Stations of each served cell.
    pub(super) members: Vec<Vec<usize>>,
    pub(super) network: Option<Network>,
    pub(super) transmissions: Vec<Transmission>,
    block_error_draws: Stream,
    pub(super) next_slot: Option<Slot>,
    pub(super) earliest_slot: Slot,
    pub(super) output: VecDeque<Output>,
    reassembled: Vec<Reassembled>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) allocations: Vec<(usize, u16)>,
    active_slots: u64,
    block_sink: Option<BlockSink>,
    pub(super) watched: Vec<Watched>,
    pub(super) responder: Responder,
    pub(super) configured: ConfiguredGrants,
    processing: Processing,
    /// Movement and measurements of the stations.
    pub(super) moving: Option<Box<Moving>>,
    /// Changes of the serving cell, in the order of time.
    pub(super) handovers: Vec<HandoverRecord>,
    /// Whether they include re-establishments after radio-link failures.
    pub(super) records_failures: bool,
    /// Stations whose uplink retransmission cannot have its former PRBs.
    pub(super) displaced: Vec<usize>,
}

impl Cell {
    /// A cell with these stations; `seed` determines its channels and block errors.
    pub fn new(config: CellConfig, stations: Vec<StationConfig>, seed: u64) -> Self {
        let mut routes = AddressTable::default();
        for (index, station) in stations.iter().enumerate() {
            station.addresses.iter().for_each(|address| routes.insert(*address, index));
        }
        let prb = (config.downlink_prb, config.uplink_prb);
        let network =
            config.radio.clone().map(|radio| Network::new(radio, &config.rat, config.numerology, prb, seed));
        let network = network.map(|network| network.of_cell(&config.rat, &config.duplex));
        let timing = config.rat.timing(config.numerology, &config.duplex);
        let timing = timing.expect("the configuration has allowed distances");
        let distances = lte_tdd(&config);
        let pusch_prb = config.pusch_prbs().len() as u16;
        let adaptation = LinkAdaptation::new(&config.rat, (config.downlink_prb, pusch_prb));
        let processing = stations.iter().map(|station| station.processing).collect();
        let processing = Processing::new(config.downlink_lead, processing);
        let build = |(index, station)| Station::new(station, &config, &timing, network.as_ref(), index, seed);
        let stations: Vec<Station> = stations.into_iter().enumerate().map(build).collect();
        let mut members = vec![Vec::new(); served_cells(network.as_ref())];
        stations.iter().enumerate().for_each(|(index, station)| members[station.cell].push(index));
        let configured = ConfiguredGrants::new(&config, &members, config.pusch_prbs());
        Self {
            stations,
            members,
            network,
            adaptation,
            transmissions: Vec::new(),
            clock: SlotClock::new(config.numerology),
            timing,
            bundling: distances.is_some() && config.ack_mode == AckMode::Bundling,
            tdd_configuration: distances.map(Distances::configuration),
            config,
            routes,
            block_error_draws: Stream::new(seed, "cell0/harq"),
            next_slot: None,
            earliest_slot: Slot(0),
            output: VecDeque::new(),
            reassembled: Vec::new(),
            candidates: Vec::new(),
            allocations: Vec::new(),
            active_slots: 0,
            block_sink: None,
            watched: Vec::new(),
            responder: Responder::new(seed),
            displaced: Vec::new(),
            configured,
            processing,
            moving: None,
            handovers: Vec::new(),
            records_failures: false,
        }
    }
    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }
    /// Number of served cells.
    pub fn cells(&self) -> usize {
        self.members.len()
    }
    /// PRBs of PDSCH and of the uplink per slot of all served cells: the mean over all slots, of which a
    /// direction has a part in TDD.
    pub fn resource_blocks(&self) -> (f64, f64) {
        let CellConfig { rat, numerology, duplex, downlink_prb, uplink_prb, .. } = &self.config;
        let downlink = self.mean_per_slot(|slot| {
            let size = rat.prb_size(Direction::Down, duplex.symbols(slot, Direction::Down));
            size.map_or(0, |_| u64::from(rat.pdsch_prbs(*numerology, slot, *downlink_prb).len()))
        });
        let of_uplink = |slot| if duplex.has(slot, Direction::Up) { u64::from(*uplink_prb) } else { 0 };
        (downlink, self.mean_per_slot(of_uplink))
    }
    /// Largest number of uplink grants per slot of all served cells: the mean over all slots.
    pub fn uplink_grants(&self) -> f64 {
        let most = self.config.uplink_grants as u64;
        self.mean_per_slot(|slot| if self.timing.granted_by(slot).next().is_some() { most } else { 0 })
    }
    /// Mean over the slots of a number in each served cell.
    fn mean_per_slot(&self, number: impl Fn(Slot) -> u64) -> f64 {
        let repeat = match &self.config.rat {
            Rat::Lte => SlotSpan(1),
            Rat::Nr(nr) => nr.ssb_period,
        };
        let slots = repeat.0 * self.config.duplex.period() as u64;
        let sum: u64 = (0..slots).map(|slot| number(Slot(slot))).sum();
        self.members.len() as f64 * (sum as f64 / slots as f64)
    }
    /// The serving cell of a station, as an index of the served cells.
    pub fn serving(&self, station: usize) -> usize {
        self.stations[station].cell
    }
    /// Position of a station in metres from site 0 and its coupling loss in dB; none for a stated SINR.
    pub fn place(&self, station: usize) -> Option<(Point, f64)> {
        self.stations[station].radio.placed().map(|placed| (placed.position(), placed.coupling_loss_db()))
    }
    /// Downlink counters of a station.
    pub fn downlink(&self, station: usize) -> &LinkStats {
        &self.stations[station].downlink.mac.stats
    }
    /// Uplink counters of a station.
    pub fn uplink(&self, station: usize) -> &LinkStats {
        &self.stations[station].uplink.mac.stats
    }
    /// Counters of a station's uplink access.
    pub fn access(&self, station: usize) -> &AccessStats {
        &self.stations[station].access.stats
    }
    /// Sum of the TPC commands to a station in dB; none for a stated SINR.
    pub fn power_correction_db(&self, station: usize) -> Option<f64> {
        self.stations[station].radio.placed().map(Placed::tpc_correction_db)
    }
    /// Whether a station has a connection.
    pub fn connected(&self, station: usize) -> bool {
        self.stations[station].connected()
    }
    /// The eNB's buffer for a station.
    pub fn downlink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.stations[station].downlink.bearer.buffer
    }
    /// The uplink buffer of a station.
    pub fn uplink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.stations[station].uplink.bearer.buffer
    }
    /// Adds an address of a station, or moves it to this station.
    pub fn add_route(&mut self, address: IpAddr, station: usize) {
        self.routes.insert(address, station);
    }
    /// Bytes available for transmission to a station.
    pub fn downlink_queue(&self, station: usize) -> Bytes {
        Bytes(self.stations[station].downlink_available())
    }
    /// Number of packets inside the cell: towards a station, and from it.
    pub fn held(&self, station: usize) -> (u64, u64) {
        let Station { downlink, uplink, forwarding, .. } = &self.stations[station];
        let forwarded = forwarding.as_ref().map_or(0, Forwarding::held);
        let (down, up) = self.processing.held(station);
        (downlink.held() + forwarded + down, uplink.held() + up)
    }
    /// The conversion between this cell's slots and time.
    pub fn clock(&self) -> SlotClock {
        self.clock
    }
    /// Number of slots with work.
    pub fn active_slots(&self) -> u64 {
        self.active_slots
    }

    /// Captures the blocks of an NR cell from now on, in the order of their first transmissions.
    pub fn capture_blocks(&mut self, sink: BlockSink) {
        for station in &mut self.stations {
            station.downlink.captures = true;
            station.uplink.captures = true;
        }
        self.block_sink = Some(sink);
    }

    /// Gives the steps of a station's packets to `sink` from now on.
    pub fn watch(&mut self, station: usize, sink: StepSink) {
        self.stations[station].downlink.watched = true;
        self.stations[station].uplink.watched = true;
        self.watched.push(Watched { station, sink });
    }

    pub(super) fn wake(&mut self, now: Instant) {
        // Movement has its next slot, which may be a later one.
        let slot = self.clock.at_or_after(now).max(self.earliest_slot);
        self.next_slot = Some(self.next_slot.map_or(slot, |next| next.min(slot)));
    }

    fn run_slot(&mut self, slot: Slot) {
        self.active_slots += 1;
        while let Some((at, index, direction, packet)) = self.processing.pop_arrived(self.clock.start(slot)) {
            self.enter(at, index, direction, packet);
        }
        for index in 0..self.stations.len() {
            self.receive(slot, index);
        }
        self.change_cells(slot);
        self.move_stations(slot);
        self.process_uplink_feedback(slot);
        self.step_random_access(slot);
        for cell in 0..self.members.len() {
            // The grants of one slot share its PDCCH: each uplink slot has an equal part of the rest.
            let count = self.timing.k2.of(slot).len();
            let mut grants = self.config.uplink_grants;
            for at in 0..count {
                let part = grants.div_ceil(count - at);
                grants -= self.schedule_uplink(slot, slot + self.timing.k2.of(slot)[at], cell, part);
            }
            if self.config.duplex.has(slot, Direction::Down) {
                self.schedule_downlink(slot, cell);
            }
        }
        if self.config.duplex.has(slot, Direction::Up) {
            self.stations_transmit(slot);
            self.send_preambles(slot);
        }
        self.transmit(slot);
    }

    /// Discards expired SDUs of a station, starts random access if it has data and no connection, and
    /// delivers decoded PDUs of both directions.
    fn receive(&mut self, slot: Slot, index: usize) {
        let now = self.clock.start(slot);
        self.take_forwarded(index, now);
        let station = &mut self.stations[index];
        if let Some(timer) = self.config.discard_timer {
            station.discard_expired(now, timer, &mut self.output);
        }
        if !station.connected() {
            let has_data = station.uplink_available() > 0 || station.downlink_available() > 0;
            if has_data && station.procedure.is_none() {
                self.start_random_access(index, Cause::Initial, slot);
            }
            return;
        }
        station.count_window_stalls();
        if !station.downlink.delivery_due(slot) && !station.uplink.delivery_due(slot) {
            return;
        }
        if station.downlink.mac.delivery_due(slot) || station.uplink.mac.delivery_due(slot) {
            station.active_at = Some(slot);
        }
        // In AM, a delivery can create uplink data: a status report or a retransmission.
        let was_empty = station.uplink.bearer.rlc.is_am() && station.uplink_available() == 0;
        let Station { downlink, uplink, .. } = station;
        let (reassembled, output) = (&mut self.reassembled, &mut self.output);
        downlink.deliver(&mut uplink.bearer, slot, reassembled, output);
        uplink.deliver(&mut downlink.bearer, slot, reassembled, output);
        if was_empty && station.uplink_available() > 0 {
            station.access.on_data_in_empty_buffer(now);
        }
        if station.count_radio_link_failures() {
            self.fail_link(slot, index);
        }
    }

    /// Whether a station gets grants without a request.
    fn grants_unasked(&self, slot: Slot) -> bool {
        let grants = self.config.access.proactive.as_ref();
        grants.is_some_and(|grants| {
            self.stations.iter().any(|station| station.connected() && grants.serve(slot, station.active_at))
        })
    }

    /// A packet enters the buffer of its direction.
    fn enter(&mut self, now: Instant, index: usize, direction: Direction, packet: Packet) {
        let station = &mut self.stations[index];
        if direction == Direction::Down {
            let Station { downlink: link, forwarding, .. } = station;
            let arrived = match forwarding {
                Some(forwarding) => forwarding.arrive(now, packet),
                None => Some(packet),
            };
            if let Some(packet) = arrived {
                link.bearer.buffer.push(now, packet);
                link.collect_dropped(&mut self.output);
            }
            return;
        }
        self.watched.iter_mut().for_each(|watched| watched.arrived(now, index, direction, &packet));
        let was_empty = station.uplink.bearer.buffer.packets() == 0 && station.uplink_available() == 0;
        station.count_grant_wait(now);
        station.uplink.bearer.buffer.push(now, packet);
        if was_empty {
            station.access.on_data_in_empty_buffer(now);
        }
        station.uplink.collect_dropped(&mut self.output);
    }

    /// Decides the fate of all transmissions of the slot, once the interference between them is known.
    fn transmit(&mut self, slot: Slot) {
        if self.transmissions.is_empty() {
            return;
        }
        debug_assert!(self.prbs_are_disjoint(), "slot {}: {:?}", slot.0, self.transmissions);
        if let Some(network) = &mut self.network {
            let stations = &self.stations;
            network.set_transmissions(slot, &self.transmissions, |index| {
                stations[index].radio.placed().map(|placed| (placed, stations[index].cell))
            });
        }
        self.receive_responses(slot);
        for at in 0..self.transmissions.len() {
            let transmission = self.transmissions[at];
            let Station { radio, cell, downlink, uplink, procedure, .. } =
                &mut self.stations[transmission.station];
            let link = match transmission.direction {
                Direction::Down => downlink,
                Direction::Up => uplink,
            };
            let block = link.mac.harq.block(transmission.process).expect("a block is sent from its process");
            let layer = self.config.rat.layer(transmission.direction, block.mcs);
            let sinr = radio.sinr(&mut self.network, *cell, slot, &transmission, layer);
            let in_random_access = procedure.is_some();
            let draw = self.block_error_draws.uniform();
            let verdict_at = self.timing.verdict_at(slot, transmission.direction);
            let times = (slot, verdict_at, slot + SlotSpan(1) + self.config.decode_delay);
            let decoded = link.transmit(transmission.process, transmission.prbs, times, sinr, draw);
            if let Some(sink) = &mut self.block_sink
                && let Some(pdu) = link.captured.take()
            {
                let Transmission { station, direction, process, .. } = transmission;
                let (clock, tdd) = (self.clock, matches!(self.config.duplex, Duplex::Tdd(_)));
                sink(CapturedBlock { station, direction, slot, process, clock, tdd, pdu });
            }
            let times = (self.clock.start(slot), self.clock.start(times.2));
            for watched in self.watched.iter_mut().filter(|own| own.station == transmission.station) {
                watched.sent(times, transmission.direction, transmission.process, link);
            }
            link.carried.clear();
            if transmission.direction == Direction::Down && decoded && in_random_access {
                self.resolve_by_msg4(slot, transmission.station, transmission.process);
            }
        }
        self.transmissions.clear();
    }

    /// Whether every transmission of this slot lies in its band and overlaps no other one of its cell and
    /// direction, Msg3s after a preamble collision excepted.
    fn prbs_are_disjoint(&self) -> bool {
        let downlink = PrbSet::range(0, u32::from(self.config.downlink_prb));
        let uplink = self.config.pusch_prbs();
        let side = |sent: &Transmission| (self.stations[sent.station].cell, sent.direction);
        let collides = |sent: &Transmission| {
            let block = self.stations[sent.station].uplink.mac.harq.block(sent.process);
            sent.direction == Direction::Up
                && block.is_some_and(|block| block.kind == BlockKind::CollidedMsg3)
        };
        self.transmissions.iter().enumerate().all(|(at, sent)| {
            let same_side =
                |other: &&Transmission| side(other) == side(sent) && !(collides(other) && collides(sent));
            let mut others = self.transmissions[..at].iter().filter(same_side);
            let band = match sent.direction {
                Direction::Down => downlink,
                Direction::Up => uplink,
            };
            !sent.prbs.is_empty()
                && sent.prbs.without(band).is_empty()
                && others.all(|other| sent.prbs.without(other.prbs) == sent.prbs)
        })
    }
}

/// The distances of an LTE TDD cell, which has an allowed mode of HARQ-ACKs.
fn lte_tdd(config: &CellConfig) -> Option<&'static Distances> {
    let (Rat::Lte, Duplex::Tdd(pattern)) = (&config.rat, &config.duplex) else { return None };
    let distances = Distances::of_pattern(pattern)?;
    let (mode, allowed) = (config.ack_mode, distances.allows(config.ack_mode));
    assert!(allowed, "{mode:?} is not allowed in {pattern} (TS 36.213 §7.3)");
    Some(distances)
}

impl Node for Cell {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let (index, direction) = if from == CORE {
            let Some(index) = self.routes.get(packet.ip.dst) else {
                self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
                return;
            };
            (index, Direction::Down)
        } else {
            (usize::from(from.0) - 1, Direction::Up)
        };
        if direction == Direction::Down {
            self.watched.iter_mut().for_each(|watched| watched.arrived(now, index, direction, &packet));
        }
        let Station { downlink, uplink, .. } = &mut self.stations[index];
        let link = if direction == Direction::Down { downlink } else { uplink };
        link.mac.stats.packets_in += 1;
        match self.processing.arrive(now, index, direction, packet) {
            Ok(enters_at) => self.wake(enters_at),
            Err(packet) => {
                self.enter(now, index, direction, packet);
                self.wake(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(slot) = self.next_slot.filter(|slot| self.clock.start(*slot) <= now) {
            let first = self.output.len();
            self.run_slot(slot);
            self.processing.hold(self.clock.start(slot), first, &mut self.output);
            let next = slot + SlotSpan(1);
            self.earliest_slot = next;
            let idle = self.stations.iter().all(Station::idle) && !self.grants_unasked(slot);
            let moving = self.moving.as_ref().map(|moving| moving.next_slot(slot));
            self.next_slot = if idle { moving } else { Some(next) };
            if let Some(at) = self.processing.next_arrival().filter(|_| idle) {
                self.wake(at);
            }
        }
        self.processing.release(now, &mut self.output);
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let slot = self.next_slot.map(|slot| self.clock.start(slot));
        match self.processing.next_release() {
            Some(at) => Some(slot.map_or(at, |slot| slot.min(at))),
            None => slot,
        }
    }
}
