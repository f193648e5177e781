//! The event engine: nodes, the wires between their ports, and time.
//!
//! An engine is itself a [`Node`]: its ports are the wires that lead outside. The simulator runs it as fast as it
//! goes, the emulator in real time; neither changes what it does. Events of equal time happen in the order in
//! which they were scheduled. A packet passes a wire at once: links with rate and delay are nodes.

mod agenda;

pub(crate) use agenda::{Agenda, NEVER};

use paceline_net::{DropReason, Event, Instant, Node, Output, Packet, Payload, Port};
use std::collections::{BTreeMap, VecDeque};

/// Index of a node in its engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(usize);

/// Where a wire ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Node(NodeId, Port),
    Outside(Port),
}

#[derive(Clone, Copy, Debug)]
struct Wire {
    end: End,
    /// Interface under which packets that pass are captured.
    capture: Option<u32>,
}

/// Receives copies of the packets that pass captured wires.
pub type Capture = Box<dyn FnMut(Instant, u32, &Packet) + Send>;

/// Nodes and wires.
pub struct Engine<N> {
    nodes: Vec<N>,
    wires: Vec<Vec<Option<Wire>>>,
    outside: BTreeMap<Port, (NodeId, Port)>,
    /// When each node is looked at next: no later than its next timeout.
    agenda: Agenda,
    now: Instant,
    traffic: Traffic,
    packets: u64,
}

/// What nodes have emitted.
#[derive(Default)]
struct Traffic {
    /// Packets on their way to a node.
    passing: VecDeque<(NodeId, Port, Packet)>,
    /// What leaves the engine.
    output: VecDeque<Output>,
    capture: Option<Capture>,
    drops: BTreeMap<DropReason, u64>,
    events: Vec<(Instant, Event)>,
}

impl<N: Node> Default for Engine<N> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            wires: Vec::new(),
            outside: BTreeMap::new(),
            agenda: Agenda::default(),
            now: Instant::ZERO,
            traffic: Traffic::default(),
            packets: 0,
        }
    }
}

impl<N: Node> Engine<N> {
    /// Adds a node.
    pub fn add(&mut self, node: N) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(node);
        self.wires.push(Vec::new());
        self.agenda.add();
        self.reschedule(id, true);
        id
    }
    /// Connects two ports, both ways.
    pub fn connect(&mut self, a: (NodeId, Port), b: (NodeId, Port)) {
        self.attach(a, End::Node(b.0, b.1));
        self.attach(b, End::Node(a.0, a.1));
    }
    /// Leads a node's port outside, as a port of the engine.
    pub fn expose(&mut self, inside: (NodeId, Port), outside: Port) {
        self.attach(inside, End::Outside(outside));
        self.outside.insert(outside, inside);
    }
    /// Captures what passes the wire at a port, in both directions, under an interface number.
    pub fn capture_at(&mut self, at: (NodeId, Port), interface: u32) {
        let wire = self.wires[at.0.0][usize::from(at.1.0)].as_mut().expect("a captured port is connected");
        wire.capture = Some(interface);
        if let End::Node(node, port) = wire.end {
            let back = self.wires[node.0][usize::from(port.0)].as_mut().expect("wires lead both ways");
            back.capture = Some(interface);
        }
    }
    /// Sends captured packets to `capture`.
    pub fn set_capture(&mut self, capture: Capture) {
        self.traffic.capture = Some(capture);
    }
    fn attach(&mut self, at: (NodeId, Port), end: End) {
        let wires = &mut self.wires[at.0.0];
        let index = usize::from(at.1.0);
        if wires.len() <= index {
            wires.resize(index + 1, None);
        }
        assert!(wires[index].is_none(), "a port has one wire");
        wires[index] = Some(Wire { end, capture: None });
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// A node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0]
    }
    /// A node, to read out what it collects.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id.0]
    }
    /// Packets that ended inside, by reason.
    pub fn drops(&self) -> &BTreeMap<DropReason, u64> {
        &self.traffic.drops
    }
    /// Takes the events so far.
    pub fn take_events(&mut self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.traffic.events)
    }
    /// Packets that nodes have handled.
    pub fn packets_handled(&self) -> u64 {
        self.packets
    }
    /// Runs every event up to and including `until`.
    pub fn run_until(&mut self, until: Instant) {
        self.handle_timeout(until);
        self.now = self.now.max(until);
    }

    /// Enters a node's next timeout. An entry that comes too early stays until it is `used`: timeouts that only ever
    /// move away, as a retransmission timer does with every ACK, cost nothing until the early one has come.
    fn reschedule(&mut self, id: NodeId, used: bool) {
        let at = self.nodes[id.0].poll_timeout().map_or(NEVER, |at| at.max(self.now));
        if used || at < self.agenda.due(id.0) {
            self.agenda.enter(id.0, at);
        }
    }
    /// Carries packets on until nothing moves at this time.
    fn settle(&mut self) {
        while let Some((node, port, packet)) = self.traffic.passing.pop_front() {
            self.packets += 1;
            self.nodes[node.0].handle_packet(self.now, port, packet);
            self.collect(node, false);
        }
    }
    /// Takes all output of a node.
    fn collect(&mut self, id: NodeId, used: bool) {
        let (node, wires, now) = (&mut self.nodes[id.0], &self.wires[id.0], self.now);
        while let Some(output) = node.poll_output(now) {
            match output {
                Output::Transmit(port, packet) => self.traffic.pass(now, wires, port, packet),
                Output::Drop(packet, reason) => self.traffic.end(packet, reason),
                Output::Event(event) => self.traffic.events.push((now, *event)),
            }
        }
        self.reschedule(id, used);
    }
}

impl Traffic {
    /// A packet ends inside; those that came from outside are told of there.
    fn end(&mut self, packet: Packet, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
        if matches!(packet.payload, Payload::Datagram(_)) {
            self.output.push_back(Output::Drop(packet, reason));
        }
    }
    /// A packet leaves a node with these wires by a port.
    #[inline]
    fn pass(&mut self, now: Instant, wires: &[Option<Wire>], port: Port, packet: Packet) {
        let Some(Some(wire)) = wires.get(usize::from(port.0)) else {
            return self.end(packet, DropReason::NoRoute);
        };
        if let (Some(interface), Some(capture)) = (wire.capture, &mut self.capture) {
            capture(now, interface, &packet);
        }
        match wire.end {
            End::Node(node, port) => self.passing.push_back((node, port, packet)),
            End::Outside(port) => self.output.push_back(Output::Transmit(port, packet)),
        }
    }
}

impl<N: Node> Node for Engine<N> {
    /// A packet comes in from outside, after every event that is due by then.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.run_until(now);
        let Some(&(node, port)) = self.outside.get(&from) else {
            self.traffic.output.push_back(Output::Drop(packet, DropReason::NoRoute));
            return;
        };
        if let Some(Wire { capture: Some(interface), .. }) = self.wires[node.0][usize::from(port.0)]
            && let Some(capture) = &mut self.traffic.capture
        {
            capture(self.now, interface, &packet);
        }
        self.traffic.passing.push_back((node, port, packet));
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, node)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            if self.nodes[node].poll_timeout().is_some_and(|due| due <= self.now) {
                self.nodes[node].handle_timeout(self.now);
                self.collect(NodeId(node), true);
                self.settle();
            } else {
                self.reschedule(NodeId(node), true);
            }
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.traffic.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| at)
    }
}
