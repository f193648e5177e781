//! Random access, the eNB's side: [`RandomAccess`]. The station's side is `mac/random_access.rs`.
//!
//! Preambles of an occasion are answered from the start of their response window on, by one response PDU per
//! slot and cell, the oldest occasion first. A response takes a downlink assignment, PRBs, and the PRBs of
//! the Msg3s that it grants. The eNB answers a C-RNTI in Msg3 by the next grant, and a connection request by
//! Msg4, a downlink block with HARQ (`contention`).

mod contention;
mod formats;

pub(super) use contention::{resolve_by_grant, resolve_by_msg4, start_msg3};
pub(super) use formats::{MSG3_PROCESS, is_prach_occasion};

use super::air::Air;
use super::config::Carrier;
use super::configured::ConfiguredGrants;
use super::downlink::Room;
use super::station::{Station, Stations};
use crate::air::Transmission;
use crate::duplex::Direction;
use crate::mac::harq::{BlockKind, TransportBlock};
use crate::mac::pdu as mac;
use crate::mac::random_access::{Cause, Expiry, Msg3, Procedure, detection_probability};
use crate::mcs::PrbSize;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::{Output, Stream};
use std::collections::VecDeque;

/// Stands for the HARQ process of a response, which has none. Chosen: no process has this index.
const RESPONSE_PROCESS: usize = usize::MAX;

struct DetectedPreamble {
    occasion: Slot,
    cell: usize,
    /// The stations that sent it; more than one after a collision.
    stations: Vec<usize>,
}

/// A random access response PDU of this slot.
struct Response {
    occasion: Slot,
    cell: usize,
    /// Size of a PRB of the slot.
    size: PrbSize,
    /// For each answered preamble, the PRBs of its Msg3 and the stations that sent it.
    answered: Vec<(PrbSet, Vec<usize>)>,
}

/// The progress of a station's random access in a slot.
pub(super) enum Step {
    Continues,
    /// Random access is complete, and service begins in the cell.
    Served,
    /// Random access has failed, which is a radio-link failure.
    LinkFailed,
}

/// The eNB's state of random access.
pub(super) struct RandomAccess {
    draws: Stream,
    /// Stations with a procedure.
    active: Vec<usize>,
    /// Detected preambles without a response, oldest first.
    preambles: VecDeque<DetectedPreamble>,
    responses: Vec<Response>,
    /// Granted Msg3s: slot of the first transmission, cell and PRBs.
    granted_msg3: Vec<(Slot, usize, PrbSet)>,
    /// Stations whose decoded Msg3 awaits Msg4.
    msg4_pending: Vec<usize>,
}

impl RandomAccess {
    pub fn new(seed: u64) -> Self {
        Self {
            draws: Stream::new(seed, "cell0/random-access"),
            active: Vec::new(),
            preambles: VecDeque::new(),
            responses: Vec::new(),
            granted_msg3: Vec::new(),
            msg4_pending: Vec::new(),
        }
    }
    /// Starts random access of a station, with a preamble no earlier than `at`.
    pub fn start(&mut self, index: usize, station: &mut Station, cause: Cause, at: Slot) {
        station.access.stats.random_accesses += 1;
        station.procedure = Some(Box::new(Procedure::new(cause, at)));
        station.reset_power();
        if !self.active.contains(&index) {
            self.active.push(index);
        }
    }

    /// Forgets what is over before this slot. Returns the number of stations for [`Self::step`].
    pub fn begin_slot(&mut self, slot: Slot, carrier: &Carrier) -> usize {
        let window = carrier.timing.random_access.window_start + carrier.config.random_access.response_window;
        self.preambles.retain(|preamble| slot < preamble.occasion + window);
        self.granted_msg3.retain(|(sent_at, ..)| *sent_at >= slot);
        self.active.len()
    }
    /// Checks the timers of one of the stations with random access. Returns its index too.
    pub fn step(
        &mut self,
        at: usize,
        slot: Slot,
        carrier: &Carrier,
        stations: &mut Stations,
        output: &mut VecDeque<Output>,
    ) -> (usize, Step) {
        let index = self.active[at];
        let (station, config) = (&mut stations[index], &carrier.config.random_access);
        let Some(procedure) = &mut station.procedure else { return (index, Step::Continues) };
        let cause = procedure.cause;
        let step = if procedure.complete(slot) {
            station.complete_random_access(slot, carrier.start(slot), cause, output);
            if cause == Cause::SchedulingRequest { Step::Continues } else { Step::Served }
        } else if procedure.expire(slot, config, &carrier.timing.random_access, &mut self.draws)
            == Expiry::Problem
        {
            station.access.stats.random_access_failures += 1;
            // In a handover, the end of all attempts stands for the expiry of T304.
            if matches!(cause, Cause::SchedulingRequest | Cause::Handover) {
                station.uplink.mac.stats.radio_link_failures += 1;
                Step::LinkFailed
            } else {
                Step::Continues
            }
        } else {
            Step::Continues
        };
        (index, step)
    }
    /// Forgets the stations whose random access has ended.
    pub fn end_steps(&mut self, stations: &Stations) {
        self.active.retain(|index| stations[*index].procedure.is_some());
    }

    /// PRBs of PUSCH that the scheduler can use: all but those of the PRACH, of granted Msg3s and of
    /// configured grants.
    pub fn unreserved_prbs(
        &self,
        sent_at: Slot,
        cell: usize,
        carrier: &Carrier,
        configured: &ConfiguredGrants,
    ) -> PrbSet {
        let of_msg3 = |(at, of, _): &&(Slot, usize, PrbSet)| (*at, *of) == (sent_at, cell);
        let msg3 = self.granted_msg3.iter().filter(of_msg3);
        let prach = formats::prach_prbs(carrier, sent_at);
        let reserved = msg3.fold(prach, |taken, (_, _, prbs)| taken.with(*prbs));
        carrier.config.pusch_prbs().without(reserved.with(configured.reserved(cell, sent_at)))
    }

    /// Sends the preambles of a PRACH occasion and draws which of them are detected.
    pub fn send_preambles(&mut self, slot: Slot, carrier: &Carrier, stations: &mut Stations) {
        if self.active.is_empty() || !formats::is_prach_occasion(carrier, slot) {
            return;
        }
        let Self { active, draws, preambles, .. } = self;
        // Cell, preamble, station, and whether the preamble would be detected alone.
        let mut sent: Vec<(usize, u64, usize, bool)> = Vec::new();
        for &index in active.iter() {
            let station = &mut stations[index];
            let Some(procedure) = &mut station.procedure else { continue };
            let count = carrier.config.random_access.preambles;
            let Some((preamble, transmission)) = procedure.preamble(slot, count, draws) else { continue };
            station.access.stats.preambles += 1;
            let detected = draws.chance(detection_probability(transmission));
            sent.push((station.cell, preamble, index, detected));
        }
        sent.sort_unstable();
        for same in sent.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let sent_by: Vec<usize> = same.iter().map(|(_, _, index, _)| *index).collect();
            if sent_by.len() > 1 {
                sent_by.iter().for_each(|index| stations[*index].access.stats.preamble_collisions += 1);
            }
            if same.iter().any(|(.., detected)| *detected) {
                preambles.push_back(DetectedPreamble { occasion: slot, cell: same[0].0, stations: sent_by });
            }
        }
    }

    /// Sends Msg4s and a response PDU in a slot, before other downlink data.
    pub fn answer(
        &mut self,
        room: &mut Room,
        carrier: &Carrier,
        configured: &ConfiguredGrants,
        stations: &mut Stations,
        air: &mut Air,
    ) {
        if self.active.is_empty() {
            return;
        }
        for at in (0..self.msg4_pending.len()).rev() {
            let index = self.msg4_pending[at];
            let station = &mut stations[index];
            if station.cell == room.cell && send_msg4(room, carrier, (index, station), air) {
                self.msg4_pending.remove(at);
            }
        }
        let due = |preamble: &&DetectedPreamble| {
            preamble.cell == room.cell
                && room.slot >= preamble.occasion + carrier.timing.random_access.window_start
        };
        let oldest = self.preambles.iter().find(due).map(|preamble| preamble.occasion);
        if let Some(occasion) = oldest.filter(|_| room.grants > 0) {
            let msg3_free = self.free_msg3_prbs(room, carrier, configured, stations);
            self.send_response(room, occasion, msg3_free, carrier, air);
        }
    }
    /// Answers as many preambles of an occasion as the PRBs of this slot and of Msg3 allow.
    fn send_response(
        &mut self,
        room: &mut Room,
        occasion: Slot,
        mut msg3_free: PrbSet,
        carrier: &Carrier,
        air: &mut Air,
    ) {
        let (config, cell, size) = (&carrier.config, room.cell, room.size);
        let group = u32::from(config.rat.rbg_size(config.downlink_prb));
        let msg3_at = carrier.timing.msg3_at(room.slot);
        let (_, msg3_prb) = formats::msg3(carrier);
        let mut answered: Vec<(PrbSet, Vec<usize>)> = Vec::new();
        let mut taken = 0;
        while answered.len() < config.random_access.responses {
            let of_occasion =
                |preamble: &DetectedPreamble| preamble.cell == cell && preamble.occasion == occasion;
            let (mcs, n_prb) = formats::response(carrier, size, answered.len() + 1);
            let in_groups = u32::from(n_prb).next_multiple_of(group).min(u32::from(config.downlink_prb));
            // MCS 0 only: preambles that do not fit at this MCS are answered by the next response PDU.
            let fits = mcs.index() == 0 || answered.is_empty();
            if !fits || in_groups > room.left || msg3_free.len() < u32::from(msg3_prb) {
                break;
            }
            let Some(at) = self.preambles.iter().position(of_occasion) else { break };
            let Some(preamble) = self.preambles.remove(at) else { break };
            let prbs = msg3_free.lowest(u32::from(msg3_prb));
            msg3_free = msg3_free.without(prbs);
            self.granted_msg3.push((msg3_at, cell, prbs));
            answered.push((prbs, preamble.stations));
            taken = in_groups;
        }
        let Some(station) = answered.first().and_then(|(_, stations)| stations.first()).copied() else {
            return;
        };
        let prbs = room.take(taken);
        air.send(Transmission { station, direction: Direction::Down, process: RESPONSE_PROCESS, prbs });
        self.responses.push(Response { occasion, cell, size, answered });
    }
    /// PRBs of PUSCH for the Msg3s that a response of this slot grants.
    fn free_msg3_prbs(
        &self,
        room: &Room,
        carrier: &Carrier,
        configured: &ConfiguredGrants,
        stations: &Stations,
    ) -> PrbSet {
        let (cell, sent_at) = (room.cell, carrier.timing.msg3_at(room.slot));
        let mut free = self.unreserved_prbs(sent_at, cell, carrier, configured);
        let turn = carrier.timing.uplink.process_in(sent_at);
        if carrier.timing.is_granted(sent_at, room.slot) {
            // TDD: the grants of this slot or an earlier one, and retransmissions, have taken PRBs.
            for station in stations.members()[cell].iter().map(|index| &stations[*index]) {
                let granted = station.grants.iter().filter(|grant| grant.sent_at == sent_at);
                free = granted.fold(free, |free, grant| free.without(grant.prbs));
                let repeated = turn.and_then(|process| station.uplink.mac.harq.block(process));
                free = repeated.map_or(free, |block| free.without(block.prbs));
            }
        }
        let Some(process) = turn else { return free };
        for station in self.active.iter().map(|index| &stations[*index]) {
            let of_msg3 = |block: &&TransportBlock| block.is_msg3() && station.cell == cell;
            if let Some(block) = station.uplink.mac.harq.block(process).filter(of_msg3) {
                free = free.without(block.prbs);
            }
        }
        free
    }

    /// Stations receive the response PDUs of this slot, each over its own channel.
    pub fn receive_responses(
        &mut self,
        slot: Slot,
        carrier: &Carrier,
        stations: &mut Stations,
        air: &mut Air,
    ) {
        for response in std::mem::take(&mut self.responses) {
            let of_cell = |sent: &&Transmission| {
                sent.process == RESPONSE_PROCESS && stations[sent.station].cell == response.cell
            };
            let Some(transmission) = air.sent().iter().find(of_cell).copied() else { continue };
            let (mcs, n_prb) = formats::response(carrier, response.size, response.answered.len());
            let bits = mcs.block_bits(response.size, n_prb);
            let layer = carrier.config.rat.layer(Direction::Down, mcs);
            let sent_at = carrier.timing.msg3_at(slot);
            for &index in &self.active {
                let station = &mut stations[index];
                let Some(procedure) = station.procedure.as_mut().filter(|procedure| {
                    station.cell == response.cell && procedure.awaits_response(response.occasion)
                }) else {
                    continue;
                };
                let network = air.network_mut();
                let sinr = station.radio.sinr(network, response.cell, slot, &transmission, layer);
                if !mcs.error_curve(bits).decodes(sinr, self.draws.uniform()) {
                    continue;
                }
                procedure.on_backoff(carrier.config.random_access.backoff);
                let own = response.answered.iter().find(|(_, stations)| stations.contains(&index));
                if let Some((prbs, stations)) = own {
                    let collided = stations.len() > 1;
                    procedure.on_response(Msg3 { sent_at, prbs: *prbs, collided });
                }
            }
        }
        air.retain(|sent| sent.process != RESPONSE_PROCESS);
    }
    /// The eNB decoded a Msg3; one of an earlier attempt is ignored. `sr_grant`: bytes of the grant that
    /// answers a scheduling request.
    pub fn on_msg3_decoded(&mut self, index: usize, station: &mut Station, process: usize, sr_grant: u32) {
        let Some(procedure) = station.procedure.as_ref().filter(|procedure| procedure.msg3_in(process))
        else {
            return;
        };
        match procedure.cause {
            Cause::SchedulingRequest => station.estimate.raise_to(sr_grant),
            Cause::Initial | Cause::Reestablishment | Cause::Handover => self.msg4_pending.push(index),
        }
    }
}

/// Sends Msg4 to a station if PRBs, a grant and a HARQ process are free. Returns whether Msg4 is no longer
/// pending.
fn send_msg4(
    room: &mut Room,
    carrier: &Carrier,
    (index, station): (usize, &mut Station),
    air: &mut Air,
) -> bool {
    let Some(procedure) = station.procedure.as_mut().filter(|procedure| procedure.contending()) else {
        return true; // mac-ContentionResolutionTimer has expired
    };
    let (mcs, n_prb) = formats::msg4(carrier, room.size);
    let Some(process) = station.downlink.mac.harq.free() else { return false };
    if room.grants == 0 || room.left < u32::from(n_prb) {
        return false;
    }
    let prbs = room.take(u32::from(n_prb));
    procedure.msg4 = Some(process);
    let block = station.downlink.mac.start(process, mac::Pdu::default(), mcs, room.size, prbs.len() as u16);
    block.set_signalling(BlockKind::Data, prbs);
    air.send(Transmission { station: index, direction: Direction::Down, process, prbs });
    true
}
