//! What a worker does with packets, without its sockets: whose rule is which, and the machines that apply them.
//!
//! Devices whose connections are accelerated and devices whose connections are only relayed have a machine each; the
//! second acknowledges nothing early. Packets pass between two networks of the same addresses untouched.

use super::uplink::{Line, Uplink};
use crate::gateway::config::GatewayConfig;
use crate::gateway::control_plane::capture::Taps;
use crate::gateway::control_plane::requests::{PAGE, Page, Snapshot};
use crate::gateway::counter::{Counter, CounterValues};
use crate::gateway::crash_recovery::journal::Writer;
use crate::gateway::datapath::frame::{Arrival, Link, Outgoing};
use crate::gateway::datapath::links::Links;
use crate::gateway::interfaces::ports::Role;
use crate::gateway::policy::{Action, Table};
use paceline_net::{Bytes, Duration, FlowKey, Instant, Packet, TcpFlags};
use paceline_pep::AcceleratorConfig;
use paceline_pep::accelerator::{Accelerator, DeviceSnapshot, FlowSnapshot, Side, Transmission};
use paceline_pep::ack_filter::Holdout;
use std::sync::Arc;

/// What becomes of a packet that came.
pub enum Fate {
    /// It was taken in.
    Taken,
    /// It was taken in, and its connection needs nothing of this: the kernel may have it.
    LeaveAlone(FlowKey),
    /// It was taken in, and its connection only uploads, for which it may [`Engine::rest`].
    Uploads(FlowKey),
    /// It was taken in, and with it its connection, of which the kernel had the upload.
    TakenBack(FlowKey),
    /// It goes on as it is.
    Passes(Outgoing),
    /// It goes on as it is, and the kernel may have its connection.
    PassesAlone(FlowKey, Outgoing),
}

/// The machines of a worker.
pub struct Engine {
    accelerator: Accelerator,
    /// There if a policy asks for it.
    relay: Option<Accelerator>,
    uplink: Option<Uplink>,
    policies: Table,
    way: Way,
    /// Packets of two networks under the same addresses and ports.
    ambiguous_networks: u64,
    /// Packets made for a connection whose link header is forgotten.
    unknown_links: u64,
    /// Copies of single connections.
    pub taps: Taps,
    seed: u64,
    /// The policies have changed: connections that are known stay where they are.
    mixed: bool,
}

/// Where packets go.
enum Way {
    /// On, behind the link headers with which those of their connection came.
    Across(Links),
    /// Back to the kernel, which routes them, behind these addresses.
    ToRouter([u8; 12]),
}

impl Way {
    fn find(&self, key: &FlowKey, side: Side) -> Option<Link> {
        match self {
            Self::Across(links) => links.find(key, side),
            Self::ToRouter(addresses) => Some(Link::plain(*addresses, key.src.is_ipv4())),
        }
    }
}

/// Whose link headers are remembered by a worker.
fn connections(config: &GatewayConfig) -> usize {
    2 * (config.limits.max_flows + config.limits.max_openings) / config.workers
}

impl Engine {
    /// Without connections; `seed` is for hash tables, which outsiders should not know.
    pub fn new(config: &GatewayConfig, role: Role, line: Arc<Line>, seed: u64) -> Self {
        let built = config.accelerator(seed);
        let relayed = config.policy.iter().any(|policy| policy.action == Action::Relay);
        let relay = AcceleratorConfig { exposure: Bytes(0), ..built.clone() };
        Self {
            accelerator: Accelerator::new(built),
            relay: relayed.then(|| Accelerator::new(relay)),
            uplink: Uplink::new(&config.filter, line),
            policies: Table::new(&config.policy),
            way: match role {
                Role::Bridge { .. } => Way::Across(Links::new(connections(config), !seed)),
                Role::Router { addresses, .. } => Way::ToRouter(addresses),
            },
            ambiguous_networks: 0,
            unknown_links: 0,
            taps: Taps::default(),
            seed,
            mixed: false,
        }
    }

    /// Takes over what may change at run time. Connections stay where they are.
    pub fn configure(&mut self, config: &GatewayConfig) {
        let relayed = config.policy.iter().any(|policy| policy.action == Action::Relay);
        let (built, policies) = (config.accelerator(self.seed), Table::new(&config.policy));
        let relay = AcceleratorConfig { exposure: Bytes(0), ..built.clone() };
        self.accelerator.set_config(built);
        match &mut self.relay {
            Some(machine) => machine.set_config(relay),
            None => self.relay = relayed.then(|| Accelerator::new(relay)),
        }
        if let Way::Across(links) = &mut self.way {
            links.set_limit(connections(config));
        }
        if policies != self.policies {
            self.mixed = true;
            self.release();
        }
        self.policies = policies;
    }

    /// These arrivals are taken next.
    pub fn expect(&self, side: Side, arrivals: &[Arrival]) {
        let packets = arrivals.iter().filter_map(Arrival::packet);
        for machine in self.each() {
            machine.prefetch(side, packets.clone());
        }
    }

    /// A packet arrived from `side`, behind `link`.
    pub fn take(&mut self, now: Instant, side: Side, link: Link, packet: Packet) -> Fate {
        let segment = u32::from(packet.offload.segment);
        let link = self.leaving(link);
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header()) else {
            if packet.is_tcp_protocol() {
                return Fate::Passes(Outgoing::new(link, packet, segment));
            }
            // The kernel forwards it; the machines only look.
            self.machines().for_each(|machine| machine.input(now, side, packet.clone()));
            return Fate::Taken;
        };
        let key = if side == Side::Server { key } else { key.reversed() };
        let (syn, data) = (tcp.flags.contains(TcpFlags::SYN), tcp.payload_len > 0);
        let ends_rest = side == Side::Server && (data || tcp.flags.contains(TcpFlags::FIN));
        let Self { accelerator, relay, way, .. } = self;
        let holds =
            |key: &FlowKey| accelerator.knows(key) || relay.as_ref().is_some_and(|relay| relay.knows(key));
        if let Way::Across(links) = way
            && !links.learn(key, side.other(), link, syn, holds)
        {
            self.ambiguous_networks += 1;
            return Fate::Passes(Outgoing::new(link, packet, segment));
        }
        self.taps.on_packet(now, &key, (side, false), &packet, &[]);
        let action = self.action(&key);
        let machine = match (action, &mut self.relay, &mut self.uplink) {
            (Action::Relay, Some(relay), _) => relay,
            (Action::Filter, _, Some(uplink)) if side == Side::Mobile => {
                uplink.push(now, packet);
                return Fate::Taken;
            }
            (Action::Leave, _, _) if !syn => {
                return Fate::PassesAlone(key, Outgoing::new(link, packet, segment));
            }
            (Action::Filter | Action::Leave, _, _) => {
                return Fate::Passes(Outgoing::new(link, packet, segment));
            }
            _ => &mut self.accelerator,
        };
        let resting = ends_rest && machine.is_offloaded(&key);
        machine.input(now, side, packet);
        match side {
            Side::Server if data && !syn && !machine.knows(&key) => Fate::LeaveAlone(key),
            Side::Server if resting => Fate::TakenBack(key),
            Side::Mobile if data && machine.may_offload(&key) => Fate::Uploads(key),
            _ => Fate::Taken,
        }
    }

    /// Leaves a connection's upload to the kernel, if it still may be.
    pub fn rest(&mut self, key: &FlowKey) -> bool {
        self.machines().any(|machine| machine.offload(key))
    }

    /// What is done for a connection.
    fn action(&self, key: &FlowKey) -> Action {
        if self.mixed && self.accelerator.knows(key) {
            Action::Accelerate
        } else if self.mixed && self.relay.as_ref().is_some_and(|relay| relay.knows(key)) {
            Action::Relay
        } else {
            self.policies.action(key.dst)
        }
    }

    /// The link header with which a packet goes on that came behind `link`.
    pub fn leaving(&self, link: Link) -> Link {
        match self.way {
            Way::Across(_) => link,
            Way::ToRouter(addresses) => link.readdressed(addresses),
        }
    }
    /// The next packet to send, and by which side.
    pub fn poll(&mut self, now: Instant) -> Option<(Side, Outgoing)> {
        loop {
            let Transmission { side, packet, segment, body } = self.next(now)?;
            let Some(key) = packet.flow_key() else { continue }; // the kernel forwards it
            let key = if side == Side::Mobile { key } else { key.reversed() };
            if let Some(link) = self.way.find(&key, side) {
                let segment = segment.max(packet.offload.segment.into());
                self.taps.on_packet(now, &key, (side, true), &packet, &body);
                return Some((side, Outgoing::gathered(link, packet, segment, body)));
            }
            self.unknown_links += 1;
        }
    }
    fn next(&mut self, now: Instant) -> Option<Transmission> {
        if let Some(made) = self.machines().find_map(|machine| machine.poll_transmit(now)) {
            return Some(made);
        }
        let packet = self.uplink.as_mut()?.pop(now)?;
        Some(Transmission { side: Side::Server, packet, segment: 0, body: Vec::new() })
    }

    /// When [`Engine::handle_timeout`] wants to be called.
    pub fn next_timer(&self) -> Option<Instant> {
        let uplink = self.uplink.as_ref().and_then(Uplink::next_at);
        self.each().filter_map(Accelerator::next_timer).chain(uplink).min()
    }
    /// A timer has come. Calling early is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        for machine in self.machines() {
            if machine.next_timer().is_some_and(|at| at <= now) {
                machine.handle_timeout(now);
            }
        }
    }

    /// See [`Accelerator::drain`].
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.machines().for_each(|machine| machine.drain(now, limit));
    }
    /// What waits for the line to the servers leaves at once.
    pub fn release(&mut self) {
        self.uplink.iter_mut().for_each(Uplink::release);
    }
    /// From now on the ACKs of these connections are not filtered.
    pub fn set_holdout(&mut self, holdout: Holdout) {
        self.uplink.iter_mut().for_each(|uplink| uplink.set_holdout(holdout));
    }
    /// See [`Accelerator::resume`].
    pub fn resume(&mut self) {
        self.machines().for_each(Accelerator::resume);
    }
    /// See [`Accelerator::abort`].
    pub fn abort(&mut self, now: Instant) {
        self.machines().for_each(|machine| machine.abort(now));
    }
    /// See [`Accelerator::on_absence`].
    pub fn on_absence(&mut self, now: Instant) {
        self.machines().for_each(|machine| machine.on_absence(now));
    }
    /// See [`Accelerator::set_overloaded`].
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.machines().for_each(|machine| machine.set_overloaded(overloaded));
    }
    /// Connections in the machines.
    pub fn flow_count(&self) -> usize {
        self.each().map(Accelerator::flow_count).sum()
    }
    /// Connections that were detached, and that were reset.
    pub fn let_go(&self) -> (u64, u64) {
        let stats = || self.each().map(Accelerator::stats);
        (stats().map(|stats| stats.flows_detached).sum(), stats().map(|stats| stats.flows_reset).sum())
    }
    /// Handshakes and connections without data that are remembered.
    pub fn opening_count(&self) -> usize {
        self.each().map(Accelerator::opening_count).sum()
    }
    /// Whether a connection is in a machine.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.each().any(|machine| machine.knows(key))
    }
    /// Some connections, from a place on.
    pub fn flows(&self, from: u32) -> Page<FlowSnapshot> {
        self.page(from, Accelerator::flows_from)
    }
    /// Some devices, from a place on. One that has connections in both machines is there twice.
    pub fn devices(&self, from: u32) -> Page<DeviceSnapshot> {
        self.page(from, Accelerator::devices_from)
    }
    /// Places of the second machine have the highest bit set.
    fn page<T>(&self, from: u32, ask: impl Fn(&Accelerator, u32, u32) -> Page<T>) -> Page<T> {
        const SECOND: u32 = 1 << 31;
        match &self.relay {
            Some(relay) if from & SECOND != 0 => {
                let (entries, next) = ask(relay, from & !SECOND, PAGE);
                (entries, next.map(|next| next | SECOND))
            }
            relay => {
                let (entries, next) = ask(&self.accelerator, from, PAGE);
                (entries, next.or(relay.as_ref().map(|_| SECOND)))
            }
        }
    }
    /// From now on the journal is kept.
    pub fn keep_journal(&mut self) {
        self.accelerator.keep_journal();
    }
    /// Brings the journal up to date before anything leaves, and looks at `sweep` connections for those that need it
    /// no more. What is only relayed is never exposed.
    pub fn write_journal(&mut self, journal: &mut Writer, sweep: usize) {
        let Self { accelerator, way, .. } = self;
        let link = |key: &FlowKey, side: Side| way.find(key, side);
        accelerator.journal_changes(|slot, record| journal.write(slot, record, link));
        if sweep > 0 {
            accelerator.journal_sweep(sweep, |slot, record| journal.write(slot, record, link));
        }
    }
    /// Adds what the machines know to what a worker tells.
    pub fn tell(&self, snapshot: &mut Snapshot) {
        snapshot.flow_count = self.flow_count() as u64;
        snapshot.openings = self.opening_count() as u64;
        (snapshot.exposure, snapshot.held) = (self.exposure(), self.held());
        self.each().for_each(|machine| snapshot.add_histograms(machine.stats()));
    }
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.each().map(Accelerator::exposure).sum()
    }
    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.each().map(Accelerator::held).sum()
    }
    /// Counters of the machines and of the filter.
    pub fn counters(&self) -> CounterValues {
        let mut counters = CounterValues::default();
        self.each().for_each(|machine| counters.add_accelerator(machine.stats()));
        counters.extend([
            (Counter::AmbiguousNetworks, self.ambiguous_networks),
            (Counter::UnknownLinks, self.unknown_links),
        ]);
        self.uplink.iter().for_each(|uplink| uplink.add_counters(&mut counters));
        counters
    }

    fn machines(&mut self) -> impl Iterator<Item = &mut Accelerator> {
        std::iter::once(&mut self.accelerator).chain(&mut self.relay)
    }
    fn each(&self) -> impl Iterator<Item = &Accelerator> {
        std::iter::once(&self.accelerator).chain(&self.relay)
    }
}
