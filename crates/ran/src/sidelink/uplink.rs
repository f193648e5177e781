//! Uplink subframes: the eNB's grants for uplinks and direct links, the stations' transmissions, and the
//! verdicts on them.
//!
//! A slot's PRBs go to short grants first, then to retransmissions, which keep theirs, then to data in equal
//! shares. Direct links whose interference on each other stays below a threshold may have the same PRBs.

use super::access::{Grant, GrantKind};
use super::flow::Sent;
use super::node::Sidelink;
use super::radio::Air;
use super::stats::MessageKind;
use crate::decibel::{Sinr, from_db};
use crate::duplex::Direction;
use crate::mac::buffer_report::BufferReport;
use crate::mac::pdu::{self as mac, BsrDue};
use crate::mac::scheduler::{self, Budget, Candidate, Policy};
use crate::mcs::Mcs;
use crate::prb::PrbSet;
use crate::slot::Slot;
use paceline_net::DropReason;

/// Time in ms after which conflicts of moving stations are determined again. Chosen: 1 s, as the published
/// simulator does.
const CONFLICT_PERIOD_MS: u64 = 1000;

/// A hop in the uplink band.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Hop {
    pair: usize,
    /// The direction: the index of the flow in its pair.
    flow: usize,
    air: Air,
}

impl Hop {
    /// The hop with this place in the order of pairs, flows and hops: the scheduler's number for it.
    fn numbered(number: usize) -> Self {
        let air = if number.is_multiple_of(2) { Air::Direct } else { Air::Up };
        Self { pair: number / 4, flow: number / 2 % 2, air }
    }
    fn number(self) -> usize {
        2 * self.flow_number() + usize::from(!self.is_direct())
    }
    /// The place of its flow in the order of pairs and flows.
    fn flow_number(self) -> usize {
        2 * self.pair + self.flow
    }
    fn is_direct(self) -> bool {
        self.air == Air::Direct
    }
}

/// PRBs of a slot that are given to a flow.
struct Taken {
    hop: Hop,
    prbs: PrbSet,
    /// Whether the transmission is on a direct link, whose PRBs another one may have too.
    direct: bool,
}

impl Sidelink {
    /// All hops in the uplink band, in order.
    fn hops_up(&self) -> impl Iterator<Item = Hop> + use<> {
        (0..4 * self.pairs.len()).map(Hop::numbered)
    }
    /// HARQ gives a block up.
    pub(super) fn give_up(&mut self, slot: Slot, pair: usize, flow: usize, air: Air, process: usize) {
        let (own, mut lost) = (&mut self.pairs[pair].flows[flow], Vec::new());
        own.mac(air).give_up(process, |pdu| lost.push(pdu));
        own.lose(air, lost, DropReason::HarqFailed, &mut self.ends);
        self.pass_on(slot, pair, flow, air);
    }
    /// The receivers' verdicts on the first hops' blocks, and reports to the eNB.
    pub(super) fn judge_blocks(&mut self, slot: Slot) {
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            for process in self.pairs[pair].flows[flow].mac(air).harq.due(slot) {
                let own = self.pairs[pair].flows[flow].sender(air);
                let to_enb = own.for_enb(process);
                let Some(block) = own.mac.harq.block(process) else { continue };
                let first_sent_at = block.first_sent_at;
                if block.decoded {
                    // The eNB does not receive a report that goes over a direct link.
                    let report = block.pdu.bsr.filter(|_| to_enb);
                    own.access.estimate.on_decoded(first_sent_at, report, 0);
                    own.mac.finish(process);
                    if report.is_some() {
                        self.note(slot, pair, flow, MessageKind::ReportDecoded);
                    }
                } else if block.transmissions >= self.config.max_harq_tx {
                    own.access.estimate.on_lost(first_sent_at, 0);
                    self.give_up(slot, pair, flow, air, process);
                }
            }
        }
    }

    /// The MCS of a flow's data on a hop.
    fn mcs(&self, pair: usize, flow: usize, air: Air) -> Mcs {
        self.radio.mcs(air, self.pairs[pair].channel.of(flow, air))
    }

    /// The base station grants PRBs of later slots.
    pub(super) fn grant(&mut self, slot: Slot) {
        for at in self.radio.granted_by(slot) {
            self.grant_for(slot, at);
        }
    }
    fn grant_for(&mut self, slot: Slot, at: Slot) {
        let (turn, mut taken, mut wanting) = (self.radio.turn(at), Vec::new(), false);
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            let own = self.pairs[pair].flows[flow].sender_ref(air);
            wanting |= own.access.unanswered.is_some() || own.access.estimate.bytes() > 0;
            if let Some(process) = turn
                && let Some(block) = own.mac.harq.block(process)
            {
                taken.push(Taken { hop, prbs: block.prbs, direct: !own.for_enb(process) });
            }
        }
        if turn.is_none() {
            self.grant_retransmissions(slot, at, &mut taken);
        }
        if !wanting {
            return;
        }
        self.grant_reports(slot, at, &mut taken);
        self.rank_data(slot, at, &taken);
        if self.config.reuse_threshold_dbm.is_some() {
            self.determine_conflicts(slot);
            self.share_with_reuse(at, &mut taken);
        } else {
            let used = taken.iter().fold(PrbSet::NONE, |used, other| used.with(other.prbs));
            self.share(at, self.radio.band().without(used));
        }
    }
    /// Asynchronous HARQ: grants for the failed blocks whose verdict is known, one per hop and slot.
    fn grant_retransmissions(&mut self, slot: Slot, at: Slot, taken: &mut Vec<Taken>) {
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            let own = self.pairs[pair].flows[flow].sender(air);
            let Some(process) = own.mac.harq.due(slot).next() else { continue };
            let Some(block) = own.mac.harq.block(process) else { continue };
            let (n_prb, mcs, direct) = (block.n_prb, block.mcs, !own.for_enb(process));
            let used = taken.iter().fold(PrbSet::NONE, |used, other| used.with(other.prbs));
            let over = if direct { Air::Direct } else { Air::Up };
            let prbs = self.radio.pick(over, self.radio.band().without(used), n_prb);
            if prbs.len() < u32::from(n_prb) {
                continue;
            }
            let own = self.pairs[pair].flows[flow].sender(air);
            own.access.grants.push_back(Grant { slot: at, prbs, mcs, process, kind: GrantKind::Again });
            own.mac.harq.await_retransmission(process);
            taken.push(Taken { hop, prbs, direct });
        }
    }
    /// The HARQ process of a new block: the one whose turn the slot is, or a free one.
    fn process_for(&self, Hop { pair, flow, air }: Hop, at: Slot) -> Option<usize> {
        let own = self.pairs[pair].flows[flow].sender_ref(air);
        let granted = own.access.grants.iter().map(|grant| grant.process);
        self.radio.turn(at).or_else(|| own.mac.harq.free_but(granted))
    }
    /// Short grants, of one PRB each, answer requests.
    fn grant_reports(&mut self, slot: Slot, at: Slot, taken: &mut Vec<Taken>) {
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            let asked = self.pairs[pair].flows[flow].sender_ref(air).access.unanswered;
            let due = asked.is_some_and(|at| slot.since(at) >= self.radio.request_processing());
            if !due || taken.iter().any(|other| other.hop == hop) {
                continue;
            }
            let used = taken.iter().fold(PrbSet::NONE, |used, other| used.with(other.prbs));
            let prbs = self.radio.band().without(used).lowest(1);
            if prbs.is_empty() {
                return;
            }
            let Some(process) = self.process_for(hop, at) else { continue };
            let mcs = self.mcs(pair, flow, Air::Up);
            let access = &mut self.pairs[pair].flows[flow].sender(air).access;
            access.unanswered = None;
            access.grants.push_back(Grant { slot: at, prbs, mcs, process, kind: GrantKind::Short });
            taken.push(Taken { hop, prbs, direct: false });
        }
    }
    /// Flows with data as candidates, in the order in which they are served.
    fn rank_data(&mut self, slot: Slot, at: Slot, taken: &[Taken]) {
        self.candidates.clear();
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            let bytes = self.pairs[pair].flows[flow].sender_ref(air).access.estimate.bytes();
            if bytes == 0 || taken.iter().any(|other| other.hop == hop) || self.process_for(hop, at).is_none()
            {
                continue;
            }
            let mcs = self.mcs(pair, flow, air);
            let needed = self.pairs[pair].block_bytes(flow, air, bytes.into());
            let wanted = self.radio.wanted(air, mcs, at, needed);
            let bits = mcs.bits_per_prb(self.radio.size(air, at), self.radio.band().len() as u16);
            let candidate =
                self.pairs[pair].flows[flow].mac_ref(air).candidate(slot, hop.number(), wanted, bits);
            self.candidates.push(candidate);
        }
        scheduler::rank(slot, Policy::RoundRobin, &mut self.candidates, usize::MAX);
    }
    fn share(&mut self, at: Slot, mut free: PrbSet) {
        // A share is at least the smallest grant.
        let least = self.candidates.iter().map(|own| self.radio.least(Hop::numbered(own.station).air)).max();
        let max_grants =
            self.candidates.len().min((free.len() / u32::from(least.unwrap_or(1))).max(1) as usize);
        let budget = Budget { n_prb: free.len() as u16, max_grants, granularity: 1 };
        scheduler::distribute(Policy::RoundRobin, &mut self.candidates, budget, &mut self.allocations);
        for place in 0..self.allocations.len() {
            let (number, n_prb) = self.allocations[place];
            let hop = Hop::numbered(number);
            let prbs = self.radio.pick(hop.air, free, n_prb);
            free = free.without(prbs);
            self.grant_data(at, hop, prbs);
        }
    }
    /// Shares of the PRBs among the flows that conflict with each other; what a flow leaves goes to others.
    fn share_with_reuse(&mut self, at: Slot, taken: &mut Vec<Taken>) {
        let band = self.radio.band();
        let hop = |of: &Candidate| (Hop::numbered(of.station), of.wanted_prb);
        let hops: Vec<(Hop, u16)> = self.candidates.iter().map(hop).collect();
        let given = taken.len();
        for round in 0..2 {
            for (place, &(hop, wanted)) in hops.iter().enumerate() {
                let direct = hop.is_direct();
                let reusable = |other: Hop| !self.conflicts.0[hop.flow_number()][other.flow_number()];
                let conflicts = |other: Hop, other_direct: bool| {
                    other != hop && !(direct && other_direct && reusable(other))
                };
                let rivals = hops.iter().filter(|(other, _)| conflicts(*other, other.is_direct()));
                let share = band.len().div_ceil(1 + rivals.count() as u32);
                let share = share.max(self.radio.least(hop.air).into());
                let others = taken.iter().filter(|other| conflicts(other.hop, other.direct));
                let used = others.fold(PrbSet::NONE, |used, other| used.with(other.prbs));
                if round == 0 {
                    let prbs = band.without(used).lowest(share.min(wanted.into()));
                    taken.push(Taken { hop, prbs, direct });
                } else {
                    let own = taken[given + place].prbs;
                    let more = u32::from(wanted).saturating_sub(own.len());
                    let free = band.without(used).without(own);
                    taken[given + place].prbs = own.with(free.lowest(more));
                }
            }
        }
        for own in &taken[given..] {
            let prbs = self.radio.pick(own.hop.air, own.prbs, own.prbs.len() as u16);
            self.grant_data(at, own.hop, prbs);
        }
    }
    fn grant_data(&mut self, at: Slot, hop: Hop, prbs: PrbSet) {
        if prbs.is_empty() {
            return;
        }
        let Hop { pair, flow, air } = hop;
        let mcs = self.mcs(pair, flow, air);
        let bits = mcs.block_bits(self.radio.size(air, at), prbs.len() as u16);
        let Some(process) = self.process_for(hop, at) else { return };
        let own = self.pairs[pair].flows[flow].sender(air);
        own.access.estimate.on_grant(at, bits / 8);
        own.mac.on_scheduled(at, bits);
        own.access.grants.push_back(Grant { slot: at, prbs, mcs, process, kind: GrantKind::Data });
    }

    /// The stations transmit as granted, or again.
    pub(super) fn transmit(&mut self, slot: Slot) {
        self.sent.clear();
        let turn = self.radio.turn(slot);
        for hop in self.hops_up() {
            let Hop { pair, flow, air } = hop;
            let own = self.pairs[pair].flows[flow].sender(air);
            let again = turn.and_then(|process| Some((process, own.mac.harq.block(process)?.prbs)));
            let grant = if again.is_none() { own.access.take_grant(slot) } else { None };
            if again.is_some() || grant.is_some() {
                own.access.active_in = Some(slot);
            }
            let again = again.or_else(|| {
                let grant = grant.as_ref().filter(|grant| grant.kind == GrantKind::Again)?;
                own.mac.harq.block(grant.process).map(|_| (grant.process, grant.prbs))
            });
            match (again, grant) {
                (Some((process, prbs)), _) => {
                    let to_enb = own.for_enb(process);
                    self.sent.push(Sent { pair, flow, air, process, prbs, to_enb });
                }
                (None, Some(grant)) if grant.kind != GrantKind::Again => {
                    self.start_block(slot, (pair, flow, air), &grant);
                }
                (None, _) => {}
            }
        }
        for at in 0..self.sent.len() {
            let Sent { pair, flow, air, process, prbs, to_enb } = self.sent[at];
            let sinr = Sinr::Linear(self.sinr(at));
            let times = self.radio.times(air, to_enb, slot);
            let draw = self.draws.uniform();
            self.pairs[pair].flows[flow].mac(air).transmit(process, prbs, times, (sinr, draw), |_| {});
        }
    }
    /// A station fills the granted block: on the direct path a short grant has room for the report alone,
    /// since its receiver is the eNB; on the other path data share it.
    fn start_block(&mut self, slot: Slot, (pair, flow, air): (usize, usize, Air), grant: &Grant) {
        let now = self.clock.start(slot);
        let available = self.pairs[pair].available(flow, air);
        let Grant { prbs, mcs, process, kind, .. } = *grant;
        let (n_prb, short) = (prbs.len() as u16, kind == GrantKind::Short);
        let to_enb = air == Air::Up || short;
        let size = self.radio.size(if to_enb { Air::Up } else { Air::Direct }, slot);
        let bytes = mcs.block_bits(size, n_prb) / 8;
        let own = self.pairs[pair].flows[flow].sender(air);
        if available == 0 {
            return own.access.estimate.on_lost(slot, 0);
        }
        let (direct, turn) = (air == Air::Direct, self.radio.turn(slot));
        let pdu = if direct && short {
            let report = match turn {
                Some(_) => BufferReport::lte(available),
                None => BufferReport::nr_long(available), // TS 38.321 §6.1.3.33
            };
            mac::Pdu { bsr: Some(report), ..mac::Pdu::default() }
        } else {
            let full = mcs.block_bits(size, self.radio.band().len() as u16) / 8;
            let due = match (direct, short) {
                (true, _) => BsrDue::None,
                (false, true) => BsrDue::Regular,
                (false, false) => self.config.trailing_bsr.due(available, bytes, full),
            };
            let storage = own.mac.pdu_storage();
            let Some(mut sender) = self.pairs[pair].sender(flow, air, now) else { return };
            sender.uplink_pdu(slot, bytes, due, None, storage)
        };
        let flows = &mut self.pairs[pair].flows[flow];
        let own = flows.sender(air);
        own.set_for_enb(process, to_enb);
        own.mac.start(process, pdu, mcs, size, n_prb);
        flows.collect_dropped(&mut self.output);
        self.sent.push(Sent { pair, flow, air, process, prbs, to_enb });
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
        let noise = self.config.budget.ue_noise_mw(self.radio.bandwidth_hz(Direction::Up));
        channel.direct.snr * noise / (noise + interference)
    }
    /// Finds the flows that may not share PRBs: one sender's power at the other's receiver is above the
    /// threshold.
    fn determine_conflicts(&mut self, slot: Slot) {
        let at = slot.start_of(self.radio.of_ms(CONFLICT_PERIOD_MS));
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
