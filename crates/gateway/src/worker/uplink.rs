//! The queue ahead of the line towards the servers, for devices whose ACKs are filtered, which is served at
//! the line's rate. The ACK filter (scheme `safe`) discards ACKs in this queue, so without a queue it
//! discards none.

use crate::config::Filter;
use crate::counter::{Counter, CounterValues};
use paceline_net::split::split;
use paceline_net::{Bytes, Duration, Instant, Packet, Rate, SduQueue};
use paceline_pep::ack_filter::Holdout;
use paceline_pep::{AckFilter, AckFilterConfig, KeepReason, Scheme};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Payload bytes of the acknowledged segments. Chosen: Ethernet's MTU of 1500 bytes, less 40 bytes of IPv4
/// and TCP headers and 12 of timestamps (RFC 7323).
const SEGMENT: Bytes = Bytes(1448);
/// Burst, in time on the line, after the queue was empty. Chosen: several ticks of a worker, and a delay that
/// no ACK clock notices.
const BURST: Duration = Duration::from_millis(1);
/// Burst, in time on the line, after the worker slept while packets were queued. Chosen: longer than the
/// largest tick (5 ms) and the longest sleep (10 ms), so that the line stays full.
const CATCH_UP: Duration = Duration::from_millis(20);

/// The line, which all workers share: the time at which it is free again, in nanoseconds of the monotonic
/// clock.
#[derive(Debug, Default)]
pub struct Line(AtomicU64);

impl Line {
    fn free_at(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
    /// Records that the line was free at `since`: unused time before it is not made up for.
    fn forfeit_before(&self, since: Instant) {
        self.0.fetch_max(since.as_nanos(), Ordering::Relaxed);
    }
    /// Occupies the line for this time more.
    fn occupy(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos(), Ordering::Relaxed);
    }
}

/// The queue of one worker.
pub struct Uplink {
    queue: AckFilter,
    /// A longer packet is split: it would fill an eighth of the queue.
    split_above: Bytes,
    rate: Rate,
    line: Arc<Line>,
    /// Packets that leave without waiting for the line.
    released: usize,
}

impl Uplink {
    /// An empty queue; None if the configuration does not state the rate of the line.
    pub fn new(filter: &Filter, line: Arc<Line>) -> Option<Self> {
        let config =
            AckFilterConfig { scheme: Scheme::Safe, limit: filter.queue, segment: SEGMENT, header: Bytes(0) };
        let rate = filter.rate?;
        let split_above = Bytes(filter.queue.0 / 8);
        Some(Self { queue: AckFilter::new(config), split_above, rate, line, released: 0 })
    }
    /// Queues a packet. A super-packet that would occupy the line for more than [`BURST`], or fill much of a
    /// short queue, is split, so that other packets need not wait for all of it.
    pub fn push(&mut self, now: Instant, packet: Packet) {
        if self.queue.packets() == 0 {
            self.line.forfeit_before(before(now, BURST));
        }
        let len = Bytes(packet.len.into());
        if self.rate.time_to_send(len) > BURST || len > self.split_above {
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
        self.line.forfeit_before(before(now, CATCH_UP));
        self.line.occupy(self.rate.time_to_send(Bytes(packet.len.into())));
        Some(packet)
    }
    /// Lets the queued packets leave at once. Called when later packets of their connections take another
    /// path (the kernel, another accelerator), on which they would overtake the queued ones.
    pub fn release(&mut self) {
        self.released = self.queue.packets();
    }
    /// Sets the connections whose ACKs are not filtered from now on.
    pub fn set_holdout(&mut self, holdout: Holdout) {
        self.queue.set_holdout(holdout);
    }
    /// The time at which the next packet can leave.
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

/// The instant `time` before `now`.
fn before(now: Instant, time: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(time.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{SeqNumber, TcpFlags, TcpHeader, TcpOptions};

    const RATE: Rate = Rate(10_000_000);

    /// A full segment of an upload.
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
    fn the_line_is_fully_used_at_any_tick_and_number_of_workers() {
        for (workers, tick_us) in [(1, 100), (1, 2_000), (1, 5_000), (2, 100), (3, 5_000)] {
            let mut uplinks = uplinks(workers);
            let mut at = Instant::from_millis(1_000);
            (0..2_000).for_each(|_| uplinks.iter_mut().for_each(|uplink| uplink.push(at, segment())));
            let mut sent = 0;
            for _ in 0..1_000_000 / tick_us {
                sent += uplinks.iter_mut().map(|uplink| popped(uplink, at)).sum::<u64>();
                at += Duration::from_micros(tick_us);
            }
            let share = 8.0 * sent as f64 / RATE.0 as f64;
            assert!(
                (0.99..1.01).contains(&share),
                "{share} of the line with {workers} workers and {tick_us} us"
            );
        }
    }

    #[test]
    fn the_burst_after_an_idle_time_is_bounded() {
        let mut uplink = uplinks(1).remove(0);
        let at = Instant::from_millis(1_000);
        (0..100).for_each(|_| uplink.push(at, segment()));
        assert_eq!(popped(&mut uplink, at), 1500);
        assert_eq!(uplink.next_at(), Some(at + RATE.time_to_send(Bytes(1500)).saturating_sub(BURST)));
    }

    #[test]
    fn released_packets_leave_at_once_and_later_ones_wait_for_the_line() {
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
