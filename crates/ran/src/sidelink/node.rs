//! The node of an eNB with pairs of stations, and with ordinary stations. The port 0 is that of all peers and
//! of the core network, the port `1 + i` that of station `i`.

use super::config::{PairConfig, SidelinkConfig};
use super::flow::{Ends, Sent};
use super::pair::Pair;
use super::radio::{AIRS, Air, Radio};
use super::stats::{Carried, FlowDirection, Message, MessageKind, PathKind, Switch};
use crate::bearer::Ended;
use crate::cell::CORE;
use crate::hop::LinkStats;
use crate::mac::scheduler::Candidate;
use crate::radio::Point;
use crate::slot::{Slot, SlotClock, SlotSpan};
use paceline_net::{AddressTable, DropReason, Instant, Node, Output, Packet, Port, QueueCounters, Stream};
use std::collections::VecDeque;
use std::net::IpAddr;

/// An eNB and its pairs of stations.
pub struct Sidelink {
    pub(super) config: SidelinkConfig,
    pub(super) clock: SlotClock,
    pub(super) radio: Radio,
    pub(super) pairs: Vec<Pair>,
    routes: AddressTable,
    pub(super) draws: Stream,
    next_slot: Option<Slot>,
    pub(super) earliest_slot: Slot,
    pub(super) output: VecDeque<Output>,
    /// Ends of packets on a hop, before they are output.
    pub(super) ends: Vec<Ended>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) allocations: Vec<(usize, u16)>,
    /// Transmissions of the present slot in the uplink band.
    pub(super) sent: Vec<Sent>,
    /// Pairs of flows that may not share PRBs, one row per flow; and the slot in which it was determined.
    pub(super) conflicts: (Vec<Vec<bool>>, Option<Slot>),
    /// Number of scripted switches that are done.
    pub(super) scripted: usize,
    switches: Vec<Switch>,
    messages: Option<Vec<Message>>,
    active_slots: u64,
}

impl Sidelink {
    /// An eNB with these pairs; `seed` determines the block errors.
    pub fn new(config: SidelinkConfig, pairs: Vec<PairConfig>, seed: u64) -> Self {
        let mut routes = AddressTable::default();
        for (index, pair) in pairs.iter().enumerate() {
            pair.addresses.iter().for_each(|address| routes.insert(*address, index));
        }
        let pairs = pairs.into_iter().enumerate();
        let radio = Radio::new(config.carrier.clone());
        let pairs = pairs.map(|(index, pair)| Pair::new(pair, &config, &radio, index)).collect();
        let mut node = Self {
            config,
            clock: SlotClock::new(radio.numerology()),
            radio,
            pairs,
            routes,
            draws: Stream::new(seed, "sidelink/harq"),
            next_slot: None,
            earliest_slot: Slot(0),
            output: VecDeque::new(),
            ends: Vec::new(),
            candidates: Vec::new(),
            allocations: Vec::new(),
            sent: Vec::new(),
            conflicts: (Vec::new(), None),
            scripted: 0,
            switches: Vec::new(),
            messages: None,
            active_slots: 0,
        };
        node.next_slot = node.next_selection(None);
        node
    }
    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }
    /// Whether a station has a peer.
    pub fn has_peer(&self, pair: usize) -> bool {
        self.pairs[pair].flows[0].ends == Ends::Stations
    }
    /// Counters of the buffer of a flow's sending end.
    pub fn buffer(&self, pair: usize, direction: FlowDirection) -> QueueCounters {
        self.pairs[pair].flows[direction as usize].bearer.buffer.counters()
    }
    /// Adds an address of a station, or moves it to the station of this pair.
    pub fn add_route(&mut self, address: IpAddr, pair: usize) {
        self.routes.insert(address, pair);
    }
    /// Counters of a flow: of its packets, and of the blocks on each of its radio hops.
    pub fn counters(&self, pair: usize, direction: FlowDirection) -> [&LinkStats; 4] {
        let flow = &self.pairs[pair].flows[direction as usize];
        [&flow.stats, &flow.direct.mac.stats, &flow.up.mac.stats, &flow.down.stats]
    }
    /// Bytes that wait above RLC in the sending station and in the eNB.
    pub fn queued(&self, pair: usize, direction: FlowDirection) -> u64 {
        let flow = &self.pairs[pair].flows[direction as usize];
        flow.bearer.buffer.bytes().0 + flow.bearer.relay_queue()
    }
    /// Packets that left the sending station's buffer, and the sum of their waiting times in ns.
    pub fn waited(&self, pair: usize, direction: FlowDirection) -> paceline_net::Waited {
        self.pairs[pair].flows[direction as usize].bearer.buffer.waited()
    }
    /// Number of packets inside of a flow.
    pub fn held(&self, pair: usize, direction: FlowDirection) -> u64 {
        self.pairs[pair].flows[direction as usize].held()
    }
    /// The path of a flow, of two that it has for a time the new one.
    pub fn path(&self, pair: usize, direction: FlowDirection) -> PathKind {
        self.pairs[pair].flows[direction as usize].chosen()
    }
    /// Packets of a flow that a path has delivered.
    pub fn carried(&self, pair: usize, direction: FlowDirection, path: PathKind) -> Carried {
        let flow = &self.pairs[pair].flows[direction as usize];
        flow.carried[usize::from(path == PathKind::Infrastructure)]
    }
    /// Whether the carrier is one of NR.
    pub fn is_nr(&self) -> bool {
        self.radio.is_nr()
    }
    /// Requests for a first grant of a pair's stations: random access in LTE, scheduling requests in NR.
    pub fn requests(&self, pair: usize) -> u64 {
        self.pairs[pair].flows.iter().map(|flow| flow.requests).sum()
    }
    /// Positions of a pair's station and peer in m from the eNB, as last used.
    pub fn places(&self, pair: usize) -> (Point, Point) {
        let [peer, station] = self.pairs[pair].channel.senders;
        (station, peer)
    }
    /// All changes of path so far.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }
    /// Records messages from now on.
    pub fn record_messages(&mut self) {
        self.messages.get_or_insert_default();
    }
    /// The messages recorded.
    pub fn messages(&self) -> &[Message] {
        self.messages.as_deref().unwrap_or_default()
    }
    /// Number of slots with work.
    pub fn active_slots(&self) -> u64 {
        self.active_slots
    }

    pub(super) fn note(&mut self, slot: Slot, pair: usize, flow: usize, kind: MessageKind) {
        if let Some(messages) = &mut self.messages {
            messages.push(Message { slot, pair, direction: FlowDirection::BOTH[flow], kind });
        }
    }
    pub(super) fn log_switch(&mut self, switch: Switch) {
        self.switches.push(switch);
    }

    fn wake(&mut self, now: Instant) {
        let slot = self.clock.at_or_after(now).max(self.earliest_slot);
        self.next_slot = Some(self.next_slot.map_or(slot, |next| next.min(slot)));
    }

    fn run_slot(&mut self, slot: Slot) {
        self.active_slots += 1;
        for pair in &mut self.pairs {
            pair.update_channel(slot, &self.config.budget, &self.radio);
        }
        self.select_paths(slot);
        self.confirm_paths(slot);
        // The eNB relays packets that it had before this slot.
        self.send_downlink(slot);
        for pair in 0..self.pairs.len() {
            for flow in 0..2 {
                self.receive(slot, pair, flow);
            }
        }
        self.judge_blocks(slot);
        self.grant(slot);
        self.transmit(slot);
        for pair in 0..self.pairs.len() {
            for flow in 0..2 {
                [Air::Direct, Air::Up].iter().for_each(|air| self.request(slot, pair, flow, *air));
            }
        }
    }

    /// Delivers the decoded PDUs of a flow.
    fn receive(&mut self, slot: Slot, pair: usize, flow: usize) {
        for air in AIRS {
            self.pairs[pair].deliver(slot, flow, air, &mut self.ends);
            self.pass_on(slot, pair, flow, air);
        }
        let own = &mut self.pairs[pair].flows[flow];
        if own.bearer.reordering_due(slot) {
            own.bearer.check_reordering(slot, |ended| self.ends.push(ended));
            let last = Air::of(own.chosen())[0];
            self.pass_on(slot, pair, flow, last);
        }
    }
    /// Packets that end on a hop go to the destination, or are dropped.
    pub(super) fn pass_on(&mut self, slot: Slot, pair: usize, flow: usize, air: Air) {
        for ended in std::mem::take(&mut self.ends) {
            if self.pairs[pair].flows[flow].end(ended, air, &mut self.output) {
                self.note(slot, pair, flow, MessageKind::Delivered);
            }
        }
    }
    /// A station with data and without a grant asks for one: by random access, or by PUCCH in NR.
    fn request(&mut self, slot: Slot, pair: usize, flow: usize, air: Air) {
        let timeout = self.config.rac_timeout;
        if !self.radio.may_request(2 * pair + flow, slot) {
            return;
        }
        let may = self.pairs[pair].flows[flow].sender_ref(air).access.may_request(slot, timeout);
        if may && self.pairs[pair].available(flow, air) > 0 {
            let own = &mut self.pairs[pair].flows[flow];
            own.sender(air).access.request(slot);
            own.requests += 1;
            self.note(slot, pair, flow, MessageKind::Request);
        }
    }
}

impl Node for Sidelink {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let (pair, flow) = if from == CORE {
            let Some(pair) = self.routes.get(packet.ip.dst) else {
                self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
                return;
            };
            (pair, 0)
        } else {
            (usize::from(from.0) - 1, 1)
        };
        let own = &mut self.pairs[pair].flows[flow];
        own.stats.packets_in += 1;
        own.bearer.buffer.push(now, packet);
        own.collect_dropped(&mut self.output);
        // The answer to a packet of this slot is still in time for a request in it.
        let slot = self.clock.at_or_after(now);
        if slot < self.earliest_slot {
            [Air::Direct, Air::Up].iter().for_each(|air| self.request(slot, pair, flow, *air));
        }
        self.wake(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(slot) = self.next_slot.filter(|slot| self.clock.start(*slot) <= now) {
            self.run_slot(slot);
            self.earliest_slot = slot + SlotSpan(1);
            let idle = self.pairs.iter().all(Pair::idle);
            self.next_slot = if idle { self.next_selection(Some(slot)) } else { Some(self.earliest_slot) };
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_slot.map(|slot| self.clock.start(slot))
    }
}
