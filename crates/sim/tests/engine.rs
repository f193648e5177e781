//! The engine compared with one that scans every timer at every step, and the hops compared with an
//! event-by-event model.

use paceline_net::test_support::segment;
use paceline_net::{Bytes, DropReason, Duration, Instant, Node, Output, Packet, Payload, Port, Rate, Stream};
use paceline_sim::Engine;
use paceline_sim::hops::Hops;
use paceline_sim::scenario::Hop;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A packet whose sequence number is its id.
fn packet(id: u32, payload_len: u32) -> Packet {
    segment().seq(id).payload_len(payload_len).build()
}

fn id_of(packet: &Packet) -> u32 {
    packet.tcp_header().unwrap().seq.0
}

/// A node that at every event sets its timer at random, earlier or later, or cancels it. The node draws from
/// its own random stream, and so depends only on the events that it gets.
struct RandomNode {
    timer: Option<Instant>,
    stream: Stream,
    output: VecDeque<Output>,
    /// Node, time, and id of the packet, or 0 for a timeout.
    log: Rc<RefCell<Vec<(usize, Instant, u32)>>>,
    index: usize,
    ports: u16,
    sent: u32,
}

impl RandomNode {
    /// The next time after `at` at which no other node has a timer.
    fn own_time(&self, at: Instant) -> Instant {
        Instant::from_nanos((at.as_nanos() / 16 + 1) * 16 + self.index as u64)
    }
    fn act(&mut self, now: Instant, event: u32) {
        self.log.borrow_mut().push((self.index, now, event));
        let in_us =
            |us: u64, stream: &mut Stream| self.own_time(now + Duration::from_micros(stream.below(us)));
        let mut stream = self.stream.clone();
        let timer = match stream.below(8) {
            0 => None,
            // Only one node may be due at a time, since the order of equal times is not tested here.
            1 if self.index == 0 && event > 0 => Some(now),
            1..=4 => Some(in_us(20, &mut stream)),
            _ => Some(in_us(2000, &mut stream)),
        };
        (self.stream, self.timer) = (stream, timer);
        // Few enough packets that they die out, and enough to reach nodes without a timer.
        for _ in 0..self.stream.below(3) / 2 + u64::from(self.timer.is_none()) {
            self.sent += 1;
            let port = Port(self.stream.below(u64::from(self.ports)) as u16);
            self.output.push_back(Output::Transmit(port, packet(self.sent * 16 + self.index as u32, 0)));
        }
    }
}

impl Node for RandomNode {
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

fn random_nodes(seed: u64) -> (Vec<RandomNode>, Log) {
    let log = Log::default();
    let node = |index: usize| RandomNode {
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

/// Port of node `at` towards node `to`.
fn port(at: usize, to: usize) -> Port {
    Port((to - usize::from(to > at)) as u16)
}

/// Runs the nodes by searching for the earliest of all timers at every step.
fn run_by_scanning(nodes: &mut [RandomNode], until: Instant) {
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
fn no_event_is_late_or_lost_when_timers_change_at_random() {
    let end = Instant::from_millis(40);
    for seed in 0..200 {
        let (mut nodes, expected) = random_nodes(seed);
        run_by_scanning(&mut nodes, end);
        let (nodes, log) = random_nodes(seed);
        let mut engine = Engine::default();
        let ids: Vec<_> = nodes.into_iter().map(|node| engine.add(node)).collect();
        for a in 0..NODES {
            for b in 0..a {
                engine.connect((ids[a], port(a, b)), (ids[b], port(b, a)));
            }
        }
        // Steps of random length: the ends of runs must not change any event.
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

/// A packet under way: id, length, cell, and the index of its present hop.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    id: u32,
    len: Bytes,
    cell: usize,
    step: usize,
}

/// An event-by-event model of the hops in one direction, each a queue and a line. Of equal times, departures
/// come first.
#[derive(Default)]
struct Tandem {
    hops: Vec<Hop>,
    /// Per cell, the hops of its path.
    paths: Vec<Vec<usize>>,
    /// Queue of each hop; the front packet is being sent.
    queues: Vec<VecDeque<UnderWay>>,
    /// Time, 0 for the end of sending or 1 for an arrival at the hop, serial number of the entry, packet.
    agenda: Vec<(Instant, u8, u32, UnderWay)>,
    entered: u32,
    /// Time and cell of the last arrival at each hop.
    last_arrival: Vec<(Instant, usize)>,
    /// Packets of two cells arrived at a hop at the same time, and either may be first.
    tie: bool,
    arrived: Vec<(Instant, u32)>,
    dropped: Vec<u32>,
}

impl Tandem {
    /// Hops of all cells in the downlink or in the uplink.
    fn new(hops: &[Hop], cells: usize, down: bool) -> Self {
        let mut tandem = Self { paths: vec![Vec::new(); cells], ..Self::default() };
        for hop in hops {
            for cell in 0..cells {
                if cell == 0 || hop.per_cell {
                    tandem.hops.push(hop.clone());
                }
                tandem.paths[cell].push(tandem.hops.len() - 1);
            }
        }
        if !down {
            tandem.paths.iter_mut().for_each(|path| path.reverse());
        }
        tandem.queues = vec![VecDeque::new(); tandem.hops.len()];
        tandem.last_arrival = vec![(Instant::MAX, 0); tandem.hops.len()];
        tandem
    }
    fn enter(&mut self, at: Instant, kind: u8, packet: UnderWay) {
        self.entered += 1;
        self.agenda.push((at, kind, self.entered, packet));
    }
    fn run(&mut self) {
        while let Some(next) = (0..self.agenda.len()).min_by_key(|at| {
            let (time, kind, order, _) = self.agenda[*at];
            (time, kind, order)
        }) {
            let (now, kind, _, packet) = self.agenda.swap_remove(next);
            let Some(&at) = self.paths[packet.cell].get(packet.step) else {
                self.arrived.push((now, packet.id));
                continue;
            };
            let hop = self.hops[at].clone();
            let queue = &mut self.queues[at];
            if kind == 0 {
                queue.pop_front();
                let next = queue.front().copied();
                self.enter(now + hop.delay, 1, UnderWay { step: packet.step + 1, ..packet });
                if let Some(next) = next {
                    self.enter(now + hop.rate.time_to_send(next.len), 0, next);
                }
                continue;
            }
            let before = std::mem::replace(&mut self.last_arrival[at], (now, packet.cell));
            self.tie |= packet.step > 0 && before.0 == now && before.1 != packet.cell;
            let queued: u64 = queue.iter().map(|waiting| waiting.len.0).sum();
            if !queue.is_empty() && queued + packet.len.0 > hop.queue.0 {
                self.dropped.push(packet.id);
                continue;
            }
            queue.push_back(packet);
            if queue.len() == 1 {
                self.enter(now + hop.rate.time_to_send(packet.len), 0, packet);
            }
        }
    }
}

fn random_hops(stream: &mut Stream) -> Vec<Hop> {
    let shared = stream.below(4);
    let hop = |index: u64, stream: &mut Stream| Hop {
        rate: Rate(1_000_000 * (1 + stream.below(30))),
        // Sometimes whole milliseconds, for equal times.
        delay: Duration::from_micros(stream.below(3) * 4_000 + stream.below(2) * stream.below(999)),
        queue: Bytes(1_500 + stream.below(6_000)),
        per_cell: index >= shared,
        ..Hop::new(Rate(1), Duration::ZERO)
    };
    (0..shared + stream.below(3)).map(|index| hop(index, stream)).collect()
}

/// Takes arrived and dropped packets.
fn collect(hops: &mut Hops, at: Instant, down: bool, arrived: &mut Vec<(Instant, u32)>, lost: &mut Vec<u32>) {
    while let Some((packet, _)) = hops.poll_dropped(at) {
        lost.push(id_of(&packet));
    }
    while let Some(packet) = if down { hops.poll_at_cell(at) } else { hops.poll_at_servers(at) } {
        arrived.push((at, id_of(&packet)));
    }
}

#[test]
fn hops_computed_at_entry_agree_with_an_event_by_event_model() {
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
        // Random nanoseconds, so that packets of several cells rarely arrive at the same time.
        let shift = if cells > 1 { 1000 } else { 1 };
        for id in 0..200 {
            let pause = Duration::from_micros(stream.below(2) * stream.below(1500));
            now += pause + Duration::from_nanos(stream.below(shift));
            while let Some(at) = together.next_arrival().filter(|at| *at <= now) {
                collect(&mut together, at, down, &mut arrived, &mut lost);
            }
            let cell = stream.below(cells as u64) as usize;
            let packet = packet(id, 50 * stream.below(29) as u32);
            tandem.enter(now, 1, UnderWay { id, len: Bytes(u64::from(packet.len)), cell, step: 0 });
            let entered = match down {
                true => together.downlink(now, cell, packet),
                false => together.uplink(now, cell, packet),
            };
            // A drop at a later hop is known at entry if no other cell's packets can come before.
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
            times.sort_unstable(); // packets that arrive at two cells at the same time have no order
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

/// Forwards every packet to a port without a wire.
#[derive(Default)]
struct Unconnected(VecDeque<Output>);

impl Node for Unconnected {
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
    let node = engine.add(Unconnected::default());
    engine.expose((node, Port(0)), Port(0));
    let mut datagram = packet(1, 0);
    datagram.payload = Payload::Datagram(vec![0; 20].into());
    engine.handle_packet(Instant::ZERO, Port(0), datagram.clone());
    assert_eq!(engine.poll_output(Instant::ZERO), Some(Output::Drop(datagram, DropReason::NoRoute)));
}
