//! The downlink of a cell in one slot: random access answers, then HARQ retransmissions that are due, then
//! new blocks (TS 36.213 §7).

use super::enb::Cell;
use super::station::{Station, measures_cqi};
use crate::air::Transmission;
use crate::duplex::Direction;
use crate::mac::pdu as mac;
use crate::mac::scheduler::{self, Budget, Policy};
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{Bytes, Duration, Instant, Rate};

/// The PRBs and assignments that a downlink slot has left.
pub(super) struct Room {
    /// Size of a PRB.
    pub size: PrbSize,
    free: PrbSet,
    /// Number of free PRBs, which is asked for every station.
    pub left: u32,
    /// Assignments on PDCCH.
    pub grants: usize,
}

impl Room {
    fn new(size: PrbSize, free: PrbSet, grants: usize) -> Self {
        Self { size, free, left: free.len(), grants }
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

impl Cell {
    /// Replaces the policy of the downlink scheduler.
    pub fn set_scheduler(&mut self, policy: Policy) {
        self.config.scheduler = policy;
    }
    /// Sets the factor of a station's priority in the downlink scheduler: 1 at the start, 0 or more.
    pub fn set_downlink_weight(&mut self, station: usize, weight: f64) {
        assert!(weight.is_finite() && weight >= 0.0, "a weight is 0 or more: {weight}");
        self.stations[station].downlink.mac.weight = weight;
    }
    /// The state of a station's downlink.
    pub fn downlink_state(&self, now: Instant, station: usize) -> DownlinkState {
        let slot = self.clock.at_or_after(now);
        let of = &self.stations[station];
        let arrived = of.downlink.bearer.buffer.head_arrived_at();
        let slot_s = self.clock.duration(SlotSpan(1)).as_secs_f64();
        DownlinkState {
            queued: Bytes(of.downlink_available()),
            head_wait: arrived.map_or(Duration::ZERO, |at| now.since(at)),
            mcs: of.downlink.mcs.map(Mcs::index),
            mean_rate: Rate((of.downlink.mac.served_bits(slot) / slot_s) as u64),
        }
    }

    pub(super) fn schedule_downlink(&mut self, slot: Slot, cell: usize) {
        let symbols = self.config.duplex.symbols(slot, Direction::Down);
        let Some(size) = self.config.rat.prb_size(Direction::Down, symbols) else { return };
        let n_prb = self.config.downlink_prb;
        let free = self.config.rat.pdsch_prbs(self.config.numerology, slot, n_prb);
        let mut room = Room::new(size, free, self.config.downlink_grants);
        self.answer_random_access(slot, cell, &mut room);
        self.candidates.clear();
        let periodic = measures_cqi(&self.config.duplex, self.config.cqi_period, slot);
        for at in 0..self.members[cell].len() {
            let index = self.members[cell][at];
            let retransmitted = self.retransmit_downlink(slot, index, &mut room);
            let station = &mut self.stations[index];
            station.report_cqi(slot, periodic, (&self.config, &self.adaptation), &mut self.network);
            let ready = station.connected() && station.downlink_sendable();
            if retransmitted || !ready || station.downlink.mac.harq.free().is_none() {
                continue;
            }
            let Some(mcs) = station.downlink_mcs((&self.config, &self.adaptation), &mut self.network) else {
                station.downlink.mac.stats.slots_without_mcs += 1;
                continue;
            };
            station.downlink.mcs = Some(mcs);
            let bits_per_prb = mcs.bits_per_prb(size, n_prb);
            self.candidates.push(station.downlink.mac.candidate(slot, index, 0, bits_per_prb));
        }
        let granularity = self.config.rat.rbg_size(n_prb);
        let budget = Budget { n_prb: room.left as u16, max_grants: room.grants, granularity };
        let policy = self.config.scheduler;
        scheduler::rank(slot, policy, &mut self.candidates, budget.max_grants);
        // Only those that can get a grant are asked for their demand.
        for at in 0..self.candidates.len().min(budget.max_grants) {
            self.candidates[at].wanted_prb = self.downlink_demand(self.candidates[at].station, size);
        }
        scheduler::distribute(policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let prbs = room.take(u32::from(n_prb));
            self.transmit_downlink(slot, size, index, (prbs, n_prb));
        }
    }

    /// PRBs of this size that would empty a station's buffer, at most those of the carrier.
    fn downlink_demand(&self, station: usize, size: PrbSize) -> u16 {
        let Station { downlink, uplink, .. } = &self.stations[station];
        let needed =
            mac::block_bytes_needed(&downlink.bearer.rlc, &uplink.bearer.rlc, downlink.bearer.waiting());
        downlink.mcs.map_or(0, |mcs| mcs.fewest_prbs(size, needed, self.config.downlink_prb))
    }

    /// Ends the station's blocks that were decoded or have reached the maximum number of transmissions, and
    /// retransmits one that failed. Returns whether one is retransmitted.
    fn retransmit_downlink(&mut self, slot: Slot, index: usize, room: &mut Room) -> bool {
        let link = &mut self.stations[index].downlink;
        let mut retransmitted = false;
        if self.bundling {
            link.mac.harq.bundle(slot);
        }
        for process in link.mac.harq.due(slot) {
            if self.config.outer_loop {
                link.update_outer_loop(process);
            }
            let Some(block) = link.mac.harq.block(process) else { continue };
            let last = block.transmissions >= self.config.max_harq_tx;
            if block.acknowledged() || last && block.decoded {
                link.finish(process);
            } else if last {
                link.give_up(process, &mut self.output);
            } else if !retransmitted && block.prbs_in(room.size) <= room.left && room.grants > 0 {
                // One block per station and slot: a single codeword.
                retransmitted = true;
                let prbs = room.take(block.prbs_in(room.size));
                self.transmissions.push(Transmission {
                    station: index,
                    direction: Direction::Down,
                    process,
                    prbs,
                });
            }
        }
        retransmitted
    }

    fn transmit_downlink(&mut self, slot: Slot, size: PrbSize, index: usize, (prbs, n_prb): (PrbSet, u16)) {
        let station = &mut self.stations[index];
        let (Some(mcs), Some(process)) = (station.downlink.mcs, station.downlink.mac.harq.free()) else {
            return;
        };
        debug_assert_eq!(u32::from(n_prb), prbs.len(), "an allocation fits into the free PRBs");
        let bits = mcs.block_bits(size, n_prb);
        let storage = station.downlink.mac.pdu_storage();
        let pdu = station.downlink_sender(self.clock.start(slot)).downlink_pdu(slot, bits / 8, storage);
        station.uplink.bearer.buffer.on_peer_block(Bytes(u64::from(bits / 8)));
        let link = &mut station.downlink;
        link.mac.on_scheduled(slot, bits);
        link.mac.start(process, pdu, mcs, size, n_prb);
        self.transmissions.push(Transmission { station: index, direction: Direction::Down, process, prbs });
    }
}
