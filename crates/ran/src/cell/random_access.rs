//! Random access, the eNB's side, and its steps in a slot. The station's side is `mac/random_access.rs`.
//!
//! Preambles of an occasion are answered from the start of their response window on, by one response PDU per
//! slot and cell, the oldest occasion first. A response takes a downlink assignment, PRBs, and the PRBs of
//! the Msg3s that it grants. Msg3 is a block of the station's uplink HARQ process. The eNB answers a C-RNTI
//! in Msg3 by the next grant, and a connection request by Msg4, a downlink block with HARQ. A retransmission
//! whose PRBs are needed for a Msg3 or the PRACH is moved (TS 36.321 §5.4.2.1, adaptive), or waits one HARQ
//! round trip.

use super::downlink::Room;
use super::enb::Cell;
use super::responder::{DetectedPreamble, Responder, Response};
use crate::air::Transmission;
use crate::duplex::Direction;
use crate::lte::prach;
use crate::mac::buffer_report::BufferReport;
use crate::mac::harq::{BlockKind, TransportBlock};
use crate::mac::pdu as mac;
use crate::mac::random_access::{Cause, Expiry, Msg3, Procedure, detection_probability, is_prach_occasion};
use crate::mcs::{Mcs, PrbSize};
use crate::prb::PrbSet;
use crate::rat::Rat;
use crate::slot::{Slot, SlotSpan};

/// The uplink process of Msg3 in asynchronous HARQ (TS 38.321 §5.4.2.1).
pub(super) const MSG3_PROCESS: usize = 0;
/// Stands for the HARQ process of a response, which has none. Chosen: no process has this index.
const RESPONSE_PROCESS: usize = usize::MAX;
/// Bytes of a random access response with its sub-header (TS 36.321 §6.1.5).
const RESPONSE_BYTES: u64 = 7;
/// Bytes of the backoff indicator's sub-header (TS 36.321 §6.1.5).
const BACKOFF_BYTES: u64 = 1;
/// Bytes of the smallest Msg3, 56 bits (TS 36.321 §5.1.4).
const MSG3_BYTES: u64 = 7;
/// Largest number of PRBs of Msg3. Chosen: few PRBs, at an MCS that reaches the cell edge.
const MSG3_MAX_PRBS: u16 = 3;
/// Bytes of the C-RNTI control element with its sub-header (TS 36.321 §6.1.3.2).
const C_RNTI_BYTES: u32 = 3;
/// Bytes of the short BSR with its sub-header (TS 36.321 §6.1.3.1).
const BSR_BYTES: u32 = 2;
/// Bytes of Msg4. Chosen: about the contention resolution identity and RRC's answer.
const MSG4_BYTES: u64 = 40;

impl Cell {
    /// Starts random access of a station, with a preamble no earlier than `at`.
    pub(super) fn start_random_access(&mut self, index: usize, cause: Cause, at: Slot) {
        let station = &mut self.stations[index];
        station.access.stats.random_accesses += 1;
        station.procedure = Some(Box::new(Procedure::new(cause, at)));
        station.reset_power();
        if !self.responder.active.contains(&index) {
            self.responder.active.push(index);
        }
    }
    /// A station's radio link has failed: the station disconnects and accesses again after cell selection.
    pub(super) fn fail_link(&mut self, slot: Slot, index: usize) {
        self.stations[index].disconnect(slot, self.clock.start(slot), &mut self.output);
        self.select_cell(index, self.clock.start(slot));
        let at = slot + self.config.random_access.cell_selection;
        self.start_random_access(index, Cause::Reestablishment, at);
    }

    /// Checks the timers of random access and completes the procedures whose service begins.
    pub(super) fn step_random_access(&mut self, slot: Slot) {
        if self.responder.active.is_empty() && self.responder.granted_msg3.is_empty() {
            return;
        }
        let (config, now) = (self.config.random_access, self.clock.start(slot));
        let window = self.timing.random_access.window_start + config.response_window;
        self.responder.preambles.retain(|preamble| slot < preamble.occasion + window);
        self.responder.granted_msg3.retain(|(sent_at, ..)| *sent_at >= slot);
        for at in 0..self.responder.active.len() {
            let index = self.responder.active[at];
            let station = &mut self.stations[index];
            let Some(procedure) = &mut station.procedure else { continue };
            let cause = procedure.cause;
            if procedure.complete(slot) {
                station.complete_random_access(slot, now, cause, &mut self.output);
                if cause != Cause::SchedulingRequest {
                    self.on_served(index, now);
                }
            } else if procedure.expire(slot, &config, &self.timing.random_access, &mut self.responder.draws)
                == Expiry::Problem
            {
                station.access.stats.random_access_failures += 1;
                // In a handover, the end of all attempts stands for the expiry of T304.
                if matches!(cause, Cause::SchedulingRequest | Cause::Handover) {
                    station.uplink.mac.stats.radio_link_failures += 1;
                    self.fail_link(slot, index);
                }
            }
        }
        let Self { responder, stations, .. } = self;
        responder.active.retain(|index| stations[*index].procedure.is_some());
    }

    /// PRBs of PUSCH that the scheduler can use: all but those of the PRACH, of granted Msg3s and of
    /// configured grants.
    pub(super) fn unreserved_prbs(&self, sent_at: Slot, cell: usize) -> PrbSet {
        let reserved = self.random_access_prbs(sent_at, cell).with(self.configured.reserved(cell, sent_at));
        self.config.pusch_prbs().without(reserved)
    }
    fn random_access_prbs(&self, sent_at: Slot, cell: usize) -> PrbSet {
        let of_msg3 = |(at, of, _): &&(Slot, usize, PrbSet)| (*at, *of) == (sent_at, cell);
        let msg3 = self.responder.granted_msg3.iter().filter(of_msg3);
        msg3.fold(self.prach_prbs(sent_at), |taken, (_, _, prbs)| taken.with(*prbs))
    }
    fn prach_prbs(&self, slot: Slot) -> PrbSet {
        let config = &self.config.random_access;
        if !config.prach_reserved || !self.is_prach_occasion(slot) {
            return PrbSet::NONE;
        }
        self.config.pusch_prbs().lowest(self.config.rat.prach_prbs())
    }
    /// Whether a slot of the uplink is a PRACH occasion.
    pub(super) fn is_prach_occasion(&self, slot: Slot) -> bool {
        let index = self.config.random_access.prach_index;
        match (&self.config.rat, self.tdd_configuration) {
            (Rat::Lte, None) => is_prach_occasion(index, slot),
            (Rat::Lte, Some(configuration)) => prach::is_tdd_occasion(configuration, index, slot),
            (Rat::Nr(nr), _) => {
                slot == self.config.duplex.next(slot.start_of(nr.prach_period), Direction::Up)
            }
        }
    }
    /// The uplink HARQ process of a Msg3.
    fn msg3_process(&self, sent_at: Slot) -> usize {
        self.timing.uplink.process_in(sent_at).unwrap_or(MSG3_PROCESS)
    }

    /// Gives the displaced retransmissions other PRBs, or none if too few are free.
    pub(super) fn move_retransmissions(&mut self, process: usize, free: &mut PrbSet) {
        for index in self.displaced.drain(..) {
            let Some(block) = self.stations[index].uplink.mac.harq.block_mut(process) else { continue };
            let n_prb = u32::from(block.n_prb);
            block.prbs = if free.len() >= n_prb { free.lowest(n_prb) } else { PrbSet::NONE };
            *free = free.without(block.prbs);
        }
    }

    /// Sends the preambles of a PRACH occasion and draws which of them are detected.
    pub(super) fn send_preambles(&mut self, slot: Slot) {
        let config = self.config.random_access;
        if self.responder.active.is_empty() || !self.is_prach_occasion(slot) {
            return;
        }
        let Responder { active, draws, preambles, .. } = &mut self.responder;
        // Cell, preamble, station, and whether the preamble would be detected alone.
        let mut sent: Vec<(usize, u64, usize, bool)> = Vec::new();
        for &index in active.iter() {
            let station = &mut self.stations[index];
            let Some(procedure) = &mut station.procedure else { continue };
            let Some((preamble, transmission)) = procedure.preamble(slot, config.preambles, draws) else {
                continue;
            };
            station.access.stats.preambles += 1;
            let detected = draws.chance(detection_probability(transmission));
            sent.push((station.cell, preamble, index, detected));
        }
        sent.sort_unstable();
        for same in sent.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let stations: Vec<usize> = same.iter().map(|(_, _, index, _)| *index).collect();
            if stations.len() > 1 {
                stations.iter().for_each(|index| self.stations[*index].access.stats.preamble_collisions += 1);
            }
            if same.iter().any(|(.., detected)| *detected) {
                preambles.push_back(DetectedPreamble { occasion: slot, cell: same[0].0, stations });
            }
        }
    }

    /// Sends Msg4s and a response PDU in this slot, before other downlink data.
    pub(super) fn answer_random_access(&mut self, slot: Slot, cell: usize, room: &mut Room) {
        if self.responder.active.is_empty() {
            return;
        }
        for at in (0..self.responder.msg4_pending.len()).rev() {
            let index = self.responder.msg4_pending[at];
            if self.stations[index].cell == cell && self.send_msg4(index, room) {
                self.responder.msg4_pending.remove(at);
            }
        }
        let due = |preamble: &&DetectedPreamble| {
            preamble.cell == cell && slot >= preamble.occasion + self.timing.random_access.window_start
        };
        let oldest = self.responder.preambles.iter().find(due).map(|preamble| preamble.occasion);
        if let Some(occasion) = oldest.filter(|_| room.grants > 0) {
            self.send_response(slot, cell, occasion, room);
        }
    }

    /// Sends Msg4 to a station if PRBs, a grant and a HARQ process are free. Returns whether Msg4 is no
    /// longer pending.
    fn send_msg4(&mut self, index: usize, room: &mut Room) -> bool {
        let station = &mut self.stations[index];
        let Some(procedure) = station.procedure.as_mut().filter(|procedure| procedure.contending()) else {
            return true; // mac-ContentionResolutionTimer has expired
        };
        let n_prb = self.config.downlink_prb;
        let (mcs, n_prb) = self.config.rat.most_robust(Direction::Down, room.size, MSG4_BYTES, n_prb);
        let Some(process) = station.downlink.mac.harq.free() else { return false };
        if room.grants == 0 || room.left < u32::from(n_prb) {
            return false;
        }
        let prbs = room.take(u32::from(n_prb));
        procedure.msg4 = Some(process);
        let block =
            station.downlink.mac.start(process, mac::Pdu::default(), mcs, room.size, prbs.len() as u16);
        block.set_signalling(BlockKind::Data, prbs);
        self.transmissions.push(Transmission { station: index, direction: Direction::Down, process, prbs });
        true
    }

    /// Answers as many preambles of an occasion as the PRBs of this slot and of Msg3 allow.
    fn send_response(&mut self, slot: Slot, cell: usize, occasion: Slot, room: &mut Room) {
        let group = u32::from(self.config.rat.rbg_size(self.config.downlink_prb));
        let msg3_at = self.timing.msg3_at(slot);
        let mut msg3_free = self.free_msg3_prbs(slot, msg3_at, cell);
        let (_, msg3_prb) = self.msg3_format();
        let mut answered: Vec<(PrbSet, Vec<usize>)> = Vec::new();
        let mut taken = 0;
        while answered.len() < self.config.random_access.responses {
            let of_occasion =
                |preamble: &DetectedPreamble| preamble.cell == cell && preamble.occasion == occasion;
            let bytes = BACKOFF_BYTES + RESPONSE_BYTES * (answered.len() as u64 + 1);
            let (mcs, n_prb) = self.response_format(room.size, bytes);
            let in_groups = u32::from(n_prb).next_multiple_of(group).min(u32::from(self.config.downlink_prb));
            // MCS 0 only: preambles that do not fit at this MCS are answered by the next response PDU.
            let fits = mcs.index() == 0 || answered.is_empty();
            if !fits || in_groups > room.left || msg3_free.len() < u32::from(msg3_prb) {
                break;
            }
            let Some(at) = self.responder.preambles.iter().position(of_occasion) else { break };
            let Some(preamble) = self.responder.preambles.remove(at) else { break };
            let prbs = msg3_free.lowest(u32::from(msg3_prb));
            msg3_free = msg3_free.without(prbs);
            self.responder.granted_msg3.push((msg3_at, cell, prbs));
            answered.push((prbs, preamble.stations));
            taken = in_groups;
        }
        let Some(station) = answered.first().and_then(|(_, stations)| stations.first()).copied() else {
            return;
        };
        let prbs = room.take(taken);
        self.transmissions.push(Transmission {
            station,
            direction: Direction::Down,
            process: RESPONSE_PROCESS,
            prbs,
        });
        self.responder.responses.push(Response { occasion, cell, size: room.size, answered });
    }

    fn response_format(&self, size: PrbSize, bytes: u64) -> (Mcs, u16) {
        self.config.rat.most_robust(Direction::Down, size, bytes, self.config.downlink_prb)
    }
    fn free_msg3_prbs(&self, slot: Slot, sent_at: Slot, cell: usize) -> PrbSet {
        let mut free = self.unreserved_prbs(sent_at, cell);
        let turn = self.timing.uplink.process_in(sent_at);
        if self.timing.is_granted(sent_at, slot) {
            // TDD: the grants of this slot or an earlier one, and retransmissions, have taken PRBs.
            for station in self.members[cell].iter().map(|index| &self.stations[*index]) {
                let granted = station.grants.iter().filter(|grant| grant.sent_at == sent_at);
                free = granted.fold(free, |free, grant| free.without(grant.prbs));
                let repeated = turn.and_then(|process| station.uplink.mac.harq.block(process));
                free = repeated.map_or(free, |block| free.without(block.prbs));
            }
        }
        let Some(process) = turn else { return free };
        for station in self.responder.active.iter().map(|index| &self.stations[*index]) {
            let of_msg3 = |block: &&TransportBlock| block.is_msg3() && station.cell == cell;
            if let Some(block) = station.uplink.mac.harq.block(process).filter(of_msg3) {
                free = free.without(block.prbs);
            }
        }
        free
    }
    fn msg3_format(&self) -> (Mcs, u16) {
        let max_prb = MSG3_MAX_PRBS.min(self.config.pusch_prbs().len() as u16);
        self.config.rat.most_robust(Direction::Up, self.pusch_size(), MSG3_BYTES, max_prb)
    }

    /// Stations receive the response PDUs of this slot, each over its own channel.
    pub(super) fn receive_responses(&mut self, slot: Slot) {
        for response in std::mem::take(&mut self.responder.responses) {
            let of_cell = |sent: &&Transmission| {
                sent.process == RESPONSE_PROCESS && self.stations[sent.station].cell == response.cell
            };
            let Some(transmission) = self.transmissions.iter().find(of_cell).copied() else { continue };
            let bytes = BACKOFF_BYTES + RESPONSE_BYTES * response.answered.len() as u64;
            let (mcs, n_prb) = self.response_format(response.size, bytes);
            let bits = mcs.block_bits(response.size, n_prb);
            let sent_at = self.timing.msg3_at(slot);
            for &index in &self.responder.active {
                let station = &mut self.stations[index];
                let Some(procedure) = station.procedure.as_mut().filter(|procedure| {
                    station.cell == response.cell && procedure.awaits_response(response.occasion)
                }) else {
                    continue;
                };
                let (rat, network) = (&self.config.rat, &mut self.network);
                let layer = rat.layer(Direction::Down, mcs);
                let sinr = station.radio.sinr(network, response.cell, slot, &transmission, layer);
                if !mcs.error_curve(bits).decodes(sinr, self.responder.draws.uniform()) {
                    continue;
                }
                procedure.on_backoff(self.config.random_access.backoff);
                let own = response.answered.iter().find(|(_, stations)| stations.contains(&index));
                if let Some((prbs, stations)) = own {
                    let collided = stations.len() > 1;
                    procedure.on_response(Msg3 { sent_at, prbs: *prbs, collided });
                }
            }
        }
        self.transmissions.retain(|sent| sent.process != RESPONSE_PROCESS);
    }

    /// Starts Msg3 in the station's HARQ process if this is its slot; a block in the process is given up.
    /// Returns whether it starts.
    pub(super) fn start_msg3(&mut self, slot: Slot, index: usize) -> bool {
        let sr_grant = self.config.access.sr_grant;
        let station = &mut self.stations[index];
        let Some(grant) = station.procedure.as_ref().and_then(|procedure| procedure.msg3(slot)) else {
            return false;
        };
        let (mcs, n_prb) = self.msg3_format();
        let (size, process) = (self.pusch_size(), self.msg3_process(slot));
        let station = &mut self.stations[index];
        let Some(procedure) = &mut station.procedure else { return false };
        procedure.on_msg3(slot, process, self.config.random_access.contention_timer);
        let cause = procedure.cause;
        if let Some(old) = station.uplink.mac.harq.block(process) {
            station.estimate.on_lost(old.first_sent_at, sr_grant);
            station.uplink.give_up(process, &mut self.output);
        }
        let bits = mcs.block_bits(size, n_prb);
        let mut pdu = mac::Pdu { padding: bits / 8, ..mac::Pdu::default() };
        if cause == Cause::SchedulingRequest {
            let bytes = station.uplink_available();
            pdu.bsr = Some(match self.config.rat {
                Rat::Lte => BufferReport::lte(bytes),
                Rat::Nr(_) => BufferReport::nr_short(bytes),
            });
            pdu.padding = (bits / 8).saturating_sub(C_RNTI_BYTES + BSR_BYTES);
            station.access.on_block(slot, self.clock.start(slot), &self.config.access, true, || false);
        }
        let kind = if grant.collided { BlockKind::CollidedMsg3 } else { BlockKind::Msg3 };
        let block = station.uplink.mac.start(process, pdu, mcs, size, grant.prbs.len() as u16);
        block.set_signalling(kind, grant.prbs);
        true
    }

    /// The eNB decoded a Msg3; one of an earlier attempt is ignored.
    pub(super) fn on_msg3_decoded(&mut self, index: usize, process: usize) {
        let station = &mut self.stations[index];
        let Some(procedure) = station.procedure.as_ref().filter(|procedure| procedure.msg3_in(process))
        else {
            return;
        };
        match procedure.cause {
            Cause::SchedulingRequest => station.estimate.raise_to(self.config.access.sr_grant),
            Cause::Initial | Cause::Reestablishment | Cause::Handover => {
                self.responder.msg4_pending.push(index);
            }
        }
    }
    /// A grant to a station whose Msg3 carried its C-RNTI resolves contention.
    pub(super) fn resolve_by_grant(&mut self, slot: Slot, index: usize) {
        let station = &mut self.stations[index];
        let of_request = |procedure: &&mut Box<Procedure>| {
            procedure.cause == Cause::SchedulingRequest && procedure.contending()
        };
        if let Some(procedure) = station.procedure.as_mut().filter(of_request) {
            procedure.resolve(slot);
            station.access.stats.contention_resolutions += 1;
            station.access.stats.contention_resolution_slots += slot.since(procedure.started_at);
        }
    }
    /// A downlink block of a station was decoded. If it was Msg4, contention is resolved, and service begins
    /// after the signalling.
    pub(super) fn resolve_by_msg4(&mut self, slot: Slot, index: usize, process: usize) {
        let config = &self.config.random_access;
        let station = &mut self.stations[index];
        let of_msg4 =
            |procedure: &&mut Box<Procedure>| procedure.contending() && procedure.msg4 == Some(process);
        if let Some(procedure) = station.procedure.as_mut().filter(of_msg4) {
            // The station acts on Msg4 when it acknowledges it.
            let resolved_at = self.timing.acknowledged_at(slot);
            let signalling = match procedure.cause {
                Cause::Reestablishment => config.reestablishment,
                Cause::Initial | Cause::SchedulingRequest => config.setup,
                // RRCConnectionReconfigurationComplete is in Msg3.
                Cause::Handover => SlotSpan(0),
            };
            procedure.resolve(resolved_at + signalling);
            station.access.stats.contention_resolutions += 1;
            station.access.stats.contention_resolution_slots += resolved_at.since(procedure.started_at);
        }
    }
}
