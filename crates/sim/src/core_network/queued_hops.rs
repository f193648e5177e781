//! Hops of which one or more have a managed queue, a router or an ACK policer. Whether a managed queue drops
//! a packet depends on the packets behind it, and a router serves both directions, so that the passage of a
//! packet is not known when it enters: each hop sends at its own times, and a packet costs an event or two
//! per hop.
//!
//! ```text
//! downlink: router - line - policer        uplink: policer - line - router
//! ```

use super::direction::{DOWN, UP};
use super::hop_policer::{HopPolicer, PolicerReading};
use super::router::{Router, RouterReading};
use crate::engine::{Agenda, NEVER};
use crate::managed::{Managed, ManagedReading};
use crate::scenario::Hop;
use paceline_net::{AddressTable, Bytes, DropReason, Duration, Instant, Packet, Queued};
use std::collections::VecDeque;

/// Hops with queues that are served packet by packet.
#[derive(Debug)]
pub(super) struct QueuedHops {
    lines: Vec<Line>,
    routers: Vec<Router>,
    policers: Vec<HopPolicer>,
    /// Steps of the paths through all these.
    steps: Vec<Step>,
    /// Next event of each line and, behind them, of each router.
    agenda: Agenda,
    /// Steps of the shared hops in both directions, and of each cell's own ones, in the order in which
    /// packets pass.
    shared: [Vec<usize>; 2],
    own: Vec<[Vec<usize>; 2]>,
    /// Group of each station's address.
    groups: AddressTable,
    at_cells: VecDeque<(Instant, Packet)>,
    at_servers: VecDeque<(Instant, Packet)>,
    /// Dropped packets with the times and reasons of the drops.
    dropped: VecDeque<(Instant, Packet, DropReason)>,
}

/// A step of the paths in one direction.
#[derive(Debug)]
struct Step {
    place: Place,
    direction: usize,
    /// Steps behind this one: one for all cells, or one per cell; none at the end.
    next: Vec<usize>,
}

/// Indices of lines, routers and policers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Line(usize),
    Router(usize),
    Policer(usize),
}

/// One hop in one direction; the owner of its packets is their cell.
#[derive(Debug)]
struct Line {
    hop: Hop,
    /// Index of the hop in its part of the core network.
    index: usize,
    direction: usize,
    /// The step of the paths that this line is.
    step: usize,
    queue: Queue,
    /// The packet that is being sent, and the end of sending.
    sending: Option<(Instant, Queued)>,
    /// Packets on their way to the far end, with the times of their arrival.
    under_way: VecDeque<(Instant, Queued)>,
    busy: Duration,
}

#[derive(Debug)]
enum Queue {
    /// Packets, and their bytes with those of the packet that is being sent.
    DropTail(VecDeque<Queued>, Bytes),
    Managed(Box<Managed>),
}

impl QueuedHops {
    /// Hops in the order from the servers to the cells; `groups` has the group of each station's address.
    pub fn new(hops: &[Hop], cells: usize, groups: AddressTable) -> Self {
        let first_own = hops.iter().take_while(|hop| !hop.per_cell).count();
        let paths = if first_own == hops.len() { 1 } else { cells };
        let mut all = Self {
            lines: Vec::new(),
            routers: Vec::new(),
            policers: Vec::new(),
            steps: Vec::new(),
            agenda: Agenda::default(),
            shared: Default::default(),
            own: Vec::new(),
            groups,
            at_cells: VecDeque::new(),
            at_servers: VecDeque::new(),
            dropped: VecDeque::new(),
        };
        all.shared = all.add(hops, 0..first_own);
        all.own = (0..paths).map(|_| all.add(hops, first_own..hops.len())).collect();
        all.connect();
        (0..all.lines.len() + all.routers.len()).for_each(|_| all.agenda.add());
        all
    }
    /// Adds the lines, routers and policers of hops, and their steps in both directions.
    fn add(&mut self, hops: &[Hop], range: std::ops::Range<usize>) -> [Vec<usize>; 2] {
        let mut ends = Vec::new();
        for index in range.clone() {
            let hop = &hops[index];
            let router = hop.service_time.map(|time| {
                self.routers.push(Router::new(index, time, hop.service_queue));
                Place::Router(self.routers.len() - 1)
            });
            let policer = hop.police.as_ref().map(|police| {
                self.policers.push(HopPolicer::new(index, police));
                Place::Policer(self.policers.len() - 1)
            });
            ends.push((index, router, policer));
        }
        let mut chain = |(index, router, policer): (usize, Option<Place>, Option<Place>), direction| {
            let line = Some(Place::Line(self.lines.len()));
            let mut places = [router, line, policer];
            if direction == UP {
                places.reverse();
            }
            let mut steps = Vec::new();
            for place in places.into_iter().flatten() {
                if Some(place) == line {
                    self.lines.push(Line::new(&hops[index], index, direction, self.steps.len()));
                }
                steps.push(self.steps.len());
                self.steps.push(Step { place, direction, next: Vec::new() });
            }
            steps
        };
        let down = ends.iter().flat_map(|end| chain(*end, DOWN)).collect();
        [down, ends.iter().rev().flat_map(|end| chain(*end, UP)).collect()]
    }
    /// Enters the step behind each step.
    fn connect(&mut self) {
        let chains = self.shared.iter().chain(self.own.iter().flatten());
        for pair in chains.flat_map(|chain| chain.windows(2)) {
            self.steps[pair[0]].next = vec![pair[1]];
        }
        if let Some(last) = self.shared[DOWN].last() {
            let own = self.own.iter().filter_map(|chain| chain[DOWN].first().copied());
            self.steps[*last].next = own.collect();
        }
        for last in self.own.iter().filter_map(|chain| chain[UP].last()) {
            self.steps[*last].next = self.shared[UP].first().copied().into_iter().collect();
        }
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
        self.at_cells.pop_front().map(|(_, packet)| packet)
    }
    pub fn poll_at_servers(&mut self, now: Instant) -> Option<Packet> {
        self.advance(now);
        self.at_servers.pop_front().map(|(_, packet)| packet)
    }
    pub fn poll_dropped(&mut self, now: Instant) -> Option<(Packet, DropReason)> {
        self.advance(now);
        self.dropped.pop_front().map(|(_, packet, reason)| (packet, reason))
    }
    pub fn next_event(&self) -> Option<Instant> {
        let dropped = self.dropped.front().map(|(at, ..)| *at);
        // A packet that enters runs the events that are due: others may have arrived at an end.
        let [at_cells, at_servers] =
            [&self.at_cells, &self.at_servers].map(|end| end.front().map(|(at, _)| *at));
        Instant::earliest([dropped, at_cells, at_servers, self.agenda.first().map(|(at, _)| at)])
    }
    pub fn busiest(&self, cell: usize) -> Duration {
        let own = &self.own[cell.min(self.own.len() - 1)];
        let steps = self.shared.iter().chain(own).flatten().map(|step| self.steps[*step].place);
        let busy = steps.filter_map(|place| match place {
            Place::Line(line) => Some(self.lines[line].busy),
            Place::Router(router) => Some(self.routers[router].busy()),
            Place::Policer(_) => None,
        });
        busy.max().unwrap_or(Duration::ZERO)
    }
    pub fn restart(&mut self) {
        for line in &mut self.lines {
            if let Queue::Managed(queue) = &mut line.queue {
                queue.restart();
            }
        }
        self.routers.iter_mut().for_each(Router::restart);
        self.policers.iter_mut().for_each(HopPolicer::restart);
    }
    /// Figures of the routers; those of the cells' own hops together. `first` is the index of the first hop.
    pub fn read_routers(&self, first: usize) -> Vec<RouterReading> {
        let places = (0..=self.last_hop()).filter_map(|index| {
            let of = self.routers.iter().filter(|router| router.index == index);
            Router::read(format!("core.hops.{}", first + index), of)
        });
        places.collect()
    }
    /// Figures of the policers, likewise.
    pub fn read_policers(&self, first: usize) -> Vec<PolicerReading> {
        let places = (0..=self.last_hop()).filter_map(|index| {
            let of = self.policers.iter().filter(|policer| policer.index == index);
            HopPolicer::read(format!("core.hops.{}", first + index), of)
        });
        places.collect()
    }
    fn last_hop(&self) -> usize {
        self.lines.iter().map(|line| line.index).max().unwrap_or(0)
    }
    /// Figures of the managed queues; those of the cells' own hops together. `first` is the index of the
    /// first hop in the core network.
    pub fn read(&self, first: usize) -> Vec<ManagedReading> {
        let places =
            (0..=self.last_hop()).flat_map(|index| [(index, DOWN, "downlink"), (index, UP, "uplink")]);
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
            if index >= self.lines.len() {
                self.end_service(at, index - self.lines.len());
                continue;
            }
            let line = &mut self.lines[index];
            if line.sending.as_ref().is_some_and(|(ends, _)| *ends <= at) {
                self.end_sending(index);
                continue;
            }
            let Some((_, queued)) = line.under_way.pop_front() else { unreachable!("a line was due") };
            let step = line.step;
            self.agenda.enter(index, self.lines[index].due());
            self.leave(at, step, queued);
        }
    }
    /// A packet goes on behind a step.
    fn leave(&mut self, now: Instant, step: usize, queued: Queued) {
        let Step { next, direction, .. } = &self.steps[step];
        match next.get(queued.owner).or(next.first()).copied() {
            Some(next) => self.arrive(now, next, queued),
            None if *direction == DOWN => self.at_cells.push_back((now, queued.packet)),
            None => self.at_servers.push_back((now, queued.packet)),
        }
    }
    fn arrive(&mut self, now: Instant, step: usize, queued: Queued) {
        let Step { place, direction, .. } = self.steps[step];
        match place {
            Place::Line(index) => self.arrive_at_line(now, index, queued),
            Place::Router(index) => {
                self.end_service(now, index);
                if let Some(packet) = self.routers[index].push(now, step, direction, queued) {
                    self.dropped.push_back((now, packet, DropReason::QueueFull));
                }
                self.enter_router(index);
            }
            Place::Policer(index) => {
                if self.policers[index].passes(now, direction, &queued.packet, &self.groups) {
                    self.leave(now, step, queued);
                } else {
                    self.dropped.push_back((now, queued.packet, DropReason::AckPoliced));
                }
            }
        }
    }
    /// Packets whose service at a router has ended go on.
    fn end_service(&mut self, now: Instant, index: usize) {
        while let Some((ended, step, queued)) = self.routers[index].pop(now) {
            self.routers[index].count(self.steps[step].direction);
            self.enter_router(index);
            self.leave(ended, step, queued);
        }
    }
    fn enter_router(&mut self, index: usize) {
        self.agenda.enter(self.lines.len() + index, self.routers[index].due().unwrap_or(NEVER));
    }
    /// A packet arrives at a line. A packet whose sending ends now has left the line before.
    fn arrive_at_line(&mut self, now: Instant, index: usize, queued: Queued) {
        if self.lines[index].sending.as_ref().is_some_and(|(ends, _)| *ends <= now) {
            self.end_sending(index);
        }
        let line = &mut self.lines[index];
        if let Some(packet) = line.push(now, queued) {
            self.dropped.push_back((now, packet, DropReason::QueueFull));
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
                self.dropped.push_back((now, queued.packet, DropReason::QueueFull));
            }
        }
    }
}

impl Line {
    fn new(hop: &Hop, index: usize, direction: usize, step: usize) -> Self {
        let queue = match hop.managed_queue() {
            // Chosen: the place in the path as the seed of the hash.
            Some(config) => Queue::Managed(Box::new(Managed::new(&config, (2 * index + direction) as u64))),
            None => Queue::DropTail(VecDeque::new(), Bytes::ZERO),
        };
        let (hop, under_way, busy) = (hop.clone(), VecDeque::new(), Duration::ZERO);
        Self { hop, index, direction, step, queue, sending: None, under_way, busy }
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
