//! The eNB's uplink scheduler: feedback of earlier blocks, scheduling requests, and the grants of PUSCH.
//!
//! A retransmission by synchronous HARQ whose PRBs are needed for a Msg3 or the PRACH is moved (TS 36.321
//! §5.4.2.1, adaptive), or waits one HARQ round trip.

use crate::air::Network;
use crate::cell::config::Carrier;
use crate::cell::random_access::{RandomAccess, resolve_by_grant};
use crate::cell::station::{Station, Stations};
use crate::mac::pdu as mac;
use crate::mac::scheduler::{self, Budget, Candidate, Policy};
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::{Output, Stream};
use std::collections::VecDeque;

/// PUSCH of a later slot in a served cell, as far as the slot `granted_in` grants it.
pub(in crate::cell) struct PuschSlot {
    pub granted_in: Slot,
    pub sent_at: Slot,
    pub cell: usize,
    /// The PRBs that random access and configured grants leave.
    pub band: PrbSet,
    /// Largest number of grants.
    pub max_grants: usize,
}

/// The uplink scheduler.
pub(in crate::cell) struct UplinkScheduling {
    /// Decide whether a scheduling request is detected.
    request_draws: Stream,
    /// Stations that can be scheduled in this slot, and those that are, with their number of PRBs.
    candidates: Vec<Candidate>,
    allocations: Vec<(usize, u16)>,
    /// Stations whose uplink retransmission cannot have its former PRBs.
    displaced: Vec<usize>,
}

impl UplinkScheduling {
    pub fn new(seed: u64) -> Self {
        Self {
            request_draws: Stream::new(seed, "cell0/scheduling-requests"),
            candidates: Vec::new(),
            allocations: Vec::new(),
            displaced: Vec::new(),
        }
    }
    /// A station sends a scheduling request, which the eNB detects or not.
    pub fn on_request(&mut self, slot: Slot, carrier: &Carrier, station: &mut Station) {
        let probability = carrier.config.access.sr_detection;
        if probability >= 1.0 || self.request_draws.chance(probability) {
            station.estimate.on_request(slot);
        }
    }

    /// Allocates the PRBs of a slot: first to retransmissions, then to new blocks. Returns the number of
    /// grants.
    pub fn schedule(
        &mut self,
        pusch: &PuschSlot,
        carrier: &Carrier,
        stations: &mut Stations,
        network: &mut Option<Network>,
    ) -> usize {
        self.candidates.clear();
        let (free, repeated) = match carrier.timing.uplink.process_in(pusch.sent_at) {
            Some(process) => (self.keep_synchronous(pusch, process, stations), 0),
            None => self.grant_retransmissions(pusch, stations),
        };
        let max_grants = pusch.max_grants - repeated;
        let budget = Budget { n_prb: free.len() as u16, max_grants, granularity: 1 };
        self.rank(pusch.granted_in, carrier, stations, network);
        let policy = carrier.config.uplink_scheduler;
        scheduler::distribute(policy, &mut self.candidates, budget, &mut self.allocations);
        self.grant(pusch, free, carrier, stations);
        repeated + self.allocations.len()
    }
    /// Synchronous HARQ: retransmissions keep their PRBs where possible, without a grant. Stations without a
    /// retransmission become candidates. Returns the PRBs that are left.
    fn keep_synchronous(&mut self, pusch: &PuschSlot, process: usize, stations: &mut Stations) -> PrbSet {
        let mut free = pusch.band;
        for &index in &stations.members()[pusch.cell] {
            let station = &stations[index];
            if let Some(block) = station.uplink.mac.harq.block(process) {
                // A failed block: a non-adaptive retransmission takes the same PRBs.
                if block.prbs.is_empty() || !block.prbs.without(pusch.band).is_empty() {
                    self.displaced.push(index);
                }
                free = free.without(block.prbs);
            } else if station.wants_grant(pusch.sent_at) {
                self.candidates.push(station.uplink.mac.contender(index));
            }
        }
        // Displaced retransmissions get other PRBs, or none if too few are free.
        for index in self.displaced.drain(..) {
            let Some(block) = stations[index].uplink.mac.harq.block_mut(process) else { continue };
            let n_prb = u32::from(block.n_prb);
            block.prbs = if free.len() >= n_prb { free.lowest(n_prb) } else { PrbSet::NONE };
            free = free.without(block.prbs);
        }
        free
    }
    /// Asynchronous HARQ: grants retransmit the failed blocks whose verdict is known, one per station and
    /// slot, in any PRBs. Other stations become candidates. Returns the PRBs that are left, and the number of
    /// grants.
    fn grant_retransmissions(&mut self, pusch: &PuschSlot, stations: &mut Stations) -> (PrbSet, usize) {
        let (mut free, mut granted) = (pusch.band, 0);
        for at in 0..stations.members()[pusch.cell].len() {
            let index = stations.members()[pusch.cell][at];
            let station = &mut stations[index];
            let msg3 = station.sends_msg3(pusch.sent_at);
            let failed = station.uplink.mac.harq.due(pusch.granted_in).next().filter(|_| !msg3);
            let block =
                failed.and_then(|process| Some((process, station.uplink.mac.harq.block(process)?.n_prb)));
            match block {
                Some((process, n_prb)) if granted < pusch.max_grants && u32::from(n_prb) <= free.len() => {
                    let prbs = free.lowest(u32::from(n_prb));
                    free = free.without(prbs);
                    granted += 1;
                    station.grant_again(pusch.sent_at, process, prbs);
                }
                _ if station.wants_grant(pusch.sent_at) && station.free_uplink_process().is_some() => {
                    self.candidates.push(station.uplink.mac.contender(index));
                }
                _ => {}
            }
        }
        (free, granted)
    }
    /// Sends the grants of the allocations.
    fn grant(&mut self, pusch: &PuschSlot, mut free: PrbSet, carrier: &Carrier, stations: &mut Stations) {
        let turn = carrier.timing.uplink.process_in(pusch.sent_at);
        let mut left = free.len() as u16;
        for (index, n_prb) in self.allocations.iter().copied() {
            let station = &mut stations[index];
            let n_prb = carrier.config.rat.grantable(n_prb).min(left);
            let prbs = free.lowest(u32::from(n_prb));
            let Some(mcs) = station.uplink.mcs else { continue };
            let Some(process) = turn.or_else(|| station.free_uplink_process()) else { continue };
            free = free.without(prbs);
            left -= n_prb;
            let bytes = mcs.block_bits(carrier.pusch_size, n_prb) / 8;
            station.estimate.on_grant(pusch.sent_at, bytes);
            station.uplink.mac.on_scheduled(pusch.granted_in, 8 * bytes);
            station.count_grant(&carrier.config.rat, n_prb);
            station.grant(pusch.sent_at, process, mcs, (prbs, n_prb));
            resolve_by_grant(pusch.granted_in, station);
        }
    }
    /// Ranks the candidates, computes the PRBs that each needs, and removes those without a usable MCS.
    fn rank(
        &mut self,
        slot: Slot,
        carrier: &Carrier,
        stations: &mut Stations,
        network: &mut Option<Network>,
    ) {
        let (policy, grants) = (carrier.config.uplink_scheduler, carrier.config.uplink_grants);
        // Round robin does not depend on the channel, so only the stations that can get a grant are
        // evaluated. Stated channels are always evaluated, since each evaluation advances their draws.
        let rank_first = policy == Policy::RoundRobin && network.is_some();
        if rank_first {
            scheduler::rank(slot, policy, &mut self.candidates, usize::MAX);
        }
        let most = if rank_first { grants } else { self.candidates.len() };
        let mut kept = 0;
        for at in 0..self.candidates.len() {
            if kept == most {
                break;
            }
            let index = self.candidates[at].station;
            if let Some(candidate) = candidate(slot, carrier, (index, &mut stations[index]), network) {
                self.candidates[kept] = candidate;
                kept += 1;
            }
        }
        self.candidates.truncate(kept);
        if !rank_first {
            scheduler::rank(slot, policy, &mut self.candidates, grants);
        }
    }
}

/// A station as a candidate with its MCS and demand; none if its SINR is too low for any MCS.
fn candidate(
    slot: Slot,
    carrier: &Carrier,
    (index, station): (usize, &mut Station),
    network: &mut Option<Network>,
) -> Option<Candidate> {
    let (size, n_prb) = (carrier.pusch_size, carrier.config.uplink_prb);
    let Some((mcs, max_prb)) = station.uplink_mcs(slot, carrier, network) else {
        station.uplink.mac.stats.slots_without_mcs += 1;
        return None;
    };
    station.uplink.mcs = Some(mcs);
    let nr_headers = station.uplink.bearer.rlc.nr_headers();
    let needed = mac::block_bytes_for(nr_headers, u64::from(station.estimate.bytes()), 1);
    let unlimited = mcs.fewest_prbs(size, needed, n_prb);
    let wanted_prb = unlimited.min(max_prb);
    station.uplink_demand = (wanted_prb, wanted_prb < unlimited);
    Some(station.uplink.mac.candidate(slot, index, wanted_prb, mcs.bits_per_prb(size, n_prb)))
}

/// The eNB processes the uplink blocks whose verdict is due, and scheduling requests.
pub(in crate::cell) fn process_feedback(
    slot: Slot,
    carrier: &Carrier,
    stations: &mut Stations,
    random_access: &mut RandomAccess,
    output: &mut VecDeque<Output>,
) {
    let access = &carrier.config.access;
    for (index, station) in stations.iter_mut().enumerate() {
        station.estimate.process_request(slot, carrier.timing.request_answer, access.sr_grant);
        for process in station.uplink.mac.harq.due(slot) {
            if judge(process, carrier, station, output) {
                random_access.on_msg3_decoded(index, station, process, access.sr_grant);
            }
        }
        // After the reports of these blocks, which set the estimate.
        if let Some(grants) = &access.proactive {
            station.grant_unasked(slot, grants);
        }
    }
}
/// Ends an uplink block that was decoded or has reached the maximum number of transmissions. Returns whether
/// it is a decoded Msg3.
fn judge(process: usize, carrier: &Carrier, station: &mut Station, output: &mut VecDeque<Output>) -> bool {
    let (config, sr_grant) = (&carrier.config, carrier.config.access.sr_grant);
    if config.outer_loop {
        station.uplink.update_outer_loop(process);
    }
    let Some(block) = station.uplink.mac.harq.block(process) else { return false };
    let (first_sent_at, is_msg3) = (block.first_sent_at, block.is_msg3());
    let max_tx = if is_msg3 { config.random_access.max_msg3_tx } else { config.max_harq_tx };
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
        return is_msg3;
    }
    if block.transmissions >= max_tx {
        station.estimate.on_lost(first_sent_at, sr_grant);
        station.uplink.give_up(process, output);
    }
    false
}
