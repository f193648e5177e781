//! Packets that arrive: the fragments of a connection's datagrams are put together, the connection of a
//! packet is found or its handshake followed, and a connection is admitted at its server's first data.

use crate::accelerator::Side;
use crate::accelerator::flow::Flow;
use crate::accelerator::machine::connections::{Arrival, Connections};
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::machine::shared::Shared;
use crate::accelerator::stats::BypassReason;
use paceline_net::fragments::{Fragments, is_fragment};
use paceline_net::rewrite::{checksum_is_right, packet_too_big};
use paceline_net::{FlowKey, Instant, Packet, Payload, TcpFlags, TcpHeader};

/// The state of packets that belong to no accelerated connection.
#[derive(Debug)]
pub(super) struct Intake {
    openings: Openings,
    /// Fragments that wait for the rest of their datagram, by side.
    fragments: Fragments<Side>,
    overloaded: bool,
}

impl Intake {
    pub fn new(openings: Openings) -> Self {
        Self { openings, fragments: Fragments::default(), overloaded: false }
    }
    pub fn openings(&self) -> &Openings {
        &self.openings
    }
    pub fn openings_mut(&mut self) -> &mut Openings {
        &mut self.openings
    }
    /// While overloaded, no connection is admitted.
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.overloaded = overloaded;
    }

    /// A packet arrives. Fragments of a connection's datagrams wait for each other.
    pub fn input(
        &mut self,
        arrival: Arrival,
        mut packet: Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) {
        let Arrival { now, side, .. } = arrival;
        packet.offload.unnumbered = false; // it has the identification of its sender
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header().copied()) else {
            if is_fragment(&packet) {
                return self.on_fragment(arrival, packet, connections, shared);
            }
            // A packet-too-big message is used, and forwarded as well.
            if let Some(message) = packet_too_big(&packet).filter(|_| side == Side::Mobile) {
                connections.on_packet_too_big(now, &message, shared);
            }
            return shared.pass(side, packet);
        };
        let key = if side == Side::Server { key } else { key.reversed() };
        let known = connections.find(&key);
        // Nothing is learned from a corrupt handshake either.
        let mut opens = || tcp.flags.contains(TcpFlags::SYN) || self.openings.get(&key).is_some();
        let mut matters = || known.is_some() || !packet.ip.special && opens();
        if shared.config.verify_checksums && matters() && !checksum_is_right(&packet) {
            shared.stats.corrupt += 1;
            return shared.pass(side, packet);
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            self.on_syn((now, side), key, &packet, connections, shared);
            return shared.pass(side, packet);
        }
        match (known, side) {
            (Some(slot), Side::Mobile) if self.is_replaced(now, slot, &packet, &tcp, connections) => {
                connections.end(slot, shared);
                shared.pass(side, packet);
            }
            (Some(slot), _) => self.on_segment(arrival, slot, packet, connections, shared),
            (None, Side::Mobile) => {
                if self.openings.on_client(now, &key, &packet, &tcp) {
                    shared.stats.bypass(BypassReason::OneSided);
                }
                if tcp.flags.contains(TcpFlags::RST) {
                    self.openings.take(&key);
                }
                shared.pass(side, packet);
            }
            (None, Side::Server) => self.on_unknown(arrival, key, packet, connections, shared),
        }
    }
    /// A segment of a connection, and those that it releases.
    fn on_segment(
        &mut self,
        arrival: Arrival,
        slot: u32,
        packet: Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) {
        connections.on_segment(arrival, slot, packet, shared);
        for packet in connections.take_held_back(slot) {
            let arrival = Arrival { side: Side::Server, early_acks: true, ..arrival };
            self.input(arrival, packet, connections, shared);
        }
    }

    /// A fragment: the datagram that it completes is handled as a segment; fragments of other connections
    /// pass.
    fn on_fragment(
        &mut self,
        arrival: Arrival,
        packet: Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) {
        let Arrival { now, side, .. } = arrival;
        let Self { fragments, openings, .. } = self;
        let takes = |side: &Side, key: &FlowKey| {
            let key = if *side == Side::Server { *key } else { key.reversed() };
            connections.flows().holds(&key) || openings.holds(&key)
        };
        let whole = fragments.insert(now, side, packet, takes);
        self.pass_fragments(now, shared);
        if let Some((side, packet)) = whole {
            self.input(Arrival { side, ..arrival }, packet, connections, shared);
        }
    }
    /// Forwards the fragments that are not put together.
    pub fn pass_fragments(&mut self, now: Instant, shared: &mut Shared) {
        while let Some((side, packet)) = self.fragments.pop(now) {
            shared.pass(side, packet);
        }
    }
    /// When [`Intake::pass_fragments`] is to be called next.
    pub fn next_fragments(&self) -> Option<Instant> {
        self.fragments.next_at()
    }

    fn on_syn(
        &mut self,
        (now, side): (Instant, Side),
        key: FlowKey,
        packet: &Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) {
        let Some(tcp) = packet.tcp_header() else { return };
        let known = connections.find(&key);
        let entry = known.and_then(|slot| connections.get_mut(slot));
        let server_isn = entry.map(|entry| entry.flow.server_isn());
        if side == Side::Server && server_isn == Some(tcp.seq) {
            return; // a retransmission of the known connection's SYN
        }
        match self.openings.on_syn(now, key, side, packet, tcp) {
            Ok(forgotten) => shared.stats.openings_forgotten += forgotten,
            Err(reason) => shared.stats.bypass(reason),
        }
        // Both ends agreed on a new connection with the same addresses and ports, so the old one has ended.
        // If the old one is not transparent, the client must confirm the handshake: the two SYNs may be
        // forged.
        if let (Some(slot), Some(isn)) = (known, server_isn)
            && self.openings.get(&key).is_some_and(|opening| opening.replaces(isn))
            && let Some(entry) = connections.get_mut(slot)
        {
            entry.replacement_pending = true;
            if entry.flow.is_transparent() {
                connections.end(slot, shared);
            }
        }
    }
    /// Whether the client's segment confirms a new connection in the place of this one.
    fn is_replaced(
        &mut self,
        now: Instant,
        slot: u32,
        packet: &Packet,
        tcp: &TcpHeader,
        connections: &Connections,
    ) -> bool {
        let Some(entry) = connections.flows().get(slot).filter(|entry| entry.replacement_pending) else {
            return false;
        };
        let (key, isn) = (entry.flow.key(), entry.flow.server_isn());
        self.openings.on_client(now, &key, packet, tcp);
        self.openings.get(&key).is_some_and(|opening| opening.replaces(isn) && opening.is_confirmed())
    }

    /// A segment of the server that belongs to no accelerated connection.
    fn on_unknown(
        &mut self,
        arrival: Arrival,
        key: FlowKey,
        packet: Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) {
        let Some(tcp) = packet.tcp_header() else { return };
        if tcp.flags.contains(TcpFlags::RST) {
            self.openings.take(&key);
        } else if tcp.payload_len == 0 {
            self.openings.on_server(&key, tcp);
        } else {
            match self.admit(arrival.now, key, &packet, connections, shared) {
                Ok(slot) => return self.on_segment(arrival, slot, packet, connections, shared),
                Err(reason) => {
                    self.openings.take(&key);
                    shared.stats.bypass(reason);
                }
            }
        }
        shared.pass(Side::Server, packet);
    }
    /// Admits a connection at its server's first data. Returns its slot.
    fn admit(
        &mut self,
        now: Instant,
        key: FlowKey,
        packet: &Packet,
        connections: &mut Connections,
        shared: &mut Shared,
    ) -> Result<u32, BypassReason> {
        let handshake = self.openings.get(&key).ok_or(BypassReason::MidFlow)?.handshake()?;
        if packet.ip.special {
            return Err(BypassReason::SpecialIp);
        }
        if shared.draining.is_some() {
            return Err(BypassReason::Draining);
        }
        if self.overloaded || shared.held > shared.config.memory.0 {
            return Err(BypassReason::Overload);
        }
        connections.make_room(now, key.dst, shared)?;
        let upload = self.openings.take(&key).ok_or(BypassReason::MidFlow)?.upload;
        let real = matches!(packet.payload, Payload::Datagram(_));
        let flow = Flow::new(now, key, &handshake, upload, real);
        Ok(connections.insert(now, flow, &handshake, shared))
    }
}
