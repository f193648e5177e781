//! A worker's packet processing, without its sockets: the policy of each device, and the accelerator that
//! applies it.
//!
//! Packets of devices with the actions `accelerate` and `relay` go to the accelerator, which acknowledges
//! nothing early for the second. Uplink packets of devices with the action `filter` go to the [`Uplink`]
//! queue. Packets of two networks (VLANs) that use the same addresses and ports at the same time are
//! forwarded unchanged. Fragments are put together ahead of all this, if the accelerator has their
//! connection, and the datagrams that leave are cut into fragments again.

use super::uplink::{Line, Uplink};
use crate::config::GatewayConfig;
use crate::control_plane::capture::Taps;
use crate::control_plane::requests::{PAGE, Page, Snapshot};
use crate::counter::{Counter, CounterValues};
use crate::crash_recovery::journal::Writer;
use crate::datapath::frame::{Arrival, ICMP, ICMPV6, Link, Outgoing};
use crate::datapath::links::Links;
use crate::interfaces::mss_clamp::Clamp;
use crate::interfaces::ports::Role;
use crate::policy::{Action, Table};
use paceline_net::fragments::{Fragments, fragment, is_fragment};
use paceline_net::identification::Identifications;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Bytes, Checksum, Duration, FlowKey, Instant, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader,
    TcpOptions, Timestamps, Transport,
};
use paceline_pep::AcceleratorConfig;
use paceline_pep::accelerator::{Accelerator, DeviceSnapshot, FlowSnapshot, Side, Transmission};
use paceline_pep::ack_filter::Holdout;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// The result of [`Engine::take`].
pub enum Fate {
    /// The engine has the packet.
    Handled,
    /// The engine has the packet and does not accelerate its connection, which may be left to the kernel.
    LeaveToKernel(FlowKey),
    /// The engine has the packet; its connection only uploads, and [`Engine::offload_upload`] may succeed.
    OffloadUpload(FlowKey),
    /// The engine has the packet; the upload of its connection comes back from the kernel.
    TakeBack(FlowKey),
    /// The packet has to be forwarded unchanged.
    Forward(Outgoing),
    /// The packet has to be forwarded unchanged, and its connection may be left to the kernel.
    ForwardAndLeave(FlowKey, Outgoing),
}

/// The accelerator and the uplink queue of a worker.
pub struct Engine {
    accelerator: Accelerator,
    /// The configuration of the accelerator, with early acknowledgments.
    built: AcceleratorConfig,
    early_acks: bool,
    uplink: Option<Uplink>,
    policies: Table,
    clamp: Clamp,
    egress: Egress,
    /// Fragments that wait for the rest of their datagram, by side and link header.
    fragments: Fragments<(Side, Link)>,
    /// Fragments that leave, by the side of their interface.
    leaving: VecDeque<(Side, Outgoing)>,
    /// Numbers of outer IPv4 headers and of probes.
    identifications: Identifications,
    /// Packets of two networks under the same addresses and ports.
    ambiguous_networks: u64,
    /// Packets without a valid TCP header.
    unreadable: u64,
    /// Packets of the accelerator for connections whose link header is unknown.
    unknown_links: u64,
    /// Probes of servers after a change of tunnel.
    server_probes: u64,
    /// Captures of single connections.
    pub taps: Taps,
    seed: u64,
    /// The policies have changed at run time: the accelerator may have a connection whose device's policy
    /// has another action now.
    policies_changed: bool,
}

/// The link headers of packets that leave.
enum Egress {
    /// Those with which the packets of their connection arrived.
    Bridge(Links),
    /// One with these addresses, to the kernel, which routes the packets.
    Router([u8; 12]),
}

impl Egress {
    fn find(&self, key: &FlowKey, side: Side) -> Option<Link> {
        match self {
            Self::Bridge(links) => links.find(key, side),
            Self::Router(addresses) => Some(Link::plain(*addresses, key.src.is_ipv4())),
        }
    }
}

/// Link headers that a worker remembers. Chosen: of twice its share of the connections and handshakes.
fn link_limit(config: &GatewayConfig) -> usize {
    2 * (config.limits.max_flows + config.limits.max_openings) / config.workers
}

impl Engine {
    /// An engine without connections. `seed` is the key of hash tables, which outsiders must not know.
    pub fn new(config: &GatewayConfig, role: Role, line: Arc<Line>, seed: u64) -> Self {
        let built = config.accelerator(seed);
        Self {
            accelerator: Accelerator::new(built.clone()),
            built,
            early_acks: true,
            uplink: Uplink::new(&config.filter, line),
            policies: Table::new(&config.policy),
            clamp: Clamp::default(),
            egress: match role {
                Role::Bridge { .. } => Egress::Bridge(Links::new(link_limit(config), !seed)),
                Role::Router { addresses, .. } => Egress::Router(addresses),
            },
            fragments: Fragments::default(),
            leaving: VecDeque::new(),
            identifications: Identifications::new(!seed),
            ambiguous_networks: 0,
            unreadable: 0,
            unknown_links: 0,
            server_probes: 0,
            taps: Taps::default(),
            seed,
            policies_changed: false,
        }
    }

    /// Takes over the part of the configuration that may change at run time. The accelerator keeps its
    /// connections.
    pub fn configure(&mut self, config: &GatewayConfig) {
        let policies = Table::new(&config.policy);
        self.built = config.accelerator(self.seed);
        self.set_accelerator_config();
        if let Egress::Bridge(links) = &mut self.egress {
            links.set_limit(link_limit(config));
        }
        if policies != self.policies {
            self.policies_changed = true;
            self.release();
        }
        self.policies = policies;
    }

    /// Allows early acknowledgments, or stops them; what was acknowledged stays so.
    pub fn allow_early_acks(&mut self, allowed: bool) {
        self.early_acks = allowed;
        self.set_accelerator_config();
    }
    fn set_accelerator_config(&mut self) {
        let exposure = if self.early_acks { self.built.exposure } else { Bytes(0) };
        self.accelerator.set_config(AcceleratorConfig { exposure, ..self.built.clone() });
    }

    /// Prefetches the connections' state of packets that are taken next.
    pub fn prefetch(&self, side: Side, arrivals: &[Arrival]) {
        self.accelerator.prefetch(side, arrivals.iter().filter_map(Arrival::packet));
    }

    /// Handles a packet that arrived from `side` with the link header `link`.
    pub fn take(&mut self, now: Instant, side: Side, link: Link, mut packet: Packet) -> Fate {
        if is_fragment(&packet) {
            return self.take_fragment(now, side, link, packet);
        }
        self.clamp.apply(&link, &mut packet);
        let link = self.egress_link(link);
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header()) else {
            if !matches!(packet.transport, Transport::Other(ICMP | ICMPV6)) {
                self.unreadable += 1;
                return self.forward(side, link, packet);
            }
            // A packet-too-big message: the kernel forwards it, and the accelerator learns the path MTU.
            self.accelerator.input(now, side, packet);
            return Fate::Handled;
        };
        let key = if side == Side::Server { key } else { key.reversed() };
        let tunnelled = link.tunnel().is_some();
        let (syn, data) = (tcp.flags.contains(TcpFlags::SYN), tcp.payload_len > 0);
        let ends_offload = side == Side::Server && (data || tcp.flags.contains(TcpFlags::FIN));
        let Self { accelerator, egress, .. } = self;
        if let Egress::Bridge(links) = egress
            && !links.learn(now, (key, syn), side.other(), link.clone(), |key| accelerator.knows(key))
        {
            self.ambiguous_networks += 1;
            return self.forward(side, link, packet);
        }
        self.taps.on_packet(now, &key, (side, false), &packet, &[]);
        let action = self.action(&key);
        match (action, &mut self.uplink) {
            (Action::Filter, Some(uplink)) if side == Side::Mobile => {
                uplink.push(now, packet);
                return Fate::Handled;
            }
            (Action::Leave, _) if !syn => {
                return match self.forward(side, link, packet) {
                    Fate::Forward(frame) => Fate::ForwardAndLeave(key, frame),
                    _ => Fate::LeaveToKernel(key),
                };
            }
            (Action::Filter | Action::Leave, _) => return self.forward(side, link, packet),
            (Action::Accelerate | Action::Relay, _) => {}
        }
        let accelerator = &mut self.accelerator;
        if tunnelled && !syn && !accelerator.knows(&key) {
            let left = side == Side::Server && data;
            if left {
                accelerator.count_mid_flow();
            }
            let fate = self.forward(side, link, packet);
            return if left { Fate::LeaveToKernel(key) } else { fate };
        }
        let take_back = ends_offload && accelerator.is_offloaded(&key);
        accelerator.input_of(now, side, packet, action == Action::Accelerate);
        match side {
            Side::Server if data && !syn && !accelerator.knows(&key) => Fate::LeaveToKernel(key),
            Side::Server if take_back => Fate::TakeBack(key),
            // The worker learns from an upload's packets that a tunnel has changed.
            Side::Mobile if data && !tunnelled && accelerator.may_offload(&key) => Fate::OffloadUpload(key),
            _ => Fate::Handled,
        }
    }

    /// A fragment: the datagram that it completes is handled like all others.
    fn take_fragment(&mut self, now: Instant, side: Side, link: Link, packet: Packet) -> Fate {
        let Self { fragments, accelerator, .. } = self;
        let takes = |(side, _): &(Side, Link), key: &FlowKey| {
            let key = if *side == Side::Server { *key } else { key.reversed() };
            accelerator.knows(&key)
        };
        let whole = fragments.insert(now, (side, link), packet, takes);
        self.forward_fragments(now);
        whole.map_or(Fate::Handled, |((side, link), packet)| self.take(now, side, link, packet))
    }
    /// Forwards the fragments that are not put together.
    fn forward_fragments(&mut self, now: Instant) {
        while let Some(((side, link), packet)) = self.fragments.pop(now) {
            let frames = Outgoing::frames(self.egress_link(link), packet, 0, Vec::new(), None);
            self.leaving.extend(frames.into_iter().map(|frame| (side.other(), frame)));
        }
    }
    /// Forwards a packet from `side` unchanged: as a frame, or as the fragments that it was put together
    /// from.
    fn forward(&mut self, side: Side, link: Link, packet: Packet) -> Fate {
        let segment = packet.offload.super_segment();
        if packet.offload.reassembled {
            self.leave_in_fragments(side.other(), &link, packet, false);
        } else if link.tunnel().is_none() {
            return Fate::Forward(Outgoing::new(link, packet, segment));
        } else {
            self.leave(side.other(), Outgoing::frames(link, packet, segment, Vec::new(), None));
        }
        Fate::Handled
    }
    fn leave_in_fragments(&mut self, side: Side, link: &Link, packet: Packet, own: bool) {
        for part in fragment(packet) {
            let own = own.then_some(&mut self.identifications);
            let frames = Outgoing::frames(link.clone(), part, 0, Vec::new(), own);
            self.leave(side, frames);
        }
    }
    fn leave(&mut self, side: Side, frames: Vec<Outgoing>) {
        self.leaving.extend(frames.into_iter().map(|frame| (side, frame)));
    }
    /// Probes the server of a connection whose tunnel towards the device is doubtful, by an empty segment
    /// below the client's sequence number, which every endpoint answers (RFC 9293, section 3.10.7.4): the
    /// answer shows the tunnel. `packet` is a segment to the client, with the numbers of both ends.
    fn probe_server(&mut self, now: Instant, key: &FlowKey, packet: &Packet) {
        let Egress::Bridge(links) = &mut self.egress else { return };
        let Some(tcp) = packet.tcp_header().filter(|_| links.take_probe(key, now)) else { return };
        let Some(link) = links.find(key, Side::Server) else { return };
        let stamps = tcp.options.timestamps.map(|stamps| Timestamps { val: stamps.ecr, ecr: stamps.val });
        let probe = TcpHeader {
            src_port: tcp.dst_port,
            dst_port: tcp.src_port,
            seq: SeqNumber(tcp.ack.0.wrapping_sub(1)),
            ack: tcp.seq,
            flags: TcpFlags::ACK,
            window: tcp.window,
            options: TcpOptions { timestamps: stamps, ..TcpOptions::default() },
            payload_len: 0,
        };
        let ip = IpHeader { src: packet.ip.dst, dst: packet.ip.src, special: false, ..packet.ip };
        let ip = IpHeader { traffic_class: 0, hop_limit: 64, ..ip };
        let none = std::iter::empty();
        let mut probe = rewrite::segment(ip, probe, Unparsed::default(), Checksum::Unverified, none);
        self.identifications.number(&mut probe, 0);
        self.server_probes += 1;
        let frames = Outgoing::frames(link, probe, 0, Vec::new(), Some(&mut self.identifications));
        self.leave(Side::Server, frames);
    }

    /// Marks a connection's upload as left to the kernel. False if that is not allowed any more.
    pub fn offload_upload(&mut self, key: &FlowKey) -> bool {
        self.accelerator.offload(key)
    }

    /// The action for a connection. The accelerator keeps one whose device's policy now says something else,
    /// without early acknowledgments.
    fn action(&self, key: &FlowKey) -> Action {
        match self.policies.action(key.dst) {
            Action::Filter | Action::Leave if self.policies_changed && self.accelerator.knows(key) => {
                Action::Relay
            }
            action => action,
        }
    }

    /// The link header with which a forwarded packet leaves that arrived with `link`.
    pub fn egress_link(&self, link: Link) -> Link {
        match self.egress {
            Egress::Bridge(_) => link,
            Egress::Router(addresses) => link.readdressed(addresses),
        }
    }
    /// The next packet to send, and the side of its interface.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Side, Outgoing)> {
        loop {
            if let Some(fragment) = self.leaving.pop_front() {
                return Some(fragment);
            }
            let Transmission { side, packet, segment, body } = self.next_transmission(now)?;
            let Some(key) = packet.flow_key() else { continue }; // the kernel has forwarded this one
            let key = if side == Side::Mobile { key } else { key.reversed() };
            if let Some(link) = self.egress.find(&key, side) {
                let segment = segment.max(packet.offload.super_segment());
                self.taps.on_packet(now, &key, (side, true), &packet, &body);
                if packet.offload.reassembled {
                    self.leave_in_fragments(side, &link, packet, true);
                    continue;
                }
                if link.tunnel().is_some() {
                    if side == Side::Mobile && packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0) {
                        self.probe_server(now, &key, &packet);
                    }
                    let own = Some(&mut self.identifications);
                    let frames = Outgoing::frames(link, packet, segment, body, own);
                    self.leave(side, frames);
                    continue;
                }
                return Some((side, Outgoing::gathered(link, packet, segment, body)));
            }
            self.unknown_links += 1;
        }
    }
    fn next_transmission(&mut self, now: Instant) -> Option<Transmission> {
        if let Some(transmission) = self.accelerator.poll_transmit(now) {
            return Some(transmission);
        }
        let packet = self.uplink.as_mut()?.pop(now)?;
        Some(Transmission { side: Side::Server, packet, segment: 0, body: Vec::new() })
    }

    /// The time of the next call of [`Engine::handle_timeout`].
    pub fn next_timer(&self) -> Option<Instant> {
        let uplink = self.uplink.as_ref().and_then(Uplink::next_at);
        let fragments = self.fragments.next_at();
        [self.accelerator.next_timer(), uplink, fragments].into_iter().flatten().min()
    }
    /// Runs timers that are due. Calling early is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.forward_fragments(now);
        if self.accelerator.next_timer().is_some_and(|at| at <= now) {
            self.accelerator.handle_timeout(now);
        }
    }

    /// See [`Accelerator::drain`].
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.accelerator.drain(now, limit);
    }
    /// Lets the uplink queue's packets leave at once, see [`Uplink::release`].
    pub fn release(&mut self) {
        self.uplink.iter_mut().for_each(Uplink::release);
    }
    /// Sets the connections whose ACKs are not filtered from now on.
    pub fn set_holdout(&mut self, holdout: Holdout) {
        self.uplink.iter_mut().for_each(|uplink| uplink.set_holdout(holdout));
    }
    /// Sets the highest segment size that SYNs may announce.
    pub fn set_clamp(&mut self, clamp: Clamp) {
        self.clamp = clamp;
    }
    /// See [`Accelerator::hold_device`].
    pub fn hold_device(&mut self, device: IpAddr, until: Instant) {
        self.accelerator.hold_device(device, until);
    }
    /// See [`Accelerator::resume`].
    pub fn resume(&mut self) {
        self.accelerator.resume();
    }
    /// See [`Accelerator::abort`].
    pub fn abort(&mut self, now: Instant) {
        self.accelerator.abort(now);
    }
    /// See [`Accelerator::on_absence`].
    pub fn on_absence(&mut self, now: Instant) {
        self.accelerator.on_absence(now);
    }
    /// See [`Accelerator::set_overloaded`].
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.accelerator.set_overloaded(overloaded);
    }
    /// Connections in the accelerator.
    pub fn flow_count(&self) -> usize {
        self.accelerator.flow_count()
    }
    /// Numbers of connections that were detached and reset so far.
    pub fn released_flows(&self) -> (u64, u64) {
        let stats = self.accelerator.stats();
        (stats.flows_detached, stats.flows_reset)
    }
    /// Handshakes and connections without data that are remembered.
    pub fn opening_count(&self) -> usize {
        self.accelerator.opening_count()
    }
    /// Whether a connection is in the accelerator.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.accelerator.knows(key)
    }
    /// A page of connections, from a position on.
    pub fn flows(&self, from: u32) -> Page<FlowSnapshot> {
        self.accelerator.flows_from(from, PAGE)
    }
    /// A page of devices, from a position on.
    pub fn devices(&self, from: u32) -> Page<DeviceSnapshot> {
        self.accelerator.devices_from(from, PAGE)
    }
    /// Switches the journal of the accelerator on.
    pub fn keep_journal(&mut self) {
        self.accelerator.keep_journal();
    }
    /// Writes the accelerator's changes to the journal, before any packet leaves. Then clears the records of
    /// connections without exposure, looking at `sweep` connections.
    pub fn write_journal(&mut self, journal: &mut Writer, sweep: usize) {
        let Self { accelerator, egress, .. } = self;
        let link = |key: &FlowKey, side: Side| egress.find(key, side);
        accelerator.journal_changes(|slot, record| journal.write(slot, record, link));
        if sweep > 0 {
            accelerator.journal_sweep(sweep, |slot, record| journal.write(slot, record, link));
        }
    }
    /// Adds gauges and histograms of the accelerator to a snapshot.
    pub fn add_to(&self, snapshot: &mut Snapshot) {
        snapshot.flow_count = self.flow_count() as u64;
        snapshot.openings = self.opening_count() as u64;
        (snapshot.exposure, snapshot.held) = (self.exposure(), self.held());
        snapshot.sharing_devices = self.accelerator.sharing_devices() as u64;
        snapshot.add_histograms(self.accelerator.stats());
    }
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.accelerator.exposure()
    }
    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.accelerator.held()
    }
    /// Counters of the accelerator and of the ACK filter.
    pub fn counters(&self) -> CounterValues {
        let mut counters = CounterValues::default();
        counters.add_accelerator(self.accelerator.stats());
        counters.extend([
            (Counter::AmbiguousNetworks, self.ambiguous_networks),
            (Counter::FramesUnreadable, self.unreadable),
            (Counter::UnknownLinks, self.unknown_links),
            (Counter::ServerProbes, self.server_probes),
        ]);
        self.uplink.iter().for_each(|uplink| uplink.add_counters(&mut counters));
        counters
    }
}
