//! Random access as the eNB sees it, and its place in a TTI.
//!
//! Preambles of an occasion are answered from the third TTI after it on, one response PDU per TTI and cell (the
//! oldest occasion first), which takes an assignment, resource blocks and the blocks of the Msg3s that it grants.
//! Msg3 is a block of the station's uplink process; its verdict comes with those of data. A C-RNTI in it is answered
//! by the next grant, a request for a connection by Msg4, a block of the downlink with HARQ. A repetition whose
//! resource blocks a Msg3 or the PRACH takes is moved (TS 36.321 §5.4.2.1, adaptive), or waits eight TTIs.

use super::enb::{Cell, GRANT_DELAY};
use super::responder::{Heard, Responder, Response};
use crate::air::Sent;
use crate::decibel::to_db;
use crate::lte::block_errors;
use crate::lte::mcs::{DOWNLINK, Mcs, UPLINK};
use crate::lte::tbs::prb_for;
use crate::lte::{bsr, tbs};
use crate::mac::harq::{self, Block};
use crate::mac::pdu as mac;
use crate::mac::random_access::{
    Cause, Expiry, MSG3_DELAY, Msg3, PRACH_BLOCKS, Procedure, WINDOW_STARTS, detection, is_occasion,
};
use crate::prb::{PrbSet, group_size};
use crate::slot::Tti;

/// In place of a HARQ process: a response, which has none.
const RESPONSE: usize = usize::MAX;
/// A response with its sub-header (TS 36.321 §6.1.5), and the sub-header with the backoff.
const RESPONSE_BYTES: u64 = 7;
const BACKOFF_BYTES: u64 = 1;
/// The least Msg3: 56 bits (TS 36.321 §5.1.4), on at most three resource blocks.
const MSG3_BYTES: u64 = 7;
const MSG3_BLOCKS: u8 = 3;
/// C-RNTI control element with its sub-header.
const C_RNTI: u32 = 3;
/// Short BSR with its sub-header.
const BSR: u32 = 2;
/// Msg4: contention resolution identity and RRC's answer, about.
const MSG4_BYTES: u64 = 40;
/// TTIs from Msg4 until the station acts on it: those of the downlink's feedback.
const MSG4_PROCESSING: u64 = 4;

/// The most robust scheme that carries `bytes` on at most `max_prb` blocks, and the blocks it takes.
fn robust(table: &'static [Mcs], bytes: u64, max_prb: u8) -> (&'static Mcs, u8) {
    let fits = |mcs: &&Mcs| u64::from(tbs::transport_block_bits(mcs.i_tbs, max_prb) / 8) >= bytes;
    let mcs = table.iter().find(fits).unwrap_or(&table[table.len() - 1]);
    (mcs, prb_for(mcs.i_tbs, bytes, max_prb))
}

impl Cell {
    /// A station begins to access at random, with a preamble no earlier than `at`.
    pub(super) fn start_random_access(&mut self, index: usize, cause: Cause, at: Tti) {
        let station = &mut self.stations[index];
        station.access.stats.random_accesses += 1;
        station.procedure = Some(Box::new(Procedure::new(cause, at)));
        station.reset_power();
        if !self.responder.active.contains(&index) {
            self.responder.active.push(index);
        }
    }
    /// A station's radio link has failed.
    pub(super) fn fail_link(&mut self, tti: Tti, index: usize) {
        self.stations[index].disconnect(tti, &mut self.output);
        let at = tti + self.config.random_access.cell_selection;
        self.start_random_access(index, Cause::Reestablishment, at);
    }

    /// Timers of random access expire, and procedures that are over give service.
    pub(super) fn step_random_access(&mut self, tti: Tti) {
        if self.responder.active.is_empty() && self.responder.granted.is_empty() {
            return;
        }
        let config = self.config.random_access;
        let window = WINDOW_STARTS + config.response_window;
        self.responder.heard.retain(|heard| tti < heard.occasion + window);
        self.responder.granted.retain(|(sent_at, ..)| *sent_at >= tti + GRANT_DELAY);
        for at in 0..self.responder.active.len() {
            let index = self.responder.active[at];
            let station = &mut self.stations[index];
            let Some(procedure) = &mut station.procedure else { continue };
            let cause = procedure.cause;
            if procedure.complete(tti) {
                station.complete(tti, cause, &mut self.output);
            } else if procedure.expire(tti, &config, &mut self.responder.draws) == Expiry::Problem {
                station.access.stats.access_failures += 1;
                if cause == Cause::SchedulingRequest {
                    station.uplink.stats.radio_link_failures += 1;
                    self.fail_link(tti, index);
                }
            }
        }
        let Self { responder, stations, .. } = self;
        responder.active.retain(|index| stations[*index].procedure.is_some());
    }

    /// Uplink blocks of a cell that are not the scheduler's: those of the PRACH and of Msg3s.
    pub(super) fn random_access_blocks(&self, sent_at: Tti, cell: usize) -> PrbSet {
        let of_msg3 = |(at, of, _): &&(Tti, usize, PrbSet)| (*at, *of) == (sent_at, cell);
        let msg3 = self.responder.granted.iter().filter(of_msg3);
        msg3.fold(self.prach(sent_at), |taken, (_, _, blocks)| taken.with(*blocks))
    }
    fn prach(&self, tti: Tti) -> PrbSet {
        let config = &self.config.random_access;
        if !config.initial || !is_occasion(config.prach_index, tti) {
            return PrbSet::NONE;
        }
        self.pusch().lowest(PRACH_BLOCKS)
    }

    /// Finds other blocks for the repetitions of these stations, as far as there are any.
    pub(super) fn move_repetitions(&mut self, process: usize, free: &mut PrbSet) {
        for index in self.displaced.drain(..) {
            let Some(block) = self.stations[index].uplink.harq.block(process) else { continue };
            let n_prb = u32::from(block.n_prb);
            block.blocks = if free.len() >= n_prb { free.lowest(n_prb) } else { PrbSet::NONE };
            *free = free.without(block.blocks);
        }
    }

    /// The preambles of an occasion.
    pub(super) fn send_preambles(&mut self, tti: Tti) {
        let config = self.config.random_access;
        if self.responder.active.is_empty() || !is_occasion(config.prach_index, tti) {
            return;
        }
        let Responder { active, draws, heard, .. } = &mut self.responder;
        // Cell, preamble, station, and whether it would be detected alone.
        let mut sent: Vec<(usize, u64, usize, bool)> = Vec::new();
        for &index in active.iter() {
            let station = &mut self.stations[index];
            let Some(procedure) = &mut station.procedure else { continue };
            let Some((preamble, transmission)) = procedure.preamble(tti, config.preambles, draws) else {
                continue;
            };
            station.access.stats.preambles += 1;
            sent.push((station.cell, preamble, index, draws.chance(detection(transmission))));
        }
        sent.sort_unstable();
        for same in sent.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let stations: Vec<usize> = same.iter().map(|(_, _, index, _)| *index).collect();
            if stations.len() > 1 {
                stations.iter().for_each(|index| self.stations[*index].access.stats.collisions += 1);
            }
            if same.iter().any(|(.., detected)| *detected) {
                heard.push_back(Heard { occasion: tti, cell: same[0].0, stations });
            }
        }
    }

    /// Msg4s and a response PDU of this TTI, before other downlink data.
    pub(super) fn respond(&mut self, tti: Tti, cell: usize, free: &mut PrbSet, max_grants: &mut usize) {
        if self.responder.active.is_empty() {
            return;
        }
        for at in (0..self.responder.asked.len()).rev() {
            let index = self.responder.asked[at];
            if self.stations[index].cell == cell && self.send_msg4(index, free, max_grants) {
                self.responder.asked.remove(at);
            }
        }
        let due = |heard: &&Heard| heard.cell == cell && tti >= heard.occasion + WINDOW_STARTS;
        let oldest = self.responder.heard.iter().find(due).map(|heard| heard.occasion);
        if let Some(occasion) = oldest.filter(|_| *max_grants > 0) {
            self.send_response(tti, cell, occasion, free, max_grants);
        }
    }

    fn send_msg4(&mut self, index: usize, free: &mut PrbSet, max_grants: &mut usize) -> bool {
        let station = &mut self.stations[index];
        let Some(procedure) = station.procedure.as_mut().filter(|procedure| procedure.contending()) else {
            return true; // the timer came first
        };
        let (mcs, n_prb) = robust(&DOWNLINK, MSG4_BYTES, self.config.downlink_prb);
        let Some(process) = station.downlink.harq.free() else { return false };
        if *max_grants == 0 || free.len() < u32::from(n_prb) {
            return false;
        }
        let blocks = free.lowest(u32::from(n_prb));
        *free = free.without(blocks);
        *max_grants -= 1;
        procedure.msg4 = Some(process);
        let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
        let block = Block::signalling(mac::Pdu::default(), mcs, bits, blocks);
        station.downlink.start(process, block);
        self.sent.push(Sent { station: index, downlink: true, process, blocks });
        true
    }

    fn send_response(
        &mut self,
        tti: Tti,
        cell: usize,
        occasion: Tti,
        free: &mut PrbSet,
        max_grants: &mut usize,
    ) {
        let group = u32::from(group_size(self.config.downlink_prb));
        let mut places = self.msg3_places(tti + MSG3_DELAY, cell);
        let (_, msg3_prb) = self.msg3_shape();
        let mut answered: Vec<(PrbSet, Vec<usize>)> = Vec::new();
        let mut taken = 0;
        while answered.len() < self.config.random_access.responses {
            let of_occasion = |heard: &Heard| heard.cell == cell && heard.occasion == occasion;
            let bytes = BACKOFF_BYTES + RESPONSE_BYTES * (answered.len() as u64 + 1);
            let (mcs, n_prb) = robust(&DOWNLINK, bytes, self.config.downlink_prb);
            let in_groups = u32::from(n_prb).next_multiple_of(group).min(u32::from(self.config.downlink_prb));
            // Only the most robust scheme: what does not fit waits for the next response.
            let fits = mcs.index == 0 || answered.is_empty();
            if !fits || in_groups > free.len() || places.len() < u32::from(msg3_prb) {
                break;
            }
            let Some(at) = self.responder.heard.iter().position(of_occasion) else { break };
            let Some(heard) = self.responder.heard.remove(at) else { break };
            let blocks = places.lowest(u32::from(msg3_prb));
            places = places.without(blocks);
            self.responder.granted.push((tti + MSG3_DELAY, cell, blocks));
            answered.push((blocks, heard.stations));
            taken = in_groups;
        }
        let Some(station) = answered.first().and_then(|(_, stations)| stations.first()).copied() else {
            return;
        };
        let blocks = free.lowest(taken);
        *free = free.without(blocks);
        *max_grants -= 1;
        self.sent.push(Sent { station, downlink: true, process: RESPONSE, blocks });
        self.responder.on_air.push(Response { occasion, cell, answered });
    }

    /// Blocks that Msg3s may take in `sent_at`.
    fn msg3_places(&self, sent_at: Tti, cell: usize) -> PrbSet {
        let process = harq::Processes::of(sent_at);
        let mut free = self.pusch().without(self.random_access_blocks(sent_at, cell));
        for station in self.responder.active.iter().map(|index| &self.stations[*index]) {
            let of_msg3 = |block: &&Block| block.msg3.is_some() && station.cell == cell;
            if let Some(block) = station.uplink.harq.peek(process).filter(of_msg3) {
                free = free.without(block.blocks);
            }
        }
        free
    }
    /// The scheme of Msg3 and its resource blocks.
    fn msg3_shape(&self) -> (&'static Mcs, u8) {
        robust(&UPLINK, MSG3_BYTES, MSG3_BLOCKS.min(self.pusch().len() as u8))
    }

    /// Stations receive the responses of this TTI, each by its own channel.
    pub(super) fn hear_responses(&mut self, tti: Tti) {
        for response in std::mem::take(&mut self.responder.on_air) {
            let of_cell =
                |sent: &&Sent| sent.process == RESPONSE && self.stations[sent.station].cell == response.cell;
            let Some(sent) = self.sent.iter().find(of_cell).copied() else { continue };
            let bytes = BACKOFF_BYTES + RESPONSE_BYTES * response.answered.len() as u64;
            let (mcs, n_prb) = robust(&DOWNLINK, bytes, self.config.downlink_prb);
            let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
            let block = Block::new(mac::Pdu::default(), mcs, bits, n_prb);
            for &index in &self.responder.active {
                let station = &mut self.stations[index];
                let Some(procedure) = station.procedure.as_mut().filter(|procedure| {
                    station.cell == response.cell && procedure.expects_response(response.occasion)
                }) else {
                    continue;
                };
                let sinr = station.radio.sinr(&mut self.network, response.cell, tti, &sent, &block);
                if self.responder.draws.uniform() < block_errors::block_error(mcs, bits, to_db(sinr)) {
                    continue;
                }
                procedure.on_backoff(self.config.random_access.backoff);
                let own = response.answered.iter().find(|(_, stations)| stations.contains(&index));
                if let Some((blocks, stations)) = own {
                    let collided = stations.len() > 1;
                    procedure.on_response(Msg3 { sent_at: tti + MSG3_DELAY, blocks: *blocks, collided });
                }
            }
        }
        self.sent.retain(|sent| sent.process != RESPONSE);
    }

    /// Puts Msg3 into the station's process if this is its TTI, in place of what may be in it.
    pub(super) fn start_msg3(&mut self, tti: Tti, index: usize) {
        let sr_grant = self.config.access.sr_grant;
        let (mcs, n_prb) = self.msg3_shape();
        let station = &mut self.stations[index];
        let Some(procedure) = &mut station.procedure else { return };
        let Some(grant) = procedure.msg3(tti) else { return };
        let process = harq::Processes::of(tti);
        procedure.on_msg3(tti, process, self.config.random_access.contention_timer);
        let cause = procedure.cause;
        if let Some(old) = station.uplink.harq.block(process) {
            station.estimate.on_lost(old.first_sent_at, sr_grant);
            station.uplink.give_up(process, &mut self.output);
        }
        let bits = tbs::transport_block_bits(mcs.i_tbs, n_prb);
        let mut pdu = mac::Pdu { padding: bits / 8, ..mac::Pdu::default() };
        if cause == Cause::SchedulingRequest {
            pdu.bsr = Some(bsr::index_of(station.uplink_available()));
            pdu.padding = (bits / 8).saturating_sub(C_RNTI + BSR);
            station.access.on_block(tti, &self.config.access, true, false);
        }
        let mut block = Block::signalling(pdu, mcs, bits, grant.blocks);
        block.msg3 = Some(grant.collided);
        station.uplink.start(process, block);
    }

    /// A Msg3 was decoded, in time if its procedure is still on.
    pub(super) fn take_up_msg3(&mut self, index: usize, process: usize) {
        let station = &mut self.stations[index];
        let Some(procedure) = station.procedure.as_ref().filter(|procedure| procedure.msg3_in(process))
        else {
            return;
        };
        match procedure.cause {
            Cause::SchedulingRequest => station.estimate.ask(self.config.access.sr_grant),
            Cause::Initial | Cause::Reestablishment => self.responder.asked.push(index),
        }
    }
    /// A grant to a station whose Msg3 carried its C-RNTI resolves contention.
    pub(super) fn resolve_by_grant(&mut self, tti: Tti, index: usize) {
        let station = &mut self.stations[index];
        let of_request = |procedure: &&mut Box<Procedure>| {
            procedure.cause == Cause::SchedulingRequest && procedure.contending()
        };
        if let Some(procedure) = station.procedure.as_mut().filter(of_request) {
            procedure.resolve(tti);
            station.access.stats.resolved += 1;
            station.access.stats.resolved_ttis += tti.since(procedure.started_at);
        }
    }
    /// A downlink block of a station was decoded: if it was Msg4, contention is resolved, and service follows after
    /// the signalling.
    pub(super) fn resolve_by_msg4(&mut self, tti: Tti, index: usize, process: usize) {
        let config = &self.config.random_access;
        let station = &mut self.stations[index];
        let of_msg4 =
            |procedure: &&mut Box<Procedure>| procedure.contending() && procedure.msg4 == Some(process);
        if let Some(procedure) = station.procedure.as_mut().filter(of_msg4) {
            let resolved_at = tti + MSG4_PROCESSING;
            let signalling = match procedure.cause {
                Cause::Reestablishment => config.reestablishment,
                Cause::Initial | Cause::SchedulingRequest => config.setup,
            };
            procedure.resolve(resolved_at + signalling);
            station.access.stats.resolved += 1;
            station.access.stats.resolved_ttis += resolved_at.since(procedure.started_at);
        }
    }
}
