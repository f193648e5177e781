//! Bounded packet queues.
//!
//! [`SduQueue`] is the interface of a buffer that a link serves at its own times: a station's uplink buffer,
//! or a gateway's output. [`DropTail`] is the plain implementation, an ACK filter another one.

use crate::node::DropReason;
use crate::packet::Packet;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use std::collections::VecDeque;

/// A buffer of whole packets (service data units) in front of a link.
///
/// Every packet that was pushed leaves by [`SduQueue::pop`] or [`SduQueue::pop_dropped`], or is still in the
/// buffer.
pub trait SduQueue {
    /// A packet arrives. The queue may drop this packet or others.
    fn push(&mut self, now: Instant, packet: Packet);
    /// A grant for `room` bytes is about to be filled; each packet takes its length and `overhead` bytes.
    fn on_grant(&mut self, _now: Instant, _room: Bytes, _overhead: Bytes) {}
    /// The station was allocated a transport block of `size` in the direction towards it (its TBS).
    fn on_peer_block(&mut self, _size: Bytes) {}
    /// The link is one of several: whether ACKs may be discarded ahead of it.
    fn on_path(&mut self, _filters: bool) {}
    /// Drops every packet that arrived `lifetime` or longer ago (TS 36.323 §5.4, discardTimer).
    fn expire(&mut self, _now: Instant, _lifetime: Duration) {}
    /// Removes the packet at the head.
    fn pop(&mut self, now: Instant) -> Option<Packet>;
    /// Length of the packet at the head.
    fn head_len(&self) -> Option<Bytes>;
    /// The time at which the packet at the head arrived.
    fn head_arrived_at(&self) -> Option<Instant>;
    /// Bytes of all packets in the queue.
    fn bytes(&self) -> Bytes;
    /// Packets in the queue.
    fn packets(&self) -> usize;
    /// Bytes and number of the packets in the queue, by one call.
    fn backlog(&self) -> (Bytes, usize) {
        (self.bytes(), self.packets())
    }
    /// Waiting time of the packets that left at the head.
    fn waited(&self) -> Waited;
    /// The next dropped packet and the reason.
    fn pop_dropped(&mut self) -> Option<(Packet, DropReason)>;
    /// Counters since the queue was made.
    fn counters(&self) -> QueueCounters;
}

/// Packets that passed a queue, by outcome. Every packet that arrived has left at the head, was discarded,
/// was dropped, has expired or is still in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueCounters {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Packets that left at the head.
    pub packets_out: u64,
    /// Pure ACKs among the packets that arrived.
    pub acks_in: u64,
    /// Pure ACKs among the packets that left.
    pub acks_out: u64,
    /// Pure ACKs discarded because a later ACK supersedes them; no congestion signal.
    pub acks_discarded: u64,
    /// Packets dropped on arrival because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped because they waited longer than PDCP's discard timer allows.
    pub expired: u64,
}

impl QueueCounters {
    /// Counts an arrival.
    pub fn count_in(&mut self, packet: &Packet) {
        self.packets_in += 1;
        self.acks_in += u64::from(packet.is_pure_ack());
    }
    /// Counts a departure at the head.
    pub fn count_out(&mut self, packet: &Packet) {
        self.packets_out += 1;
        self.acks_out += u64::from(packet.is_pure_ack());
    }
}

/// Waiting time of the packets that left a queue at its head.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Waited {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their waiting times in nanoseconds.
    pub ns: u64,
}

impl Waited {
    /// A packet that arrived at `arrived` leaves.
    pub fn add(&mut self, now: Instant, arrived: Instant) {
        self.packets += 1;
        self.ns += now.since(arrived).as_nanos();
    }
}

/// A first-in, first-out queue that drops arrivals beyond its limit.
#[derive(Clone, Debug)]
pub struct DropTail {
    /// Packets with the times of their arrival.
    queue: VecDeque<(Instant, Packet)>,
    dropped: VecDeque<(Packet, DropReason)>,
    bytes: Bytes,
    limit: Bytes,
    waited: Waited,
    counters: QueueCounters,
}

impl DropTail {
    /// A queue of at most `limit` bytes. An empty queue accepts any packet.
    pub fn new(limit: Bytes) -> Self {
        Self {
            queue: VecDeque::new(),
            dropped: VecDeque::new(),
            bytes: Bytes::ZERO,
            limit,
            waited: Waited::default(),
            counters: QueueCounters::default(),
        }
    }
}

impl SduQueue for DropTail {
    fn push(&mut self, now: Instant, packet: Packet) {
        self.counters.count_in(&packet);
        let len = Bytes(u64::from(packet.len));
        if !self.queue.is_empty() && self.bytes + len > self.limit {
            self.counters.queue_drops += 1;
            self.dropped.push_back((packet, DropReason::QueueFull));
            return;
        }
        self.bytes += len;
        self.queue.push_back((now, packet));
    }
    fn expire(&mut self, now: Instant, lifetime: Duration) {
        while let Some((_, packet)) = self.queue.pop_front_if(|(arrived, _)| *arrived + lifetime <= now) {
            self.bytes = self.bytes - Bytes(u64::from(packet.len));
            self.counters.expired += 1;
            self.dropped.push_back((packet, DropReason::PdcpDiscard));
        }
    }
    fn pop(&mut self, now: Instant) -> Option<Packet> {
        let (arrived, packet) = self.queue.pop_front()?;
        self.waited.add(now, arrived);
        self.counters.count_out(&packet);
        self.bytes = self.bytes - Bytes(u64::from(packet.len));
        Some(packet)
    }
    fn head_len(&self) -> Option<Bytes> {
        self.queue.front().map(|(_, packet)| Bytes(u64::from(packet.len)))
    }
    fn head_arrived_at(&self) -> Option<Instant> {
        self.queue.front().map(|(arrived, _)| *arrived)
    }
    fn bytes(&self) -> Bytes {
        self.bytes
    }
    fn packets(&self) -> usize {
        self.queue.len()
    }
    fn waited(&self) -> Waited {
        self.waited
    }
    fn pop_dropped(&mut self) -> Option<(Packet, DropReason)> {
        self.dropped.pop_front()
    }
    fn counters(&self) -> QueueCounters {
        self.counters
    }
}
