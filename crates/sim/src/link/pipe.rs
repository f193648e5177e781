//! One direction of a link: a queue, what serves it, and what happens on the way after it.
//!
//! ```text
//! drop-tail queue - service - loss, duplication - delay, jitter, reordering
//! ```
//!
//! Losses come after the service: what is lost has used the link, as on a radio.

use super::cellular::Downlink;
use super::fixed::Fixed;
use super::trace::{Opportunities, PACKET_INFORMATION};
use crate::engine::NEVER;
use crate::scenario;
use hdrhistogram::Histogram;
use paceline_net::{Bytes, Duration, Instant, Packet, Stream};
use std::collections::{BTreeMap, VecDeque};

/// What a direction can carry.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    Fixed(Fixed),
    Trace(Opportunities),
    Cellular(Box<Downlink>),
}

impl Service {
    /// When the first and the last byte of a packet leave that comes to the head of the queue at `start`.
    fn serve(&mut self, start: Instant, len: Bytes, waited: bool, queued: Bytes) -> (Instant, Instant) {
        match self {
            Self::Fixed(fixed) => (start, fixed.serve(start, len)),
            Self::Trace(opportunities) => opportunities.serve(start, len, waited),
            Self::Cellular(downlink) => (start, downlink.serve(start, len, queued)),
        }
    }
    fn capacity(&mut self, now: Instant) -> u64 {
        match self {
            Self::Fixed(fixed) => fixed.capacity(now),
            Self::Trace(opportunities) => opportunities.capacity(now),
            Self::Cellular(downlink) => downlink.capacity(now),
        }
    }
    /// Bytes that a packet counts in the queue.
    fn size(&self, packet: &Packet) -> Bytes {
        let more = if matches!(self, Self::Trace(_)) { PACKET_INFORMATION } else { 0 };
        Bytes(u64::from(packet.len) + more)
    }
}

/// What one station's packets did in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipeStats {
    /// Packets that came in.
    pub packets_in: u64,
    /// Packets that arrived, copies included.
    pub packets_out: u64,
    /// Copies made.
    pub copies: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets lost after they were sent.
    pub losses: u64,
    /// Packets marked with Congestion Experienced.
    pub marked: u64,
    /// Packets sent, lost ones included.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Sum of their times from arrival to last byte sent, ns.
    pub queued_ns: u64,
    /// Packets inside.
    pub held: u64,
    /// Bytes waiting or being sent.
    pub queued_bytes: u64,
}

/// What came out of [`Pipe::poll`].
#[derive(Debug)]
pub(crate) enum Outcome {
    Arrived(usize, Packet),
    Lost(Packet),
}

#[derive(Debug)]
struct Waiting {
    packet: Packet,
    station: usize,
    arrived: Instant,
}

/// Random losses, copies and delays of one direction.
#[derive(Debug)]
struct Way {
    loss: f64,
    /// Probability to begin a burst of losses, and to end it.
    burst: (f64, f64),
    in_burst: bool,
    copy: f64,
    hold: f64,
    held_for: Duration,
    jitter: Duration,
    delay: Duration,
    frame: Duration,
    stream: Stream,
    /// When the last packet arrives that was not held back: none comes before it.
    last: Instant,
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Pipe {
    service: Service,
    /// The same, to ask for its capacity: the other one may have looked ahead.
    meter: Service,
    limit: (Option<u64>, Option<Bytes>),
    ecn_threshold: Option<Bytes>,
    queue: VecDeque<Waiting>,
    queue_bytes: Bytes,
    /// The packet at the head, when its first and its last byte leave.
    head: Option<(Instant, Instant, Waiting)>,
    way: Way,
    flying: BTreeMap<(Instant, u64), (usize, Packet)>,
    serial: u64,
    /// Times from arrival to last byte sent, us.
    delays_us: Histogram<u64>,
}

impl Pipe {
    /// A direction of `link`; the random streams of its way are named after `name`.
    pub fn new(link: &scenario::Link, service: Service, seed: u64, name: &str) -> Self {
        Self {
            meter: service.clone(),
            service,
            limit: (link.queue_packets, link.queue),
            ecn_threshold: link.ecn_threshold,
            queue: VecDeque::new(),
            queue_bytes: Bytes::ZERO,
            head: None,
            way: Way::new(link, Stream::new(seed, &format!("{name}/way"))),
            flying: BTreeMap::new(),
            serial: 0,
            delays_us: new_histogram(),
        }
    }
    /// A packet of `station` comes in, after everything that is due by `now`; it comes back if the queue is full.
    pub fn push(
        &mut self,
        now: Instant,
        station: usize,
        mut packet: Packet,
        stats: &mut PipeStats,
    ) -> Result<(), Packet> {
        stats.packets_in += 1;
        let size = self.service.size(&packet);
        // A head that has not begun is still in the queue.
        let unbegun =
            self.head.as_ref().filter(|(begins, _, _)| *begins > now).map(|(_, _, head)| &head.packet);
        let bytes = self.queue_bytes + unbegun.map_or(Bytes::ZERO, |packet| self.service.size(packet)) + size;
        let packets = self.queue.len() as u64 + u64::from(unbegun.is_some()) + 1;
        if self.limit.0.is_some_and(|limit| packets > limit)
            || self.limit.1.is_some_and(|limit| bytes > limit)
        {
            stats.queue_drops += 1;
            return Err(packet);
        }
        if self.ecn_threshold.is_some_and(|most| bytes > most) && packet.ip.ecn() != 0 {
            packet.set_congestion_experienced();
            stats.marked += 1;
        }
        stats.held += 1;
        stats.queued_bytes += u64::from(packet.len);
        let waiting = Waiting { packet, station, arrived: now };
        if self.head.is_some() {
            self.queue_bytes += size;
            self.queue.push_back(waiting);
        } else {
            self.begin(now, waiting, false);
        }
        Ok(())
    }
    fn begin(&mut self, now: Instant, waiting: Waiting, waited: bool) {
        let len = Bytes(u64::from(waiting.packet.len));
        let (begins, ends) = self.service.serve(now, len, waited, self.queue_bytes);
        self.head = Some((begins, ends, waiting));
    }
    /// When something happens next.
    pub fn due(&self) -> Instant {
        let sent = self.head.as_ref().map_or(NEVER, |(_, ends, _)| *ends);
        let arrives = self.flying.first_key_value().map_or(NEVER, |((at, _), _)| *at);
        sent.min(arrives)
    }
    /// The next thing that has happened by `now`. `stats` are all stations' of this direction.
    pub fn poll(&mut self, now: Instant, stats: &mut [PipeStats]) -> Option<Outcome> {
        loop {
            let sent = self.head.as_ref().map_or(NEVER, |(_, ends, _)| *ends);
            if let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now.min(sent)) {
                let (station, packet) = entry.remove();
                stats[station].packets_out += 1;
                stats[station].held -= 1;
                return Some(Outcome::Arrived(station, packet));
            }
            if sent > now {
                return None;
            }
            let (_, ends, head) = self.head.take()?;
            if let Some(next) = self.queue.pop_front() {
                self.queue_bytes = self.queue_bytes - self.service.size(&next.packet);
                self.begin(ends, next, true);
            }
            let of = &mut stats[head.station];
            let (len, queued) = (u64::from(head.packet.len), ends.since(head.arrived).as_nanos());
            of.sent += 1;
            of.sent_bytes += len;
            of.queued_bytes -= len;
            of.queued_ns += queued;
            self.delays_us.saturating_record(queued / 1000);
            if let Some(packet) = self.leave(ends, head, of) {
                of.losses += 1;
                of.held -= 1;
                return Some(Outcome::Lost(packet));
            }
        }
    }
    /// A packet was sent; it comes back if it is lost.
    fn leave(&mut self, now: Instant, head: Waiting, stats: &mut PipeStats) -> Option<Packet> {
        let Waiting { packet, station, .. } = head;
        let load_delay = match &mut self.service {
            Service::Cellular(downlink) => downlink.on_sent(now, Bytes(u64::from(packet.len))),
            _ => Some(Duration::ZERO),
        };
        let (Some(load_delay), false) = (load_delay, self.way.loses()) else { return Some(packet) };
        let at = self.way.arrival(now, load_delay);
        if self.way.stream.chance(self.way.copy) {
            stats.copies += 1;
            stats.held += 1;
            self.fly(at, station, packet.clone());
        }
        self.fly(at, station, packet);
        None
    }
    fn fly(&mut self, at: Instant, station: usize, packet: Packet) {
        self.serial += 1;
        self.flying.insert((at, self.serial), (station, packet));
    }
    /// Bytes that can have been sent by `now`; never asked for an earlier time again.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        self.meter.capacity(now)
    }
    /// Times from arrival to last byte sent, us, since the last [`Pipe::restart_delays`].
    pub fn delays_us(&self) -> &Histogram<u64> {
        &self.delays_us
    }
    /// Forgets them.
    pub fn restart_delays(&mut self) {
        self.delays_us = new_histogram();
    }
}

impl Way {
    fn new(link: &scenario::Link, stream: Stream) -> Self {
        let share = link.burst_loss_percent / 100.0;
        let ends = 1.0 / link.burst_packets.max(1.0);
        // In the long run the share of packets in bursts is begins / (begins + ends).
        let begins = if share >= 1.0 { 1.0 } else { (ends * share / (1.0 - share)).min(1.0) };
        Self {
            loss: link.loss_percent / 100.0,
            burst: (begins, ends),
            in_burst: false,
            copy: link.duplicate_percent / 100.0,
            hold: link.reorder_percent / 100.0,
            held_for: link.reorder_delay,
            jitter: link.jitter,
            delay: link.delay.unwrap_or_default(),
            frame: link.fixed.as_ref().map_or(Duration::ZERO, |fixed| fixed.frame),
            stream,
            last: Instant::ZERO,
        }
    }
    fn loses(&mut self) -> bool {
        if self.burst.0 > 0.0 {
            let changes = if self.in_burst { self.burst.1 } else { self.burst.0 };
            self.in_burst ^= self.stream.chance(changes);
        }
        self.in_burst || self.stream.chance(self.loss)
    }
    /// When a packet arrives that was sent at `now`.
    fn arrival(&mut self, now: Instant, load_delay: Duration) -> Instant {
        let frame = self.frame.as_nanos().max(1);
        let sent = Instant::from_nanos(now.as_nanos().div_ceil(frame).saturating_mul(frame));
        let mut at = sent + self.delay + load_delay;
        if !self.jitter.is_zero() {
            at += Duration::from_secs_f64(self.jitter.as_secs_f64() * self.stream.uniform());
        }
        if self.stream.chance(self.hold) {
            return at.max(self.last) + self.held_for;
        }
        self.last = at.max(self.last);
        self.last
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}
