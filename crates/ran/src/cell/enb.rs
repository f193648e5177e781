//! ENB

use super::config::{CellConfig, StationConfig};
use super::link_stats::LinkStats;
use super::responder::Responder;
use super::station::Station;
use crate::air::{Network, Placed, Sent, served_count};
use crate::mac::harq::Block;
use crate::mac::random_access::Cause;
use crate::mac::scheduler::Candidate;
use crate::mac::scheduling_request::AccessStats;
use crate::prb::PrbSet;
use crate::radio::Point;
use crate::rlc::Reassembled;
use crate::slot::Tti;
use paceline_net::{AddressTable, Bytes, DropReason, Instant, Node, Output, Packet, Port, SduQueue, Stream};
use std::collections::VecDeque;

/// The port towards the core network.
pub const CORE: Port = Port(0);

/// The port of a station.
pub fn station_port(station: usize) -> Port {
    Port(u16::try_from(station + 1).expect("a cell has fewer than 65,535 stations"))
}

/// TTIs from an uplink grant to its transmission (k = 4 in FDD, TS 36.213 §8), and of eNB and station processing.
pub(super) const GRANT_DELAY: u64 = 4;

/// An eNB and its stations.
pub struct Cell {
    pub(super) config: CellConfig,
    pub(super) stations: Vec<Station>,
    pub(super) routes: AddressTable,
    /// Stations of each served cell.
    pub(super) members: Vec<Vec<usize>>,
    pub(super) network: Option<Network>,
    /// What is sent in this TTI.
    pub(super) sent: Vec<Sent>,
    pub(super) draws: Stream,
    pub(super) next_tti: Option<Tti>,
    pub(super) earliest_tti: Tti,
    pub(super) output: VecDeque<Output>,
    pub(super) reassembled: Vec<Reassembled>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) allocations: Vec<(usize, u8)>,
    pub(super) active_ttis: u64,
    pub(super) responder: Responder,
    /// Stations whose uplink repetition has lost its resource blocks.
    pub(super) displaced: Vec<usize>,
}

impl Cell {
    /// A cell with these stations; `seed` fixes its channels and block errors.
    pub fn new(config: CellConfig, stations: Vec<StationConfig>, seed: u64) -> Self {
        let mut routes = AddressTable::default();
        for (index, station) in stations.iter().enumerate() {
            station.addresses.iter().for_each(|address| routes.insert(*address, index));
        }
        let prb = (config.downlink_prb, config.uplink_prb);
        let network = config.radio.clone().map(|radio| Network::new(radio, prb, seed));
        let build = |(index, station)| Station::new(station, &config, network.as_ref(), index, seed);
        let stations: Vec<Station> = stations.into_iter().enumerate().map(build).collect();
        let mut members = vec![Vec::new(); served_count(network.as_ref())];
        stations.iter().enumerate().for_each(|(index, station)| members[station.cell].push(index));
        Self {
            stations,
            members,
            network,
            sent: Vec::new(),
            config,
            routes,
            draws: Stream::new(seed, "cell0/harq"),
            next_tti: None,
            earliest_tti: Tti(0),
            output: VecDeque::new(),
            reassembled: Vec::new(),
            candidates: Vec::new(),
            allocations: Vec::new(),
            active_ttis: 0,
            responder: Responder::new(seed),
            displaced: Vec::new(),
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
    /// Resource blocks per TTI of all served cells, downlink and uplink.
    pub fn resource_blocks(&self) -> (u32, u32) {
        let cells = self.members.len() as u32;
        (cells * u32::from(self.config.downlink_prb), cells * u32::from(self.config.uplink_prb))
    }
    /// Most uplink grants per TTI of all served cells.
    pub fn uplink_grants(&self) -> u64 {
        (self.members.len() * self.config.uplink_grants) as u64
    }
    /// Which of the served cells serves a station.
    pub fn serving(&self, station: usize) -> usize {
        self.stations[station].cell
    }
    /// Where a station stands, in metres from its site, and its coupling loss in dB; none for a stated SINR.
    pub fn place(&self, station: usize) -> Option<(Point, f64)> {
        self.stations[station].radio.placed().map(|placed| (placed.position(), placed.coupling_loss_db()))
    }
    /// Downlink counters of a station.
    pub fn downlink(&self, station: usize) -> &LinkStats {
        &self.stations[station].downlink.stats
    }
    /// Uplink counters of a station.
    pub fn uplink(&self, station: usize) -> &LinkStats {
        &self.stations[station].uplink.stats
    }
    /// What uplink access has cost a station.
    pub fn access(&self, station: usize) -> &AccessStats {
        &self.stations[station].access.stats
    }
    /// What TPC commands have added to a station's uplink power, in dB; none for a stated SINR.
    pub fn power_correction_db(&self, station: usize) -> Option<f64> {
        self.stations[station].radio.placed().map(Placed::correction_db)
    }
    /// Whether a station has a connection.
    pub fn connected(&self, station: usize) -> bool {
        !self.stations[station].suspended()
    }
    /// The eNB's buffer for a station.
    pub fn downlink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.stations[station].downlink.buffer
    }
    /// The uplink buffer of a station.
    pub fn uplink_buffer(&self, station: usize) -> &dyn SduQueue {
        &*self.stations[station].uplink.buffer
    }
    /// Bytes waiting in the eNB for a station.
    pub fn downlink_queue(&self, station: usize) -> Bytes {
        Bytes(self.stations[station].downlink_available())
    }
    /// Packets inside the cell: towards a station, and from it.
    pub fn held(&self, station: usize) -> (u64, u64) {
        (self.stations[station].downlink.held(), self.stations[station].uplink.held())
    }
    /// TTIs that had work.
    pub fn active_ttis(&self) -> u64 {
        self.active_ttis
    }

    fn wake(&mut self, now: Instant) {
        if self.next_tti.is_none() {
            self.next_tti = Some(Tti::at_or_after(now).max(self.earliest_tti));
        }
    }

    /// Everything that happens at the start of `tti`.
    fn run_tti(&mut self, tti: Tti) {
        self.active_ttis += 1;
        for index in 0..self.stations.len() {
            self.receive(tti, index);
        }
        self.take_up_uplink(tti);
        self.step_random_access(tti);
        for cell in 0..self.members.len() {
            self.schedule_uplink(tti, cell);
            self.schedule_downlink(tti, cell);
        }
        for index in 0..self.stations.len() {
            self.station_transmits(tti, index);
        }
        self.send_preambles(tti);
        self.pass_through_the_air(tti);
    }

    /// All cells have said what they send: now it is known what interferes, and what is decoded.
    fn pass_through_the_air(&mut self, tti: Tti) {
        if self.sent.is_empty() {
            return;
        }
        debug_assert!(self.blocks_are_apart(), "TTI {}: {:?}", tti.0, self.sent);
        if let Some(network) = &mut self.network {
            let stations = &self.stations;
            network.fill(tti, &self.sent, |index| {
                stations[index].radio.placed().map(|placed| (placed, stations[index].cell))
            });
        }
        self.hear_responses(tti);
        for at in 0..self.sent.len() {
            let sent = self.sent[at];
            let Station { radio, cell, downlink, uplink, procedure, .. } = &mut self.stations[sent.station];
            let link = if sent.downlink { downlink } else { uplink };
            let block = link.harq.block(sent.process).expect("a block is sent from its process");
            block.blocks = sent.blocks;
            let sinr = radio.sinr(&mut self.network, *cell, tti, &sent, block);
            let accessing = procedure.as_ref();
            let draw = self.draws.uniform();
            let decoded = link.send(sent.process, tti, sinr, draw, self.config.decode_delay);
            if sent.downlink && decoded && accessing.is_some() {
                self.resolve_by_msg4(tti, sent.station, sent.process);
            }
        }
        self.sent.clear();
    }

    /// Whether every transmission of this TTI lies in its band, and none overlaps another of its cell and direction.
    fn blocks_are_apart(&self) -> bool {
        let downlink = PrbSet::range(0, u32::from(self.config.downlink_prb));
        let uplink = self.pusch();
        let side = |sent: &Sent| (self.stations[sent.station].cell, sent.downlink);
        let collides = |sent: &Sent| {
            let block = self.stations[sent.station].uplink.harq.peek(sent.process);
            !sent.downlink && block.is_some_and(Block::collides)
        };
        self.sent.iter().enumerate().all(|(at, sent)| {
            let apart = |other: &&Sent| side(other) == side(sent) && !(collides(other) && collides(sent));
            let mut others = self.sent[..at].iter().filter(apart);
            let band = if sent.downlink { downlink } else { uplink };
            !sent.blocks.is_empty()
                && sent.blocks.without(band).is_empty()
                && others.all(|other| sent.blocks.without(other.blocks) == sent.blocks)
        })
    }

    /// Ends what has waited too long, and hands up what has passed the receivers of both directions.
    fn receive(&mut self, tti: Tti, index: usize) {
        let station = &mut self.stations[index];
        if let Some(timer) = self.config.discard_timer {
            station.discard(tti, timer, &mut self.output);
        }
        if station.suspended() {
            let has_data = station.uplink_available() > 0 || station.downlink_available() > 0;
            if has_data && station.procedure.is_none() {
                self.start_random_access(index, Cause::Initial, tti);
            }
            return;
        }
        if !station.downlink.has_news(tti) && !station.uplink.has_news(tti) {
            return;
        }
        // In AM data can come up by themselves: reports and repetitions.
        let was_empty = station.uplink.rlc.repeats() && station.uplink_available() == 0;
        let Station { downlink, uplink, .. } = station;
        let (reassembled, output) = (&mut self.reassembled, &mut self.output);
        downlink.hand_up(&mut uplink.rlc, tti, station_port(index), reassembled, output);
        uplink.hand_up(&mut downlink.rlc, tti, CORE, reassembled, output);
        if was_empty && station.uplink_available() > 0 {
            station.access.on_data_in_empty_buffer(tti.starts_at());
        }
        if station.take_up_failure() {
            self.fail_link(tti, index);
        }
    }
}

impl Node for Cell {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        if from == CORE {
            let Some(index) = self.routes.get(packet.ip.dst) else {
                self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
                return;
            };
            let link = &mut self.stations[index].downlink;
            link.stats.packets_in += 1;
            link.buffer.push(now, packet);
            link.collect_dropped(&mut self.output);
        } else {
            let station = &mut self.stations[usize::from(from.0) - 1];
            let was_empty = station.uplink.buffer.packets() == 0 && station.uplink_available() == 0;
            station.account(now);
            station.uplink.stats.packets_in += 1;
            station.uplink.buffer.push(now, packet);
            if was_empty {
                station.access.on_data_in_empty_buffer(now);
            }
            station.uplink.collect_dropped(&mut self.output);
        }
        self.wake(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(tti) = self.next_tti.filter(|tti| tti.starts_at() <= now) {
            self.run_tti(tti);
            self.earliest_tti = tti + 1;
            let idle = self.stations.iter().all(Station::idle);
            self.next_tti = (!idle).then_some(tti + 1);
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_tti.map(Tti::starts_at)
    }
}
