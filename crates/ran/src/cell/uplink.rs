//! The uplink of a cell in one slot: the eNB processes HARQ feedback and scheduling requests, grants PUSCH of
//! a later slot (TS 36.213 §8), and the stations transmit.

use super::enb::Cell;
use super::random_access::MSG3_PROCESS;
use super::station::{Grant, Station};
use crate::air::Transmission;
use crate::duplex::Direction;
use crate::mac::pdu as mac;
use crate::mac::random_access::Cause;
use crate::mac::scheduler::{self, Budget, Candidate, Policy};
use crate::mac::scheduling_request::SrOutcome;
use crate::mcs::PrbSize;
use crate::prb::PrbSet;
use crate::slot::{Slot, SlotSpan};
use paceline_net::tdd::SYMBOLS_PER_SLOT;

impl Cell {
    /// The eNB processes the uplink blocks whose verdict is due, and scheduling requests.
    pub(super) fn process_uplink_feedback(&mut self, slot: Slot) {
        let sr_grant = self.config.access.sr_grant;
        for index in 0..self.stations.len() {
            let station = &mut self.stations[index];
            station.estimate.process_request(slot, self.timing.request_answer, sr_grant);
            for process in station.uplink.mac.harq.due(slot) {
                self.judge_uplink_block(index, process);
            }
            // After the reports of these blocks, which set the estimate.
            if let Some(grants) = &self.config.access.proactive {
                self.stations[index].grant_unasked(slot, grants);
            }
        }
    }
    /// Ends an uplink block that was decoded or has reached the maximum number of transmissions.
    fn judge_uplink_block(&mut self, index: usize, process: usize) {
        let sr_grant = self.config.access.sr_grant;
        let station = &mut self.stations[index];
        if self.config.outer_loop {
            station.uplink.update_outer_loop(process);
        }
        let Some(block) = station.uplink.mac.harq.block(process) else { return };
        let (first_sent_at, is_msg3) = (block.first_sent_at, block.is_msg3());
        let max_tx = if is_msg3 { self.config.random_access.max_msg3_tx } else { self.config.max_harq_tx };
        if block.decoded {
            let report = block.pdu.bsr;
            if let Some(headroom) = block.pdu.headroom {
                station.on_headroom(headroom, first_sent_at);
            }
            // Msg3 carries no data: without a report it says nothing of the buffer.
            if report.is_some() || !is_msg3 {
                station.estimate.on_decoded(first_sent_at, report, sr_grant);
            }
            station.uplink.finish(process);
            if is_msg3 {
                self.on_msg3_decoded(index, process);
            }
        } else if block.transmissions >= max_tx {
            station.estimate.on_lost(first_sent_at, sr_grant);
            station.uplink.give_up(process, &mut self.output);
        }
    }

    /// Size of a PRB of PUSCH.
    pub(super) fn pusch_size(&self) -> PrbSize {
        let size = self.config.rat.prb_size(Direction::Up, SYMBOLS_PER_SLOT);
        size.expect("reference signals and overhead leave resource elements in a slot")
    }

    /// Allocates the PRBs of a cell's PUSCH in `sent_at`: first to random access and configured grants, then
    /// to retransmissions, then to new blocks. Returns the number of grants, at most `max_grants`.
    pub(super) fn schedule_uplink(
        &mut self,
        slot: Slot,
        sent_at: Slot,
        cell: usize,
        max_grants: usize,
    ) -> usize {
        let band = self.unreserved_prbs(sent_at, cell);
        let mut budget = Budget { n_prb: 0, max_grants, granularity: 1 };
        self.candidates.clear();
        let free = match self.timing.uplink.process_in(sent_at) {
            Some(process) => self.keep_synchronous(sent_at, cell, process, band),
            None => self.grant_retransmissions(slot, sent_at, cell, band, &mut budget),
        };
        budget.n_prb = free.len() as u16;
        let retransmissions = max_grants - budget.max_grants;
        self.grant_uplink(slot, sent_at, free, budget);
        retransmissions + self.allocations.len()
    }
    /// Synchronous HARQ: retransmissions keep their PRBs where possible, without a grant. Stations without a
    /// retransmission become candidates. Returns the PRBs that are left.
    fn keep_synchronous(&mut self, sent_at: Slot, cell: usize, process: usize, band: PrbSet) -> PrbSet {
        let mut free = band;
        for &index in &self.members[cell] {
            let station = &self.stations[index];
            if let Some(block) = station.uplink.mac.harq.block(process) {
                // A failed block: a non-adaptive retransmission takes the same PRBs.
                if block.prbs.is_empty() || !block.prbs.without(band).is_empty() {
                    self.displaced.push(index);
                }
                free = free.without(block.prbs);
            } else if station.wants_grant(sent_at) {
                self.candidates.push(station.uplink.mac.contender(index));
            }
        }
        self.move_retransmissions(process, &mut free);
        free
    }
    /// Asynchronous HARQ: grants retransmit the failed blocks whose verdict is known, one per station and
    /// slot, in any PRBs. Other stations become candidates. Returns the PRBs that are left.
    fn grant_retransmissions(
        &mut self,
        slot: Slot,
        sent_at: Slot,
        cell: usize,
        band: PrbSet,
        budget: &mut Budget,
    ) -> PrbSet {
        let mut free = band;
        for at in 0..self.members[cell].len() {
            let index = self.members[cell][at];
            let station = &mut self.stations[index];
            let msg3 = station.procedure.as_ref().is_some_and(|procedure| procedure.msg3(sent_at).is_some());
            let failed = station.uplink.mac.harq.due(slot).next().filter(|_| !msg3);
            let block =
                failed.and_then(|process| Some((process, station.uplink.mac.harq.block(process)?.n_prb)));
            match block {
                Some((process, n_prb)) if budget.max_grants > 0 && u32::from(n_prb) <= free.len() => {
                    let prbs = free.lowest(u32::from(n_prb));
                    free = free.without(prbs);
                    budget.max_grants -= 1;
                    station.grant_again(sent_at, process, prbs);
                }
                _ if station.wants_grant(sent_at) && station.free_uplink_process().is_some() => {
                    self.candidates.push(station.uplink.mac.contender(index));
                }
                _ => {}
            }
        }
        free
    }

    /// Ranks the candidates, distributes the free PRBs among them and sends the grants.
    fn grant_uplink(&mut self, slot: Slot, sent_at: Slot, mut free: PrbSet, budget: Budget) {
        let (turn, size) = (self.timing.uplink.process_in(sent_at), self.pusch_size());
        let (policy, mut left) = (self.config.uplink_scheduler, budget.n_prb);
        self.rank_uplink(slot, policy);
        scheduler::distribute(policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let station = &mut self.stations[index];
            let n_prb = self.config.rat.grantable(n_prb).min(left);
            let prbs = free.lowest(u32::from(n_prb));
            let Some(mcs) = station.uplink.mcs else { continue };
            let Some(process) = turn.or_else(|| station.free_uplink_process()) else { continue };
            free = free.without(prbs);
            left -= n_prb;
            let bytes = mcs.block_bits(size, n_prb) / 8;
            station.estimate.on_grant(sent_at, bytes);
            station.uplink.mac.on_scheduled(slot, 8 * bytes);
            station.count_grant(&self.config.rat, n_prb);
            station.grant(sent_at, process, mcs, (prbs, n_prb));
            self.resolve_by_grant(slot, index);
        }
    }

    /// Ranks the candidates, computes the PRBs that each needs, and removes those without a usable MCS.
    fn rank_uplink(&mut self, slot: Slot, policy: Policy) {
        // Round robin does not depend on the channel, so only the stations that can get a grant are
        // evaluated. Stated channels are always evaluated, since each evaluation advances their draws.
        let rank_first = policy == Policy::RoundRobin && self.network.is_some();
        if rank_first {
            scheduler::rank(slot, policy, &mut self.candidates, usize::MAX);
        }
        let most = if rank_first { self.config.uplink_grants } else { self.candidates.len() };
        let mut kept = 0;
        for at in 0..self.candidates.len() {
            if kept == most {
                break;
            }
            if let Some(candidate) = self.uplink_candidate(slot, self.candidates[at].station) {
                self.candidates[kept] = candidate;
                kept += 1;
            }
        }
        self.candidates.truncate(kept);
        if !rank_first {
            scheduler::rank(slot, policy, &mut self.candidates, self.config.uplink_grants);
        }
    }
    /// A station as a candidate with its MCS and demand; none if its SINR is too low for any MCS.
    fn uplink_candidate(&mut self, slot: Slot, index: usize) -> Option<Candidate> {
        let size = self.pusch_size();
        let station = &mut self.stations[index];
        let Some((mcs, max_prb)) =
            station.uplink_mcs(slot, (&self.config, &self.adaptation), &mut self.network)
        else {
            station.uplink.mac.stats.slots_without_mcs += 1;
            return None;
        };
        station.uplink.mcs = Some(mcs);
        let needed = mac::block_bytes_for(
            station.uplink.bearer.rlc.nr_headers(),
            u64::from(station.estimate.bytes()),
            1,
        );
        let unlimited = mcs.fewest_prbs(size, needed, self.config.uplink_prb);
        let wanted_prb = unlimited.min(max_prb);
        station.uplink_demand = (wanted_prb, wanted_prb < unlimited);
        let bits_per_prb = mcs.bits_per_prb(size, self.config.uplink_prb);
        Some(station.uplink.mac.candidate(slot, index, wanted_prb, bits_per_prb))
    }

    /// The uplink of all stations in this slot: Msg3, a retransmission, a granted new block, or a scheduling
    /// request.
    pub(super) fn stations_transmit(&mut self, slot: Slot) {
        let turn = self.timing.uplink.process_in(slot);
        for index in 0..self.stations.len() {
            match turn {
                Some(process) => self.transmit_in_turn(slot, index, process),
                None => self.transmit_by_grant(slot, index),
            }
        }
    }
    /// Synchronous HARQ: `process` is the one of this slot.
    fn transmit_in_turn(&mut self, slot: Slot, index: usize, process: usize) {
        if self.stations[index].procedure.is_some() {
            self.start_msg3(slot, index);
        }
        let station = &mut self.stations[index];
        if let Some(block) = station.uplink.mac.harq.block(process) {
            let prbs = block.prbs;
            if !prbs.is_empty() {
                self.transmit_again(slot, index, process, prbs); // else no free PRBs for the retransmission
            }
            return;
        }
        if !station.connected() {
            return;
        }
        match station.grants.pop_front_if(|grant| grant.sent_at == slot) {
            Some(grant) => self.transmit_uplink(slot, index, &grant),
            None if station.procedure.is_none() => self.request_grant(slot, index),
            None => {}
        }
    }
    /// Asynchronous HARQ: the grant of this slot states the process.
    fn transmit_by_grant(&mut self, slot: Slot, index: usize) {
        let grant = self.stations[index].grants.pop_front_if(|grant| grant.sent_at == slot);
        let msg3 = self.stations[index].procedure.is_some() && self.start_msg3(slot, index);
        let sr_grant = self.config.access.sr_grant;
        let station = &mut self.stations[index];
        if msg3 {
            // Msg3 has the slot; a grant for it is lost.
            match grant {
                Some(grant) if grant.new_data => station.estimate.on_lost(slot, sr_grant),
                Some(grant) if station.uplink.mac.harq.block(grant.process).is_some() => {
                    station.uplink.mac.harq.miss_retransmission(grant.process, slot);
                }
                Some(_) => {}
                None => {}
            }
            let Some(prbs) = station.uplink.mac.harq.block(MSG3_PROCESS).map(|block| block.prbs) else {
                return;
            };
            self.transmit_again(slot, index, MSG3_PROCESS, prbs);
            return;
        }
        let busy = |grant: &Grant| station.uplink.mac.harq.block(grant.process).is_some();
        match grant {
            Some(grant) if !grant.new_data && busy(&grant) => {
                self.transmit_again(slot, index, grant.process, grant.prbs);
            }
            Some(grant) if !grant.new_data => {}
            _ if !station.connected() => {}
            // Msg3 has taken the process since the grant.
            Some(grant) if busy(&grant) => station.estimate.on_lost(slot, sr_grant),
            Some(grant) => self.transmit_uplink(slot, index, &grant),
            None if station.procedure.is_some() => {}
            None if self.configured.has(index) => self.transmit_configured(slot, index),
            None => self.request_grant(slot, index),
        }
    }
    /// Transmits data in the station's occasion of a configured grant, without a scheduling request.
    fn transmit_configured(&mut self, slot: Slot, index: usize) {
        let station = &self.stations[index];
        let Some(occasion) = self.configured.occasion(index, slot) else { return };
        let (Some(mcs), Some(process)) = (self.configured.mcs, station.free_uplink_process()) else { return };
        if station.uplink_available() > 0 {
            let prbs = occasion.prbs;
            let n_prb = prbs.len() as u16;
            let grant = Grant { sent_at: slot, process, new_data: true, mcs, prbs, n_prb, tpc_db: 0.0 };
            self.transmit_uplink(slot, index, &grant);
        }
    }
    /// Transmits the block of a process that started before, or Msg3.
    fn transmit_again(&mut self, slot: Slot, index: usize, process: usize, prbs: PrbSet) {
        let station = &mut self.stations[index];
        if let Some(procedure) = station.procedure.as_mut().filter(|p| p.msg3_in(process)) {
            procedure.on_msg3(slot, process, self.config.random_access.contention_timer);
        }
        self.transmissions.push(Transmission { station: index, direction: Direction::Up, process, prbs });
    }

    fn request_grant(&mut self, slot: Slot, index: usize) {
        let access = &self.config.access;
        let station = &mut self.stations[index];
        let Station { access: requests, uplink, downlink, .. } = station;
        match requests.scheduling_request(slot, access, || uplink.bearer.available(&downlink.bearer) > 0) {
            SrOutcome::Sent => {
                if self.responder.detects_request(access.sr_detection) {
                    station.estimate.on_request(slot);
                }
                let at = self.clock.start(slot);
                self.watched.iter_mut().for_each(|watched| watched.requested(at, index));
            }
            SrOutcome::None => {}
            SrOutcome::Failed => {
                self.start_random_access(index, Cause::SchedulingRequest, slot + SlotSpan(1))
            }
        }
    }

    fn transmit_uplink(&mut self, slot: Slot, index: usize, grant: &Grant) {
        let (now, size) = (self.clock.start(slot), self.pusch_size());
        let station = &mut self.stations[index];
        let headroom = station.apply_tpc(slot, grant, &self.network);
        let Grant { process, mcs, prbs, n_prb, .. } = *grant;
        let bits = mcs.block_bits(size, n_prb);
        let Station { access, uplink, downlink, .. } = station;
        let due = access.bsr_due(slot, || uplink.bearer.available(&downlink.bearer) > 0);
        let storage = station.uplink.mac.pdu_storage();
        station.count_grant_wait(now);
        let pdu = station.uplink_sender(now).uplink_pdu(slot, bits / 8, due, headroom, storage);
        if let Some(report) = pdu.headroom {
            station.on_headroom_sent(slot, report);
        }
        station.uplink.collect_dropped(&mut self.output);
        let Station { access, uplink, downlink, .. } = station;
        let emptied = || uplink.bearer.available(&downlink.bearer) == 0;
        access.on_block(slot, now, &self.config.access, pdu.bsr.is_some(), emptied);
        station.uplink.mac.start(process, pdu, mcs, size, n_prb);
        self.transmissions.push(Transmission { station: index, direction: Direction::Up, process, prbs });
    }
}
