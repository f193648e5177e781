//! FQ-CoDel (RFC 8290): flows are hashed to queues that a deficit round robin serves, new flows before old
//! ones, each queue under a CoDel control of its own.

use super::codel::Codel;
use super::state::{FairConfig, Fifo, Queued, State};
use crate::keyed_hash::HashKey;
use crate::node::DropReason;
use crate::packet::{Packet, Transport};
use crate::time::Instant;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// Most packets that are dropped at a time from the longest queue (RFC 8290 §4.1).
const DROP_BATCH: usize = 64;

#[derive(Debug)]
pub(super) struct FqCodel {
    quantum: i64,
    flows: Vec<Flow>,
    /// Flows that have just got a packet, and flows that have had their first quantum.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    key: HashKey,
}

#[derive(Debug)]
struct Flow {
    fifo: Fifo,
    codel: Codel,
    /// Bytes that the flow may still send in this round.
    credits: i64,
    /// Whether the flow is in one of the two lists.
    listed: bool,
}

impl FqCodel {
    pub fn new(config: FairConfig, codel: Codel, seed: u64) -> Self {
        let flow = || Flow { fifo: Fifo::default(), codel: codel.clone(), credits: 0, listed: false };
        Self {
            quantum: config.quantum.0 as i64,
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            key: HashKey::new(seed),
        }
    }
    pub fn push(&mut self, queued: Queued, state: &mut State) {
        let index = self.index(&queued.packet);
        let flow = &mut self.flows[index];
        flow.fifo.push(queued);
        if !flow.listed {
            (flow.listed, flow.credits) = (true, self.quantum);
            state.counters.new_flows += 1;
            self.new.push_back(index);
        }
    }
    /// RFC 8290 §4.2.
    pub fn pop(&mut self, now: Instant, state: &mut State) -> Option<Queued> {
        loop {
            let is_new = !self.new.is_empty();
            let index = *if is_new { self.new.front()? } else { self.old.front()? };
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            if let Some(queued) = flow.codel.pop(now, &mut flow.fifo, state) {
                flow.credits -= queued.len().0 as i64;
                return Some(queued);
            }
            list.pop_front();
            // A new flow without packets stays among the old ones for a round: otherwise it could be new
            // again at once, ahead of all of them (RFC 8290 §4.2).
            if is_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
    /// Drops half of the packets of the queue with most bytes, from its head. False if all are empty.
    pub fn drop_from_longest(&mut self, state: &mut State) -> bool {
        let listed = self.new.iter().chain(&self.old);
        let longest = listed.copied().max_by_key(|index| (self.flows[*index].fifo.bytes, *index));
        let Some(fifo) = longest.map(|index| &mut self.flows[index].fifo) else { return false };
        let batch = fifo.packets.len().div_ceil(2).min(DROP_BATCH);
        for _ in 0..batch {
            let Some(queued) = state.take(fifo) else { break };
            state.counters.overflows += 1;
            state.dropped.push_back((queued, DropReason::QueueFull));
        }
        batch > 0
    }
    fn index(&self, packet: &Packet) -> usize {
        let ports = match &packet.transport {
            Transport::Tcp(tcp) => (6, tcp.src_port, tcp.dst_port),
            Transport::Udp { src_port, dst_port, .. } => (17, *src_port, *dst_port),
            Transport::Other(protocol) => (*protocol, 0, 0),
        };
        let hash = self.key.hash_one((packet.ip.src, packet.ip.dst, ports));
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, ms, packet};
    use super::super::{CodelConfig, ManagedQueue};
    use super::*;
    use crate::units::Bytes;

    fn queue(limit_packets: u64) -> ManagedQueue {
        let fair = FairConfig { quantum: Bytes(1514), flows: 1024 };
        ManagedQueue::new(&CodelConfig { limit_packets, ..config(Some(fair)) }, 1)
    }

    #[test]
    fn two_flows_that_send_at_different_rates_get_equal_shares() {
        let mut queue = queue(10_240);
        let mut sent = [0u32; 2];
        for now in 0..10_000 {
            // One flow offers four times the link, the other three quarters of it.
            (0..4).for_each(|_| queue.push(ms(now), packet(1, 0), 0));
            (0..u64::from(now % 4 > 0)).for_each(|_| queue.push(ms(now), packet(2, 0), 1));
            sent[queue.pop(ms(now)).expect("a packet").owner] += 1;
        }
        let share = f64::from(sent[1]) / 10_000.0;
        assert!((share - 0.5).abs() < 0.01, "{sent:?}");
    }

    #[test]
    fn a_sparse_flow_waits_for_one_packet_at_most() {
        let mut queue = queue(10_240);
        (0..1000).for_each(|_| queue.push(ms(0), packet(1, 0), 0));
        let mut waited = Vec::new();
        for now in 1..500 {
            if now % 20 == 0 {
                queue.push(ms(now), packet(2, 0), 1);
            }
            let queued = queue.pop(ms(now)).expect("a packet");
            if queued.owner == 1 {
                waited.push(ms(now).since(queued.arrived).as_millis());
            }
        }
        assert_eq!(waited.len(), 24);
        assert!(waited.iter().all(|ms| *ms <= 1), "{waited:?}");
        assert_eq!(queue.counters().new_flows, 25);
    }

    #[test]
    fn above_the_limit_the_longest_queue_loses_packets_from_its_head() {
        let mut queue = queue(100);
        queue.push(ms(0), packet(2, 0), 7);
        (0..100).for_each(|owner| queue.push(ms(0), packet(1, 0), owner));
        let dropped = std::iter::from_fn(|| queue.pop_dropped()).map(|(queued, _)| queued.owner);
        assert_eq!(dropped.collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
        let left: Vec<usize> = std::iter::from_fn(|| queue.pop(ms(1))).map(|queued| queued.owner).collect();
        assert_eq!(left.len(), 51);
        assert!(left.contains(&7) && queue.is_empty());
        assert_eq!(queue.counters().overflows, 50);
    }

    #[test]
    fn a_flow_that_is_new_again_and_again_does_not_starve_an_old_one() {
        let mut queue = queue(10_240);
        (0..400).for_each(|_| queue.push(ms(0), packet(1, 0), 0));
        let mut of_old = 0;
        for now in 1..=200 {
            queue.push(ms(now), packet(2, 0), 1); // as much as the link carries
            of_old += u32::from(queue.pop(ms(now)).is_some_and(|queued| queued.owner == 0));
        }
        assert!((80..=120).contains(&of_old), "{of_old}");
    }
}
