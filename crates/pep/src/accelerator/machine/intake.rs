//! The operator's calls: stop, reconfigure, observe, recover after a crash, offload uploads.

use crate::accelerator::machine::FlowEntry;
use crate::accelerator::machine::device::{Device, device_key};
use crate::accelerator::machine::opening::Openings;
use crate::accelerator::pacing::Spacing;
use crate::accelerator::stats::{AcceleratorStats, BypassReason};
use crate::accelerator::{
    Accelerator, AcceleratorConfig, ClientLimit, DeviceSnapshot, FlowRecord, FlowSnapshot, Side, Transmission,
};
use paceline_net::fragments::fragment;
use paceline_net::{Duration, FlowKey, Instant, Node, Output, Packet, Port};
use std::net::IpAddr;

/// While draining, the time between two checks of connections without packets. Chosen: a fraction of the
/// second after which a connection counts as idle.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Time in which packets that bypassed the machine are acknowledged or sent again. Chosen: several timeouts
/// of a server.
const ABSENCE_EFFECT: Duration = Duration::from_secs(30);

/// A client's window counts as used up when less than its size over this is left. Chosen: a burst of pacing.
const FILLED_DIVISOR: u64 = 4;

/// Stop and configuration.
impl Accelerator {
    /// Stops without harm: nothing more is acknowledged early and no connection is admitted; each connection
    /// continues end to end when its acknowledged data is delivered. After `limit`, those with exposed bytes
    /// are reset.
    pub fn drain(&mut self, now: Instant, limit: Duration) {
        self.shared.draining = Some(now + limit);
        self.update_all(now);
    }

    /// Admits connections again after [`Accelerator::drain`]. Packets may have bypassed the machine
    /// meanwhile: connections whose handshake was seen before are treated as unknown.
    pub fn resume(&mut self) {
        self.shared.draining = None;
        self.next_drain_check = Instant::MAX;
        let config = &self.shared.config;
        self.openings = Openings::new(config.max_openings, config.seed);
    }

    /// Updates every connection: those that may are detached.
    pub(super) fn update_all(&mut self, now: Instant) {
        self.next_drain_check = now + DRAIN_CHECK_INTERVAL;
        for slot in 0..self.flows.slots() {
            self.update(now, slot);
        }
    }

    /// Stops at once: connections with exposure 0 continue end to end, since their servers have all stored
    /// data; the others are reset at both ends.
    pub fn abort(&mut self, now: Instant) {
        self.shared.draining.get_or_insert(now);
        for slot in 0..self.flows.slots() {
            self.detach_or_reset(now, slot);
        }
    }

    /// Ends the acceleration of a connection whose client is silent for too long. If everything was sent, the
    /// client may have it, and its acknowledgments may take another path: the connection continues end to
    /// end.
    pub(super) fn give_up(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get(slot).map(|entry| &entry.flow) else { return };
        if flow.has_unsent() || flow.has_pending_reset() {
            self.detach_or_reset(now, slot);
        } else {
            self.detach(now, slot);
        }
    }

    /// Detaches a connection with exposure 0 and without a pending reset; resets both ends of any other.
    pub(super) fn detach_or_reset(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get(slot).map(|entry| &entry.flow) else { return };
        if flow.exposure() == 0 && !flow.has_pending_reset() {
            return self.detach(now, slot);
        }
        let record = flow.record();
        self.recover([record]);
        self.remove(slot);
    }

    /// Uses other parameters from now on. An advertised window is kept: buffers shrink as connections
    /// advance. Known devices keep their rate control, and the hash tables their key.
    pub fn set_config(&mut self, config: AcceleratorConfig) {
        let config = AcceleratorConfig { seed: self.shared.config.seed, ..config }.clamped();
        self.largest_limits.exposure = self.largest_limits.exposure.max(config.exposure);
        self.largest_limits.flow_buffer = self.largest_limits.flow_buffer.max(config.flow_buffer);
        self.openings.set_limit(config.max_openings);
        let old = &self.shared.config;
        let is_spaced_anew = (old.pacing, &old.pacing_hint, old.learns_pattern, old.tick)
            != (config.pacing, &config.pacing_hint, config.learns_pattern, config.tick);
        if is_spaced_anew {
            for slot in 0..self.devices.slots() {
                if let Some(device) = self.devices.get_mut(slot) {
                    device.spacing = Spacing::new(&config);
                }
            }
        }
        self.shared.config = config;
    }

    /// While overloaded, no connection is admitted.
    pub fn set_overloaded(&mut self, overloaded: bool) {
        self.overloaded = overloaded;
    }

    /// The driver was away, and packets may have bypassed the machine. For 30 s clients may acknowledge data
    /// of their servers that never passed here; such connections continue end to end.
    pub fn on_absence(&mut self, now: Instant) {
        self.shared.unseen_until = now + ABSENCE_EFFECT;
    }
    /// Sends a device nothing until then: the queue of the driver's interface has no room for it.
    pub fn hold_device(&mut self, address: IpAddr, until: Instant) {
        let slot = self.devices.find(&device_key(address));
        if let Some(device) = slot.and_then(|slot| self.devices.get_mut(slot)) {
            device.hold(until);
        }
    }
}

/// Journal and recovery after a crash.
impl Accelerator {
    /// The records of all exposed connections.
    pub fn journal(&self) -> impl Iterator<Item = FlowRecord> + '_ {
        let exposed = self.flows.iter().filter(|(_, entry)| entry.flow.exposure() > 0);
        exposed.map(|(_, entry)| entry.flow.record())
    }
    /// From now on, [`Accelerator::journal_changes`] and [`Accelerator::journal_sweep`] report changes.
    pub fn keep_journal(&mut self) {
        self.journal.enable();
    }
    /// Reports the changes that the journal must have before any polled packet is sent: by slot, a new
    /// record, or `None` for a connection that has ended. Slots are below [`AcceleratorConfig::max_flows`]
    /// and are used again.
    pub fn journal_changes(&mut self, write: impl FnMut(u32, Option<FlowRecord>)) {
        self.journal.changes(&mut self.flows, write);
    }
    /// Reports the current records of up to `count` connections, round robin, or `None` for a connection that
    /// is no longer exposed. May be called at any time.
    pub fn journal_sweep(&mut self, count: usize, write: impl FnMut(u32, Option<FlowRecord>)) {
        self.journal.sweep(count, &mut self.flows, write);
    }
    /// After a crash, resets both ends of the connections in a journal. Connections that were not exposed
    /// continue end to end.
    pub fn recover(&mut self, journal: impl IntoIterator<Item = FlowRecord>) {
        for record in journal {
            for (side, packet) in record.resets() {
                self.shared.out.push_back(Transmission::whole(side, packet));
            }
            self.shared.stats.flows_reset += 1;
        }
    }
}

/// Offload of uploads. Keys are in the direction from server to mobile.
impl Accelerator {
    /// Whether a connection does nothing but upload, so that it may be offloaded.
    pub fn may_offload(&mut self, key: &FlowKey) -> bool {
        self.shared.draining.is_none()
            && match self.flows.find(key).and_then(|slot| self.flows.get(slot)) {
                Some(entry) => entry.may_offload(),
                None => self.openings.upload(key).is_some_and(|upload| upload.may_offload()),
            }
    }
    /// Offloads a connection if it may be: from now on its client's segments without SYN, FIN or RST, and its
    /// server's without those and without data, may bypass the machine; all others must come here. Whether it
    /// is offloaded.
    pub fn offload(&mut self, key: &FlowKey) -> bool {
        if !self.may_offload(key) {
            return false;
        }
        if let Some(entry) = self.flows.find(key).and_then(|slot| self.flows.get_mut(slot)) {
            entry.flow.upload_mut().offload();
        } else if let Some(upload) = self.openings.upload(key) {
            upload.offload();
        }
        true
    }
    /// Whether a connection is offloaded. Its server's next data ends the offload.
    pub fn is_offloaded(&mut self, key: &FlowKey) -> bool {
        match self.flows.find(key).and_then(|slot| self.flows.get(slot)) {
            Some(entry) => entry.flow.upload().is_offloaded(),
            None => self.openings.upload(key).is_some_and(|upload| upload.is_offloaded()),
        }
    }
}

/// Observation.
impl Accelerator {
    /// The counters.
    pub fn stats(&self) -> &AcceleratorStats {
        &self.shared.stats
    }
    /// Whether a connection (key from server to mobile) is accelerated, or may be when its server sends.
    pub fn knows(&self, key: &FlowKey) -> bool {
        self.flows.holds(key) || self.openings.holds(key)
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
        self.flows.len()
    }
    /// Openings: handshakes, and connections without data of the server.
    pub fn opening_count(&self) -> usize {
        self.openings.len()
    }
    /// Bytes acknowledged to servers that clients have not acknowledged.
    pub fn exposure(&self) -> u64 {
        self.journal.total_exposure()
    }
    /// Bytes stored in all, bookkeeping included.
    pub fn held(&self) -> u64 {
        self.shared.held
    }
    /// All connections being accelerated.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.flows.iter().filter_map(|(_, entry)| self.snapshot(entry))
    }
    /// The limit of a connection's client (key from server to mobile) once everything is polled, and the
    /// bytes of the window that the client offers; none if the connection is not accelerated.
    pub fn client_limit(&mut self, key: &FlowKey) -> Option<(ClientLimit, u64)> {
        let entry = self.flows.find(key).and_then(|slot| self.flows.get(slot))?;
        let device = self.devices.get(entry.device)?;
        Some((limit(entry, device), entry.flow.to_client().window().size()))
    }
    /// How long the data that was last sent to a connection's client (key from server to mobile) had been
    /// stored.
    pub fn data_age(&mut self, key: &FlowKey) -> Option<Duration> {
        let entry = self.flows.find(key).and_then(|slot| self.flows.get(slot))?;
        Some(entry.flow.to_client().age())
    }
    /// The connections of `count` slots from one on, and the next slot, if there is one.
    pub fn flows_from(&self, from: u32, count: u32) -> (Vec<FlowSnapshot>, Option<u32>) {
        let entries = self.flows.range(from, count);
        let some = entries.filter_map(|entry| self.snapshot(entry));
        (some.collect(), self.flows.after(from, count))
    }
    fn snapshot(&self, entry: &FlowEntry) -> Option<FlowSnapshot> {
        let device = self.devices.get(entry.device)?;
        let pattern = device.spacing.as_ref().and_then(|spacing| spacing.learned());
        Some(FlowSnapshot { pattern, ..entry.flow.snapshot(device.control.snapshot(), limit(entry, device)) })
    }
    /// The devices of `count` slots from one on, and the next slot, if there is one.
    pub fn devices_from(&self, from: u32, count: u32) -> (Vec<DeviceSnapshot>, Option<u32>) {
        let some = self.devices.range(from, count).map(device_snapshot);
        (some.collect(), self.devices.after(from, count))
    }
    /// The device with this address of one of its hosts.
    pub fn device(&mut self, address: IpAddr) -> Option<DeviceSnapshot> {
        let slot = self.devices.find(&device_key(address))?;
        self.devices.get(slot).map(device_snapshot)
    }

    /// Panics if an invariant of any connection does not hold. Debug builds check at each packet.
    pub fn invariants(&self) {
        let sum = |amount: fn(&crate::accelerator::machine::FlowEntry) -> u64| {
            self.flows.iter().map(|(_, entry)| amount(entry)).sum::<u64>()
        };
        for (_, entry) in self.flows.iter() {
            entry.flow.check_state(&self.largest_limits);
            entry.flow.check_depth();
            assert_eq!(entry.charged.in_flight, entry.flow.to_client().in_flight());
        }
        assert_eq!(self.journal.total_exposure(), sum(|entry| entry.flow.exposure()));
        assert_eq!(self.shared.held, sum(|entry| entry.charged.held));
        for (id, device) in self.devices.iter() {
            let own = || self.flows.iter().map(|(_, entry)| entry).filter(|entry| entry.device == id);
            assert_eq!(device.flows, own().count());
            assert_eq!(device.exposure, own().map(|entry| entry.flow.exposure()).sum::<u64>());
            assert_eq!(device.in_flight, own().map(|entry| entry.charged.in_flight).sum::<u64>());
        }
    }
}

fn device_snapshot(device: &Device) -> DeviceSnapshot {
    DeviceSnapshot {
        address: device.address,
        flows: device.flows,
        held: device.held,
        in_flight: device.in_flight,
        delivered: device.delivered(),
        control: device.control.snapshot(),
        shares_queue: device.shares_queue,
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
