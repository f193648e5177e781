//! Uplink subframes: the eNB's grants for uplinks and direct links, the stations' transmissions, and the
//! verdicts on them.
//!
//! A slot's PRBs go to short grants first, then to retransmissions, which keep theirs, then to data in equal
//! shares. Direct links whose interference on each other stays below a threshold may have the same PRBs.

use super::access::{DECODING, GRANT_DISTANCE, Grant, REQUEST_PROCESSING};
use super::flow::{Hop, PROCESSES, Sent};
use super::node::Sidelink;
use super::stats::MessageKind;
use crate::decibel::from_db;
use crate::mac::buffer_report::BufferReport;
use crate::mac::pdu::{self as mac, BsrDue};
use crate::mac::scheduler::{self, Budget, Policy};
use crate::mcs::{Mcs, PrbSize};
use crate::prb::{PrbSet, precodable};
use crate::slot::{Slot, SlotSpan};

/// PRBs of a slot with all of its symbols, in eighths by definition.
pub(super) const FULL_PRB: PrbSize = PrbSize(8);
/// Length in bytes that the eNB assumes of a packet, for the headers of a block: that of an ACK without
/// options (RFC 9293 §3.1, RFC 791 §3.1) and its PDCP header.
const ASSUMED_PACKET_BYTES: u64 = 41;
/// Slots after which conflicts of moving stations are determined again. Chosen: 1 s, as the published
/// simulator does.
const CONFLICT_PERIOD: SlotSpan = SlotSpan(1000);

/// Size in bytes of a block for so many bytes of data.
pub(super) fn bytes_needed(data: u64) -> u64 {
    mac::block_bytes_for(None, data, data.div_ceil(ASSUMED_PACKET_BYTES))
}

/// PRBs of a slot that are given to a flow.
struct Taken {
    index: usize,
    prbs: PrbSet,
    /// Whether the transmission is on a direct link, whose PRBs another one may have too.
    direct: bool,
}

/// The process of a slot, by synchronous HARQ.
fn process_in(slot: Slot) -> usize {
    (slot.0 % PROCESSES as u64) as usize
}

impl Sidelink {
    /// The receivers' verdicts on the first hops' blocks, and reports to the eNB.
    pub(super) fn judge_blocks(&mut self, slot: Slot) {
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            for process in self.pairs[pair].flows[flow].first.harq.due(slot) {
                let own = &mut self.pairs[pair].flows[flow];
                let to_enb = own.for_enb(process);
                let Some(block) = own.first.harq.block(process) else { continue };
                let first_sent_at = block.first_sent_at;
                if block.decoded {
                    // The eNB overhears no report on a direct link.
                    let report = block.pdu.bsr.filter(|_| to_enb);
                    own.access.estimate.on_decoded(first_sent_at, report, 0, 0);
                    own.first.finish(process);
                    if report.is_some() {
                        self.note(slot, pair, flow, MessageKind::ReportDecoded);
                    }
                } else if block.transmissions >= self.config.max_harq_tx {
                    own.access.estimate.on_lost(first_sent_at, 0);
                    own.first.give_up(process, &mut self.output);
                }
            }
        }
    }

    /// The MCS of a flow's data on its first hop.
    fn first_mcs(&self, pair: usize, flow: usize) -> Mcs {
        let own = &self.pairs[pair];
        if own.flows[flow].is_direct() { own.channel.direct.mcs() } else { own.channel.uplink[flow].mcs() }
    }

    /// The eNB grants PRBs of a later slot.
    pub(super) fn grant(&mut self, slot: Slot) {
        let at = slot + GRANT_DISTANCE;
        let band = PrbSet::range(0, u32::from(self.config.prb));
        let mut taken = Vec::new();
        let mut wanting = false;
        for index in 0..2 * self.pairs.len() {
            let own = &self.pairs[index / 2].flows[index % 2];
            wanting |= own.access.unanswered.is_some() || own.access.estimate.bytes() > 0;
            if let Some(block) = own.first.harq.block(process_in(at)) {
                let direct = !own.for_enb(process_in(at));
                taken.push(Taken { index, prbs: block.prbs, direct });
            }
        }
        if !wanting {
            return;
        }
        self.grant_reports(slot, band, &mut taken);
        self.rank_data(slot, &taken);
        if self.config.reuse_threshold_dbm.is_some() {
            self.determine_conflicts(slot);
            self.share_with_reuse(at, band, &mut taken);
        } else {
            let used = taken.iter().fold(PrbSet::NONE, |used, other| used.with(other.prbs));
            self.share(at, band.without(used));
        }
    }
    /// Short grants, of one PRB each, answer requests.
    fn grant_reports(&mut self, slot: Slot, band: PrbSet, taken: &mut Vec<Taken>) {
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            let asked = self.pairs[pair].flows[flow].access.unanswered;
            let due = asked.is_some_and(|at| slot.since(at) >= REQUEST_PROCESSING);
            if !due || taken.iter().any(|other| other.index == index) {
                continue;
            }
            let used = taken.iter().fold(PrbSet::NONE, |used, other| used.with(other.prbs));
            let prbs = band.without(used).lowest(1);
            if prbs.is_empty() {
                return;
            }
            let mcs = self.pairs[pair].channel.uplink[flow].mcs();
            let access = &mut self.pairs[pair].flows[flow].access;
            access.unanswered = None;
            access.grants.push_back(Grant { slot: slot + GRANT_DISTANCE, prbs, mcs, short: true });
            taken.push(Taken { index, prbs, direct: false });
        }
    }
    /// Flows with data as candidates, in the order in which they are served.
    fn rank_data(&mut self, slot: Slot, taken: &[Taken]) {
        self.candidates.clear();
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            let bytes = self.pairs[pair].flows[flow].access.estimate.bytes();
            if bytes == 0 || taken.iter().any(|other| other.index == index) {
                continue;
            }
            let mcs = self.first_mcs(pair, flow);
            let least = mcs.fewest_prbs(FULL_PRB, bytes_needed(bytes.into()), self.config.prb);
            // The transform precoder allows some numbers only (TS 36.211 §5.3.3): the data fit into the next.
            let wanted = (least..self.config.prb).find(|n| precodable(*n) == *n).unwrap_or(self.config.prb);
            let bits = mcs.bits_per_prb(FULL_PRB, self.config.prb);
            let candidate = self.pairs[pair].flows[flow].first.candidate(slot, index, wanted, bits);
            self.candidates.push(candidate);
        }
        scheduler::rank(slot, Policy::RoundRobin, &mut self.candidates);
    }
    fn share(&mut self, at: Slot, mut free: PrbSet) {
        let max_grants = self.candidates.len();
        let budget = Budget { n_prb: free.len() as u16, max_grants, granularity: 1 };
        scheduler::distribute(Policy::RoundRobin, &mut self.candidates, budget, &mut self.allocations);
        for place in 0..self.allocations.len() {
            let (index, n_prb) = self.allocations[place];
            let prbs = free.lowest(u32::from(precodable(n_prb)));
            free = free.without(prbs);
            self.grant_data(at, index, prbs);
        }
    }
    /// Shares of the PRBs among the flows that conflict with each other; what a flow leaves goes to others.
    fn share_with_reuse(&mut self, at: Slot, band: PrbSet, taken: &mut Vec<Taken>) {
        let flows: Vec<(usize, u16)> = self.candidates.iter().map(|c| (c.station, c.wanted_prb)).collect();
        let given = taken.len();
        for round in 0..2 {
            for (place, &(index, wanted)) in flows.iter().enumerate() {
                let direct = self.pairs[index / 2].flows[index % 2].is_direct();
                let conflicts = |other: usize, other_direct: bool| {
                    other != index && !(direct && other_direct && !self.conflicts.0[index][other])
                };
                let rivals = flows.iter().filter(|(other, _)| {
                    conflicts(*other, self.pairs[other / 2].flows[other % 2].is_direct())
                });
                let share = u32::from(self.config.prb).div_ceil(1 + rivals.count() as u32);
                let others = taken.iter().filter(|other| conflicts(other.index, other.direct));
                let used = others.fold(PrbSet::NONE, |used, other| used.with(other.prbs));
                if round == 0 {
                    let prbs = band.without(used).lowest(share.min(wanted.into()));
                    taken.push(Taken { index, prbs, direct });
                } else {
                    let own = taken[given + place].prbs;
                    let more = u32::from(wanted).saturating_sub(own.len());
                    let free = band.without(used).without(own);
                    taken[given + place].prbs = own.with(free.lowest(more));
                }
            }
        }
        for own in &taken[given..] {
            let prbs = own.prbs.lowest(u32::from(precodable(own.prbs.len() as u16)));
            if !prbs.is_empty() {
                self.grant_data(at, own.index, prbs);
            }
        }
    }
    fn grant_data(&mut self, at: Slot, index: usize, prbs: PrbSet) {
        let (pair, flow) = (index / 2, index % 2);
        let mcs = self.first_mcs(pair, flow);
        let bits = mcs.block_bits(FULL_PRB, prbs.len() as u16);
        let own = &mut self.pairs[pair].flows[flow];
        own.access.estimate.on_grant(at, bits / 8);
        own.first.on_scheduled(at, bits);
        own.access.grants.push_back(Grant { slot: at, prbs, mcs, short: false });
    }

    /// The stations transmit as granted, or again.
    pub(super) fn transmit(&mut self, slot: Slot) {
        self.sent.clear();
        let process = process_in(slot);
        for index in 0..2 * self.pairs.len() {
            let (pair, flow) = (index / 2, index % 2);
            let own = &mut self.pairs[pair].flows[flow];
            let to_enb = own.for_enb(process);
            if let Some(block) = own.first.harq.block(process) {
                let prbs = block.prbs;
                own.access.active_in = Some(slot);
                self.sent.push(Sent { pair, flow, process, prbs, to_enb });
            } else if let Some(grant) = own.access.take_grant(slot) {
                own.access.active_in = Some(slot);
                self.start_block(slot, pair, flow, &grant);
            }
        }
        for at in 0..self.sent.len() {
            let Sent { pair, flow, process, prbs, .. } = self.sent[at];
            let sinr = self.sinr(at);
            let times = (slot, slot + DECODING, slot + DECODING);
            let draw = self.draws.uniform();
            self.pairs[pair].flows[flow].first.transmit(process, prbs, times, sinr, draw);
        }
    }
    /// A station fills the granted block: on the direct path a short grant has room for the report alone,
    /// since its receiver is the eNB; on the other path data share it.
    fn start_block(&mut self, slot: Slot, pair: usize, flow: usize, grant: &Grant) {
        let (now, process) = (self.clock.start(slot), process_in(slot));
        let available = self.pairs[pair].available(flow, Hop::First);
        let Grant { prbs, mcs, short, .. } = *grant;
        let n_prb = prbs.len() as u16;
        let bytes = mcs.block_bits(FULL_PRB, n_prb) / 8;
        if available == 0 {
            return self.pairs[pair].flows[flow].access.estimate.on_lost(slot, 0);
        }
        let direct = self.pairs[pair].flows[flow].is_direct();
        let pdu = if direct && short {
            mac::Pdu { bsr: Some(BufferReport::lte(available)), ..mac::Pdu::default() }
        } else {
            let full = mcs.block_bits(FULL_PRB, self.config.prb) / 8;
            let due = match (direct, short) {
                (true, _) => BsrDue::None,
                (false, true) => BsrDue::Regular,
                (false, false) => self.config.trailing_bsr.due(available, bytes, full),
            };
            let (link, reverse) = self.pairs[pair].hop(flow, Hop::First);
            let storage = link.pdu_storage();
            link.bearer.sender(&mut reverse.bearer, now).uplink_pdu(slot, bytes, due, None, storage)
        };
        let to_enb = !direct || short;
        let own = &mut self.pairs[pair].flows[flow];
        own.set_for_enb(process, to_enb);
        own.first.start(process, pdu, mcs, FULL_PRB, n_prb);
        own.first.collect_dropped(&mut self.output);
        self.sent.push(Sent { pair, flow, process, prbs, to_enb });
        let kind = if short { MessageKind::ShortGrant } else { MessageKind::Data };
        self.note(slot, pair, flow, kind);
    }

    /// Linear SINR of a transmission of this slot.
    fn sinr(&self, at: usize) -> f64 {
        let Sent { pair, flow, prbs, to_enb, .. } = self.sent[at];
        let channel = &self.pairs[pair].channel;
        if to_enb {
            return channel.uplink[flow].snr;
        }
        let receiver = channel.senders[1 - flow];
        let mut interference = 0.0;
        for (other, sent) in self.sent.iter().enumerate() {
            let shared = prbs.len() - prbs.without(sent.prbs).len();
            if other != at && shared > 0 {
                let place = self.pairs[sent.pair].channel.senders[sent.flow];
                let power = from_db(self.config.budget.received_dbm(place, receiver));
                interference += power * f64::from(shared) / f64::from(prbs.len());
            }
        }
        let noise = self.config.budget.ue_noise_mw(self.config.prb);
        channel.direct.snr * noise / (noise + interference)
    }
    /// Finds the flows that may not share PRBs: one sender's power at the other's receiver is above the
    /// threshold.
    fn determine_conflicts(&mut self, slot: Slot) {
        let at = slot.start_of(CONFLICT_PERIOD);
        let Some(threshold) = self.config.reuse_threshold_dbm else { return };
        if self.conflicts.1 == Some(at) {
            return;
        }
        let count = 2 * self.pairs.len();
        let place = |index: usize| self.pairs[index / 2].channel.senders[index % 2];
        let disturbs = |one: usize, other: usize| {
            self.config.budget.received_dbm(place(one), place(other ^ 1)) > threshold
        };
        let row = |one: usize| {
            let conflicts = |other| one / 2 == other / 2 || disturbs(one, other) || disturbs(other, one);
            (0..count).map(conflicts).collect()
        };
        self.conflicts = ((0..count).map(row).collect(), Some(at));
    }
}
