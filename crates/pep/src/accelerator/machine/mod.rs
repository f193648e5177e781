//! The machine around the connections: tables, timers and the order of sending.
//!
//! [`Accelerator`] has the calls of the driver and the operator. `intake` has the packets that belong to no
//! connection yet: fragments and handshakes (`opening`). `connections` has the tables (`index`) of
//! connections (`entry`) and devices (`device`), and after each call of a connection updates their totals,
//! `timers` and the `journal`, and lets devices send in turn. `shared` has the state that all connections
//! share. `prefetch` warms the caches.

mod connections;
mod device;
mod entry;
mod index;
mod intake;
mod journal;
mod opening;
mod prefetch;
mod shared;
mod timers;

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::connections::{Arrival, Connections};
use crate::accelerator::machine::device::{Device, device_key};
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::intake::Intake;
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::machine::prefetch::prefetch;
use crate::accelerator::machine::shared::Shared;
use crate::accelerator::stats::{AcceleratorStats, BypassReason};
use crate::accelerator::{
    AcceleratorConfig, ClientLimit, DeviceSnapshot, FlowRecord, FlowSnapshot, Side, Transmission,
};
use paceline_net::fragments::fragment;
use paceline_net::identification::Identifications;
use paceline_net::{Duration, FlowKey, Instant, Node, Output, Packet, Port};
use std::collections::VecDeque;
use std::net::IpAddr;

/// While draining, the time between two checks of connections without packets. Chosen: a fraction of the
/// second after which a connection counts as idle.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Time in which packets that bypassed the machine are acknowledged or sent again. Chosen: several timeouts
/// of a server.
const ABSENCE_EFFECT: Duration = Duration::from_secs(30);

/// A client's window counts as used up when less than its size over this is left. Chosen: a burst of pacing.
const FILLED_DIVISOR: u64 = 4;

/// The mobile accelerator; see the [module](super).
#[derive(Debug)]
pub struct Accelerator {
    shared: Shared,
    intake: Intake,
    connections: Connections,
    /// Numbers of the datagrams that are made here.
    identifications: Identifications,
    /// The rest of a datagram that leaves as fragments, as a node's outputs.
    leaving: VecDeque<(Side, Packet)>,
    /// While draining, when connections are examined again.
    next_drain_check: Instant,
}

impl Accelerator {
    /// An accelerator without connections.
    pub fn new(config: AcceleratorConfig) -> Self {
        let config = config.clamped();
        Self {
            intake: Intake::new(Openings::new(config.max_openings, config.seed)),
            connections: Connections::new(&config),
            identifications: Identifications::new(config.seed),
            leaving: VecDeque::new(),
            next_drain_check: Instant::MAX,
            shared: Shared::new(config),
        }
    }
    /// A packet arrives from `side`. Fragments of a connection's datagrams wait for each other.
    pub fn input(&mut self, now: Instant, side: Side, packet: Packet) {
        self.input_of(now, side, packet, true);
    }
    /// The same; `early_acks`: whether data of the packet's device may be acknowledged early from now on.
    pub fn input_of(&mut self, now: Instant, side: Side, packet: Packet, early_acks: bool) {
        let arrival = Arrival { now, side, early_acks };
        self.intake.input(arrival, packet, &mut self.connections, &mut self.shared);
    }
    /// Announces packets that arrive from `side` next, in this order, at best a few dozen. Returns the number
    /// of connections prefetched. Without any other effect.
    pub fn prefetch<'a>(&self, side: Side, packets: impl IntoIterator<Item = &'a Packet>) -> usize {
        prefetch(self.connections.flows(), self.connections.devices(), side, packets)
    }
    /// The next packet to send. Must be polled until it is `None` before [`Accelerator::next_timer`] is
    /// asked.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmission> {
        if self.shared.out.is_empty() {
            self.connections.send(now, &mut self.shared);
        }
        let mut next = self.shared.out.pop_front()?;
        self.identifications.number(&mut next.packet, next.segment);
        Some(next)
    }
    /// When [`Accelerator::handle_timeout`] is to be called next.
    pub fn next_timer(&self) -> Option<Instant> {
        let draining = self.shared.draining.filter(|_| self.flow_count() > 0);
        let draining = draining.map(|until| until.min(self.next_drain_check));
        let next = [self.connections.next_alarm(), self.intake.next_fragments(), draining];
        next.into_iter().flatten().min()
    }
    /// Handles the timers that are due. Harmless when none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.intake.pass_fragments(now, &mut self.shared);
        self.connections.handle_alarms(now, &mut self.shared);
        let Some(until) = self.shared.draining else { return };
        if until <= now {
            self.abort(now);
        } else if self.next_drain_check <= now {
            self.check_drain(now);
        }
    }

    /// Stops without harm: nothing more is acknowledged early and no connection is admitted; each connection
    /// continues end to end when its acknowledged data is delivered. After `limit`, those with exposed bytes
    /// are reset.
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.shared.draining = Some(now + limit);
        self.check_drain(now);
    }

    /// Admits connections again after [`Accelerator::drain`]. Packets may have bypassed the machine
    /// meanwhile: connections whose handshake was seen before are treated as unknown.
    pub fn resume(&mut self) {
        self.shared.draining = None;
        self.next_drain_check = Instant::MAX;
        let config = &self.shared.config;
        *self.intake.openings_mut() = Openings::new(config.max_openings, config.seed);
    }

    /// Detaches the connections that may be.
    fn check_drain(&mut self, now: Instant) {
        self.next_drain_check = now + DRAIN_CHECK_INTERVAL;
        self.connections.update_all(now, &mut self.shared);
    }
    /// Stops at once: connections with exposure 0 continue end to end, since their servers have all stored
    /// data; the others are reset at both ends.
    pub fn abort(&mut self, now: Instant) {
        self.shared.draining.get_or_insert(now);
        self.connections.abort(now, &mut self.shared);
    }
    /// Uses other parameters from now on. An advertised window is kept: buffers shrink as connections
    /// advance. Known devices keep their rate control, and the hash tables their key.
    pub fn set_config(&mut self, config: AcceleratorConfig) {
        let config = AcceleratorConfig { seed: self.shared.config.seed, ..config }.clamped();
        self.intake.openings_mut().set_limit(config.max_openings);
        self.connections.on_config(&self.shared.config, &config);
        self.shared.config = config;
    }
    /// While overloaded, no connection is admitted.
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.intake.set_overloaded(overloaded);
    }
    /// The driver was away, and packets may have bypassed the machine. For 30 s clients may acknowledge data
    /// of their servers that never passed here; such connections continue end to end.
    pub fn on_absence(&mut self, now: Instant) {
        self.shared.unseen_until = now + ABSENCE_EFFECT;
    }
    /// Sends a device nothing until then: the queue of the driver's interface has no room for it.
    pub fn hold_device(&mut self, address: IpAddr, until: Instant) {
        self.connections.hold_device(address, until);
    }

    /// The records of all exposed connections.
    pub fn journal(&self) -> impl Iterator<Item = FlowRecord> + '_ {
        let entries = self.connections.flows().iter().map(|(_, entry)| &entry.flow);
        entries.filter(|flow| flow.exposure() > 0).map(Flow::record)
    }
    /// From now on, [`Accelerator::journal_changes`] and [`Accelerator::journal_sweep`] report changes.
    pub fn keep_journal(&mut self) {
        self.connections.journal_mut().0.enable();
    }
    /// Reports the changes that the journal must have before any polled packet is sent: by slot, a new
    /// record, or `None` for a connection that has ended. Slots are below [`AcceleratorConfig::max_flows`]
    /// and are used again.
    pub fn journal_changes(&mut self, write: impl FnMut(u32, Option<FlowRecord>)) {
        let (journal, flows) = self.connections.journal_mut();
        journal.changes(flows, write);
    }
    /// Reports the current records of up to `count` connections, round robin, or `None` for a connection that
    /// is no longer exposed. May be called at any time.
    pub fn journal_sweep(&mut self, count: usize, write: impl FnMut(u32, Option<FlowRecord>)) {
        let (journal, flows) = self.connections.journal_mut();
        journal.sweep(count, flows, write);
    }
    /// After a crash, resets both ends of the connections in a journal. Connections that were not exposed
    /// continue end to end.
    pub fn recover(&mut self, journal: impl IntoIterator<Item = FlowRecord>) {
        journal.into_iter().for_each(|record| self.shared.reset(&record));
    }

    /// Whether a connection (key from server to mobile) does nothing but upload, so that it may be offloaded.
    pub fn may_offload(&mut self, key: &FlowKey) -> bool {
        self.shared.draining.is_none()
            && match self.entry(key) {
                Some(entry) => entry.may_offload(),
                None => self.intake.openings_mut().upload(key).is_some_and(|upload| upload.may_offload()),
            }
    }
    /// Offloads a connection if it may be: from now on its client's segments without SYN, FIN or RST, and its
    /// server's without those and without data, may bypass the machine; all others must come here. Whether it
    /// is offloaded.
    pub fn offload(&mut self, key: &FlowKey) -> bool {
        if !self.may_offload(key) {
            return false;
        }
        let known = self.connections.find(key);
        if let Some(entry) = known.and_then(|slot| self.connections.get_mut(slot)) {
            entry.flow.upload_mut().offload();
        } else if let Some(upload) = self.intake.openings_mut().upload(key) {
            upload.offload();
        }
        true
    }
    /// Whether a connection is offloaded. Its server's next data ends the offload.
    pub fn is_offloaded(&mut self, key: &FlowKey) -> bool {
        match self.entry(key) {
            Some(entry) => entry.flow.upload().is_offloaded(),
            None => self.intake.openings_mut().upload(key).is_some_and(|upload| upload.is_offloaded()),
        }
    }

    /// The counters.
    pub fn stats(&self) -> &AcceleratorStats {
        &self.shared.stats
    }
    /// Whether a connection (key from server to mobile) is accelerated, or may be when its server sends.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.connections.flows().holds(key) || self.intake.openings().holds(key)
    }
    /// Counts a data segment of a connection that is not known, which the caller forwards itself.
    pub fn count_mid_flow(&mut self) {
        self.shared.stats.bypass(BypassReason::MidFlow);
    }
    /// Devices that were found to share a queue with others.
    pub fn sharing_devices(&self) -> usize {
        self.shared.sharing as usize
    }
    /// Connections being accelerated.
    pub fn flow_count(&self) -> usize {
        self.connections.flows().len()
    }
    /// Openings: handshakes, and connections without data of the server.
    pub fn opening_count(&self) -> usize {
        self.intake.openings().len()
    }
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.shared.exposure
    }
    /// Bytes stored in all, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.shared.held
    }
    /// All connections being accelerated.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.connections.flows().iter().filter_map(|(_, entry)| self.snapshot(entry))
    }
    /// The limit of a connection's client (key from server to mobile) once everything is polled, and the
    /// bytes of the window that the client offers; none if the connection is not accelerated.
    pub fn client_limit(&mut self, key: &FlowKey) -> Option<(ClientLimit, u64)> {
        let entry = self.entry(key)?;
        let device = self.connections.devices().get(entry.device)?;
        Some((limit(entry, device), entry.flow.to_client().window().size()))
    }
    /// How long the data that was last sent to a connection's client (key from server to mobile) had been
    /// stored.
    pub fn data_age(&mut self, key: &FlowKey) -> Option<Duration> {
        Some(self.entry(key)?.flow.to_client().age())
    }
    /// The connections of `count` slots from one on, and the next slot, if there is one.
    pub fn flows_from(&self, from: u32, count: u32) -> (Vec<FlowSnapshot>, Option<u32>) {
        let flows = self.connections.flows();
        let some = flows.range(from, count).filter_map(|entry| self.snapshot(entry));
        (some.collect(), flows.after(from, count))
    }
    fn entry(&self, key: &FlowKey) -> Option<&FlowEntry> {
        let flows = self.connections.flows();
        flows.peek(key).and_then(|slot| flows.get(slot))
    }
    fn snapshot(&self, entry: &FlowEntry) -> Option<FlowSnapshot> {
        let device = self.connections.devices().get(entry.device)?;
        let pattern = device.spacing.as_ref().and_then(|spacing| spacing.learned());
        Some(FlowSnapshot { pattern, ..entry.flow.snapshot(device.control.snapshot(), limit(entry, device)) })
    }
    /// The devices of `count` slots from one on, and the next slot, if there is one.
    pub fn devices_from(&self, from: u32, count: u32) -> (Vec<DeviceSnapshot>, Option<u32>) {
        let devices = self.connections.devices();
        (devices.range(from, count).map(Device::snapshot).collect(), devices.after(from, count))
    }
    /// The device with this address of one of its hosts.
    pub fn device(&mut self, address: IpAddr) -> Option<DeviceSnapshot> {
        let devices = self.connections.devices();
        devices.peek(&device_key(address)).and_then(|slot| devices.get(slot)).map(Device::snapshot)
    }
    /// Panics if an invariant of any connection does not hold. Debug builds check at each packet.
    pub fn invariants(&self) {
        self.connections.check(&self.shared);
    }
}

/// Port 0 is the side of the servers, port 1 that of the mobile devices. Absorbed packets end here as at an
/// endpoint, without an output. Not with [`AcceleratorConfig::gather`].
impl Node for Accelerator {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let side = if from == Side::Server.port() { Side::Server } else { Side::Mobile };
        self.input(now, side, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        Accelerator::handle_timeout(self, now);
    }
    fn poll_output(&mut self, now: Instant) -> Option<Output> {
        if self.leaving.is_empty() {
            let Transmission { side, packet, body, .. } = self.poll_transmit(now)?;
            debug_assert!(body.is_empty(), "a node's packets have their payload");
            if !packet.offload.reassembled {
                return Some(Output::Transmit(side.port(), packet));
            }
            self.leaving.extend(fragment(packet).into_iter().map(|part| (side, part)));
        }
        let (side, packet) = self.leaving.pop_front()?;
        Some(Output::Transmit(side.port(), packet))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timer()
    }
}

/// Why a connection's client is sent no more.
fn limit(entry: &FlowEntry, device: &Device) -> ClientLimit {
    let (client, window) = (entry.flow.to_client(), entry.flow.to_client().window());
    // The measured rate of a client whose window is small is that of its window: then pacing fills the window
    // without exceeding it.
    let room = window.edge().checked_sub(client.nxt());
    let filled = room.is_some_and(|room| room < window.size() / FILLED_DIVISOR);
    match (entry.flow.has_data_to_send(), entry.in_backlog) {
        // The radio may be busy with all that is stored for it.
        (false, _) if entry.flow.fills_share() && !device.has_room(client.segment()) => ClientLimit::Rate,
        (false, _) if entry.flow.fills_share() => ClientLimit::Memory,
        (false, _) => ClientLimit::Server,
        (true, true) if !filled => ClientLimit::Rate,
        (true, _) => ClientLimit::Window,
    }
}
