//! The downlink of a cell in one slot: after the answers of random access, HARQ retransmissions that are due,
//! then new blocks (TS 36.213 §7).

use super::air::Air;
use super::config::Carrier;
use super::station::{Station, Stations, measures_cqi};
use crate::air::Transmission;
use crate::duplex::Direction;
use crate::mac::pdu as mac;
use crate::mac::scheduler::{self, Budget, Candidate, Policy};
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::{Bytes, Duration, Instant, Output, Rate};
use std::collections::VecDeque;

/// The PRBs and assignments that a downlink slot of a served cell has left.
pub(super) struct Room {
    pub slot: Slot,
    pub cell: usize,
    /// Size of a PRB.
    pub size: PrbSize,
    free: PrbSet,
    /// Number of free PRBs, which is asked for every station.
    pub left: u32,
    /// Assignments on PDCCH.
    pub grants: usize,
}

impl Room {
    /// All of a slot; none if it has no downlink data.
    pub fn of(slot: Slot, cell: usize, carrier: &Carrier) -> Option<Self> {
        let config = &carrier.config;
        let symbols = config.duplex.symbols(slot, Direction::Down);
        let size = config.rat.prb_size(Direction::Down, symbols)?;
        let free = config.rat.pdsch_prbs(config.numerology, slot, config.downlink_prb);
        Some(Self { slot, cell, size, free, left: free.len(), grants: config.downlink_grants })
    }
    /// Takes PRBs for one assignment.
    pub fn take(&mut self, count: u32) -> PrbSet {
        let prbs = self.free.lowest(count);
        self.free = self.free.without(prbs);
        self.left = self.left.saturating_sub(count);
        self.grants = self.grants.saturating_sub(1);
        prbs
    }
}

/// State of a station's downlink, as its scheduler knows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DownlinkState {
    /// Bytes available for transmission.
    pub queued: Bytes,
    /// Time for which the packet at the head of the buffer has waited; zero for an empty buffer.
    pub head_wait: Duration,
    /// Index of the MCS that link adaptation chose when the station last could be scheduled; none before.
    pub mcs: Option<u8>,
    /// The mean rate at which the station was served, of which proportional fairness takes account.
    pub mean_rate: Rate,
}

impl DownlinkState {
    /// The state of a station at a time in this slot.
    pub(super) fn of(station: &Station, now: Instant, slot: Slot, slot_s: f64) -> Self {
        let arrived = station.downlink.bearer.buffer.head_arrived_at();
        Self {
            queued: Bytes(station.downlink_available()),
            head_wait: arrived.map_or(Duration::ZERO, |at| now.since(at)),
            mcs: station.downlink.mcs.map(Mcs::index),
            mean_rate: Rate((station.downlink.mac.served_bits(slot) / slot_s) as u64),
        }
    }
}

/// The downlink scheduler.
pub(super) struct DownlinkScheduling {
    policy: Policy,
    /// Stations that can be scheduled in this slot, and those that are, with their number of PRBs.
    candidates: Vec<Candidate>,
    allocations: Vec<(usize, u16)>,
}

impl DownlinkScheduling {
    pub fn new(policy: Policy) -> Self {
        Self { policy, candidates: Vec::new(), allocations: Vec::new() }
    }
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Retransmits and sends new blocks in the room that random access has left.
    pub fn schedule(
        &mut self,
        room: &mut Room,
        carrier: &Carrier,
        stations: &mut Stations,
        air: &mut Air,
        output: &mut VecDeque<Output>,
    ) {
        self.find_candidates(room, carrier, stations, air, output);
        let granularity = carrier.config.rat.rbg_size(carrier.config.downlink_prb);
        let budget = Budget { n_prb: room.left as u16, max_grants: room.grants, granularity };
        scheduler::rank(room.slot, self.policy, &mut self.candidates, budget.max_grants);
        // Only those that can get a grant are asked for their demand.
        for candidate in self.candidates.iter_mut().take(budget.max_grants) {
            candidate.wanted_prb = demand(&stations[candidate.station], room.size, carrier);
        }
        scheduler::distribute(self.policy, &mut self.candidates, budget, &mut self.allocations);
        for (index, n_prb) in self.allocations.iter().copied() {
            transmit(room, carrier, (index, &mut stations[index]), n_prb, air);
        }
    }
    /// Ends or retransmits the blocks whose feedback is due. Stations without a retransmission become
    /// candidates.
    fn find_candidates(
        &mut self,
        room: &mut Room,
        carrier: &Carrier,
        stations: &mut Stations,
        air: &mut Air,
        output: &mut VecDeque<Output>,
    ) {
        let (slot, config) = (room.slot, &carrier.config);
        self.candidates.clear();
        let periodic = measures_cqi(&config.duplex, config.cqi_period, slot);
        for at in 0..stations.members()[room.cell].len() {
            let index = stations.members()[room.cell][at];
            let station = &mut stations[index];
            let retransmitted = retransmit(room, carrier, (index, station), air, output);
            station.report_cqi(slot, periodic, carrier, air.network_mut());
            let ready = station.connected() && station.downlink_sendable();
            if retransmitted || !ready || station.downlink.mac.harq.free().is_none() {
                continue;
            }
            let Some(mcs) = station.downlink_mcs(carrier, air.network_mut()) else {
                station.downlink.mac.stats.slots_without_mcs += 1;
                continue;
            };
            station.downlink.mcs = Some(mcs);
            let bits_per_prb = mcs.bits_per_prb(room.size, config.downlink_prb);
            self.candidates.push(station.downlink.mac.candidate(slot, index, 0, bits_per_prb));
        }
    }
}

/// PRBs of this size that would empty a station's buffer, at most those of the carrier.
fn demand(station: &Station, size: PrbSize, carrier: &Carrier) -> u16 {
    let Station { downlink, uplink, .. } = station;
    let needed = mac::block_bytes_needed(&downlink.bearer.rlc, &uplink.bearer.rlc, downlink.bearer.waiting());
    downlink.mcs.map_or(0, |mcs| mcs.fewest_prbs(size, needed, carrier.config.downlink_prb))
}

/// Ends the station's blocks that were decoded or have reached the maximum number of transmissions, and
/// retransmits one that failed. Returns whether one is retransmitted.
fn retransmit(
    room: &mut Room,
    carrier: &Carrier,
    (index, station): (usize, &mut Station),
    air: &mut Air,
    output: &mut VecDeque<Output>,
) -> bool {
    let link = &mut station.downlink;
    let mut retransmitted = false;
    if carrier.bundling {
        link.mac.harq.bundle(room.slot);
    }
    for process in link.mac.harq.due(room.slot) {
        if carrier.config.outer_loop {
            link.update_outer_loop(process);
        }
        let Some(block) = link.mac.harq.block(process) else { continue };
        let last = block.transmissions >= carrier.config.max_harq_tx;
        if block.acknowledged() || last && block.decoded {
            link.finish(process);
        } else if last {
            link.give_up(process, output);
        } else if !retransmitted && block.prbs_in(room.size) <= room.left && room.grants > 0 {
            // One block per station and slot: a single codeword.
            retransmitted = true;
            let prbs = room.take(block.prbs_in(room.size));
            air.send(Transmission { station: index, direction: Direction::Down, process, prbs });
        }
    }
    retransmitted
}

/// Sends a new block of `n_prb` PRBs to a station.
fn transmit(
    room: &mut Room,
    carrier: &Carrier,
    (index, station): (usize, &mut Station),
    n_prb: u16,
    air: &mut Air,
) {
    let prbs = room.take(u32::from(n_prb));
    let (Some(mcs), Some(process)) = (station.downlink.mcs, station.downlink.mac.harq.free()) else {
        return;
    };
    debug_assert_eq!(u32::from(n_prb), prbs.len(), "an allocation fits into the free PRBs");
    let bits = mcs.block_bits(room.size, n_prb);
    let storage = station.downlink.mac.pdu_storage();
    let pdu = station.downlink_sender(carrier.start(room.slot)).downlink_pdu(room.slot, bits / 8, storage);
    station.uplink.bearer.buffer.on_peer_block(Bytes(u64::from(bits / 8)));
    let link = &mut station.downlink;
    link.mac.on_scheduled(room.slot, bits);
    link.mac.start(process, pdu, mcs, room.size, n_prb);
    air.send(Transmission { station: index, direction: Direction::Down, process, prbs });
}
