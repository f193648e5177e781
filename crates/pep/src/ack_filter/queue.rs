//! The buffer that all schemes share: one FIFO of packets, with the ACKs that a scheme may discard listed twice
//! more, per connection and overall, both in the order of the queue.
//!
//! Slots live in a slab and the three orders are doubly linked by index, so that an ACK in the middle is found
//! and removed in constant time and the steady state allocates nothing. Discarding is only ever done here, which
//! is where "a listed pure ACK, counted apart from drops" is true for every scheme.

use super::flows::FlowId;
use super::stats::{AckFilterStats, KeepReason};
use paceline_net::{Bytes, DropReason, Instant, Packet};
use std::collections::VecDeque;

const NIL: u32 = u32::MAX;

/// A place in the queue, valid until its packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotId(u32);

/// One of the orders that a slot can be linked in.
#[derive(Clone, Copy)]
enum Chain {
    /// All packets.
    Fifo,
    /// The listed ACKs of all connections.
    Listed,
    /// The listed ACKs of one connection.
    Flow,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

const UNLINKED: Link = Link { prev: NIL, next: NIL };
const EMPTY: List = List { head: NIL, tail: NIL, len: 0 };

#[derive(Clone, Debug)]
struct Slot {
    packet: Option<Packet>,
    links: [Link; 3],
    /// Position in the order of arrival.
    serial: u64,
    arrived: Instant,
    /// The connection that lists this slot; `NIL` if it must not be discarded.
    flow: u32,
    /// An ACK that is worth more than older listed ones; stays so when it is unlisted.
    news: bool,
    kept: Option<KeepReason>,
}

/// What left at the head.
pub(super) struct Popped {
    pub packet: Packet,
    pub arrived: Instant,
    /// The connection that listed it until now.
    pub flow: Option<FlowId>,
}

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct AckQueue {
    slots: Vec<Slot>,
    free: u32,
    fifo: List,
    listed: List,
    flows: Vec<List>,
    dropped: VecDeque<(Packet, DropReason)>,
    bytes: Bytes,
    limit: Bytes,
    serial: u64,
    pub stats: AckFilterStats,
}

fn len_of(packet: &Packet) -> Bytes {
    Bytes(u64::from(packet.len))
}

fn link(slots: &mut [Slot], chain: Chain, list: &mut List, id: u32) {
    slots[id as usize].links[chain as usize] = Link { prev: list.tail, next: NIL };
    match list.tail {
        NIL => list.head = id,
        tail => slots[tail as usize].links[chain as usize].next = id,
    }
    list.tail = id;
    list.len += 1;
}

fn unlink(slots: &mut [Slot], chain: Chain, list: &mut List, id: u32) {
    let Link { prev, next } = std::mem::replace(&mut slots[id as usize].links[chain as usize], UNLINKED);
    match prev {
        NIL => list.head = next,
        prev => slots[prev as usize].links[chain as usize].next = next,
    }
    match next {
        NIL => list.tail = prev,
        next => slots[next as usize].links[chain as usize].prev = prev,
    }
    list.len -= 1;
}

fn some(id: u32) -> Option<SlotId> {
    (id != NIL).then_some(SlotId(id))
}

impl AckQueue {
    pub fn new(limit: Bytes) -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
            fifo: EMPTY,
            listed: EMPTY,
            flows: Vec::new(),
            dropped: VecDeque::new(),
            bytes: Bytes::ZERO,
            limit,
            serial: 0,
            stats: AckFilterStats::default(),
        }
    }

    /// Whether `packet` may join once `freed` bytes have been discarded for it. One packet is always accepted
    /// when the queue is empty.
    pub fn accepts(&self, packet: &Packet, freed: Bytes) -> bool {
        self.fifo.len == 0 || self.bytes.saturating_sub(freed) + len_of(packet) <= self.limit
    }

    /// Drops an arrival that was not accepted.
    pub fn refuse(&mut self, packet: Packet) {
        self.stats.queue.queue_drops += 1;
        self.dropped.push_back((packet, DropReason::QueueFull));
    }

    /// Appends a packet that was accepted; with a `flow`, as an ACK that the scheme may discard later.
    pub fn append(&mut self, now: Instant, packet: Packet, flow: Option<FlowId>) -> SlotId {
        self.bytes += len_of(&packet);
        let slot = Slot {
            packet: Some(packet),
            links: [UNLINKED; 3],
            serial: self.serial,
            arrived: now,
            flow: flow.map_or(NIL, |flow| flow.0),
            news: flow.is_some(),
            kept: None,
        };
        self.serial += 1;
        let id = match self.free {
            NIL => {
                let id = u32::try_from(self.slots.len()).expect("a queue holds fewer than 2^32 packets");
                self.slots.push(slot);
                id
            }
            id => {
                self.free = self.slots[id as usize].links[0].next;
                self.slots[id as usize] = slot;
                id
            }
        };
        link(&mut self.slots, Chain::Fifo, &mut self.fifo, id);
        if let Some(flow) = flow {
            if self.flows.len() <= flow.0 as usize {
                self.flows.resize(flow.0 as usize + 1, EMPTY);
            }
            link(&mut self.slots, Chain::Listed, &mut self.listed, id);
            link(&mut self.slots, Chain::Flow, &mut self.flows[flow.0 as usize], id);
        }
        SlotId(id)
    }

    /// Makes a listed ACK one that is never discarded.
    pub fn unlist(&mut self, id: SlotId) {
        let flow = std::mem::replace(&mut self.slots[id.0 as usize].flow, NIL);
        if flow != NIL {
            unlink(&mut self.slots, Chain::Listed, &mut self.listed, id.0);
            unlink(&mut self.slots, Chain::Flow, &mut self.flows[flow as usize], id.0);
        }
    }

    /// Unlists every ACK of a connection.
    pub fn unlist_all(&mut self, flow: FlowId) {
        while let Some(id) = self.oldest_of(flow) {
            self.unlist(id);
        }
    }

    /// Removes a packet from everywhere.
    fn take(&mut self, id: SlotId) -> Packet {
        self.unlist(id);
        unlink(&mut self.slots, Chain::Fifo, &mut self.fifo, id.0);
        let slot = &mut self.slots[id.0 as usize];
        slot.links[0].next = self.free;
        self.free = id.0;
        let packet = slot.packet.take().expect("a linked slot holds a packet");
        self.bytes = self.bytes - len_of(&packet);
        packet
    }

    /// Discards a listed ACK.
    pub fn discard(&mut self, id: SlotId) {
        assert!(self.slots[id.0 as usize].flow != NIL, "only listed ACKs are discarded");
        let packet = self.take(id);
        self.stats.queue.acks_discarded += 1;
        self.dropped.push_back((packet, DropReason::AckFiltered));
    }

    /// Takes the packet at the head.
    pub fn pop(&mut self) -> Option<Popped> {
        let id = some(self.fifo.head)?;
        let Slot { arrived, flow, kept, .. } = self.slots[id.0 as usize];
        let packet = self.take(id);
        self.stats.count_out(&packet, kept);
        Some(Popped { packet, arrived, flow: (flow != NIL).then_some(FlowId(flow)) })
    }

    /// Drops the packet at the head because PDCP's discard timer has expired.
    pub fn expire_head(&mut self) {
        if let Some(id) = some(self.fifo.head) {
            let packet = self.take(id);
            self.stats.queue.expired += 1;
            self.dropped.push_back((packet, DropReason::PdcpDiscard));
        }
    }

    pub fn pop_dropped(&mut self) -> Option<(Packet, DropReason)> {
        self.dropped.pop_front()
    }
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
    pub fn packets(&self) -> usize {
        self.fifo.len as usize
    }
    pub fn head(&self) -> Option<SlotId> {
        some(self.fifo.head)
    }
    pub fn next(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Fifo as usize].next)
    }
    /// The oldest listed ACK of all connections.
    pub fn listed_head(&self) -> Option<SlotId> {
        some(self.listed.head)
    }
    pub fn listed_next(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Listed as usize].next)
    }
    /// Listed ACKs of all connections.
    pub fn listed(&self) -> u32 {
        self.listed.len
    }
    fn list(&self, flow: FlowId) -> &List {
        self.flows.get(flow.0 as usize).unwrap_or(&EMPTY)
    }
    /// Listed ACKs of a connection.
    pub fn listed_of(&self, flow: FlowId) -> u32 {
        self.list(flow).len
    }
    pub fn oldest_of(&self, flow: FlowId) -> Option<SlotId> {
        some(self.list(flow).head)
    }
    pub fn newest_of(&self, flow: FlowId) -> Option<SlotId> {
        some(self.list(flow).tail)
    }
    /// The next listed ACK of the same connection.
    pub fn newer_of_flow(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Flow as usize].next)
    }
    /// The previous listed ACK of the same connection.
    pub fn older_of_flow(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Flow as usize].prev)
    }
    pub fn is_listed(&self, id: SlotId) -> bool {
        self.slots[id.0 as usize].flow != NIL
    }
    /// Whether this ACK is worth more than older listed ones.
    pub fn is_news(&self, id: SlotId) -> bool {
        self.slots[id.0 as usize].news
    }
    /// Says so of an ACK that is not listed.
    pub fn mark_news(&mut self, id: SlotId) {
        self.slots[id.0 as usize].news = true;
    }
    /// Whether this is the newest listed ACK of its connection.
    pub fn is_newest(&self, id: SlotId) -> bool {
        let flow = self.slots[id.0 as usize].flow;
        flow != NIL && self.flows[flow as usize].tail == id.0
    }
    pub fn packet(&self, id: SlotId) -> &Packet {
        self.slots[id.0 as usize].packet.as_ref().expect("a linked slot holds a packet")
    }
    pub fn len_of(&self, id: SlotId) -> Bytes {
        len_of(self.packet(id))
    }
    pub fn serial(&self, id: SlotId) -> u64 {
        self.slots[id.0 as usize].serial
    }
    pub fn arrived(&self, id: SlotId) -> Instant {
        self.slots[id.0 as usize].arrived
    }
    /// Records why an ACK is kept; the last reason counts when it leaves.
    pub fn keep(&mut self, id: SlotId, reason: KeepReason) {
        self.slots[id.0 as usize].kept = Some(reason);
    }
}
