//! The engine against a naive one that looks at every timer at every step, and the hops against each hop by itself.

use paceline_net::{
    Bytes, DropReason, Duration, Instant, Node, Output, Packet, Payload, Port, Rate, SeqNumber, Stream,
    TcpFlags, TcpHeader, TcpOptions,
};
use paceline_sim::Engine;
use paceline_sim::hops::Hops;
use paceline_sim::scenario::Hop;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

fn packet(id: u32, payload_len: u32) -> Packet {
    let tcp = TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: SeqNumber(id),
        ack: SeqNumber(0),
        flags: TcpFlags::ACK,
        window: 0,
        options: TcpOptions::default(),
        payload_len,
    };
    Packet::tcp("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap(), tcp)
}

fn id_of(packet: &Packet) -> u32 {
    packet.tcp_header().unwrap().seq.0
}

/// A node whose timer moves at random: earlier, later, away. Its own stream decides, so that what it does depends
/// on nothing but the events that it gets.
struct Restless {
    timer: Option<Instant>,
    stream: Stream,
    output: VecDeque<Output>,
    /// (node, time, what happened)
    log: Rc<RefCell<Vec<(usize, Instant, u32)>>>,
    index: usize,
    ports: u16,
    sent: u32,
}

impl Restless {
    /// The next time after `at` at which no other node has a timer.
    fn own(&self, at: Instant) -> Instant {
        Instant::from_nanos((at.as_nanos() / 16 + 1) * 16 + self.index as u64)
    }
    fn act(&mut self, now: Instant, what: u32) {
        self.log.borrow_mut().push((self.index, now, what));
        let in_us = |us: u64, stream: &mut Stream| self.own(now + Duration::from_micros(stream.below(us)));
        let mut stream = self.stream.clone();
        let timer = match stream.below(8) {
            0 => None,
            // Only one node may be due at once: in which order equal times go is not what is tested.
            1 if self.index == 0 && what > 0 => Some(now),
            1..=4 => Some(in_us(20, &mut stream)),
            _ => Some(in_us(2000, &mut stream)),
        };
        (self.stream, self.timer) = (stream, timer);
        // Few enough that packets die out, many enough that nodes without a timer are woken.
        for _ in 0..self.stream.below(3) / 2 + u64::from(self.timer.is_none()) {
            self.sent += 1;
            let port = Port(self.stream.below(u64::from(self.ports)) as u16);
            self.output.push_back(Output::Transmit(port, packet(self.sent * 16 + self.index as u32, 0)));
        }
    }
}

impl Node for Restless {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        self.act(now, id_of(&packet));
    }
    fn handle_timeout(&mut self, now: Instant) {
        assert_eq!(self.timer, Some(now), "node {}: a timeout at its own time", self.index);
        self.act(now, 0);
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }
}

const NODES: usize = 6;

type Log = Rc<RefCell<Vec<(usize, Instant, u32)>>>;

fn restless(seed: u64) -> (Vec<Restless>, Log) {
    let log = Log::default();
    let node = |index: usize| Restless {
        timer: Some(Instant::from_nanos(index as u64)),
        stream: Stream::new(seed, &format!("node{index}")),
        output: VecDeque::new(),
        log: log.clone(),
        index,
        ports: NODES as u16 - 1,
        sent: 0,
    };
    ((0..NODES).map(node).collect(), log)
}

/// The port of node `at` that leads to node `to`.
fn port(at: usize, to: usize) -> Port {
    Port((to - usize::from(to > at)) as u16)
}

/// Runs the same nodes by looking for the earliest timer of all, again and again.
fn naive(nodes: &mut [Restless], until: Instant) {
    while let Some((at, index)) =
        nodes.iter().filter_map(|node| Some((node.timer?, node.index))).min().filter(|(at, _)| *at <= until)
    {
        nodes[index].handle_timeout(at);
        let mut passing = VecDeque::new();
        let mut from = index;
        loop {
            while let Some(Output::Transmit(out, packet)) = nodes[from].output.pop_front() {
                let to = (0..NODES).find(|to| *to != from && port(from, *to) == out).unwrap();
                passing.push_back((from, to, packet));
            }
            let Some((sender, to, packet)) = passing.pop_front() else { break };
            nodes[to].handle_packet(at, port(to, sender), packet);
            from = to;
        }
    }
}

#[test]
fn no_event_is_late_or_lost_however_timers_move() {
    let end = Instant::from_millis(40);
    for seed in 0..200 {
        let (mut nodes, expected) = restless(seed);
        naive(&mut nodes, end);
        let (nodes, log) = restless(seed);
        let mut engine = Engine::default();
        let ids: Vec<_> = nodes.into_iter().map(|node| engine.add(node)).collect();
        for a in 0..NODES {
            for b in 0..a {
                engine.connect((ids[a], port(a, b)), (ids[b], port(b, a)));
            }
        }
        // In steps of any length: where a run stops must change nothing.
        let mut stream = Stream::new(seed, "steps");
        let mut now = Instant::ZERO;
        while now < end {
            now = (now + Duration::from_micros(stream.below(500))).min(end);
            engine.run_until(now);
            assert!(engine.poll_timeout().is_none_or(|at| at > now), "seed {seed}");
        }
        let (log, expected) = (log.borrow(), expected.borrow());
        assert!(expected.len() > 100, "seed {seed}: {} events", expected.len());
        let differs = log.iter().zip(expected.iter()).position(|(is, should)| is != should);
        assert_eq!(
            differs,
            None,
            "seed {seed}: {:?} instead of {:?}",
            log.get(differs.unwrap_or(0)),
            expected.get(differs.unwrap_or(0))
        );
        assert_eq!(log.len(), expected.len(), "seed {seed}");
    }
}

/// A packet that moves along the hops: what it is, whose, and how far it has come.
#[derive(Clone, Copy, Debug)]
struct Moving {
    id: u32,
    len: Bytes,
    cell: usize,
    step: usize,
}

/// Hops in one direction one by one, event by event: a queue and a line each. Departures come before arrivals of the
/// same time.
#[derive(Default)]
struct Tandem {
    hops: Vec<Hop>,
    /// Per cell, the hops that its packets pass.
    ways: Vec<Vec<usize>>,
    /// Waiting for each line; the front is on it.
    queues: Vec<VecDeque<Moving>>,
    /// (time, 0 = leaves the line or 1 = arrives at the hop, in which order it was entered, what).
    agenda: Vec<(Instant, u8, u32, Moving)>,
    entered: u32,
    /// When a packet of which cell came last to each hop, and whether another cell's came at the same time: then
    /// either may be first.
    came: Vec<(Instant, usize)>,
    tie: bool,
    arrived: Vec<(Instant, u32)>,
    dropped: Vec<u32>,
}

impl Tandem {
    /// The hops of all cells in the direction towards them, or from them.
    fn new(hops: &[Hop], cells: usize, down: bool) -> Self {
        let mut tandem = Self { ways: vec![Vec::new(); cells], ..Self::default() };
        for hop in hops {
            for cell in 0..cells {
                if cell == 0 || hop.per_cell {
                    tandem.hops.push(hop.clone());
                }
                tandem.ways[cell].push(tandem.hops.len() - 1);
            }
        }
        if !down {
            tandem.ways.iter_mut().for_each(|way| way.reverse());
        }
        tandem.queues = vec![VecDeque::new(); tandem.hops.len()];
        tandem.came = vec![(Instant::MAX, 0); tandem.hops.len()];
        tandem
    }
    fn enter(&mut self, at: Instant, kind: u8, moving: Moving) {
        self.entered += 1;
        self.agenda.push((at, kind, self.entered, moving));
    }
    fn run(&mut self) {
        while let Some(next) = (0..self.agenda.len()).min_by_key(|at| {
            let (time, kind, order, _) = self.agenda[*at];
            (time, kind, order)
        }) {
            let (now, kind, _, moving) = self.agenda.swap_remove(next);
            let Some(&at) = self.ways[moving.cell].get(moving.step) else {
                self.arrived.push((now, moving.id));
                continue;
            };
            let hop = self.hops[at].clone();
            let queue = &mut self.queues[at];
            if kind == 0 {
                queue.pop_front();
                let next = queue.front().copied();
                self.enter(now + hop.delay, 1, Moving { step: moving.step + 1, ..moving });
                if let Some(next) = next {
                    self.enter(now + hop.rate.time_to_send(next.len), 0, next);
                }
                continue;
            }
            let before = std::mem::replace(&mut self.came[at], (now, moving.cell));
            self.tie |= moving.step > 0 && before.0 == now && before.1 != moving.cell;
            let queued: u64 = queue.iter().map(|waiting| waiting.len.0).sum();
            if !queue.is_empty() && queued + moving.len.0 > hop.queue.0 {
                self.dropped.push(moving.id);
                continue;
            }
            queue.push_back(moving);
            if queue.len() == 1 {
                self.enter(now + hop.rate.time_to_send(moving.len), 0, moving);
            }
        }
    }
}

fn random_hops(stream: &mut Stream) -> Vec<Hop> {
    let shared = stream.below(4);
    let hop = |index: u64, stream: &mut Stream| Hop {
        rate: Rate(1_000_000 * (1 + stream.below(30))),
        // Whole numbers now and then, for equal times.
        delay: Duration::from_micros(stream.below(3) * 4_000 + stream.below(2) * stream.below(999)),
        queue: Bytes(1_500 + stream.below(6_000)),
        ecn_threshold: None,
        per_cell: index >= shared,
    };
    (0..shared + stream.below(3)).map(|index| hop(index, stream)).collect()
}

/// Takes what has arrived at the far end and what was dropped on the way.
fn collect(hops: &mut Hops, at: Instant, down: bool, arrived: &mut Vec<(Instant, u32)>, lost: &mut Vec<u32>) {
    while let Some(packet) = hops.poll_dropped(at) {
        lost.push(id_of(&packet));
    }
    while let Some(packet) = if down { hops.poll_at_cell(at) } else { hops.poll_at_servers(at) } {
        arrived.push((at, id_of(&packet)));
    }
}

#[test]
fn hops_do_together_what_each_does_by_itself() {
    let (mut delivered, mut dropped, mut own_and_shared, mut ties) = (0, 0, 0, 0);
    for (seed, down) in (0..600).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut stream = Stream::new(seed, "path");
        let hops = random_hops(&mut stream);
        let cells = 1 + stream.below(3) as usize;
        own_and_shared +=
            u32::from(cells > 1 && hops.iter().filter(|hop| hop.per_cell).count() % hops.len().max(1) > 0);
        let mut tandem = Tandem::new(&hops, cells, down);
        let mut together = Hops::new(&hops, cells);
        let (mut now, mut arrived, mut lost) = (Instant::ZERO, Vec::new(), Vec::new());
        // Odd nanoseconds, so that several cells' packets rarely meet at the same one.
        let shift = if cells > 1 { 1000 } else { 1 };
        for id in 0..200 {
            let pause = Duration::from_micros(stream.below(2) * stream.below(1500));
            now += pause + Duration::from_nanos(stream.below(shift));
            while let Some(at) = together.next_arrival().filter(|at| *at <= now) {
                collect(&mut together, at, down, &mut arrived, &mut lost);
            }
            let cell = stream.below(cells as u64) as usize;
            let packet = packet(id, 50 * stream.below(29) as u32);
            tandem.enter(now, 1, Moving { id, len: Bytes(u64::from(packet.len)), cell, step: 0 });
            let entered = match down {
                true => together.downlink(now, cell, packet),
                false => together.uplink(now, cell, packet),
            };
            // The hops say at once what a later one will drop, if no other cell's packets can come before.
            lost.extend(entered.err().map(|packet| id_of(&packet)));
        }
        while let Some(at) = together.next_arrival() {
            collect(&mut together, at, down, &mut arrived, &mut lost);
        }
        tandem.run();
        if tandem.tie {
            ties += 1;
            continue;
        }
        for times in [&mut arrived, &mut tandem.arrived].into_iter().filter(|_| cells > 1) {
            times.sort_unstable(); // of what reaches two cells at once, either may be first
        }
        assert_eq!(arrived, tandem.arrived, "seed {seed}, down {down}, {cells} cells: {:?}", tandem.hops);
        lost.sort_unstable();
        tandem.dropped.sort_unstable();
        assert_eq!(lost, tandem.dropped, "seed {seed}, down {down}, {cells} cells");
        delivered += arrived.len();
        dropped += lost.len();
    }
    assert!(delivered > 10_000 && dropped > 10_000, "{delivered} delivered, {dropped} dropped");
    assert!(ties < 30, "{ties} of 1200 left out");
    assert!(own_and_shared > 100, "{own_and_shared} with both kinds of hops and several cells");
}

/// Sends what it gets to a port that leads nowhere.
#[derive(Default)]
struct Astray(VecDeque<Output>);

impl Node for Astray {
    fn handle_packet(&mut self, _now: Instant, _from: Port, packet: Packet) {
        self.0.push_back(Output::Transmit(Port(7), packet));
    }
    fn handle_timeout(&mut self, _now: Instant) {}
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.0.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_datagram_sent_to_a_port_without_a_wire_leaves_as_a_drop() {
    let mut engine = Engine::default();
    let node = engine.add(Astray::default());
    engine.expose((node, Port(0)), Port(0));
    let mut datagram = packet(1, 0);
    datagram.payload = Payload::Datagram(vec![0; 20].into());
    engine.handle_packet(Instant::ZERO, Port(0), datagram.clone());
    assert_eq!(engine.poll_output(Instant::ZERO), Some(Output::Drop(datagram, DropReason::NoRoute)));
}
