//! Queues with active management: CoDel (RFC 8289) and FQ-CoDel (RFC 8290), without a clock.
//!
//! [`ManagedQueue`] holds the packets in front of a link. The link pops a packet when it begins to send it:
//! the time that a packet was in the queue decides whether the next one is a congestion signal. The signal is
//! the codepoint CE on ECN-capable packets and a drop of others (RFC 8290 §5.2.6).

mod codel;
mod fq_codel;
mod state;

use crate::node::DropReason;
use crate::packet::Packet;
use crate::time::{Duration, Instant};
use crate::units::Bytes;
use codel::Codel;
use fq_codel::FqCodel;
pub use state::{FairConfig, ManagedCounters, Queued};
use state::{Fifo, State};

/// Parameters of a managed queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// Acceptable standing delay (RFC 8289 §4.3).
    pub target: Duration,
    /// Time in which the standing delay is measured; of the order of the largest round-trip time (§4.3).
    pub interval: Duration,
    /// Most packets in the queue.
    pub limit_packets: u64,
    /// Most bytes in the queue, if they are limited.
    pub limit_bytes: Option<Bytes>,
    /// Scheduling of FQ-CoDel; none for CoDel.
    pub fair: Option<FairConfig>,
}

/// A queue with active management.
#[derive(Debug)]
pub struct ManagedQueue {
    limit_packets: u64,
    limit_bytes: Bytes,
    kind: Kind,
    state: State,
}

#[derive(Debug)]
enum Kind {
    Codel { fifo: Fifo, codel: Codel },
    FqCodel(FqCodel),
}

impl ManagedQueue {
    /// An empty queue. `seed` determines the hash of the flows.
    pub fn new(config: &CodelConfig, seed: u64) -> Self {
        let codel = Codel::new(config.target, config.interval);
        Self {
            limit_packets: config.limit_packets,
            limit_bytes: config.limit_bytes.unwrap_or(Bytes(u64::MAX)),
            kind: match config.fair {
                None => Kind::Codel { fifo: Fifo::default(), codel },
                Some(fair) => Kind::FqCodel(FqCodel::new(fair, codel, seed)),
            },
            state: State::default(),
        }
    }
    /// A packet arrives. Above the queue's limit packets are dropped: this one (CoDel), or those at the head
    /// of the longest queue (FQ-CoDel).
    pub fn push(&mut self, now: Instant, packet: Packet, owner: usize) {
        let queued = Queued { packet, owner, arrived: now };
        let len = queued.len();
        self.state.counters.packets_in += 1;
        self.state.longest = self.state.longest.max(len);
        let is_full = |state: &State, more: u64, len: Bytes| {
            state.packets + more > self.limit_packets || state.bytes + len > self.limit_bytes
        };
        match &mut self.kind {
            Kind::Codel { .. } if is_full(&self.state, 1, len) => {
                self.state.counters.overflows += 1;
                self.state.dropped.push_back((queued, DropReason::QueueFull));
            }
            Kind::Codel { fifo, .. } => {
                self.state.enter(len);
                fifo.push(queued);
            }
            Kind::FqCodel(fair) => {
                self.state.enter(len);
                fair.push(queued, &mut self.state);
                while is_full(&self.state, 0, Bytes::ZERO) && fair.drop_from_longest(&mut self.state) {}
            }
        }
    }
    /// The next packet to send. None if the queue is empty.
    pub fn pop(&mut self, now: Instant) -> Option<Queued> {
        let queued = match &mut self.kind {
            Kind::Codel { fifo, codel } => codel.pop(now, fifo, &mut self.state),
            Kind::FqCodel(fair) => fair.pop(now, &mut self.state),
        };
        self.state.counters.packets_out += u64::from(queued.is_some());
        queued
    }
    /// The next dropped packet and the reason.
    pub fn pop_dropped(&mut self) -> Option<(Queued, DropReason)> {
        self.state.dropped.pop_front()
    }
    /// Whether no packet is in the queue.
    pub fn is_empty(&self) -> bool {
        self.state.packets == 0
    }
    /// Bytes of all packets in the queue.
    pub fn bytes(&self) -> Bytes {
        self.state.bytes
    }
    /// Counters since the queue was made.
    pub fn counters(&self) -> &ManagedCounters {
        &self.state.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::segment;

    pub(super) const ECT_0: u8 = 2;

    pub(super) fn config(fair: Option<FairConfig>) -> CodelConfig {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        CodelConfig { target, interval, limit_packets: 10_240, limit_bytes: None, fair }
    }
    /// A packet of 1000 bytes of the flow with this port.
    pub(super) fn packet(port: u16, ecn: u8) -> Packet {
        let mut packet = segment().ports(5001, port).payload_len(960).build();
        packet.ip.traffic_class = ecn;
        packet
    }
    pub(super) fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn every_packet_leaves_once_and_limits_drop_the_arriving_packet_of_codel() {
        let two = CodelConfig { limit_packets: 2, ..config(None) };
        let bytes = CodelConfig { limit_bytes: Some(Bytes(2_999)), ..config(None) };
        for config in [two, bytes] {
            let mut queue = ManagedQueue::new(&config, 1);
            (0..4).for_each(|owner| queue.push(ms(0), packet(1, 0), owner));
            let left: Vec<usize> =
                std::iter::from_fn(|| queue.pop(ms(1))).map(|queued| queued.owner).collect();
            let dropped = std::iter::from_fn(|| queue.pop_dropped());
            let dropped: Vec<_> = dropped.map(|(queued, reason)| (queued.owner, reason)).collect();
            assert_eq!(left, [0, 1]);
            assert_eq!(dropped, [2, 3].map(|owner| (owner, DropReason::QueueFull)));
            assert!(queue.is_empty() && queue.bytes() == Bytes::ZERO);
            let counters =
                ManagedCounters { packets_in: 4, packets_out: 2, overflows: 2, ..Default::default() };
            assert_eq!(*queue.counters(), counters);
        }
    }
}
