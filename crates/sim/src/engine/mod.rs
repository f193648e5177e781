//! The event engine: nodes, the wires between their ports, and simulated time.
//!
//! The agenda has the next timeout of every node. The engine advances to the earliest one, calls that node's
//! `handle_timeout`, collects the packets that it emits, and hands each over its wire to the next node until
//! no node emits any more. A packet takes no time on a wire: links with rate and delay are nodes. Timeouts at
//! the same time run in the order in which they were entered.
//!
//! An engine is itself a [`Node`], whose ports are the wires that lead outside. The simulator runs it as fast
//! as possible, the emulator in real time, with the same results.

mod agenda;

pub(crate) use agenda::{Agenda, NEVER};

use paceline_net::{DropReason, Event, FlowKey, Instant, Node, Output, Packet, Payload, Port, ServingCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Index of a node in its engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(u32);

impl NodeId {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("an engine has fewer than 2^32 nodes"))
    }
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The end of a wire.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Node(NodeId, Port),
    Outside(Port),
}

#[derive(Clone, Copy, Debug)]
struct Wire {
    end: End,
    /// Interface number for captured packets; none if packets on this wire are not captured.
    capture: Option<u32>,
}

/// Called with each packet on a captured wire: time, interface number, packet.
pub type PacketSink = Box<dyn FnMut(Instant, u32, &Packet) + Send>;

/// A packet that ended at a node.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Time.
    pub at: Instant,
    /// Source and destination.
    pub addresses: [IpAddr; 2],
    /// The connection; none of a packet of another protocol than TCP.
    pub flow: Option<FlowKey>,
    /// Acknowledgment number of TCP.
    pub acknowledgment: Option<u32>,
    /// Bytes with the IP header.
    pub length: u32,
    /// Reason.
    pub reason: DropReason,
}

/// Nodes and wires.
pub struct Engine<N> {
    nodes: Vec<N>,
    wires: Vec<Vec<Option<Wire>>>,
    outside: BTreeMap<Port, (NodeId, Port)>,
    /// Time of each node's next check: at its next timeout or earlier.
    agenda: Agenda,
    /// Nodes that follow the serving cells of stations.
    followers: Vec<NodeId>,
    now: Instant,
    traffic: Traffic,
    packets: u64,
}

/// Output of the nodes.
#[derive(Default)]
struct Traffic {
    /// Packets for a node, in order of emission.
    undelivered: VecDeque<(NodeId, Port, Packet)>,
    /// Output that leaves the engine.
    output: VecDeque<Output>,
    capture: Option<PacketSink>,
    events: Vec<(Instant, Event)>,
    /// Packets that ended at nodes since they were taken; none while they are not recorded.
    dropped: Option<Vec<Dropped>>,
    cells: Vec<ServingCell>,
}

impl<N: Node> Default for Engine<N> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            wires: Vec::new(),
            outside: BTreeMap::new(),
            agenda: Agenda::default(),
            followers: Vec::new(),
            now: Instant::ZERO,
            traffic: Traffic::default(),
            packets: 0,
        }
    }
}

impl<N: Node> Engine<N> {
    /// Adds a node.
    pub fn add(&mut self, node: N) -> NodeId {
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(node);
        self.wires.push(Vec::new());
        self.agenda.add();
        self.reschedule(id, self.nodes[id.index()].poll_timeout(), true);
        id
    }
    /// Connects two ports by a wire in each direction.
    pub fn connect(&mut self, a: (NodeId, Port), b: (NodeId, Port)) {
        self.attach(a, End::Node(b.0, b.1));
        self.attach(b, End::Node(a.0, a.1));
    }
    /// Makes a node's port a port of the engine.
    pub fn expose(&mut self, inside: (NodeId, Port), outside: Port) {
        self.attach(inside, End::Outside(outside));
        self.outside.insert(outside, inside);
    }
    /// A node follows the serving cells of stations.
    pub fn follow_cells(&mut self, node: NodeId) {
        self.followers.push(node);
    }
    /// Captures the packets of both directions on the wire at a port, under an interface number.
    pub fn capture_at(&mut self, at: (NodeId, Port), interface: u32) {
        let wire =
            self.wires[at.0.index()][usize::from(at.1.0)].as_mut().expect("a captured port is connected");
        wire.capture = Some(interface);
        if let End::Node(node, port) = wire.end {
            let back = self.wires[node.index()][usize::from(port.0)].as_mut().expect("wires lead both ways");
            back.capture = Some(interface);
        }
    }
    /// Sends captured packets to `capture`.
    pub fn set_capture(&mut self, capture: PacketSink) {
        self.traffic.capture = Some(capture);
    }
    fn attach(&mut self, at: (NodeId, Port), end: End) {
        let wires = &mut self.wires[at.0.index()];
        let index = usize::from(at.1.0);
        if wires.len() <= index {
            wires.resize(index + 1, None);
        }
        assert!(wires[index].is_none(), "a port has one wire");
        wires[index] = Some(Wire { end, capture: None });
    }

    /// Simulated time.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// A node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.index()]
    }
    /// A node, for readings that change it.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id.index()]
    }
    /// All nodes, for changes that affect none of their timeouts.
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut N> {
        self.nodes.iter_mut()
    }
    /// Records the packets that end at nodes from now on.
    pub fn record_dropped(&mut self) {
        self.traffic.dropped = Some(Vec::new());
    }
    /// Takes the packets that ended at nodes since the last call, as far as they are recorded.
    pub fn take_dropped(&mut self) -> Vec<Dropped> {
        self.traffic.dropped.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// The events that are not taken, with their times.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.traffic.events
    }
    /// Takes the events since the last call, with their times.
    pub fn take_events(&mut self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.traffic.events)
    }
    /// Calls of `handle_packet`: each packet counts once per node on its path.
    pub fn packets_handled(&self) -> u64 {
        self.packets
    }
    /// Runs all events up to and including `until`.
    pub fn run_until(&mut self, until: Instant) {
        self.handle_timeout(until);
        self.now = self.now.max(until);
    }

    /// Changes a node at the present time, and delivers its output.
    #[inline]
    pub fn change(&mut self, id: NodeId, change: impl FnOnce(&mut N)) {
        change(&mut self.nodes[id.index()]);
        let (wires, traffic, now) = (&self.wires[id.index()], &mut self.traffic, self.now);
        let timeout = self.nodes[id.index()].poll_all(now, |output| traffic.take(now, wires, output));
        self.reschedule(id, timeout, false);
        self.deliver();
    }

    /// Enters a node's next timeout in the agenda. An entry that is too early stays until its time has come
    /// (`expired`): a retransmission timer moves later with every ACK, and so costs one agenda entry per
    /// timeout, not one per ACK.
    #[inline]
    fn reschedule(&mut self, id: NodeId, timeout: Option<Instant>, expired: bool) {
        let at = timeout.map_or(NEVER, |at| at.max(self.now));
        if expired || at < self.agenda.due(id.index()) {
            self.agenda.enter(id.index(), at);
        }
        if !self.traffic.cells.is_empty() {
            self.tell_followers();
        }
    }
    /// Delivers packets until no node emits any more at this time.
    #[inline]
    fn deliver(&mut self) {
        while let Some((id, port, packet)) = self.traffic.undelivered.pop_front() {
            self.packets += 1;
            let (wires, traffic, now) = (&self.wires[id.index()], &mut self.traffic, self.now);
            let take = |output| traffic.take(now, wires, output);
            let timeout = self.nodes[id.index()].deliver(now, port, packet, take);
            self.reschedule(id, timeout, false);
        }
    }
    /// Handles the timeout of a node for which the agenda has the present time.
    fn expire(&mut self, id: NodeId) {
        let (wires, traffic, now) = (&self.wires[id.index()], &mut self.traffic, self.now);
        let timeout = self.nodes[id.index()].expire(now, |output| traffic.take(now, wires, output));
        self.reschedule(id, timeout, true);
        self.deliver();
    }
    /// Passes changes of serving cells on.
    #[cold]
    fn tell_followers(&mut self) {
        for of in std::mem::take(&mut self.traffic.cells) {
            self.followers.iter().for_each(|node| self.nodes[node.index()].handle_serving_cell(self.now, of));
        }
    }
}

impl Traffic {
    /// Takes an output of a node with these wires.
    #[inline(always)]
    fn take(&mut self, now: Instant, wires: &[Option<Wire>], output: Output) {
        match output {
            Output::Transmit(port, packet) => self.forward(now, wires, port, packet),
            Output::Drop(packet, reason) => self.drop_packet(now, packet, reason),
            Output::Event(event) => self.record(now, *event),
        }
    }
    #[cold]
    fn record(&mut self, now: Instant, event: Event) {
        match event {
            Event::ServingCell(of) => self.cells.push(of),
            event => self.events.push((now, event)),
        }
    }
    /// A packet is dropped. A drop of a real datagram is also output, since it came from outside.
    fn drop_packet(&mut self, now: Instant, packet: Packet, reason: DropReason) {
        if let Some(dropped) = &mut self.dropped {
            dropped.push(Dropped {
                at: now,
                addresses: [packet.ip.src, packet.ip.dst],
                flow: packet.flow_key(),
                acknowledgment: packet.tcp_header().map(|tcp| tcp.ack.0),
                length: packet.len,
                reason,
            });
        }
        if matches!(packet.payload, Payload::Datagram(_)) {
            self.output.push_back(Output::Drop(packet, reason));
        }
    }
    /// Forwards a packet that left a node with these wires by a port.
    #[inline(always)]
    fn forward(&mut self, now: Instant, wires: &[Option<Wire>], port: Port, packet: Packet) {
        let wire = wires.get(usize::from(port.0)).copied().flatten();
        match wire {
            Some(Wire { end: End::Node(node, port), capture: None }) => {
                self.undelivered.push_back((node, port, packet));
            }
            _ => self.forward_elsewhere(now, wire, packet),
        }
    }
    /// Forwards a packet by a wire that is captured or leads outside, or drops it without a wire.
    fn forward_elsewhere(&mut self, now: Instant, wire: Option<Wire>, packet: Packet) {
        let Some(wire) = wire else {
            return self.drop_packet(now, packet, DropReason::NoRoute);
        };
        if let (Some(interface), Some(capture)) = (wire.capture, &mut self.capture) {
            capture(now, interface, &packet);
        }
        match wire.end {
            End::Node(node, port) => self.undelivered.push_back((node, port, packet)),
            End::Outside(port) => self.output.push_back(Output::Transmit(port, packet)),
        }
    }
}

impl<N: Node> Node for Engine<N> {
    /// A packet arrives from outside. Events that are due by then run first.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.run_until(now);
        let Some(&(node, port)) = self.outside.get(&from) else {
            self.traffic.output.push_back(Output::Drop(packet, DropReason::NoRoute));
            return;
        };
        if let Some(Wire { capture: Some(interface), .. }) = self.wires[node.index()][usize::from(port.0)]
            && let Some(capture) = &mut self.traffic.capture
        {
            capture(self.now, interface, &packet);
        }
        self.traffic.undelivered.push_back((node, port, packet));
        self.deliver();
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, node)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            self.expire(NodeId::new(node));
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.traffic.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| at)
    }
}
