//! A long connection whose ACKs pass the safe scheme.

use super::*;
use paceline_net::{Duration, SeqNumber};
use paceline_pep::KeepReason;

/// Bytes that each ACK newly acknowledges: two segments, as with delayed ACKs.
pub const STEP: u32 = 2 * 536;

/// A connection that sends one ACK each millisecond into a filter.
pub struct TestConnection {
    pub queue: AckFilter,
    pub now: Instant,
    /// The last acknowledgment number.
    pub acked: u32,
}

impl TestConnection {
    /// A connection whose SYN, as changed, was seen; the round-trip time is 40 ms.
    pub fn opened_with(syn: impl FnOnce(&mut TcpHeader)) -> Self {
        let acked = u32::MAX - 90 * STEP;
        let mut connection = Self { queue: filter("safe"), now: Instant::from_millis(1), acked };
        let syn = segment(0, 0, |tcp| {
            tcp.flags = TcpFlags::SYN;
            tcp.seq = SeqNumber(0);
            syn(tcp);
        });
        connection.queue.push(connection.now, syn);
        connection.queue.pop(connection.now);
        connection.wait_ms(40);
        connection
    }
    pub fn open() -> Self {
        Self::opened_with(|_| ())
    }
    pub fn wait_ms(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
    /// The next ACK.
    pub fn next_ack(&mut self) -> Packet {
        self.acked = self.acked.wrapping_add(STEP);
        ack(0, self.acked)
    }
    pub fn push(&mut self, packet: Packet) {
        self.queue.push(self.now, packet);
    }
    /// ACKs that leave the queue at once.
    pub fn pass_acks(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.next_ack();
            self.push(ack);
            self.queue.pop(self.now);
            self.wait_ms(1);
        }
        self
    }
    /// ACKs that stay in the queue, which is a standing one from the 15th on.
    pub fn queue_acks(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.next_ack();
            self.push(ack);
            self.wait_ms(1);
        }
        self
    }
    /// A connection past its first 64 segments, with a standing queue from which ACKs were discarded.
    pub fn filtered() -> Self {
        let connection = Self::open().pass_acks(40).queue_acks(30);
        assert!(connection.discarded() > 5);
        connection
    }
    /// ACKs discarded so far.
    pub fn discarded(&self) -> u64 {
        self.queue.counters().acks_discarded
    }
    /// ACKs that left, kept for `reason`.
    pub fn kept(&self, reason: KeepReason) -> u64 {
        self.queue.stats().kept(reason)
    }
    /// The packets that remain in the queue.
    pub fn drain(&mut self) -> Vec<Packet> {
        while self.queue.pop_dropped().is_some() {}
        std::iter::from_fn(|| self.queue.pop(self.now)).collect()
    }
    /// Pushes a separator, then the ACKs `c` and `t`, each changed. Returns whether `c` was kept, and how
    /// many ACKs are counted as kept for `reason`.
    pub fn push_pair(
        mut self,
        c: impl FnOnce(&mut Packet),
        t: impl FnOnce(&mut Packet),
        reason: KeepReason,
    ) -> (bool, u64) {
        // A segment that is no plain ACK: the kept segment ahead of `c` has just arrived.
        let separator = segment(0, self.acked, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH));
        self.push(separator);
        let (mut old, mut new) = (self.next_ack(), self.next_ack());
        c(&mut old);
        t(&mut new);
        self.push(old.clone());
        self.push(new.clone());
        let before = self.kept(reason);
        let left = self.drain();
        assert!(left.contains(&new), "the later ACK gets through");
        (left.contains(&old), self.kept(reason) - before)
    }
}
