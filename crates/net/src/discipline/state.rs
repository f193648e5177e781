//! State of a managed queue that all its parts change: packets, limits and counters.

use crate::node::DropReason;
use crate::packet::Packet;
use crate::time::Instant;
use crate::units::Bytes;
use std::collections::VecDeque;

/// Parameters of the scheduler of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FairConfig {
    /// Bytes of a flow per round (RFC 8290 §5.2.4).
    pub quantum: Bytes,
    /// Number of queues to which flows are hashed (RFC 8290 §5.2.5).
    pub flows: u32,
}

/// A packet in a queue.
#[derive(Debug)]
pub struct Queued {
    /// The packet.
    pub packet: Packet,
    /// Index that the caller gave with the packet.
    pub owner: usize,
    /// Time of its arrival.
    pub arrived: Instant,
}

impl Queued {
    pub(super) fn len(&self) -> Bytes {
        Bytes(u64::from(self.packet.len))
    }
}

/// Counters of a managed queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ManagedCounters {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Packets that left at the head.
    pub packets_out: u64,
    /// Packets marked with Congestion Experienced by CoDel.
    pub marks: u64,
    /// Packets dropped by CoDel as a congestion signal.
    pub drops: u64,
    /// Packets dropped because the queue was at its limit.
    pub overflows: u64,
    /// Times that a flow without packets in the queue got one; of FQ-CoDel.
    pub new_flows: u64,
}

/// The part of a queue that CoDel changes when a packet leaves.
#[derive(Debug, Default)]
pub(super) struct State {
    pub bytes: Bytes,
    pub packets: u64,
    /// Length of the longest packet so far: CoDel drops nothing while no more than it is queued.
    pub longest: Bytes,
    pub dropped: VecDeque<(Queued, DropReason)>,
    pub counters: ManagedCounters,
}

/// Packets in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    pub packets: VecDeque<Queued>,
    pub bytes: Bytes,
}

impl State {
    pub fn enter(&mut self, len: Bytes) {
        self.packets += 1;
        self.bytes += len;
    }
    /// Takes the packet at the head of a part of the queue.
    pub fn take(&mut self, fifo: &mut Fifo) -> Option<Queued> {
        let queued = fifo.packets.pop_front()?;
        fifo.bytes = fifo.bytes - queued.len();
        self.packets -= 1;
        self.bytes = self.bytes - queued.len();
        Some(queued)
    }
    /// Makes a packet a congestion signal. Returns it if it was marked, and drops it otherwise.
    pub fn mark_or_drop(&mut self, mut queued: Queued) -> Option<Queued> {
        if queued.packet.ip.ecn() != 0 {
            queued.packet.set_congestion_experienced();
            self.counters.marks += 1;
            return Some(queued);
        }
        self.counters.drops += 1;
        self.dropped.push_back((queued, DropReason::ActiveQueueManagement));
        None
    }
}

impl Fifo {
    pub fn push(&mut self, queued: Queued) {
        self.bytes += queued.len();
        self.packets.push_back(queued);
    }
}
