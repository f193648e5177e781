//! Hops of which one or more have a managed queue. Whether such a queue drops a packet depends on the packets
//! behind it, so that the passage of a packet is not known when it enters: each hop sends at its own times,
//! and a packet costs an event or two per hop.

use crate::engine::{Agenda, NEVER};
use crate::managed::{Managed, ManagedReading};
use crate::scenario::Hop;
use paceline_net::{Bytes, Duration, Instant, Packet, Queued};
use std::collections::VecDeque;

/// Index of the downlink in a pair of directions.
pub(super) const DOWN: usize = 0;
/// Index of the uplink.
pub(super) const UP: usize = 1;

/// Hops with queues that are served packet by packet.
#[derive(Debug)]
pub(super) struct QueuedHops {
    lines: Vec<Line>,
    /// Next event of each line.
    agenda: Agenda,
    /// Shared lines of both directions, and own lines of each cell, in the order in which packets pass.
    shared: [Vec<usize>; 2],
    own: Vec<[Vec<usize>; 2]>,
    at_cells: VecDeque<Packet>,
    at_servers: VecDeque<Packet>,
    /// Dropped packets with the times of the drops.
    dropped: VecDeque<(Instant, Packet)>,
}

/// One hop in one direction; the owner of its packets is their cell.
#[derive(Debug)]
struct Line {
    hop: Hop,
    /// Index of the hop in its part of the core network.
    index: usize,
    direction: usize,
    queue: Queue,
    /// The packet that is being sent, and the end of sending.
    sending: Option<(Instant, Queued)>,
    /// Packets on their way to the far end, with the times of their arrival.
    under_way: VecDeque<(Instant, Queued)>,
    /// Lines behind this one: one for all cells, or one per cell; none at the end.
    next: Vec<usize>,
    busy: Duration,
}

#[derive(Debug)]
enum Queue {
    /// Packets, and their bytes with those of the packet that is being sent.
    DropTail(VecDeque<Queued>, Bytes),
    Managed(Box<Managed>),
}

impl QueuedHops {
    /// Hops in the order from the servers to the cells.
    pub fn new(hops: &[Hop], cells: usize) -> Self {
        let first_own = hops.iter().take_while(|hop| !hop.per_cell).count();
        let paths = if first_own == hops.len() { 1 } else { cells };
        let mut lines: Vec<Line> = Vec::new();
        let mut agenda = Agenda::default();
        let mut add = |index: usize, direction: usize| {
            agenda.add();
            lines.push(Line::new(&hops[index], index, direction));
            lines.len() - 1
        };
        let mut both = |range: std::ops::Range<usize>| {
            [range.clone().map(|i| add(i, DOWN)).collect(), range.rev().map(|i| add(i, UP)).collect()]
        };
        let shared: [Vec<usize>; 2] = both(0..first_own);
        let own: Vec<[Vec<usize>; 2]> = (0..paths).map(|_| both(first_own..hops.len())).collect();
        let chains = shared.iter().chain(own.iter().flatten());
        for pair in chains.flat_map(|chain| chain.windows(2)) {
            lines[pair[0]].next = vec![pair[1]];
        }
        if let Some(last) = shared[DOWN].last() {
            lines[*last].next = own.iter().filter_map(|chain| chain[DOWN].first().copied()).collect();
        }
        for last in own.iter().filter_map(|chain| chain[UP].last()) {
            lines[*last].next = shared[UP].first().copied().into_iter().collect();
        }
        let (at_cells, at_servers, dropped) = Default::default();
        Self { lines, agenda, shared, own, at_cells, at_servers, dropped }
    }
    /// A packet for a station of `cell` enters, or one of its station does.
    pub fn enter(&mut self, now: Instant, direction: usize, cell: usize, packet: Packet) {
        self.advance(now);
        let path = cell.min(self.own.len() - 1);
        let (shared, own) = (self.shared[direction].first(), self.own[path][direction].first());
        let first = if direction == DOWN { shared.or(own) } else { own.or(shared) };
        let first = *first.expect("hops with a managed queue have a line");
        self.arrive(now, first, Queued { packet, owner: path, arrived: now });
    }
    pub fn poll_at_cell(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        self.at_cells.pop_front()
    }
    pub fn poll_at_servers(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        self.at_servers.pop_front()
    }
    pub fn poll_dropped(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        self.dropped.pop_front().map(|(_, packet)| packet)
    }
    pub fn next_event(&self) -> Option<Instant> {
        let dropped = self.dropped.front().map(|(at, _)| *at);
        Instant::earliest([dropped, self.agenda.first().map(|(at, _)| at)])
    }
    pub fn busiest(&self, cell: usize) -> Duration {
        let own = &self.own[cell.min(self.own.len() - 1)];
        let lines = self.shared.iter().chain(own).flatten();
        lines.map(|line| self.lines[*line].busy).max().unwrap_or(Duration::ZERO)
    }
    pub fn restart(&mut self) {
        for line in &mut self.lines {
            if let Queue::Managed(queue) = &mut line.queue {
                queue.restart();
            }
        }
    }
    /// Figures of the managed queues; those of the cells' own hops together. `first` is the index of the
    /// first hop in the core network.
    pub fn read(&self, first: usize) -> Vec<ManagedReading> {
        let hops = self.lines.iter().map(|line| line.index).max().map_or(0, |last| last + 1);
        let places = (0..hops).flat_map(|index| [(index, DOWN, "downlink"), (index, UP, "uplink")]);
        let read = |(index, direction, word)| {
            let of = self.lines.iter().filter(|line| (line.index, line.direction) == (index, direction));
            let of: Vec<&Line> = of.collect();
            let queues = of.iter().filter_map(|line| match &line.queue {
                Queue::Managed(queue) => Some(&**queue),
                Queue::DropTail(..) => None,
            });
            let name = format!("core.hops.{} {word}", first + index);
            Managed::read(&name, of.first()?.hop.queue_discipline.name(), queues)
        };
        places.filter_map(read).collect()
    }
    /// Runs all events until `now`, in the order of their times.
    fn advance(&mut self, now: Instant) {
        while let Some((at, index)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            let line = &mut self.lines[index];
            if line.sending.as_ref().is_some_and(|(ends, _)| *ends <= at) {
                self.end_sending(index);
                continue;
            }
            let Some((_, queued)) = line.under_way.pop_front() else { unreachable!("a line was due") };
            let next = line.next.get(queued.owner).or(line.next.first()).copied();
            let direction = line.direction;
            self.agenda.enter(index, self.lines[index].due());
            match next {
                Some(next) => self.arrive(at, next, queued),
                None if direction == DOWN => self.at_cells.push_back(queued.packet),
                None => self.at_servers.push_back(queued.packet),
            }
        }
    }
    /// A packet arrives at a line. A packet whose sending ends now has left the line before.
    fn arrive(&mut self, now: Instant, index: usize, queued: Queued) {
        if self.lines[index].sending.as_ref().is_some_and(|(ends, _)| *ends <= now) {
            self.end_sending(index);
        }
        let line = &mut self.lines[index];
        if let Some(packet) = line.push(now, queued) {
            self.dropped.push_back((now, packet));
        }
        if line.sending.is_none() {
            line.send_next(now);
        }
        self.collect_dropped(now, index);
        self.agenda.enter(index, self.lines[index].due());
    }
    fn end_sending(&mut self, index: usize) {
        let line = &mut self.lines[index];
        let Some((ends, queued)) = line.sending.take() else { return };
        if let Queue::DropTail(_, bytes) = &mut line.queue {
            *bytes = *bytes - Bytes(u64::from(queued.packet.len));
        }
        line.under_way.push_back((ends + line.hop.delay, queued));
        line.send_next(ends);
        self.collect_dropped(ends, index);
        self.agenda.enter(index, self.lines[index].due());
    }
    fn collect_dropped(&mut self, now: Instant, index: usize) {
        if let Queue::Managed(queue) = &mut self.lines[index].queue {
            while let Some((queued, _)) = queue.pop_dropped() {
                self.dropped.push_back((now, queued.packet));
            }
        }
    }
}

impl Line {
    fn new(hop: &Hop, index: usize, direction: usize) -> Self {
        let queue = match hop.managed_queue() {
            // Chosen: the place in the path as the seed of the hash.
            Some(config) => Queue::Managed(Box::new(Managed::new(&config, (2 * index + direction) as u64))),
            None => Queue::DropTail(VecDeque::new(), Bytes::ZERO),
        };
        let (sending, under_way, next) = (None, VecDeque::new(), Vec::new());
        Self { hop: hop.clone(), index, direction, queue, sending, under_way, next, busy: Duration::ZERO }
    }
    fn due(&self) -> Instant {
        let sent = self.sending.as_ref().map_or(NEVER, |(ends, _)| *ends);
        sent.min(self.under_way.front().map_or(NEVER, |(at, _)| *at))
    }
    /// Queues a packet. Returns it if a drop-tail queue is full.
    fn push(&mut self, now: Instant, mut queued: Queued) -> Option<Packet> {
        match &mut self.queue {
            Queue::Managed(queue) => queue.push(now, queued.packet, queued.owner),
            Queue::DropTail(packets, bytes) => {
                let after = *bytes + Bytes(u64::from(queued.packet.len));
                if self.sending.is_some() && after > self.hop.queue {
                    return Some(queued.packet);
                }
                if self.hop.ecn_threshold.is_some_and(|most| after > most) && queued.packet.ip.ecn() != 0 {
                    queued.packet.set_congestion_experienced();
                }
                *bytes = after;
                packets.push_back(queued);
            }
        }
        None
    }
    fn send_next(&mut self, now: Instant) {
        let next = match &mut self.queue {
            Queue::DropTail(packets, _) => packets.pop_front(),
            Queue::Managed(queue) => queue.pop(now),
        };
        self.sending = next.map(|queued| {
            let time = self.hop.rate.time_to_send(Bytes(u64::from(queued.packet.len)));
            self.busy += time;
            (now + time, queued)
        });
    }
}

#[cfg(test)]
#[path = "queued_hops_tests.rs"]
mod tests;
