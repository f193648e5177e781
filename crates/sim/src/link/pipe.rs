//! One direction of a link: a drop-tail or managed queue, its service, and the impairments behind it.
//!
//! ```text
//! queue - service - loss, duplication - delay, jitter, reordering
//! ```
//!
//! A managed queue gives a packet at the time at which its first byte can be sent, so that the time in the
//! queue is complete when CoDel decides.
//!
//! Losses come after the service: a lost packet has used the link's capacity, as on a radio.

use super::cellular::Downlink;
use super::fixed::Fixed;
use super::opportunities::{Opportunities, PACKET_INFORMATION_BYTES};
use crate::engine::NEVER;
use crate::managed::Managed;
use crate::scenario;
use hdrhistogram::Histogram;
use paceline_net::{Bytes, DropReason, Duration, Instant, Packet, Stream};
use std::collections::{BTreeMap, VecDeque};

/// The process that serves a queue: it determines when packets have been sent.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    Fixed(Fixed),
    Trace(Opportunities),
    Cellular(Box<Downlink>),
}

impl Service {
    /// Times at which the first and the last byte of a packet are sent that is at the head of the queue from
    /// `start` on.
    fn serve(&mut self, start: Instant, len: Bytes, waited: bool, queued: Bytes) -> (Instant, Instant) {
        match self {
            Self::Fixed(fixed) => (start, fixed.serve(start, len)),
            Self::Trace(opportunities) => opportunities.serve(start, len, waited),
            Self::Cellular(downlink) => (start, downlink.serve(start, len, queued)),
        }
    }
    /// Time from `start` on at which the first byte of the next packet can be sent.
    fn opens_at(&mut self, start: Instant, waited: bool) -> Instant {
        match self {
            Self::Fixed(fixed) => fixed.opens_at(start),
            Self::Trace(opportunities) => opportunities.opens_at(start, waited),
            Self::Cellular(_) => start,
        }
    }
    fn capacity(&mut self, now: Instant) -> u64 {
        match self {
            Self::Fixed(fixed) => fixed.capacity(now),
            Self::Trace(opportunities) => opportunities.capacity(now),
            Self::Cellular(downlink) => downlink.capacity(now),
        }
    }
    /// Bytes of a packet that count against the queue's limit.
    fn size(&self, packet: &Packet) -> Bytes {
        let more = if matches!(self, Self::Trace(_)) { PACKET_INFORMATION_BYTES } else { 0 };
        Bytes(u64::from(packet.len) + more)
    }
}

/// Counters of one station's packets in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipeStats {
    /// Packets that entered.
    pub packets_in: u64,
    /// Packets that arrived, copies included.
    pub packets_out: u64,
    /// Copies made.
    pub copies: u64,
    /// Packets dropped by the queue.
    pub queue_drops: u64,
    /// Packets lost after the service.
    pub losses: u64,
    /// Packets marked with Congestion Experienced (RFC 3168).
    pub marked: u64,
    /// Packets that the service has sent, lost ones included.
    pub sent: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Sum of the times of these packets from arrival to the last byte sent, ns.
    pub queued_ns: u64,
    /// Packets in the queue, in service or under way.
    pub held: u64,
    /// Bytes in the queue and in service.
    pub queued_bytes: u64,
}

/// A packet that leaves a pipe: arrived at the far end, with its station, or lost, or dropped by a managed
/// queue.
#[derive(Debug)]
pub(crate) enum Outcome {
    Arrived(usize, Packet),
    Lost(Packet),
    Dropped(Packet, DropReason),
}

/// A packet in the queue or in service.
#[derive(Debug)]
struct Queued {
    packet: Packet,
    station: usize,
    arrived: Instant,
}

/// Impairments behind the service of one direction: random losses, copies and delays.
#[derive(Debug)]
struct Impairments {
    /// Probability of a single loss.
    loss: f64,
    /// Probabilities per packet that a burst of losses begins, and that it ends.
    burst: (f64, f64),
    in_burst: bool,
    /// Probability that a packet is duplicated.
    copy: f64,
    /// Probability that a packet is held back and so overtaken.
    reorder: f64,
    /// Extra delay of such a packet.
    reorder_delay: Duration,
    /// Largest random extra delay.
    jitter: Duration,
    delay: Duration,
    /// Packets leave the link at multiples of this time only.
    frame: Duration,
    stream: Stream,
    /// Latest arrival of a packet that was not held back: later packets do not arrive before it.
    last_arrival: Instant,
}

/// Grants of a cell's uplink (TS 36.321 §5.4.4 and §5.4.5): data in the empty queue wait for the next
/// scheduling request and its grant; the buffer status reports of later blocks keep the grants coming until
/// the queue is empty. Left out: the small size of the first grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grants {
    /// Period of the scheduling requests.
    pub sr_period: Duration,
    /// Time from a request to the transmission.
    pub delay: Duration,
}

impl Grants {
    /// Time at which data that arrive at the empty queue can be sent.
    fn first(self, now: Instant) -> Instant {
        let period = self.sr_period.as_nanos().max(1);
        Instant::from_nanos(now.as_nanos().div_ceil(period).saturating_mul(period)) + self.delay
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Pipe {
    service: Service,
    /// Grants that the service needs.
    grants: Option<Grants>,
    /// A copy of the service for reading its capacity: `service` itself may be ahead of the present time.
    meter: Service,
    /// Limits of the queue in packets and in bytes.
    limit: (Option<u64>, Option<Bytes>),
    ecn_threshold: Option<Bytes>,
    queue: VecDeque<Queued>,
    /// A managed queue in place of `queue`, and the time at which its next packet begins to be sent.
    managed: Option<Box<Managed>>,
    opens_at: Instant,
    queue_bytes: Bytes,
    /// The packet in service, with the times at which its first and its last byte are sent.
    head: Option<(Instant, Instant, Queued)>,
    impairments: Impairments,
    /// Packets under way by arrival time, with their stations.
    under_way: BTreeMap<(Instant, u64), (usize, Packet)>,
    serial: u64,
    /// Distribution of the time from arrival to the last byte sent, us.
    delays_us: Histogram<u64>,
}

impl Pipe {
    /// One direction of `link`. `name` is the prefix of the names of its random streams.
    pub fn new(link: &scenario::Link, service: Service, seed: u64, name: &str) -> Self {
        let managed = link.managed_queue().map(|config| {
            Box::new(Managed::new(&config, Stream::new(seed, &format!("{name}/flows")).next_u64()))
        });
        Self {
            meter: service.clone(),
            service,
            grants: None,
            limit: (link.queue_packets, link.queue),
            ecn_threshold: link.ecn_threshold,
            queue: VecDeque::new(),
            managed,
            opens_at: NEVER,
            queue_bytes: Bytes::ZERO,
            head: None,
            impairments: Impairments::new(link, Stream::new(seed, &format!("{name}/way"))),
            under_way: BTreeMap::new(),
            serial: 0,
            delays_us: new_histogram(),
        }
    }
    /// The pipe with grants.
    pub fn with_grants(self, grants: Option<Grants>) -> Self {
        Self { grants, ..self }
    }
    /// A packet of `station` enters. Poll the events due by `now` first, and with a managed queue afterwards
    /// too. Err returns the packet if a drop-tail queue is full.
    pub fn push(
        &mut self,
        now: Instant,
        station: usize,
        mut packet: Packet,
        stats: &mut PipeStats,
    ) -> Result<(), Packet> {
        stats.packets_in += 1;
        if let Some(queue) = &mut self.managed {
            stats.held += 1;
            stats.queued_bytes += u64::from(packet.len);
            queue.push(now, packet, station);
            if self.head.is_none() && self.opens_at == NEVER {
                let start = self.grants.map_or(now, |grants| grants.first(now));
                self.opens_at = self.service.opens_at(start, false);
            }
            return Ok(());
        }
        let size = self.service.size(&packet);
        // A packet whose first byte has not been sent counts as queued.
        let unsent_head =
            self.head.as_ref().filter(|(begins, _, _)| *begins > now).map(|(_, _, head)| &head.packet);
        let bytes =
            self.queue_bytes + unsent_head.map_or(Bytes::ZERO, |packet| self.service.size(packet)) + size;
        let packets = self.queue.len() as u64 + u64::from(unsent_head.is_some()) + 1;
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
        let waiting = Queued { packet, station, arrived: now };
        if self.head.is_some() {
            self.queue_bytes += size;
            self.queue.push_back(waiting);
        } else {
            let start = self.grants.map_or(now, |grants| grants.first(now));
            self.serve_next(start, waiting, false);
        }
        Ok(())
    }
    /// The next packet of a managed queue begins to be sent.
    fn send_managed(&mut self) {
        let at = std::mem::replace(&mut self.opens_at, NEVER);
        let Some(queue) = &mut self.managed else { return };
        let Some(queued) = queue.pop(at) else { return };
        let (len, packet) = (Bytes(u64::from(queued.packet.len)), queued.packet);
        let (begins, ends) = self.service.serve(at, len, true, queue.bytes());
        let head = Queued { packet, station: queued.owner, arrived: queued.arrived };
        self.head = Some((begins, ends, head));
    }
    fn serve_next(&mut self, now: Instant, waiting: Queued, waited: bool) {
        let len = Bytes(u64::from(waiting.packet.len));
        let (begins, ends) = self.service.serve(now, len, waited, self.queue_bytes);
        self.head = Some((begins, ends, waiting));
    }
    /// Time of the next event.
    pub fn due(&self) -> Instant {
        let sent = self.head.as_ref().map_or(NEVER, |(_, ends, _)| *ends);
        let arrives = self.under_way.first_key_value().map_or(NEVER, |((at, _), _)| *at);
        sent.min(arrives).min(self.opens_at)
    }
    /// The next packet that has arrived or was lost by `now`. `stats` has the counters of all stations in
    /// this direction.
    pub fn poll(&mut self, now: Instant, stats: &mut [PipeStats]) -> Option<Outcome> {
        loop {
            if let Some((queued, reason)) = self.managed.as_mut().and_then(|queue| queue.pop_dropped()) {
                let of = &mut stats[queued.owner];
                of.queue_drops += 1;
                of.held -= 1;
                of.queued_bytes -= u64::from(queued.packet.len);
                return Some(Outcome::Dropped(queued.packet, reason));
            }
            let sent = self.head.as_ref().map_or(NEVER, |(_, ends, _)| *ends);
            let until = now.min(sent).min(self.opens_at);
            if let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= until) {
                let (station, packet) = entry.remove();
                stats[station].packets_out += 1;
                stats[station].held -= 1;
                return Some(Outcome::Arrived(station, packet));
            }
            if self.opens_at <= now {
                self.send_managed();
                continue;
            }
            if sent > now {
                return None;
            }
            let (_, ends, head) = self.head.take()?;
            if let Some(next) = self.queue.pop_front() {
                self.queue_bytes = self.queue_bytes - self.service.size(&next.packet);
                self.serve_next(ends, next, true);
            }
            if self.managed.as_ref().is_some_and(|queue| !queue.is_empty()) {
                self.opens_at = self.service.opens_at(ends, true);
            }
            let of = &mut stats[head.station];
            let (len, queued) = (u64::from(head.packet.len), ends.since(head.arrived).as_nanos());
            of.sent += 1;
            of.sent_bytes += len;
            of.queued_bytes -= len;
            of.queued_ns += queued;
            self.delays_us.saturating_record(queued / 1000);
            if let Some(packet) = self.on_sent(ends, head, of) {
                of.losses += 1;
                of.held -= 1;
                return Some(Outcome::Lost(packet));
            }
        }
    }
    /// A packet has been sent: starts its way to the far end, or returns it if it is lost.
    fn on_sent(&mut self, now: Instant, head: Queued, stats: &mut PipeStats) -> Option<Packet> {
        let Queued { packet, station, .. } = head;
        let load_delay = match &mut self.service {
            Service::Cellular(downlink) => downlink.on_sent(now, Bytes(u64::from(packet.len))),
            _ => Some(Duration::ZERO),
        };
        let (Some(load_delay), false) = (load_delay, self.impairments.loses()) else { return Some(packet) };
        let at = self.impairments.arrival(now, load_delay);
        if self.impairments.stream.chance(self.impairments.copy) {
            stats.copies += 1;
            stats.held += 1;
            self.enter_path(at, station, packet.clone());
        }
        self.enter_path(at, station, packet);
        None
    }
    fn enter_path(&mut self, at: Instant, station: usize, packet: Packet) {
        self.serial += 1;
        self.under_way.insert((at, self.serial), (station, packet));
    }
    /// Bytes that could have been sent by `now`. `now` must not decrease from call to call.
    pub fn capacity(&mut self, now: Instant) -> u64 {
        self.meter.capacity(now)
    }
    /// Distribution of the time from arrival to the last byte sent, us, since the last
    /// [`Pipe::restart_delays`].
    pub fn delays_us(&self) -> &Histogram<u64> {
        &self.delays_us
    }
    /// Clears this distribution.
    pub fn restart_delays(&mut self) {
        self.delays_us = new_histogram();
        self.managed.iter_mut().for_each(|queue| queue.restart());
    }
    /// The managed queue, if the pipe has one.
    pub fn managed(&self) -> Option<&Managed> {
        self.managed.as_deref()
    }
}

impl Impairments {
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
            reorder: link.reorder_percent / 100.0,
            reorder_delay: link.reorder_delay,
            jitter: link.jitter,
            delay: link.delay.unwrap_or_default(),
            frame: link.fixed.as_ref().map_or(Duration::ZERO, |fixed| fixed.frame),
            stream,
            last_arrival: Instant::ZERO,
        }
    }
    fn loses(&mut self) -> bool {
        if self.burst.0 > 0.0 {
            let changes = if self.in_burst { self.burst.1 } else { self.burst.0 };
            self.in_burst ^= self.stream.chance(changes);
        }
        self.in_burst || self.stream.chance(self.loss)
    }
    /// Arrival time of a packet that was sent at `now`.
    fn arrival(&mut self, now: Instant, load_delay: Duration) -> Instant {
        let frame = self.frame.as_nanos().max(1);
        let sent = Instant::from_nanos(now.as_nanos().div_ceil(frame).saturating_mul(frame));
        let mut at = sent + self.delay + load_delay;
        if !self.jitter.is_zero() {
            at += Duration::from_secs_f64(self.jitter.as_secs_f64() * self.stream.uniform());
        }
        if self.stream.chance(self.reorder) {
            return at.max(self.last_arrival) + self.reorder_delay;
        }
        self.last_arrival = at.max(self.last_arrival);
        self.last_arrival
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}
