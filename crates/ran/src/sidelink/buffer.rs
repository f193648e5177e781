//! The buffer of a sending station whose ACK filter acts on one of its paths.
//!
//! Packets stay where they arrived: the filter's buffer and the plain one take turns, and a packet enters the
//! other one only once that is empty, so that the order stays.

use paceline_net::{Bytes, DropReason, DropTail, Duration, Instant, Packet, QueueCounters, SduQueue, Waited};

type Queue = dyn SduQueue + Send;

/// Two buffers, of which one has an ACK filter.
pub(super) struct PathBuffer {
    /// The plain buffer, and that with the filter.
    queues: [Box<Queue>; 2],
    /// The one that packets enter; those of the other one are older.
    active: usize,
    /// The one of the present path.
    wanted: usize,
}

impl PathBuffer {
    pub fn new(limit: Bytes, filter: Box<Queue>) -> Self {
        Self { queues: [Box::new(DropTail::new(limit)), filter], active: 0, wanted: 0 }
    }
    /// The buffer with the oldest packet.
    fn first(&self) -> usize {
        let older = 1 - self.active;
        if self.queues[older].packets() > 0 { older } else { self.active }
    }
    fn both<T>(&self, of: impl Fn(&Queue) -> T) -> [T; 2] {
        self.queues.each_ref().map(|queue| of(&**queue))
    }
}

impl SduQueue for PathBuffer {
    fn push(&mut self, now: Instant, packet: Packet) {
        if self.queues[self.wanted].packets() == 0 {
            self.active = self.wanted;
        }
        self.queues[self.active].push(now, packet);
    }
    fn on_path(&mut self, filters: bool) {
        self.wanted = usize::from(filters);
    }
    fn on_grant(&mut self, now: Instant, room: Bytes, overhead: Bytes) {
        if self.wanted == 1 {
            self.queues[1].on_grant(now, room, overhead);
        }
    }
    fn on_peer_block(&mut self, size: Bytes) {
        self.queues[1].on_peer_block(size);
    }
    fn expire(&mut self, now: Instant, lifetime: Duration) {
        self.queues.iter_mut().for_each(|queue| queue.expire(now, lifetime));
    }
    fn pop(&mut self, now: Instant) -> Option<Packet> {
        let first = self.first();
        self.queues[first].pop(now)
    }
    fn head_len(&self) -> Option<Bytes> {
        self.queues[self.first()].head_len()
    }
    fn head_arrived_at(&self) -> Option<Instant> {
        self.queues[self.first()].head_arrived_at()
    }
    fn bytes(&self) -> Bytes {
        let [plain, filtered] = self.both(|queue| queue.bytes());
        plain + filtered
    }
    fn packets(&self) -> usize {
        self.both(|queue| queue.packets()).iter().sum()
    }
    fn waited(&self) -> Waited {
        let [plain, filtered] = self.both(|queue| queue.waited());
        Waited { packets: plain.packets + filtered.packets, ns: plain.ns + filtered.ns }
    }
    fn pop_dropped(&mut self) -> Option<(Packet, DropReason)> {
        self.queues.iter_mut().find_map(|queue| queue.pop_dropped())
    }
    fn counters(&self) -> QueueCounters {
        let [a, b] = self.both(|queue| queue.counters());
        QueueCounters {
            packets_in: a.packets_in + b.packets_in,
            packets_out: a.packets_out + b.packets_out,
            acks_in: a.acks_in + b.acks_in,
            acks_out: a.acks_out + b.acks_out,
            acks_discarded: a.acks_discarded + b.acks_discarded,
            queue_drops: a.queue_drops + b.queue_drops,
            expired: a.expired + b.expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{SeqNumber, TcpHeader};

    #[test]
    fn packets_keep_their_order_over_changes_of_the_path() {
        let address = "198.18.0.1".parse().unwrap();
        let mut buffer = PathBuffer::new(Bytes(10_000), Box::new(DropTail::new(Bytes(10_000))));
        let mut sent = 0;
        let mut out = Vec::new();
        for step in 0..200u32 {
            buffer.on_path(step % 7 < 4);
            for _ in 0..step % 3 {
                let tcp = TcpHeader { seq: SeqNumber(sent), ..TcpHeader::default() };
                buffer.push(Instant::ZERO, Packet::tcp(address, address, tcp));
                sent += 1;
            }
            out.extend((0..1 + step % 2).filter_map(|_| buffer.pop(Instant::ZERO)));
        }
        out.extend(std::iter::from_fn(|| buffer.pop(Instant::ZERO)));
        let numbers: Vec<u32> = out.iter().map(|packet| packet.tcp_header().unwrap().seq.0).collect();
        assert!(numbers.iter().copied().eq(0..sent), "{numbers:?}");
        assert_eq!((buffer.packets(), buffer.bytes()), (0, Bytes::ZERO));
        assert_eq!(buffer.counters().packets_out, u64::from(sent));
    }
}
