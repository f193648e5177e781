//! The line towards the servers, for devices whose ACKs are filtered: a queue that is served at the line's rate, and in
//! it the ACK filter with the rules for live traffic. Without a queue nothing is discarded.

use crate::gateway::config::Filter;
use crate::gateway::counter::{Counter, CounterValues};
use paceline_net::split::split;
use paceline_net::{Bytes, Duration, Instant, Packet, Rate, SduQueue};
use paceline_pep::ack_filter::Holdout;
use paceline_pep::{AckFilter, AckFilterConfig, KeepReason, Scheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payload bytes of the segments that are acknowledged.
const SEGMENT: Bytes = Bytes(1448);
/// So much may leave at once when the queue has been empty.
const BURST: Duration = Duration::from_millis(1);
/// And when it was not, but its worker slept: longer than any tick.
const CATCH_UP: Duration = Duration::from_millis(20);

/// The line itself, which all workers share: when it is free again, in nanoseconds of the clock.
#[derive(Debug, Default)]
pub struct Line(AtomicU64);

impl Line {
    fn free_at(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
    /// It has not been busy since.
    fn has_been_free(&self, since: Instant) {
        self.0.fetch_max(since.as_nanos(), Ordering::Relaxed);
    }
    /// It is busy for so long more.
    fn use_for(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos(), Ordering::Relaxed);
    }
}

/// The queue of one worker.
pub struct Uplink {
    queue: AckFilter,
    /// What is longer fills much of the queue.
    short: Bytes,
    rate: Rate,
    line: Arc<Line>,
    /// So many packets leave without regard to the line.
    released: usize,
}

impl Uplink {
    /// A queue, if the configuration says how fast the line is.
    pub fn new(filter: &Filter, line: Arc<Line>) -> Option<Self> {
        let config =
            AckFilterConfig { scheme: Scheme::Safe, limit: filter.queue, segment: SEGMENT, header: Bytes(0) };
        let rate = filter.rate?;
        let short = Bytes(filter.queue.0 / 8);
        Some(Self { queue: AckFilter::new(config), short, rate, line, released: 0 })
    }
    /// A packet arrives. A super-packet that would be a burst on the line, or fill a short queue, is cut: what comes behind it
    /// is not to wait for all of it.
    pub fn push(&mut self, now: Instant, packet: Packet) {
        if self.queue.packets() == 0 {
            self.line.has_been_free(before(now, BURST));
        }
        let len = Bytes(packet.len.into());
        if self.rate.time_to_send(len) > BURST || len > self.short {
            split(packet).into_iter().for_each(|part| self.queue.push(now, part));
        } else {
            self.queue.push(now, packet);
        }
        while self.queue.pop_dropped().is_some() {}
    }
    /// The next packet, if the line is free.
    pub fn pop(&mut self, now: Instant) -> Option<Packet> {
        if self.released == 0 && self.line.free_at() > now {
            return None;
        }
        let packet = self.queue.pop(now)?;
        self.released = self.released.saturating_sub(1);
        self.line.has_been_free(before(now, CATCH_UP));
        self.line.use_for(self.rate.time_to_send(Bytes(packet.len.into())));
        Some(packet)
    }
    /// What waits leaves at once: what comes later goes another way, and is not to overtake it.
    pub fn release(&mut self) {
        self.released = self.queue.packets();
    }
    /// From now on the ACKs of these connections are not filtered.
    pub fn set_holdout(&mut self, holdout: Holdout) {
        self.queue.set_holdout(holdout);
    }
    /// When the next one can leave.
    pub fn next_at(&self) -> Option<Instant> {
        let at = if self.released > 0 { Instant::ZERO } else { self.line.free_at() };
        (self.queue.packets() > 0).then_some(at)
    }
    /// Adds the counters of the filter.
    pub fn add_counters(&self, counters: &mut CounterValues) {
        let stats = self.queue.stats();
        counters.extend([
            (Counter::FilterAcksIn, stats.queue.acks_in),
            (Counter::FilterAcksDiscarded, stats.queue.acks_discarded),
            (Counter::FilterQueueDrops, stats.queue.queue_drops),
        ]);
        counters.extend(KeepReason::ALL.map(|reason| (Counter::Kept(reason), stats.kept(reason))));
    }
}

fn before(now: Instant, time: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(time.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{SeqNumber, TcpFlags, TcpHeader, TcpOptions};

    const RATE: Rate = Rate(10_000_000);

    /// Full segments of an upload.
    fn segment() -> Packet {
        let tcp = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: SeqNumber(1),
            ack: SeqNumber(1),
            flags: TcpFlags::ACK,
            window: 1,
            options: TcpOptions::default(),
            payload_len: 1460,
        };
        Packet::tcp([198, 18, 0, 1].into(), [198, 18, 0, 2].into(), tcp)
    }
    fn uplinks(number: usize) -> Vec<Uplink> {
        let filter = Filter { rate: Some(RATE), queue: Bytes(1 << 24), ..Filter::default() };
        let line = Arc::default();
        let uplinks = std::iter::repeat_with(|| Uplink::new(&filter, Arc::clone(&line)));
        uplinks.take(number).map(|uplink| uplink.expect("there is a rate")).collect()
    }
    fn popped(uplink: &mut Uplink, now: Instant) -> u64 {
        std::iter::from_fn(|| uplink.pop(now)).map(|packet| u64::from(packet.len)).sum()
    }

    #[test]
    fn the_line_is_full_whatever_the_tick_and_the_number_of_workers() {
        for (workers, tick_us) in [(1, 100), (1, 2_000), (1, 5_000), (2, 100), (3, 5_000)] {
            let mut uplinks = uplinks(workers);
            let mut at = Instant::from_millis(1_000);
            (0..2_000).for_each(|_| uplinks.iter_mut().for_each(|uplink| uplink.push(at, segment())));
            let mut sent = 0;
            for _ in 0..1_000_000 / tick_us {
                sent += uplinks.iter_mut().map(|uplink| popped(uplink, at)).sum::<u64>();
                at += Duration::from_micros(tick_us);
            }
            let whole = 8.0 * sent as f64 / RATE.0 as f64;
            assert!((0.99..1.01).contains(&whole), "{whole} with {workers} workers and {tick_us} us");
        }
    }

    #[test]
    fn little_leaves_at_once_after_a_pause() {
        let mut uplink = uplinks(1).remove(0);
        let at = Instant::from_millis(1_000);
        (0..100).for_each(|_| uplink.push(at, segment()));
        assert_eq!(popped(&mut uplink, at), 1500);
        assert_eq!(uplink.next_at(), Some(at + RATE.time_to_send(Bytes(1500)).saturating_sub(BURST)));
    }

    #[test]
    fn what_is_released_leaves_at_once_and_what_comes_then_does_not() {
        let mut uplink = uplinks(1).remove(0);
        let at = Instant::from_millis(1_000);
        (0..100).for_each(|_| uplink.push(at, segment()));
        uplink.release();
        assert_eq!(uplink.next_at(), Some(Instant::ZERO));
        (0..100).for_each(|_| uplink.push(at, segment()));
        assert_eq!(popped(&mut uplink, at), 100 * 1500);
        assert!(uplink.next_at() > Some(at));
    }
}
