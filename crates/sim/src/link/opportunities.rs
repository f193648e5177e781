//! Service of a link that follows a trace: a packet may use several opportunities, and several queued packets
//! may share one; an opportunity with an empty queue is lost.

use paceline_net::trace::{OPPORTUNITY_BYTES, Trace};
use paceline_net::{Bytes, Instant};
use std::sync::Arc;

/// Bytes that Linux puts before each packet of a TUN device (`struct tun_pi`); mahimahi counts them.
pub const PACKET_INFORMATION_BYTES: u64 = 4;

/// A service that follows a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    /// Index of the next opportunity, and of its time.
    next: u32,
    run: usize,
    /// Start of the present repetition, ms.
    base_ms: u64,
    /// Time of the opportunity in use, and its unused bytes.
    at: Instant,
    left: u64,
}

impl Opportunities {
    /// A service at the beginning of a trace.
    pub fn new(trace: Arc<Trace>) -> Self {
        Self { trace, next: 0, run: 0, base_ms: 0, at: Instant::ZERO, left: 0 }
    }
    /// Times at which the first and the last byte of a packet are sent that is at the head of the queue from
    /// `start` on. Unused bytes of the present opportunity are for packets that were queued (`waited`) at its
    /// time.
    pub fn serve(&mut self, start: Instant, len: Bytes, waited: bool) -> (Instant, Instant) {
        if !waited {
            self.skip_to(start);
        }
        let (mut need, mut begins) = (len.0 + PACKET_INFORMATION_BYTES, None);
        loop {
            if self.left == 0 {
                self.at = self.next_at();
                self.left = OPPORTUNITY_BYTES;
                self.advance();
            }
            let begins = *begins.get_or_insert(self.at);
            let sent = self.left.min(need);
            self.left -= sent;
            need -= sent;
            if need == 0 {
                return (begins, self.at);
            }
        }
    }
    /// Time of the opportunity in which the next packet can begin to be sent. Unused bytes of the present one
    /// are for packets that were queued (`waited`) at its time.
    pub fn opens_at(&mut self, start: Instant, waited: bool) -> Instant {
        if !waited {
            self.skip_to(start);
        }
        if self.left == 0 { self.next_at() } else { self.at }
    }
    fn skip_to(&mut self, start: Instant) {
        self.left = 0;
        while self.next_at() <= start {
            self.advance();
        }
    }
    /// Bytes that could have been sent by `now`.
    pub fn capacity(&self, now: Instant) -> u64 {
        self.trace.count(now) * OPPORTUNITY_BYTES
    }
    fn next_at(&self) -> Instant {
        Instant::from_millis(self.base_ms + u64::from(self.trace.runs()[self.run].at_ms))
    }
    fn advance(&mut self) {
        self.next += 1;
        self.run += usize::from(self.next == self.trace.runs()[self.run].until);
        if self.run == self.trace.runs().len() {
            (self.next, self.run) = (0, 0);
            self.base_ms += self.trace.length_ms();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }
    fn follow(at_ms: &[u32]) -> Opportunities {
        Opportunities::new(Arc::new(Trace::new(at_ms.to_vec()).unwrap()))
    }
    fn left(at: u64) -> (Instant, Instant) {
        (ms(at), ms(at))
    }

    #[test]
    fn full_packets_take_an_opportunity_each_across_the_end_of_the_file() {
        let mut link = follow(&[2, 2, 5, 10]);
        let full = Bytes(1500);
        assert_eq!(link.serve(ms(0), full, false), left(2));
        for at in [2, 5, 10, 12, 12, 15, 20, 22] {
            assert_eq!(link.serve(ms(0), full, true), left(at));
        }
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_several() {
        let mut link = follow(&[3, 6, 9]);
        // 496 + 4 bytes each: three packets fit into the first opportunity, and 4 bytes of the fourth.
        for at in [left(3), left(3), left(3), (ms(3), ms(6))] {
            assert_eq!(link.serve(ms(0), Bytes(496), at != left(3) || link.next != 0), at);
        }
        // 1008 bytes are left of 6 ms: 1000 + 4 of this packet fit, and 4 of the next, whose other 1492 use 9
        // ms.
        assert_eq!(link.serve(ms(0), Bytes(1000), true), left(6));
        assert_eq!(link.serve(ms(0), Bytes(1492), true), (ms(6), ms(9)));
        // A jumbo frame uses the last 12 bytes of 9 ms, all of 12 and 15 ms, and a part of 18 ms.
        assert_eq!(link.serve(ms(0), Bytes(3500), true), (ms(9), ms(18)));
    }

    #[test]
    fn opportunities_with_an_empty_queue_are_lost() {
        let mut link = follow(&[3, 3, 6]);
        assert_eq!(link.serve(ms(0), Bytes(100), false), left(3));
        // This packet came after the first one was sent: the rest of that opportunity and the second one at 3
        // ms are lost.
        assert_eq!(link.serve(ms(3), Bytes(100), false), left(6));
        // Arrivals just before an opportunity and exactly at one: at equal times the opportunity is first.
        let mut link = follow(&[3, 6]);
        assert_eq!(link.serve(Instant::from_nanos(2_999_999), Bytes(100), false), left(3));
        assert_eq!(link.serve(ms(6), Bytes(100), false), left(9));
    }

    #[test]
    fn a_full_queue_uses_every_opportunity_of_all_repetitions() {
        let mut link = follow(&[0, 2, 2, 5]);
        let served =
            (0..).map_while(|n| Some(link.serve(ms(0), Bytes(1500), n > 0).1).filter(|at| *at <= ms(10)));
        assert_eq!(served.count(), 8, "all but the one at time 0, before any packet");
    }
}
