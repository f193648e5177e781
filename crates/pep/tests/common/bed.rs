//! A long-lived connection for the tests of the safe scheme.

use super::*;
use paceline_net::Duration;
use paceline_pep::KeepReason;

pub const STEP: u32 = 2 * 536;

/// A filter under a connection's ACKs, one each millisecond, with the numbers and the clock kept.
pub struct Bed {
    pub queue: AckFilter,
    pub now: Instant,
    pub next: u32,
}

impl Bed {
    /// A connection that was seen from its SYN, the round trip being 40 ms.
    pub fn opened_by(syn: impl FnOnce(&mut TcpHeader)) -> Self {
        let mut bed =
            Self { queue: filter("safe"), now: Instant::from_millis(1), next: u32::MAX - 90 * STEP };
        let syn = segment(0, 0, |tcp| {
            tcp.flags = TcpFlags::SYN;
            tcp.seq = SeqNumber(0);
            syn(tcp);
        });
        bed.queue.push(bed.now, syn);
        bed.queue.pop(bed.now);
        bed.wait(40);
        bed
    }
    pub fn open() -> Self {
        Self::opened_by(|_| ())
    }
    pub fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
    pub fn ack(&mut self) -> Packet {
        self.next = self.next.wrapping_add(STEP);
        ack(0, self.next)
    }
    pub fn push(&mut self, packet: Packet) {
        self.queue.push(self.now, packet);
    }
    /// ACKs that leave at once.
    pub fn flowing(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.ack();
            self.push(ack);
            self.queue.pop(self.now);
            self.wait(1);
        }
        self
    }
    /// ACKs that stay: the queue stands from the 15th on.
    pub fn standing(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.ack();
            self.push(ack);
            self.wait(1);
        }
        self
    }
    /// Past the first segments, with a standing queue and ACKs being discarded.
    pub fn ready() -> Self {
        let bed = Self::open().flowing(40).standing(30);
        assert!(bed.queue.counters().acks_discarded > 5);
        bed
    }
    pub fn kept(&self, reason: KeepReason) -> u64 {
        self.queue.stats().kept(reason)
    }
    /// Everything that is held, discarded ACKs thrown away.
    pub fn drain(&mut self) -> Vec<Packet> {
        while self.queue.pop_dropped().is_some() {}
        std::iter::from_fn(|| self.queue.pop(self.now)).collect()
    }
    /// Pushes a kept ACK, then `c` and `t` as changed, all at once; whether `c` got through, and `reason` counted.
    pub fn pair(
        mut self,
        c: impl FnOnce(&mut Packet),
        t: impl FnOnce(&mut Packet),
        reason: KeepReason,
    ) -> (bool, u64) {
        // A data segment separates, so that the next ACK has a fresh one ahead of it.
        let separator = segment(0, self.next, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH));
        self.push(separator);
        let (mut old, mut new) = (self.ack(), self.ack());
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
