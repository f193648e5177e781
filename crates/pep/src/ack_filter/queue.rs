//! The buffer that all schemes share: a FIFO of packets. The ACKs that a scheme may discard, its
//! *candidates*, are linked twice more in the order of the queue: all of them, and those of each connection.
//!
//! Slots live in a slab, and the three lists are doubly linked by index: an ACK in the middle is found and
//! removed in constant time, and a queue that has reached its length allocates nothing. All discards happen
//! here, and only candidates are discarded, counted apart from drops (safety rules 4 and 18).

use super::stats::{AckFilterStats, KeepReason};
use crate::flows::FlowId;
use paceline_net::{Bytes, DropReason, Instant, Packet};
use std::collections::VecDeque;

/// No slot. By definition an index that no slab reaches.
const NIL: u32 = u32::MAX;

/// A place in the queue, valid until its packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotId(u32);

/// A list in which a slot can be linked.
#[derive(Clone, Copy)]
enum Chain {
    /// All packets.
    Fifo,
    /// The candidates of all connections.
    Candidates,
    /// The candidates of one connection.
    Flow,
}

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    prev: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

/// By definition: a slot that is in no list.
const UNLINKED: Neighbours = Neighbours { prev: NIL, next: NIL };
/// By definition: a list without slots.
const EMPTY: List = List { head: NIL, tail: NIL, len: 0 };

#[derive(Clone, Debug)]
struct Slot {
    packet: Option<Packet>,
    links: [Neighbours; 3],
    /// Position in the order of arrival.
    serial: u64,
    arrived: Instant,
    /// The connection of a candidate; `NIL` for a packet that must not be discarded.
    flow: u32,
    /// An ACK that may displace older candidates from a grant; stays so when it stops being a candidate.
    displaces: bool,
    kept: Option<KeepReason>,
}

/// A packet that left at the head.
pub(super) struct Popped {
    pub packet: Packet,
    pub arrived: Instant,
    /// Its connection, if the packet was a candidate.
    pub flow: Option<FlowId>,
}

/// The queue.
#[derive(Clone, Debug)]
pub(super) struct AckQueue {
    slots: Vec<Slot>,
    free: u32,
    fifo: List,
    candidates: List,
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
    slots[id as usize].links[chain as usize] = Neighbours { prev: list.tail, next: NIL };
    match list.tail {
        NIL => list.head = id,
        tail => slots[tail as usize].links[chain as usize].next = id,
    }
    list.tail = id;
    list.len += 1;
}

fn unlink(slots: &mut [Slot], chain: Chain, list: &mut List, id: u32) {
    let Neighbours { prev, next } =
        std::mem::replace(&mut slots[id as usize].links[chain as usize], UNLINKED);
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
            candidates: EMPTY,
            flows: Vec::new(),
            dropped: VecDeque::new(),
            bytes: Bytes::ZERO,
            limit,
            serial: 0,
            stats: AckFilterStats::default(),
        }
    }

    /// Whether `packet` fits once `freed` bytes have been discarded for it. An empty queue accepts any
    /// packet.
    pub fn accepts(&self, packet: &Packet, freed: Bytes) -> bool {
        self.fifo.len == 0 || self.bytes.saturating_sub(freed) + len_of(packet) <= self.limit
    }

    /// Drops a packet that was not accepted.
    pub fn refuse(&mut self, packet: Packet) {
        self.stats.queue.queue_drops += 1;
        self.dropped.push_back((packet, DropReason::QueueFull));
    }

    /// Appends an accepted packet; with a `flow`, as a candidate.
    pub fn append(&mut self, now: Instant, packet: Packet, flow: Option<FlowId>) -> SlotId {
        self.bytes += len_of(&packet);
        let slot = Slot {
            packet: Some(packet),
            links: [UNLINKED; 3],
            serial: self.serial,
            arrived: now,
            flow: flow.map_or(NIL, |flow| flow.0),
            displaces: flow.is_some(),
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
            link(&mut self.slots, Chain::Candidates, &mut self.candidates, id);
            link(&mut self.slots, Chain::Flow, &mut self.flows[flow.0 as usize], id);
        }
        SlotId(id)
    }

    /// Makes a candidate an ACK that is never discarded.
    pub fn protect(&mut self, id: SlotId) {
        let flow = std::mem::replace(&mut self.slots[id.0 as usize].flow, NIL);
        if flow != NIL {
            unlink(&mut self.slots, Chain::Candidates, &mut self.candidates, id.0);
            unlink(&mut self.slots, Chain::Flow, &mut self.flows[flow as usize], id.0);
        }
    }

    /// Protects all candidates of a connection.
    pub fn protect_all(&mut self, flow: FlowId) {
        while let Some(id) = self.oldest_of(flow) {
            self.protect(id);
        }
    }

    /// Removes a packet from all lists.
    fn take(&mut self, id: SlotId) -> Packet {
        self.protect(id);
        unlink(&mut self.slots, Chain::Fifo, &mut self.fifo, id.0);
        let slot = &mut self.slots[id.0 as usize];
        slot.links[0].next = self.free;
        self.free = id.0;
        let packet = slot.packet.take().expect("a linked slot holds a packet");
        self.bytes = self.bytes - len_of(&packet);
        packet
    }

    /// Discards a candidate.
    pub fn discard(&mut self, id: SlotId) {
        assert!(self.slots[id.0 as usize].flow != NIL, "only candidates are discarded");
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
    /// The oldest candidate of all connections.
    pub fn first_candidate(&self) -> Option<SlotId> {
        some(self.candidates.head)
    }
    pub fn next_candidate(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Candidates as usize].next)
    }
    /// Number of candidates of all connections.
    pub fn candidates(&self) -> u32 {
        self.candidates.len
    }
    fn list(&self, flow: FlowId) -> &List {
        self.flows.get(flow.0 as usize).unwrap_or(&EMPTY)
    }
    /// Number of candidates of a connection.
    pub fn candidates_of(&self, flow: FlowId) -> u32 {
        self.list(flow).len
    }
    pub fn oldest_of(&self, flow: FlowId) -> Option<SlotId> {
        some(self.list(flow).head)
    }
    pub fn newest_of(&self, flow: FlowId) -> Option<SlotId> {
        some(self.list(flow).tail)
    }
    /// The next candidate of the same connection.
    pub fn newer_of_flow(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Flow as usize].next)
    }
    /// The previous candidate of the same connection.
    pub fn older_of_flow(&self, id: SlotId) -> Option<SlotId> {
        some(self.slots[id.0 as usize].links[Chain::Flow as usize].prev)
    }
    pub fn is_candidate(&self, id: SlotId) -> bool {
        self.slots[id.0 as usize].flow != NIL
    }
    /// Whether this ACK may displace older candidates from a grant.
    pub fn displaces(&self, id: SlotId) -> bool {
        self.slots[id.0 as usize].displaces
    }
    /// Lets an ACK that is no candidate displace older candidates.
    pub fn let_displace(&mut self, id: SlotId) {
        self.slots[id.0 as usize].displaces = true;
    }
    /// Whether this is the newest candidate of its connection.
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
    /// Records why an ACK is kept; the last reason is counted when the ACK leaves.
    pub fn keep(&mut self, id: SlotId, reason: KeepReason) {
        self.slots[id.0 as usize].kept = Some(reason);
    }
}
