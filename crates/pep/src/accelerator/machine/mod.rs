//! The machine around the connections: tables, timers and the order of sending.
//!
//! [`Accelerator::input`] puts the fragments of a connection's datagrams together, finds the connection of a
//! packet (`index`, `entry`) or follows its handshake (`opening`), and admits a connection at its server's
//! first data. After each call of a connection, `bookkeeping` updates the totals of its device (`device`) and
//! of the machine (`shared`), the `timers`, the queues of `transmit` and the `journal`. `transmit` lets
//! devices send in turn. `admin` has the operator's calls; `prefetch` warms the caches.

mod admin;
mod bookkeeping;
mod device;
mod entry;
mod index;
mod journal;
mod opening;
mod prefetch;
mod shared;
mod timers;
mod transmit;

use crate::accelerator::Side;
use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::Flow;
use crate::accelerator::flow::context::Verdict;
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::machine::device::{Device, device_key, memory};
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::index::Table;
use crate::accelerator::machine::journal::Journal;
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::machine::shared::Shared;
use crate::accelerator::machine::timers::Timers;
use crate::accelerator::rate::sample::{AckSample, LossSample};
use crate::accelerator::stats::BypassReason;
use paceline_net::fragments::{Fragments, is_fragment};
use paceline_net::identification::Identifications;
use paceline_net::rewrite::{checksum_is_right, packet_too_big};
use paceline_net::{Duration, FlowKey, Instant, Packet, Payload, TcpFlags, TcpHeader};
use std::collections::VecDeque;
use std::net::IpAddr;

/// A transparent connection without a packet for this long gives its place in a full table to a new one.
/// Chosen: long against the pauses of an active user.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(60);
/// Entries examined to find one that gives its place. Chosen: the cost of an attempt is bounded, and another
/// packet makes another attempt.
const REPLACEMENT_PROBES: u32 = 8;
/// The same for one of the same device, whose connections may be few in the table. Chosen: more probes,
/// bounded as well.
const DEVICE_REPLACEMENT_PROBES: u32 = 32;

/// The mobile accelerator; see the [module](super).
#[derive(Debug)]
pub struct Accelerator {
    shared: Shared,
    openings: Openings,
    flows: Table<FlowEntry>,
    devices: Table<Device>,
    timers: Timers,
    /// Fragments that wait for the rest of their datagram, by side.
    fragments: Fragments<Side>,
    /// Numbers of the datagrams that are made here.
    identifications: Identifications,
    /// The rest of a datagram that leaves as fragments, as a node's outputs.
    leaving: VecDeque<(Side, Packet)>,
    /// Devices with something to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// Connections with an ACK due to either end.
    due: VecDeque<u32>,
    overloaded: bool,
    /// While draining, when connections are examined again.
    next_drain_check: Instant,
    journal: Journal,
    /// The largest exposure and buffer of a connection that were ever configured.
    largest_limits: AcceleratorConfig,
    /// Slot at which the last search for a replaceable connection ended.
    replacement_slot: u32,
    /// Packets handled.
    packets: u64,
}

impl Accelerator {
    /// An accelerator without connections.
    pub fn new(config: AcceleratorConfig) -> Self {
        let config = config.clamped();
        let seed = config.seed;
        Self {
            openings: Openings::new(config.max_openings, seed),
            flows: Table::new(seed),
            devices: Table::new(seed),
            timers: Timers::default(),
            fragments: Fragments::default(),
            identifications: Identifications::new(seed),
            leaving: VecDeque::new(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            overloaded: false,
            next_drain_check: Instant::MAX,
            journal: Journal::default(),
            largest_limits: config.clone(),
            replacement_slot: 0,
            packets: 0,
            shared: Shared::new(config),
        }
    }

    /// A packet arrives from `side`. Fragments of a connection's datagrams wait for each other.
    pub fn input(&mut self, now: Instant, side: Side, packet: Packet) {
        self.input_of(now, side, packet, true);
    }
    /// The same; `early_acks`: whether data of the packet's device may be acknowledged early from now on.
    pub fn input_of(&mut self, now: Instant, side: Side, mut packet: Packet, early_acks: bool) {
        self.packets += 1;
        packet.offload.unnumbered = false; // it has the identification of its sender
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header().copied()) else {
            if is_fragment(&packet) {
                return self.on_fragment(now, side, packet, early_acks);
            }
            self.on_other(now, side, &packet);
            return self.shared.pass(side, packet);
        };
        let key = if side == Side::Server { key } else { key.reversed() };
        let known = self.flows.find(&key);
        // Nothing is learned from a corrupt handshake either.
        let mut opens = || tcp.flags.contains(TcpFlags::SYN) || self.openings.get(&key).is_some();
        let mut matters = || known.is_some() || !packet.ip.special && opens();
        if self.shared.config.verify_checksums && matters() && !checksum_is_right(&packet) {
            self.shared.stats.corrupt += 1;
            return self.shared.pass(side, packet);
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            self.on_syn(now, key, side, &packet, &tcp);
            return self.shared.pass(side, packet);
        }
        match (known, side) {
            (Some(slot), Side::Mobile) if self.is_replaced(now, slot, &packet, &tcp) => {
                self.end_replaced(slot);
                self.shared.pass(side, packet);
            }
            (Some(slot), _) => self.on_segment(now, slot, side, packet, early_acks),
            (None, Side::Mobile) => {
                if self.openings.on_client(now, &key, &packet, &tcp) {
                    self.shared.stats.bypass(BypassReason::OneSided);
                }
                if tcp.flags.contains(TcpFlags::RST) {
                    self.openings.take(&key);
                }
                self.shared.pass(side, packet);
            }
            (None, Side::Server) => self.on_unknown(now, key, packet, &tcp, early_acks),
        }
    }

    /// A fragment: the datagram that it completes is handled as a segment; fragments of other connections
    /// pass.
    fn on_fragment(&mut self, now: Instant, side: Side, packet: Packet, early_acks: bool) {
        let Self { fragments, flows, openings, .. } = self;
        let takes = |side: &Side, key: &FlowKey| {
            let key = if *side == Side::Server { *key } else { key.reversed() };
            flows.holds(&key) || openings.holds(&key)
        };
        let whole = fragments.insert(now, side, packet, takes);
        self.pass_fragments(now);
        if let Some((side, packet)) = whole {
            self.input_of(now, side, packet, early_acks);
        }
    }
    /// Forwards the fragments that are not put together.
    fn pass_fragments(&mut self, now: Instant) {
        while let Some((side, packet)) = self.fragments.pop(now) {
            self.shared.pass(side, packet);
        }
    }

    fn on_syn(&mut self, now: Instant, key: FlowKey, side: Side, packet: &Packet, tcp: &TcpHeader) {
        let known = self.flows.find(&key);
        let server_isn = known.and_then(|slot| self.flows.get(slot)).map(|entry| entry.flow.server_isn());
        if side == Side::Server && server_isn == Some(tcp.seq) {
            return; // a retransmission of the known connection's SYN
        }
        match self.openings.on_syn(now, key, side, packet, tcp) {
            Ok(forgotten) => self.shared.stats.openings_forgotten += forgotten,
            Err(reason) => self.shared.stats.bypass(reason),
        }
        // Both ends agreed on a new connection with the same addresses and ports, so the old one has ended.
        // If the old one is not transparent, the client must confirm the handshake: the two SYNs may be
        // forged.
        if let (Some(slot), Some(isn)) = (known, server_isn)
            && self.openings.get(&key).is_some_and(|opening| opening.replaces(isn))
            && let Some(entry) = self.flows.get_mut(slot)
        {
            entry.replacement_pending = true;
            if entry.flow.is_transparent() {
                self.end_replaced(slot);
            }
        }
    }

    /// Whether the client's segment confirms a new connection in the place of this one.
    fn is_replaced(&mut self, now: Instant, slot: u32, packet: &Packet, tcp: &TcpHeader) -> bool {
        let Some(entry) = self.flows.get(slot).filter(|entry| entry.replacement_pending) else {
            return false;
        };
        let (key, isn) = (entry.flow.key(), entry.flow.server_isn());
        self.openings.on_client(now, &key, packet, tcp);
        self.openings.get(&key).is_some_and(|opening| opening.replaces(isn) && opening.is_confirmed())
    }

    fn end_replaced(&mut self, slot: u32) {
        self.shared.stats.flows_ended += 1;
        self.remove(slot);
    }

    /// A segment of the server that belongs to no accelerated connection.
    fn on_unknown(&mut self, now: Instant, key: FlowKey, packet: Packet, tcp: &TcpHeader, early_acks: bool) {
        if tcp.flags.contains(TcpFlags::RST) {
            self.openings.take(&key);
        } else if tcp.payload_len == 0 {
            self.openings.on_server(&key, tcp);
        } else {
            match self.admit(now, key, &packet) {
                Ok(slot) => return self.on_segment(now, slot, Side::Server, packet, early_acks),
                Err(reason) => {
                    self.openings.take(&key);
                    self.shared.stats.bypass(reason);
                }
            }
        }
        self.shared.pass(Side::Server, packet);
    }

    /// Admits a connection at its server's first data.
    fn admit(&mut self, now: Instant, key: FlowKey, packet: &Packet) -> Result<u32, BypassReason> {
        let handshake = self.openings.get(&key).ok_or(BypassReason::MidFlow)?.handshake()?;
        if packet.ip.special {
            return Err(BypassReason::SpecialIp);
        }
        if self.shared.draining.is_some() {
            return Err(BypassReason::Draining);
        }
        if self.overloaded || self.shared.held > self.shared.config.memory.0 {
            return Err(BypassReason::Overload);
        }
        let address = device_key(key.dst);
        if !self.has_place(now, address) {
            return Err(BypassReason::DeviceFull);
        }
        if self.flows.len() >= self.shared.config.max_flows
            && !self.make_room(now, REPLACEMENT_PROBES, |_| true)
        {
            return Err(BypassReason::TableFull);
        }
        let slot = match self.devices.find(&address) {
            Some(slot) => slot,
            None => {
                let past_window = self.shared.past_windows.get(address);
                self.devices.insert(Device::new(address, &self.shared.config, past_window))
            }
        };
        let device = self.devices.get_mut(slot).expect("it was found or inserted");
        device.flows += 1;
        let server_rtt = handshake.server_rtt.unwrap_or_default().min(memory::MAX_SERVER_RTT);
        device.server_rtt = device.server_rtt.max(server_rtt);
        if let Some(rtt) = handshake.rtt {
            device.control.on_handshake(now, rtt);
        }
        let (useful_window, longest) = (device.control.useful_window(false), device.longest(now));
        let upload = self.openings.take(&key).ok_or(BypassReason::MidFlow)?.upload;
        let real = matches!(packet.payload, Payload::Datagram(_));
        let mut flow = Flow::new(now, key, &handshake, upload, real);
        flow.set_path(false, useful_window);
        flow.limit_to(longest);
        self.shared.stats.flows += 1;
        Ok(self.flows.insert(FlowEntry::new(flow, slot)))
    }

    /// Whether one more connection of a device may be accelerated, in the place of another one if need be.
    fn has_place(&mut self, now: Instant, address: IpAddr) -> bool {
        let device = self.devices.find(&address);
        let flows = device.and_then(|device| self.devices.get(device)).map_or(0, |device| device.flows);
        flows < self.shared.config.max_flows_per_device
            || self.make_room(now, DEVICE_REPLACEMENT_PROBES, |entry| Some(entry.device) == device)
    }

    /// Detaches a transparent connection without recent packets, of those for which `may` holds. Whether one
    /// was found within `probes` entries.
    fn make_room(&mut self, now: Instant, probes: u32, may: impl Fn(&FlowEntry) -> bool) -> bool {
        let slots = self.flows.slots();
        let is_unused = |flow: &Flow| {
            now.since(flow.last_packet_at()) > REPLACEABLE_AFTER
                && flow.is_transparent()
                && !flow.has_sacked()
        };
        for _ in 0..probes.min(slots) {
            self.replacement_slot = (self.replacement_slot + 1) % slots;
            let slot = self.replacement_slot;
            if self.flows.get(slot).is_some_and(|entry| may(entry) && is_unused(&entry.flow)) {
                self.shared.stats.flows_detached += 1;
                self.remove(slot);
                return true;
            }
        }
        false
    }

    fn on_segment(&mut self, now: Instant, slot: u32, side: Side, packet: Packet, early_acks: bool) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        device.early_acks = early_acks;
        let mut cx = self.shared.context(now, device);
        let verdict = match side {
            Side::Server => {
                let empty = device.backlog.is_empty() && !entry.flow.has_unsent();
                let verdict = entry.flow.on_server(&mut cx, packet);
                if let Some(rtt) = entry.flow.awaited_window().filter(|_| empty) {
                    device.on_empty(now, rtt);
                }
                verdict
            }
            Side::Mobile => {
                let fading = device.fading.is_detected();
                let useful_window = device.control.useful_window(fading);
                entry.flow.set_path(fading, useful_window);
                let (verdict, delivery) = entry.flow.on_client(&mut cx, packet);
                let past_window = cx.past_window;
                self.shared.note_past_window(device, past_window);
                on_delivery(now, entry, device, &mut self.shared, &delivery);
                verdict
            }
        };
        match verdict {
            Verdict::Pass(packet) => self.shared.pass(side, packet),
            Verdict::Absorbed => {}
            Verdict::Ended(packet) => {
                self.shared.stats.flows_ended += 1;
                self.remove(slot);
                return self.shared.pass(side, packet);
            }
            Verdict::Detach(packet) => {
                entry.flow.send_sacked(&mut self.shared.context(now, device));
                self.shared.stats.flows_detached += 1;
                self.shared.stats.bypass(BypassReason::Unseen);
                self.remove(slot);
                return self.shared.pass(side, packet);
            }
        }
        self.update(now, slot);
        self.input_held_back(now, slot);
    }

    /// A packet other than TCP. A packet-too-big message is used, and forwarded as well.
    fn on_other(&mut self, now: Instant, side: Side, packet: &Packet) {
        if side == Side::Mobile
            && let Some(message) = packet_too_big(packet)
            && let Some(slot) = self.flows.find(&message.key)
            && let Some(entry) = self.flows.get_mut(slot)
            && entry.flow.on_packet_too_big(message.seq, message.mtu)
        {
            if let Some(device) = self.devices.get_mut(entry.device) {
                device.limit_to(now, entry.flow.longest());
            }
            self.update(now, slot);
        }
    }
}

/// Devices that were found to share a queue, from which the losses of others are taken for those of the same
/// queue. Chosen: one alone may be wrong.
const MIN_SHARING: u32 = 2;

/// Reports an ACK of a connection's client to its device's rate control and detection of fading.
fn on_delivery(
    now: Instant,
    entry: &mut FlowEntry,
    device: &mut Device,
    shared: &mut Shared,
    delivery: &Delivery,
) {
    let FlowEntry { flow, charged, .. } = entry;
    let rtt = flow.to_client().rtt();
    let in_flight = flow.to_client().in_flight();
    device.in_flight = device.in_flight + in_flight - charged.in_flight;
    charged.in_flight = in_flight;
    if delivery.black_hole {
        device.limit_to(now, flow.longest());
    }
    let losses = LossSample {
        delivered: delivery.bytes,
        lost: delivery.lost,
        lost_beyond_window: delivery.lost_beyond_window,
        lost_in_runs: delivery.lost_in_runs,
        spurious: delivery.spurious,
        skipped: delivery.skipped,
    };
    let capacity_in = |time| device.control.capacity_in(time);
    device.fading.on_ack(now, rtt.srtt().unwrap_or_default(), capacity_in, &losses);
    if let Some(sample) = delivery.rtt {
        shared.stats.on_rtt(sample, rtt.min(), device.control.rate());
    }
    device.unreported_lost += delivery.lost;
    device.unreported_lost_beyond += delivery.lost_beyond_window;
    if delivery.bytes > 0 {
        let sample = AckSample {
            delivered: delivery.bytes,
            lost: std::mem::take(&mut device.unreported_lost),
            lost_beyond_window: std::mem::take(&mut device.unreported_lost_beyond),
            opened: delivery.opened,
            client_window: flow.to_client().window().size(),
            rtt: delivery.rtt,
            sent_at: delivery.sent_at,
            in_flight: device.in_flight,
            app_limited: false,
            fading: flow.to_client().is_fading(),
            without_sack: !flow.uses_sack(),
            others_share: shared.sharing >= MIN_SHARING + u32::from(device.shares_queue),
            marked: delivery.marked,
            others_lose: shared.lossy.others(now, device.address),
        };
        device.on_ack(now, sample);
        if device.control.loses_much() {
            shared.lossy.note(now, device.address);
        }
        let shares = device.control.shares_queue();
        shared.sharing = shared.sharing + u32::from(shares) - u32::from(device.shares_queue);
        device.shares_queue = shares;
    }
}
