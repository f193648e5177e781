//! An LTE FDD eNB and its stations, a [`Node`]: one cell with stated SINRs, or the three cells of a site inside a
//! deployment, in lockstep.
//!
//! Port 0 is the core network; port `1 + i` is the IP side of station `i`. In every TTI with work, in this order:
//! SDUs that have waited too long are discarded; the receivers hand up what has passed them; the eNB takes up
//! uplink verdicts (n+4) and scheduling requests (n+4), allocates the uplink four TTIs ahead and the downlink of
//! this TTI; the stations send what was granted four TTIs ago, and scheduling requests; then the air decides what
//! is decoded. Without work it sleeps; waiting SDUs, unconfirmed PDUs and random access are work.

mod random_access;

use crate::access::{AccessStats, Request};
use crate::air::{Network, Placed, Sent, served_count};
use crate::config::{CellConfig, StationConfig};
use crate::harq::{self, Block};
use crate::link::LinkStats;
use crate::lte::tbs;
use crate::mac;
use crate::radio::{BlockSet, Point};
use crate::random_access::Cause;
use crate::rlc_um::Reassembled;
use crate::scheduler::{self, Budget, Candidate};
use crate::slot::Tti;
use crate::station::{Grant, Station};
use paceline_net::{AddressTable, Bytes, DropReason, Instant, Node, Output, Packet, Port, SduQueue, Stream};
use random_access::Responder;
use std::collections::VecDeque;

/// The port towards the core network.
pub const CORE: Port = Port(0);

/// The port of a station.
pub fn station_port(station: usize) -> Port {
    Port(u16::try_from(station + 1).expect("a cell has fewer than 65,535 stations"))
}

/// TTIs from an uplink grant to its transmission (k = 4 in FDD, TS 36.213 §8), and of eNB and station processing.
const GRANT_DELAY: u64 = 4;

/// An eNB and its stations.
pub struct Cell {
    config: CellConfig,
    stations: Vec<Station>,
    routes: AddressTable,
    /// Stations of each served cell.
    members: Vec<Vec<usize>>,
    network: Option<Network>,
    /// What is sent in this TTI.
    sent: Vec<Sent>,
    draws: Stream,
    next_tti: Option<Tti>,
    earliest_tti: Tti,
    output: VecDeque<Output>,
    reassembled: Vec<Reassembled>,
    candidates: Vec<Candidate>,
    allocations: Vec<(usize, u8)>,
    active_ttis: u64,
    responder: Responder,
    /// Stations whose uplink repetition has lost its resource blocks.
    displaced: Vec<usize>,
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

    /// The uplink's resource blocks without those of PUCCH, which lies at both edges of the band.
    fn pusch(&self) -> BlockSet {
        let (pucch, prb) = (u32::from(self.config.pucch_prb), u32::from(self.config.uplink_prb));
        BlockSet::range(pucch / 2, prb - pucch)
    }

    /// Whether every transmission of this TTI lies in its band, and none overlaps another of its cell and direction.
    fn blocks_are_apart(&self) -> bool {
        let downlink = BlockSet::range(0, u32::from(self.config.downlink_prb));
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

    /// The eNB learns how uplink blocks of four TTIs ago went, and which scheduling requests came.
    fn take_up_uplink(&mut self, tti: Tti) {
        let sr_grant = self.config.access.sr_grant;
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            station.estimate.process_request(tti, GRANT_DELAY, sr_grant);
            let process = harq::Processes::of(tti + GRANT_DELAY);
            let Some(block) = station.uplink.harq.block(process) else {
                continue;
            };
            let first_sent_at = block.first_sent_at;
            let msg3 = block.msg3.is_some();
            let max_tx = if msg3 { self.config.random_access.max_msg3_tx } else { self.config.max_harq_tx };
            if self.config.outer_loop {
                station.uplink.adapt(process);
            }
            let Some(block) = station.uplink.harq.block(process) else { continue };
            if block.decoded {
                let (report, padding) = (block.pdu.bsr, block.pdu.padding);
                if let Some(headroom) = block.pdu.headroom {
                    station.on_headroom(headroom, first_sent_at);
                }
                station.estimate.on_decoded(first_sent_at, report, padding, sr_grant);
                station.uplink.finish(process);
                if msg3 {
                    self.take_up_msg3(index, process);
                }
            } else if block.transmissions >= max_tx {
                station.estimate.on_lost(first_sent_at, sr_grant);
                station.uplink.give_up(process, &mut self.output);
            }
        }
    }

    /// Allocates a cell's PUSCH of `tti + 4`: random access has what it needs, non-adaptive retransmissions keep
    /// their place if they can, grants share the rest.
    fn schedule_uplink(&mut self, tti: Tti, cell: usize) {
        let sent_at = tti + GRANT_DELAY;
        let process = harq::Processes::of(sent_at);
        let band = self.pusch().without(self.random_access_blocks(sent_at, cell));
        let mut free = band;
        self.candidates.clear();
        for &index in &self.members[cell] {
            let station = &mut self.stations[index];
            if let Some(block) = station.uplink.harq.block(process) {
                // It failed: the same resource blocks again.
                if block.blocks.is_empty() || !block.blocks.without(band).is_empty() {
                    self.displaced.push(index);
                }
                free = free.without(block.blocks);
                continue;
            }
            let msg3 = station.procedure.as_ref().is_some_and(|procedure| procedure.msg3(sent_at).is_some());
            if station.estimate.bytes() == 0 || station.suspended() || msg3 {
                continue;
            }
            let Some((mcs, max_prb)) = station.uplink_mcs(tti, &self.config, &mut self.network) else {
                continue;
            };
            station.uplink.mcs = Some(mcs);
            let needed = mac::block_needed(u64::from(station.estimate.bytes()), 1);
            let unlimited = prb_for(mcs.i_tbs, needed, self.config.uplink_prb);
            let wanted_prb = unlimited.min(max_prb);
            station.wanted = (wanted_prb, wanted_prb < unlimited);
            let bits_per_prb = bits_per_prb(mcs.i_tbs, self.config.uplink_prb);
            self.candidates.push(station.uplink.candidate(tti, index, wanted_prb, bits_per_prb));
        }
        self.move_repetitions(process, &mut free);
        let budget =
            Budget { n_prb: free.len() as u8, max_grants: self.config.uplink_grants, granularity: 1 };
        let policy = self.config.scheduler;
        scheduler::allocate(tti, policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let station = &mut self.stations[index];
            let blocks = free.lowest(u32::from(scheduler::precodable(n_prb)));
            let Some(mcs) = station.uplink.mcs else { continue };
            free = free.without(blocks);
            let bytes = tbs::transport_block_bits(mcs.i_tbs, blocks.len() as u8) / 8;
            station.estimate.on_grant(sent_at, bytes);
            station.uplink.serve(tti, 8 * bytes);
            station.count_grant(blocks.len() as u8);
            station.grant(sent_at, mcs, blocks);
            self.resolve_by_grant(tti, index);
        }
    }

    /// Allocates a cell's PDSCH of this TTI: retransmissions that are due first, new blocks share the rest.
    fn schedule_downlink(&mut self, tti: Tti, cell: usize) {
        let mut free = BlockSet::range(0, u32::from(self.config.downlink_prb));
        let mut max_grants = self.config.downlink_grants;
        self.respond(tti, cell, &mut free, &mut max_grants);
        self.candidates.clear();
        for at in 0..self.members[cell].len() {
            let index = self.members[cell][at];
            let repeated = self.retransmit_downlink(tti, index, &mut free, &mut max_grants);
            let station = &mut self.stations[index];
            let cqi = station.reported_cqi(tti, &self.config, &mut self.network);
            let ready = !station.suspended() && station.downlink_sendable();
            if repeated || !ready || station.downlink.harq.free().is_none() {
                continue;
            }
            let Some(mcs) = station.downlink_mcs(cqi, &self.config) else { continue };
            station.downlink.mcs = Some(mcs);
            let needed = mac::needed(&station.downlink.rlc, &station.uplink.rlc, &*station.downlink.buffer);
            let wanted_prb = prb_for(mcs.i_tbs, needed, self.config.downlink_prb);
            let bits_per_prb = bits_per_prb(mcs.i_tbs, self.config.downlink_prb);
            self.candidates.push(station.downlink.candidate(tti, index, wanted_prb, bits_per_prb));
        }
        let granularity = scheduler::group_size(self.config.downlink_prb);
        let budget = Budget { n_prb: free.len() as u8, max_grants, granularity };
        let policy = self.config.scheduler;
        scheduler::allocate(tti, policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let blocks = free.lowest(u32::from(n_prb));
            free = free.without(blocks);
            self.transmit_downlink(tti, index, blocks);
        }
    }

    /// Finishes the station's decoded blocks and repeats one that failed. Returns whether one was repeated.
    fn retransmit_downlink(
        &mut self,
        tti: Tti,
        index: usize,
        free: &mut BlockSet,
        max_grants: &mut usize,
    ) -> bool {
        let link = &mut self.stations[index].downlink;
        let mut repeated = false;
        for process in link.harq.due(tti, harq::ROUND_TRIP) {
            if self.config.outer_loop {
                link.adapt(process);
            }
            let Some(block) = link.harq.block(process) else { continue };
            if block.decoded {
                link.finish(process);
            } else if block.transmissions >= self.config.max_harq_tx {
                link.give_up(process, &mut self.output);
            } else if !repeated && u32::from(block.n_prb) <= free.len() && *max_grants > 0 {
                // One block per station and TTI: a single codeword.
                repeated = true;
                let blocks = free.lowest(u32::from(block.n_prb));
                *free = free.without(blocks);
                *max_grants -= 1;
                self.sent.push(Sent { station: index, downlink: true, process, blocks });
            }
        }
        repeated
    }

    fn transmit_downlink(&mut self, tti: Tti, index: usize, blocks: BlockSet) {
        let station = &mut self.stations[index];
        let (Some(mcs), Some(process)) = (station.downlink.mcs, station.downlink.harq.free()) else { return };
        let n_prb = blocks.len() as u8;
        let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
        let storage = station.downlink.storage();
        let pdu = station.downlink_sender().downlink_pdu(tti, bits / 8, storage);
        station.uplink.buffer.on_peer_block(Bytes(u64::from(bits / 8)));
        let link = &mut station.downlink;
        link.serve(tti, bits);
        link.harq.start(process, Box::new(Block::new(pdu, mcs, bits, n_prb)));
        self.sent.push(Sent { station: index, downlink: true, process, blocks });
    }

    /// The station sends the block of this TTI: a retransmission, a granted new one, or a scheduling request.
    fn station_transmits(&mut self, tti: Tti, index: usize) {
        let process = harq::Processes::of(tti);
        if self.stations[index].procedure.is_some() {
            self.start_msg3(tti, index);
        }
        let station = &mut self.stations[index];
        if let Some(block) = station.uplink.harq.block(process) {
            let blocks = block.blocks;
            if blocks.is_empty() {
                return; // no room for this repetition
            }
            if let Some(procedure) = station.procedure.as_mut().filter(|p| p.msg3_in(process)) {
                procedure.on_msg3(tti, process, self.config.random_access.contention_timer);
            }
            self.sent.push(Sent { station: index, downlink: false, process, blocks });
            return;
        }
        if station.suspended() {
            return;
        }
        let access = &self.config.access;
        let has_data = station.uplink_available() > 0;
        let Some(grant) = station.grants.pop_front_if(|grant| grant.sent_at == tti) else {
            if station.procedure.is_some() {
                return;
            }
            match station.access.scheduling_request(tti, access, has_data) {
                Request::Sent if self.responder.hears_request(access.sr_detection) => {
                    station.estimate.on_request(tti);
                }
                Request::Sent | Request::None => {}
                Request::Failed => self.start_random_access(index, Cause::SchedulingRequest, tti + 1),
            }
            return;
        };
        let headroom = station.use_power(tti, &grant, &self.network);
        let Grant { mcs, blocks, .. } = grant;
        let n_prb = blocks.len() as u8;
        let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
        let due = station.access.bsr_due(tti, has_data);
        let storage = station.uplink.storage();
        let pdu = station.uplink_sender().uplink_pdu(tti, bits / 8, due, headroom, storage);
        if let Some(report) = pdu.headroom {
            station.on_headroom_sent(tti, report);
        }
        station.uplink.collect_dropped(&mut self.output);
        let emptied = station.uplink_available() == 0;
        station.access.on_block(tti, access, pdu.bsr.is_some(), emptied);
        station.uplink.harq.start(process, Box::new(Block::new(pdu, mcs, bits, n_prb)));
        self.sent.push(Sent { station: index, downlink: false, process, blocks });
    }
}

/// Bits that one of all resource blocks carries.
fn bits_per_prb(i_tbs: u8, n_prb: u8) -> f64 {
    f64::from(tbs::transport_block_bits(i_tbs, n_prb)) / f64::from(n_prb)
}

/// The fewest resource blocks whose transport block holds `needed` bytes, at most `max`.
fn prb_for(i_tbs: u8, needed: u64, max: u8) -> u8 {
    let fits = |n_prb: u8| u64::from(tbs::transport_block_bits(i_tbs, n_prb) / 8) >= needed;
    if fits(1) {
        return 1; // the one entry that breaks the order is at one resource block
    }
    let (mut low, mut high) = (1, max);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
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
            let was_empty = station.uplink_available() == 0;
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
