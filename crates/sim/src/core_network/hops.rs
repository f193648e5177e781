//! Wired hops between servers and eNB. A hop has a rate, a propagation delay and a queue, the same in both
//! directions. Above a threshold the queue marks ECN-capable packets (RFC 3168). Hops next to the eNB
//! may exist once per cell, as the S1 links of several eNBs do.
//!
//! ```text
//! servers - shared - shared -+- cell 0's - cell 0
//!                            +- cell 1's - cell 1
//! ```
//!
//! Every hop is first in, first out, and packets enter at the two ends only. So the passage of a downlink
//! packet through all hops is computed when it enters, and costs one event instead of one per hop. An uplink
//! packet costs two where a cell has own hops: packets of several cells enter the shared hops in the order of
//! their arrival there. Where a hop has a managed queue, a router or an ACK policer, [`QueuedHops`] takes
//! over: hop by hop.

use super::direction::{DOWN, UP};
use super::hop_policer::PolicerReading;
use super::queued_hops::QueuedHops;
use super::router::RouterReading;
use crate::engine::NEVER;
use crate::managed::ManagedReading;
use crate::scenario::Hop;
use paceline_net::{AddressTable, Bytes, DropReason, Duration, Instant, Packet};
use std::collections::VecDeque;

/// Hops between the servers and the cells.
#[derive(Debug)]
pub struct Hops {
    /// Shared hops in the downlink and in the uplink, in the order in which packets pass them.
    shared: [Vec<Line>; 2],
    /// Own hops of each cell, likewise.
    own: Vec<[Vec<Line>; 2]>,
    to_cells: InFlight,
    /// Uplink packets between a cell's own hops and the shared ones.
    to_shared: InFlight,
    to_servers: InFlight,
    /// In place of all this, hops of which one has a managed queue, a router or a policer.
    pub(super) queued: Option<Box<QueuedHops>>,
}

/// One hop in one direction.
#[derive(Debug)]
struct Line {
    hop: Hop,
    /// Time at which the last packet has been sent.
    free_at: Instant,
    /// Packets before the last one that are queued or being sent: the times at which they have been sent, and
    /// their lengths.
    queued: VecDeque<(Instant, Bytes)>,
    /// Bytes of these packets and of the last one.
    queued_bytes: Bytes,
    /// Length of the last packet and the time to send it: mostly the next packet is as long.
    last_sent: (Bytes, Duration),
    /// Time spent sending since the start of the run.
    busy: Duration,
}

/// Packets under way with their arrival times: one queue per path, each first in, first out.
#[derive(Debug)]
struct InFlight {
    paths: Vec<VecDeque<(Instant, u64, Packet)>>,
    entered: u64,
    /// The next arrival and its path.
    next: (Instant, usize),
}

impl Hops {
    /// Hops in the order from the servers to the cells; those that exist `per_cell` are last.
    pub fn new(hops: &[Hop], cells: usize) -> Self {
        Self::with_groups(hops, cells, AddressTable::default())
    }
    /// The same with the group of each station's address, by which a policer knows stations that are exempt.
    pub fn with_groups(hops: &[Hop], cells: usize, groups: AddressTable) -> Self {
        let stepwise = hops.iter().any(Hop::needs_events);
        let queued = stepwise.then(|| Box::new(QueuedHops::new(hops, cells, groups)));
        let shared = hops.iter().take_while(|hop| !hop.per_cell).count();
        let (shared, own) = hops.split_at(shared);
        let paths = if own.is_empty() { 1 } else { cells };
        Self {
            shared: both_directions(shared),
            own: (0..paths).map(|_| both_directions(own)).collect(),
            to_cells: InFlight::new(paths),
            to_shared: InFlight::new(paths),
            to_servers: InFlight::new(1),
            queued,
        }
    }
    /// A packet for a station of `cell` enters. Err returns the packet if a queue is full.
    pub fn downlink(&mut self, now: Instant, cell: usize, mut packet: Packet) -> Result<(), Packet> {
        if let Some(queued) = &mut self.queued {
            queued.enter(now, DOWN, cell, packet);
            return Ok(());
        }
        let path = cell.min(self.own.len() - 1);
        let lines = self.shared[DOWN].iter_mut().chain(&mut self.own[path][DOWN]);
        match pass(lines, now, &mut packet) {
            Some(at) => self.to_cells.push(path, at, packet),
            None => return Err(packet),
        }
        Ok(())
    }
    /// A packet of a station of `cell` enters. Err returns the packet if a queue of the cell's own hops is
    /// full.
    pub fn uplink(&mut self, now: Instant, cell: usize, mut packet: Packet) -> Result<(), Packet> {
        if let Some(queued) = &mut self.queued {
            queued.enter(now, UP, cell, packet);
            return Ok(());
        }
        let path = cell.min(self.own.len() - 1);
        let lines = &mut self.own[path][UP];
        if lines.is_empty() {
            return self.enter_shared(now, packet);
        }
        match pass(lines.iter_mut(), now, &mut packet) {
            Some(at) => self.to_shared.push(path, at, packet),
            None => return Err(packet),
        }
        Ok(())
    }
    /// The next packet that is dropped on arrival at the shared hops, or by a managed queue, a router or a
    /// policer. Call until none is left.
    pub fn poll_dropped(&mut self, now: Instant) -> Option<(Packet, DropReason)> {
        if let Some(queued) = &mut self.queued {
            return queued.poll_dropped(now);
        }
        while let Some((at, packet)) = self.to_shared.pop(now) {
            if let Err(packet) = self.enter_shared(at, packet) {
                return Some((packet, DropReason::QueueFull));
            }
        }
        None
    }
    /// The next packet that has arrived at its cell.
    pub fn poll_at_cell(&mut self, now: Instant) -> Option<Packet> {
        if let Some(queued) = &mut self.queued {
            return queued.poll_at_cell(now);
        }
        self.to_cells.pop(now).map(|(_, packet)| packet)
    }
    /// The next packet that has arrived at the servers. Call [`Hops::poll_dropped`] first.
    pub fn poll_at_servers(&mut self, now: Instant) -> Option<Packet> {
        if let Some(queued) = &mut self.queued {
            return queued.poll_at_servers(now);
        }
        self.to_servers.pop(now).map(|(_, packet)| packet)
    }
    /// Time of the next arrival at a cell, at the shared hops or at the servers; with a managed queue, of the
    /// next event of a hop.
    pub fn next_arrival(&self) -> Option<Instant> {
        if let Some(queued) = &self.queued {
            return queued.next_event();
        }
        let at = self.to_cells.next.0.min(self.to_shared.next.0).min(self.to_servers.next.0);
        (at != NEVER).then_some(at)
    }
    /// Time for which the busiest hop on the path of a cell has been sending, of both directions, or for
    /// which the busiest router has been forwarding.
    pub fn busiest(&self, cell: usize) -> Duration {
        if let Some(queued) = &self.queued {
            return queued.busiest(cell);
        }
        let own = &self.own[cell.min(self.own.len() - 1)];
        let lines = self.shared.iter().chain(own).flatten();
        lines.map(|line| line.busy).max().unwrap_or(Duration::ZERO)
    }
    /// Starts the figures of managed queues, routers and policers anew.
    pub(crate) fn restart_queues(&mut self) {
        self.queued.iter_mut().for_each(|queued| queued.restart());
    }
    /// Figures of managed queues; `first` is the index of the first hop.
    pub(crate) fn read_queues(&self, first: usize) -> Vec<ManagedReading> {
        self.queued.as_ref().map_or_else(Vec::new, |queued| queued.read(first))
    }
    /// Figures of routers, likewise.
    pub(crate) fn read_routers(&self, first: usize) -> Vec<RouterReading> {
        self.queued.as_ref().map_or_else(Vec::new, |queued| queued.read_routers(first))
    }
    /// Figures of policers, likewise.
    pub(crate) fn read_policers(&self, first: usize) -> Vec<PolicerReading> {
        self.queued.as_ref().map_or_else(Vec::new, |queued| queued.read_policers(first))
    }
    fn enter_shared(&mut self, now: Instant, mut packet: Packet) -> Result<(), Packet> {
        match pass(self.shared[UP].iter_mut(), now, &mut packet) {
            Some(at) => self.to_servers.push(0, at, packet),
            None => return Err(packet),
        }
        Ok(())
    }
}

fn both_directions(hops: &[Hop]) -> [Vec<Line>; 2] {
    [hops.iter().map(Line::new).collect(), hops.iter().rev().map(Line::new).collect()]
}

/// Time at which a packet that enters the first line at `now` leaves the last one; none if a queue is full.
fn pass<'a>(
    mut lines: impl Iterator<Item = &'a mut Line>,
    now: Instant,
    packet: &mut Packet,
) -> Option<Instant> {
    lines.try_fold(now, |at, line| line.pass(at, packet))
}

impl Line {
    fn new(hop: &Hop) -> Self {
        Self {
            hop: hop.clone(),
            free_at: Instant::ZERO,
            queued: VecDeque::new(),
            queued_bytes: Bytes::ZERO,
            last_sent: (Bytes::ZERO, hop.rate.time_to_send(Bytes::ZERO)),
            busy: Duration::ZERO,
        }
    }
    /// Time at which a packet that arrives at `now` reaches the far end; none if the queue is full.
    #[inline]
    fn pass(&mut self, now: Instant, packet: &mut Packet) -> Option<Instant> {
        let len = Bytes(u64::from(packet.len));
        if self.free_at <= now {
            if !self.queued.is_empty() {
                self.queued.clear();
            }
            self.queued_bytes = Bytes::ZERO;
        } else if !self.enters_queue(now, len) {
            return None;
        }
        if self.hop.ecn_threshold.is_some_and(|most| self.queued_bytes + len > most) && packet.ip.ecn() != 0 {
            packet.set_congestion_experienced();
        }
        if self.last_sent.0 != len {
            self.learn_length(len);
        }
        let leaves_at = self.free_at.max(now) + self.last_sent.1;
        self.free_at = leaves_at;
        self.busy += self.last_sent.1;
        self.queued_bytes += len;
        Some(leaves_at + self.hop.delay)
    }
    /// A packet arrives behind others; false if the queue has no room for it.
    fn enters_queue(&mut self, now: Instant, len: Bytes) -> bool {
        while let Some((_, len)) = self.queued.pop_front_if(|(leaves_at, _)| *leaves_at <= now) {
            self.queued_bytes = self.queued_bytes - len;
        }
        if self.queued_bytes + len > self.hop.queue {
            return false;
        }
        self.queued.push_back((self.free_at, self.last_sent.0));
        true
    }
    #[cold]
    fn learn_length(&mut self, len: Bytes) {
        self.last_sent = (len, self.hop.rate.time_to_send(len));
    }
}

impl InFlight {
    fn new(paths: usize) -> Self {
        Self { paths: (0..paths).map(|_| VecDeque::new()).collect(), entered: 0, next: (NEVER, 0) }
    }
    fn push(&mut self, path: usize, at: Instant, packet: Packet) {
        self.entered += 1;
        self.paths[path].push_back((at, self.entered, packet));
        if at < self.next.0 {
            self.next = (at, path);
        }
    }
    /// The next packet that has arrived by `now`; of equal arrival times, the one that entered first.
    #[inline]
    fn pop(&mut self, now: Instant) -> Option<(Instant, Packet)> {
        // Called three times per packet; mostly none has arrived.
        if self.next.0 > now { None } else { self.pop_next() }
    }
    fn pop_next(&mut self) -> Option<(Instant, Packet)> {
        let (at, path) = self.next;
        let (_, _, packet) = self.paths[path].pop_front()?;
        if let [only] = &self.paths[..] {
            self.next = (only.front().map_or(NEVER, |(at, _, _)| *at), 0);
            return Some((at, packet));
        }
        let mut first = (NEVER, u64::MAX, 0);
        for (path, packets) in self.paths.iter().enumerate() {
            if let Some((at, entered, _)) = packets.front()
                && (*at, *entered) < (first.0, first.1)
            {
                first = (*at, *entered, path);
            }
        }
        self.next = (first.0, first.2);
        Some((at, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Rate;
    use paceline_net::test_support::segment;

    /// Payload of a packet of 1000 bytes.
    const BYTES_1000: u32 = 960;

    fn packet(payload_len: u32) -> Packet {
        segment().payload_len(payload_len).build()
    }
    fn hop(mbps: u64, delay_ms: u64, queue: u64) -> Hop {
        Hop { queue: Bytes(queue), ..Hop::new(Rate(mbps * 1_000_000), Duration::from_millis(delay_ms)) }
    }
    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn packets_take_send_time_and_delay_and_queue_up_to_the_limit() {
        let mut hops = Hops::new(&[hop(8, 5, 2_000)], 1);
        // 1000 bytes at 8 Mb/s take 1 ms; the third finds 2000 bytes and is dropped.
        let entered = [(); 3].map(|()| hops.downlink(Instant::ZERO, 0, packet(BYTES_1000)).is_ok());
        assert_eq!(entered, [true, true, false]);
        for ms in [6, 7] {
            let at = Instant::from_millis(ms);
            assert_eq!(hops.next_arrival(), Some(at));
            assert!(hops.poll_at_cell(at).is_some() && hops.poll_at_cell(at).is_none());
        }
        assert_eq!(hops.next_arrival(), None);
        assert_eq!(hops.busiest(0), Duration::from_millis(2));
    }

    #[test]
    fn a_narrow_hop_behind_a_wide_one_queues_and_drops() {
        let mut hops = Hops::new(&[hop(8_000, 1, 100_000), hop(8, 5, 3_000)], 1);
        // The packets reach the narrow hop from 1.001 ms on, 1 us apart; the fourth finds 3000 bytes there.
        let entered = [(); 4].map(|()| hops.downlink(Instant::ZERO, 0, packet(BYTES_1000)).is_ok());
        assert_eq!(entered, [true, true, true, false]);
        for at in [7_001, 8_001, 9_001].map(us) {
            assert_eq!(hops.next_arrival(), Some(at));
            assert!(hops.poll_at_cell(at).is_some());
        }
        // In the uplink the narrow hop is first.
        hops.uplink(us(20_000), 0, packet(BYTES_1000)).unwrap();
        assert_eq!(hops.next_arrival(), Some(us(27_001)));
    }

    #[test]
    fn every_cell_has_its_own_hop_and_they_share_the_first() {
        let own = Hop { per_cell: true, ..hop(8, 5, 1_000) };
        let mut hops = Hops::new(&[hop(80, 1, 100_000), own], 2);
        // 0.1 ms each on the shared hop; then one per cell fits, and the second of cell 0 does not.
        let entered = [0, 1, 0].map(|cell| hops.downlink(Instant::ZERO, cell, packet(BYTES_1000)).is_ok());
        assert_eq!(entered, [true, true, false]);
        for at in [7_100, 7_200].map(us) {
            assert_eq!(hops.next_arrival(), Some(at));
            assert!(hops.poll_at_cell(at).is_some());
        }
        // Both cells send at the same time; on the shared hop the second packet waits for the first.
        for cell in [0, 1] {
            hops.uplink(us(10_000), cell, packet(BYTES_1000)).unwrap();
        }
        assert_eq!(hops.next_arrival(), Some(us(16_000)));
        assert!(hops.poll_dropped(us(16_000)).is_none());
        for at in [17_100, 17_200].map(us) {
            assert_eq!(hops.next_arrival(), Some(at));
            assert!(hops.poll_at_servers(at).is_some());
        }
    }

    #[test]
    fn a_queue_above_its_threshold_marks_ecn_capable_packets() {
        let mut hops = Hops::new(&[Hop { ecn_threshold: Some(Bytes(2_000)), ..hop(8, 0, 100_000) }], 1);
        // Packets of 1000 bytes: the third and later find more than 2000 bytes, themselves included.
        for ecn in [2, 2, 2, 0, 1] {
            let mut packet = packet(BYTES_1000);
            packet.ip.traffic_class = 0x28 | ecn;
            hops.downlink(Instant::ZERO, 0, packet).unwrap();
        }
        let classes = [(); 5].map(|()| hops.poll_at_cell(us(10_000)).unwrap().ip.traffic_class);
        assert_eq!(classes, [0x2a, 0x2a, 0x2b, 0x28, 0x2b]);
    }

    #[test]
    fn without_hops_packets_pass_at_once() {
        let mut hops = Hops::new(&[], 3);
        hops.downlink(us(3_000), 2, packet(BYTES_1000)).unwrap();
        assert_eq!(hops.next_arrival(), Some(us(3_000)));
    }
}
