//! The cell's uplink: what the eNB takes up, what it grants four TTIs ahead (TS 36.213 §8), what stations send.

use super::enb::{Cell, GRANT_DELAY};
use super::station::{Grant, Station};
use crate::air::Sent;
use crate::lte::tbs;
use crate::lte::tbs::{bits_per_prb, prb_for};
use crate::mac::harq::{self, Block};
use crate::mac::pdu as mac;
use crate::mac::random_access::Cause;
use crate::mac::scheduler::{self, Budget, Candidate, Policy};
use crate::mac::scheduling_request::Request;
use crate::prb::PrbSet;
use crate::slot::Tti;

impl Cell {
    /// The eNB learns how uplink blocks of four TTIs ago went, and which scheduling requests came.
    pub(super) fn take_up_uplink(&mut self, tti: Tti) {
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

    /// The uplink's resource blocks without those of PUCCH, which lies at both edges of the band.
    pub(super) fn pusch(&self) -> PrbSet {
        let (pucch, prb) = (u32::from(self.config.pucch_prb), u32::from(self.config.uplink_prb));
        PrbSet::range(pucch / 2, prb - pucch)
    }

    /// Allocates a cell's PUSCH of `tti + 4`: random access has what it needs, non-adaptive retransmissions keep
    /// their place if they can, grants share the rest.
    pub(super) fn schedule_uplink(&mut self, tti: Tti, cell: usize) {
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
            self.candidates.push(station.uplink.candidate(tti, index, 0, 0.0));
        }
        self.move_repetitions(process, &mut free);
        let budget =
            Budget { n_prb: free.len() as u8, max_grants: self.config.uplink_grants, granularity: 1 };
        let policy = self.config.uplink_scheduler;
        self.rank_uplink(tti, policy);
        scheduler::hand_out(policy, &mut self.candidates, budget, &mut self.allocations);
        for at in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[at];
            let station = &mut self.stations[index];
            let blocks = free.lowest(u32::from(crate::prb::precodable(n_prb)));
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

    /// Puts the candidates in the order of their rank, with what each wants, and leaves out those that cannot send.
    fn rank_uplink(&mut self, tti: Tti, policy: Policy) {
        // Turns do not ask how good a channel is: only those that get one have to be looked at. A stated channel is
        // looked at always, since it goes on by draws.
        let by_turns = policy == Policy::RoundRobin && self.network.is_some();
        if by_turns {
            scheduler::rank(tti, policy, &mut self.candidates);
        }
        let most = if by_turns { self.config.uplink_grants } else { self.candidates.len() };
        let mut kept = 0;
        for at in 0..self.candidates.len() {
            if kept == most {
                break;
            }
            if let Some(candidate) = self.uplink_candidate(tti, self.candidates[at].station) {
                self.candidates[kept] = candidate;
                kept += 1;
            }
        }
        self.candidates.truncate(kept);
        if !by_turns {
            scheduler::rank(tti, policy, &mut self.candidates);
        }
    }
    /// What a station would be granted; none if its SINR is too low for any MCS.
    fn uplink_candidate(&mut self, tti: Tti, index: usize) -> Option<Candidate> {
        let station = &mut self.stations[index];
        let (mcs, max_prb) = station.uplink_mcs(tti, &self.config, &mut self.network)?;
        station.uplink.mcs = Some(mcs);
        let needed = mac::block_needed(u64::from(station.estimate.bytes()), 1);
        let unlimited = prb_for(mcs.i_tbs, needed, self.config.uplink_prb);
        let wanted_prb = unlimited.min(max_prb);
        station.wanted = (wanted_prb, wanted_prb < unlimited);
        let bits_per_prb = bits_per_prb(mcs.i_tbs, self.config.uplink_prb);
        Some(station.uplink.candidate(tti, index, wanted_prb, bits_per_prb))
    }

    /// The station sends the block of this TTI: a retransmission, a granted new one, or a scheduling request.
    pub(super) fn station_transmits(&mut self, tti: Tti, index: usize) {
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
        let Some(grant) = station.grants.pop_front_if(|grant| grant.sent_at == tti) else {
            if station.procedure.is_some() {
                return;
            }
            let Station { access: requests, uplink, downlink, .. } = station;
            match requests.scheduling_request(tti, access, || uplink.available(downlink) > 0) {
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
        let has_data = station.uplink_available() > 0;
        let due = station.access.bsr_due(tti, || has_data);
        let storage = station.uplink.storage();
        station.account(tti.starts_at());
        let pdu = station.uplink_sender().uplink_pdu(tti, bits / 8, due, headroom, storage);
        if let Some(report) = pdu.headroom {
            station.on_headroom_sent(tti, report);
        }
        station.uplink.collect_dropped(&mut self.output);
        let emptied = station.uplink_available() == 0;
        station.access.on_block(tti, access, pdu.bsr.is_some(), emptied);
        station.uplink.start(process, Block::new(pdu, mcs, bits, n_prb));
        self.sent.push(Sent { station: index, downlink: false, process, blocks });
    }
}
