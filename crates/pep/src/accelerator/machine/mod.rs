//! The tables of connections and devices, and whose turn it is.

pub(in crate::accelerator) mod admin;
pub(in crate::accelerator) mod bookkeeping;
pub(in crate::accelerator) mod device;
pub(in crate::accelerator) mod exposed;
pub(in crate::accelerator) mod index;
pub(in crate::accelerator) mod journal;
pub(in crate::accelerator) mod opening;
pub(in crate::accelerator) mod prefetch;
pub(in crate::accelerator) mod timers;
pub(in crate::accelerator) mod transmit;

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::{Context, Fate, Flow};
use crate::accelerator::machine::device::{Device, device_key};
use crate::accelerator::machine::exposed::Exposed;
use crate::accelerator::machine::index::Table;
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::machine::timers::Timers;
use crate::accelerator::rate::sample::{AckSample, LossSample};
use crate::accelerator::stats::{AcceleratorStats, BypassReason};
use crate::accelerator::{Side, Transmission};
use paceline_net::rewrite::{checksum_is_right, packet_too_big};
use paceline_net::{Duration, FlowKey, Instant, Packet, TcpFlags, TcpHeader};
use std::collections::VecDeque;
use std::net::IpAddr;

/// A connection without a packet for so long gives its place to a new one, if nothing is owed.
const IDLE: Duration = Duration::from_secs(60);
/// Entries examined for one to give its place; and for one of the same device, whose may be few among them: a device that
/// is idle throughout has room again after some attempts, and one that is not costs little with each.
const PROBES: u32 = 8;
const DEVICE_PROBES: u32 = 32;

/// The mobile accelerator; see the [module](super).
#[derive(Debug)]
pub struct Accelerator {
    pub(in crate::accelerator) config: AcceleratorConfig,
    pub(in crate::accelerator) openings: Openings,
    pub(in crate::accelerator) flows: Table<Flow>,
    pub(in crate::accelerator) devices: Table<Device>,
    pub(in crate::accelerator) timers: Timers,
    /// Devices with something to send, the next first.
    pub(in crate::accelerator) ready: VecDeque<u32>,
    /// Connections that owe their server or client a word.
    pub(in crate::accelerator) due: VecDeque<u32>,
    pub(in crate::accelerator) out: VecDeque<Transmission>,
    pub(in crate::accelerator) stats: AcceleratorStats,
    pub(in crate::accelerator) held: u64,
    pub(in crate::accelerator) overloaded: bool,
    /// Being stopped, until when at the latest.
    pub(in crate::accelerator) draining: Option<Instant>,
    /// While being stopped, when idle connections are looked at.
    pub(in crate::accelerator) look_at: Instant,
    pub(in crate::accelerator) exposed: Exposed,
    /// The largest exposure and buffer of a connection that were ever allowed.
    pub(in crate::accelerator) widest: AcceleratorConfig,
    /// Packets may have gone past, and so long clients may know more than we.
    pub(in crate::accelerator) absent_until: Instant,
    pub(in crate::accelerator) hand: u32,
    pub(in crate::accelerator) steps: u64,
}

/// What a connection is handed, out of the parts that it does not touch.
macro_rules! context {
    ($self:ident, $now:expr, $device:expr) => {
        Context {
            now: $now,
            config: &$self.config,
            early: $self.draining.is_none(),
            absent: $self.absent_until > $now,
            share: $self.config.buffer_share($device.busy),
            tight: 4 * $device.held > 3 * $self.config.device_buffer.0
                || 4 * $self.held > 3 * $self.config.total_buffer.0,
            full: $device.held > $self.config.device_buffer.0 || $self.held > $self.config.total_buffer.0,
            stats: &mut $self.stats,
            out: &mut $self.out,
        }
    };
}

pub(in crate::accelerator) use context;

impl Accelerator {
    /// A machine without connections.
    pub fn new(config: AcceleratorConfig) -> Self {
        let config = config.clamped();
        let seed = config.seed;
        Self {
            openings: Openings::new(config.max_openings, seed),
            flows: Table::new(seed),
            devices: Table::new(seed),
            timers: Timers::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            out: VecDeque::new(),
            stats: AcceleratorStats::default(),
            held: 0,
            overloaded: false,
            draining: None,
            look_at: Instant::MAX,
            exposed: Exposed::default(),
            widest: config.clone(),
            absent_until: Instant::ZERO,
            hand: 0,
            steps: 0,
            config,
        }
    }

    /// A packet arrives from `side`.
    pub fn input(&mut self, now: Instant, side: Side, packet: Packet) {
        self.steps += 1;
        let (Some(key), Some(tcp)) = (packet.flow_key(), packet.tcp_header().copied()) else {
            self.on_other(now, side, &packet);
            return self.pass(side, packet);
        };
        let key = if side == Side::Server { key } else { key.reversed() };
        let known = self.flows.find(&key);
        // Of a handshake, what is wrong would be learned as well.
        let mut opens = || tcp.flags.contains(TcpFlags::SYN) || self.openings.get(&key).is_some();
        let mut matters = || known.is_some() || !packet.ip.special && opens();
        if self.config.verify_checksums && matters() && !checksum_is_right(&packet) {
            self.stats.corrupt += 1;
            return self.pass(side, packet);
        }
        if tcp.flags.contains(TcpFlags::SYN) {
            self.on_syn(now, key, side, &packet, &tcp);
            return self.pass(side, packet);
        }
        match (known, side) {
            (Some(slot), Side::Mobile) if self.is_replaced(now, slot, &packet, &tcp) => {
                self.end_replaced(slot);
                self.pass(side, packet);
            }
            (Some(slot), _) => self.on_segment(now, slot, side, packet),
            (None, Side::Mobile) => {
                self.openings.on_client(now, &key, &packet, &tcp);
                if tcp.flags.contains(TcpFlags::RST) {
                    self.openings.take(&key);
                }
                self.pass(side, packet);
            }
            (None, Side::Server) => self.on_unknown(now, key, packet, &tcp),
        }
    }

    pub(in crate::accelerator) fn pass(&mut self, from: Side, packet: Packet) {
        self.out.push_back(Transmission::whole(from.other(), packet));
    }

    fn on_syn(&mut self, now: Instant, key: FlowKey, side: Side, packet: &Packet, tcp: &TcpHeader) {
        let known = self.flows.find(&key);
        let server_isn = known.and_then(|slot| self.flows.get(slot)).map(|flow| flow.server_isn);
        if side == Side::Server && server_isn == Some(tcp.seq) {
            return; // its SYN again
        }
        match self.openings.on_syn(now, key, side, packet, tcp) {
            Ok(forgotten) => self.stats.openings_forgotten += forgotten,
            Err(reason) => self.stats.bypass(reason),
        }
        // Both ends agreed on a new connection under the same addresses and ports: the old one is gone. Where something
        // is owed, a pair of SYNs is not enough, which others may have sent: the client has to confirm it.
        if let (Some(slot), Some(isn)) = (known, server_isn)
            && self.openings.get(&key).is_some_and(|opening| opening.replaces(isn))
            && let Some(flow) = self.flows.get_mut(slot)
        {
            flow.contested = true;
            if flow.is_quiet() {
                self.end_replaced(slot);
            }
        }
    }

    /// Whether the client's segment confirms a new connection in the place of this one.
    fn is_replaced(&mut self, now: Instant, slot: u32, packet: &Packet, tcp: &TcpHeader) -> bool {
        let Some((key, isn)) =
            self.flows.get(slot).filter(|flow| flow.contested).map(|flow| (flow.key, flow.server_isn))
        else {
            return false;
        };
        self.openings.on_client(now, &key, packet, tcp);
        self.openings.get(&key).is_some_and(|opening| opening.replaces(isn) && opening.is_confirmed())
    }

    fn end_replaced(&mut self, slot: u32) {
        self.stats.flows_ended += 1;
        self.remove(slot);
    }

    /// A segment of the server that belongs to no accelerated connection.
    fn on_unknown(&mut self, now: Instant, key: FlowKey, packet: Packet, tcp: &TcpHeader) {
        if tcp.flags.contains(TcpFlags::RST) {
            self.openings.take(&key);
        } else if tcp.payload_len == 0 {
            self.openings.on_server(&key, tcp);
        } else {
            match self.admit(now, key, &packet) {
                Ok(slot) => return self.on_segment(now, slot, Side::Server, packet),
                Err(reason) => {
                    self.openings.take(&key);
                    self.stats.bypass(reason);
                }
            }
        }
        self.pass(Side::Server, packet);
    }

    /// Takes a connection in at its server's first data.
    fn admit(&mut self, now: Instant, key: FlowKey, packet: &Packet) -> Result<u32, BypassReason> {
        let opened = self.openings.get(&key).ok_or(BypassReason::MidFlow)?.opened()?;
        if packet.ip.special {
            return Err(BypassReason::SpecialIp);
        }
        if self.draining.is_some() {
            return Err(BypassReason::Draining);
        }
        if self.overloaded || self.held > self.config.total_buffer.0 {
            return Err(BypassReason::Overload);
        }
        let address = device_key(key.dst);
        if !self.has_place(now, address) {
            return Err(BypassReason::DeviceFull);
        }
        if self.flows.len() >= self.config.max_flows && !self.make_room(now, PROBES, |_| true) {
            return Err(BypassReason::TableFull);
        }
        let device = match self.devices.find(&address) {
            Some(device) => device,
            None => self.devices.insert(Device::new(address, &self.config)),
        };
        let entry = self.devices.get_mut(device).expect("it was found or entered");
        entry.flows += 1;
        if let Some(rtt) = opened.rtt {
            entry.control.on_handshake(now, rtt);
        }
        let (useful_window, longest) = (entry.control.useful_window(false), entry.longest(now));
        let uplink = self.openings.take(&key).ok_or(BypassReason::MidFlow)?.uplink;
        let mut flow = Flow::new(now, key, device, &opened, uplink);
        flow.useful_window = useful_window;
        flow.limit_to(longest);
        flow.real = matches!(packet.payload, paceline_net::Payload::Datagram(_));
        self.stats.flows += 1;
        Ok(self.flows.insert(flow))
    }

    /// Whether one more connection of a device may be accelerated, another one making room if need be.
    fn has_place(&mut self, now: Instant, address: IpAddr) -> bool {
        let device = self.devices.find(&address);
        let flows = device.and_then(|device| self.devices.get(device)).map_or(0, |device| device.flows);
        flows < self.config.max_flows_per_device
            || self.make_room(now, DEVICE_PROBES, |flow| Some(flow.device) == device)
    }

    /// Detaches a connection, of those that may, that is idle and owes nothing; whether one was found.
    fn make_room(&mut self, now: Instant, probes: u32, may: impl Fn(&Flow) -> bool) -> bool {
        let slots = self.flows.slots();
        for _ in 0..probes.min(slots) {
            self.hand = (self.hand + 1) % slots;
            let idle = |flow: &Flow| now.since(flow.seen_at) > IDLE && flow.is_quiet();
            if self.flows.get(self.hand).is_some_and(|flow| may(flow) && idle(flow)) {
                self.stats.flows_detached += 1;
                self.remove(self.hand);
                return true;
            }
        }
        false
    }

    fn on_segment(&mut self, now: Instant, slot: u32, side: Side, packet: Packet) {
        let Some(flow) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(flow.device) else { return };
        let mut cx = context!(self, now, device);
        let fate = match side {
            Side::Server => flow.on_server(&mut cx, packet),
            Side::Mobile => {
                flow.fades = device.fading.is_detected();
                flow.useful_window = device.control.useful_window(flow.fades);
                let (fate, delivery) = flow.on_client(&mut cx, packet);
                device.in_flight = device.in_flight + flow.on_its_way() - flow.charged_in_flight;
                flow.charged_in_flight = flow.on_its_way();
                if delivery.black_hole {
                    device.limit_to(now, flow.longest());
                }
                let losses = LossSample {
                    delivered: delivery.bytes,
                    lost: delivery.lost,
                    lost_beyond_window: delivery.lost_beyond,
                    lost_in_runs: delivery.lost_in_runs,
                    spurious: delivery.in_vain,
                    skipped: delivery.skipped,
                };
                let capacity_in = |time| device.control.capacity_in(time);
                device.fading.on_ack(now, flow.rtt.srtt().unwrap_or_default(), capacity_in, &losses);
                if let Some(rtt) = delivery.rtt {
                    self.stats.on_rtt(rtt, flow.rtt.min(), device.control.rate());
                }
                device.lost += delivery.lost;
                if delivery.bytes > 0 {
                    let sample = AckSample {
                        delivered: delivery.bytes,
                        lost: std::mem::take(&mut device.lost),
                        rtt: delivery.rtt,
                        sent_at: delivery.sent_at,
                        in_flight: device.in_flight,
                        app_limited: false,
                        fading: flow.fades,
                        without_sack: !flow.agreed.sack,
                    };
                    device.on_ack(now, sample);
                }
                fate
            }
        };
        match fate {
            Fate::Pass(packet) => self.pass(side, packet),
            Fate::Absorbed => {}
            Fate::Over(packet) => {
                self.stats.flows_ended += 1;
                self.remove(slot);
                return self.pass(side, packet);
            }
            Fate::Detach(packet) => {
                self.stats.flows_detached += 1;
                self.stats.bypass(BypassReason::Unseen);
                self.remove(slot);
                return self.pass(side, packet);
            }
        }
        self.settle(now, slot);
        self.follow(now, slot);
    }

    /// Not TCP: only a packet-too-big message is of interest, and it passes as well.
    fn on_other(&mut self, now: Instant, side: Side, packet: &Packet) {
        if side == Side::Mobile
            && let Some(message) = packet_too_big(packet)
            && let Some(slot) = self.flows.find(&message.key)
            && let Some(flow) = self.flows.get_mut(slot)
            && flow.on_packet_too_big(message.seq, message.mtu)
        {
            if let Some(device) = self.devices.get_mut(flow.device) {
                device.limit_to(now, flow.longest());
            }
            self.settle(now, slot);
        }
    }
}
