//! The accelerated connections with their devices: totals, queues, timers and the journal, which follow each
//! call of a connection; and the order of sending: devices in turn, the connections of a device in turn, then
//! ACKs that no other packet has carried.

mod delivery;
mod detach;
mod replacement;
mod turns;

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::connection::Handshake;
use crate::accelerator::flow::context::Verdict;
use crate::accelerator::flow::to_client::SendOutcome;
use crate::accelerator::flow::{Flow, TimerOutcome};
use crate::accelerator::machine::device::{Device, device_key, memory};
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::index::Table;
use crate::accelerator::machine::journal::Journal;
use crate::accelerator::machine::shared::Shared;
use crate::accelerator::machine::timers::{Owner, Timers};
use crate::accelerator::pacing::Spacing;
use crate::accelerator::stats::BypassReason;
use crate::accelerator::{Side, Transmission};
use delivery::on_delivery;
use detach::may_detach;
use paceline_net::rewrite::PacketTooBig;
use paceline_net::{FlowKey, Instant, Packet};
use replacement::Replacement;
use std::net::IpAddr;
use turns::Turns;

/// Entries examined to find one that gives its place. Chosen: the cost of an attempt is bounded, and another
/// packet makes another attempt.
const REPLACEMENT_PROBES: u32 = 8;
/// The same for one of the same device, whose connections may be few in the table. Chosen: more probes,
/// bounded as well.
const DEVICE_REPLACEMENT_PROBES: u32 = 32;
/// In debug builds the invariants of store and scoreboard are checked once in this many calls. Chosen: the
/// checks take time that grows with the window.
const DEEP_CHECK_CALLS: u64 = 32;

/// A packet's arrival.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    pub now: Instant,
    pub side: Side,
    /// Whether data of the packet's device may be acknowledged early from now on.
    pub early_acks: bool,
}

/// The connections and their devices, by slot.
#[derive(Debug)]
pub(super) struct Connections {
    flows: Table<FlowEntry>,
    devices: Table<Device>,
    turns: Turns,
    journal: Journal,
    /// The largest exposure and buffer of a connection that were ever configured.
    largest_limits: AcceleratorConfig,
    replacement: Replacement,
    /// Calls of connections.
    calls: u64,
}

impl Connections {
    pub fn new(config: &AcceleratorConfig) -> Self {
        Self {
            flows: Table::new(config.seed),
            devices: Table::new(config.seed),
            turns: Turns::default(),
            journal: Journal::default(),
            largest_limits: config.clone(),
            replacement: Replacement::default(),
            calls: 0,
        }
    }
    pub fn flows(&self) -> &Table<FlowEntry> {
        &self.flows
    }
    pub fn devices(&self) -> &Table<Device> {
        &self.devices
    }
    pub fn find(&mut self, key: &FlowKey) -> Option<u32> {
        self.flows.find(key)
    }
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut FlowEntry> {
        self.flows.get_mut(slot)
    }
    pub fn journal_mut(&mut self) -> (&mut Journal, &mut Table<FlowEntry>) {
        (&mut self.journal, &mut self.flows)
    }
    /// Other parameters hold from now on.
    pub fn on_config(&mut self, old: &AcceleratorConfig, config: &AcceleratorConfig) {
        self.largest_limits.exposure = self.largest_limits.exposure.max(config.exposure);
        self.largest_limits.flow_buffer = self.largest_limits.flow_buffer.max(config.flow_buffer);
        let is_spaced_anew = (old.pacing, &old.pacing_hint, old.learns_pattern, old.tick)
            != (config.pacing, &config.pacing_hint, config.learns_pattern, config.tick);
        if is_spaced_anew {
            for slot in 0..self.devices.slots() {
                if let Some(device) = self.devices.get_mut(slot) {
                    device.spacing = Spacing::new(config);
                }
            }
        }
    }
    /// Sends a device nothing until then.
    pub fn hold_device(&mut self, address: IpAddr, until: Instant) {
        let slot = self.devices.find(&device_key(address));
        if let Some(device) = slot.and_then(|slot| self.devices.get_mut(slot)) {
            device.hold(until);
        }
    }

    /// Makes room for one more connection to this address, in the place of another one if need be.
    pub fn make_room(&mut self, now: Instant, to: IpAddr, shared: &mut Shared) -> Result<(), BypassReason> {
        let device = self.devices.find(&device_key(to));
        let flows = device.and_then(|device| self.devices.get(device)).map_or(0, |device| device.flows);
        let of_device = |entry: &FlowEntry| Some(entry.device) == device;
        if flows >= shared.config.max_flows_per_device
            && !self.replace(now, DEVICE_REPLACEMENT_PROBES, of_device, shared)
        {
            return Err(BypassReason::DeviceFull);
        }
        let is_full = self.flows.len() >= shared.config.max_flows;
        if is_full && !self.replace(now, REPLACEMENT_PROBES, |_| true, shared) {
            return Err(BypassReason::TableFull);
        }
        Ok(())
    }
    /// Detaches a connection in favour of a new one, of those for which `may` holds. Whether one was found
    /// within `probes` entries.
    fn replace(
        &mut self,
        now: Instant,
        probes: u32,
        may: impl Fn(&FlowEntry) -> bool,
        shared: &mut Shared,
    ) -> bool {
        let found = self.replacement.find(now, probes, &self.flows, may);
        if let Some(slot) = found {
            shared.stats.flows_detached += 1;
            self.remove(slot, shared);
        }
        found.is_some()
    }
    /// Accelerates a connection after this handshake.
    pub fn insert(
        &mut self,
        now: Instant,
        mut flow: Flow,
        handshake: &Handshake,
        shared: &mut Shared,
    ) -> u32 {
        let address = device_key(flow.key().dst);
        let id = match self.devices.find(&address) {
            Some(id) => id,
            None => {
                let past_window = shared.past_windows.get(address);
                self.devices.insert(Device::new(address, &shared.config, past_window))
            }
        };
        let device = self.devices.get_mut(id).expect("it was found or inserted");
        device.flows += 1;
        let server_rtt = handshake.server_rtt.unwrap_or_default().min(memory::MAX_SERVER_RTT);
        device.server_rtt = device.server_rtt.max(server_rtt);
        if let Some(rtt) = handshake.rtt {
            device.control.on_handshake(now, rtt);
        }
        flow.set_path(false, device.control.useful_window(false));
        flow.limit_to(device.longest(now));
        shared.stats.flows += 1;
        self.flows.insert(FlowEntry::new(flow, id))
    }

    /// A segment of a connection.
    pub fn on_segment(&mut self, arrival: Arrival, slot: u32, packet: Packet, shared: &mut Shared) {
        let Arrival { now, side, early_acks } = arrival;
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        device.early_acks = early_acks;
        let mut cx = shared.context(now, device);
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
                shared.note_past_window(device, past_window);
                on_delivery(now, entry, device, shared, &delivery);
                verdict
            }
        };
        match verdict {
            Verdict::Pass(packet) => shared.pass(side, packet),
            Verdict::Absorbed => {}
            Verdict::Ended(packet) => {
                self.end(slot, shared);
                return shared.pass(side, packet);
            }
            Verdict::Detach(packet) => {
                entry.flow.send_sacked(&mut shared.context(now, device));
                shared.stats.flows_detached += 1;
                shared.stats.bypass(BypassReason::Unseen);
                self.remove(slot, shared);
                return shared.pass(side, packet);
            }
        }
        self.update(now, slot, shared);
    }
    /// The server's segments that were held back until the offload of the upload ended.
    pub fn take_held_back(&mut self, slot: u32) -> impl Iterator<Item = Packet> + use<> {
        let entry = self.flows.get_mut(slot).filter(|entry| !entry.flow.upload().is_offloaded());
        entry.map(|entry| entry.flow.take_held_back()).into_iter().flatten()
    }
    /// A router reports the path MTU of a connection, for its segment with this sequence number.
    pub fn on_packet_too_big(&mut self, now: Instant, message: &PacketTooBig, shared: &mut Shared) {
        if let Some(slot) = self.flows.find(&message.key)
            && let Some(entry) = self.flows.get_mut(slot)
            && entry.flow.on_packet_too_big(message.seq, message.mtu)
        {
            if let Some(device) = self.devices.get_mut(entry.device) {
                device.limit_to(now, entry.flow.longest());
            }
            self.update(now, slot, shared);
        }
    }

    /// Updates totals, queues and timers after a call of a connection.
    fn update(&mut self, now: Instant, slot: u32, shared: &mut Shared) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        let before = entry.charged.held;
        device.charge(entry);
        shared.held = shared.held + entry.charged.held - before;
        if entry.flow.to_client().has_send_now() {
            // The connection does not wait behind those that may not send.
            if entry.in_backlog {
                device.backlog.retain(|other| *other != slot);
            }
            entry.in_backlog = true;
            device.backlog.push_front(slot);
        } else if entry.flow.has_data_to_send() && !entry.in_backlog {
            entry.in_backlog = true;
            device.backlog.push_back(slot);
        }
        self.turns.add_device(entry.device, device);
        self.turns.set_alarm(slot, entry, now);
        if entry.flow.has_ack_due() {
            self.turns.add_ack(slot, entry);
        }
        if cfg!(debug_assertions) {
            self.calls += 1;
            entry.flow.check_state(&self.largest_limits);
            if self.calls.is_multiple_of(DEEP_CHECK_CALLS) {
                entry.flow.check_depth();
            }
        }
        self.end_if_done(now, slot, shared);
    }
    /// Updates every connection: while draining, those that may are detached.
    pub fn update_all(&mut self, now: Instant, shared: &mut Shared) {
        for slot in 0..self.flows.slots() {
            self.update(now, slot, shared);
        }
    }
    /// Updates the exposure. Removes a connection that has ended, or that may be detached while the machine
    /// drains.
    fn end_if_done(&mut self, now: Instant, slot: u32, shared: &mut Shared) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        device.exposure -= entry.charged.exposure;
        self.journal.update(slot, entry);
        device.exposure += entry.charged.exposure;
        device.charge_queued(entry);
        shared.exposure = self.journal.total_exposure();
        let flow = &entry.flow;
        if flow.is_reset_deliverable() {
            self.end_with_reset(slot, shared);
        } else if flow.is_closed() && !flow.is_server_ack_due() {
            self.end(slot, shared);
        } else if shared.draining.is_some() && may_detach(now, flow, device) {
            self.detach(now, slot, shared);
        }
    }
    /// A connection has ended, or another one has its addresses and ports.
    pub fn end(&mut self, slot: u32, shared: &mut Shared) {
        shared.stats.flows_ended += 1;
        self.remove(slot, shared);
    }
    /// Ends a connection that its server has reset, and forwards the reset.
    fn end_with_reset(&mut self, slot: u32, shared: &mut Shared) {
        if let Some(packet) = self.flows.get_mut(slot).and_then(|entry| entry.flow.release_reset()) {
            shared.out.push_back(Transmission::whole(Side::Mobile, packet));
        }
        self.end(slot, shared);
    }
    /// Ends the acceleration of a connection, which continues end to end. Its stored unsent data is sent at
    /// once, also beyond a gap. The server would send it as well, but the last segments of a flight and those
    /// in SACK blocks only after its timeout, which the long round trips of a draining machine have raised to
    /// seconds.
    fn detach(&mut self, now: Instant, slot: u32, shared: &mut Shared) {
        shared.stats.flows_detached += 1;
        if let Some(entry) = self.flows.get_mut(slot)
            && let Some(device) = self.devices.get_mut(entry.device)
        {
            let mut cx = shared.context(now, device);
            entry.flow.send_remaining(&mut cx, device.path());
            entry.flow.send_sacked(&mut cx);
        }
        self.remove(slot, shared);
    }
    /// Detaches a connection with exposure 0 and without a pending reset; resets both ends of any other.
    fn detach_or_reset(&mut self, now: Instant, slot: u32, shared: &mut Shared) {
        let Some(flow) = self.flows.get(slot).map(|entry| &entry.flow) else { return };
        if flow.exposure() == 0 && !flow.has_pending_reset() {
            return self.detach(now, slot, shared);
        }
        shared.reset(&flow.record());
        self.remove(slot, shared);
    }
    /// Detaches or resets all connections.
    pub fn abort(&mut self, now: Instant, shared: &mut Shared) {
        for slot in 0..self.flows.slots() {
            self.detach_or_reset(now, slot, shared);
        }
    }
    /// Ends the acceleration of a connection whose client is silent for too long. If everything was sent, the
    /// client may have it, and its acknowledgments may take another path: the connection continues end to
    /// end.
    fn give_up(&mut self, now: Instant, slot: u32, shared: &mut Shared) {
        let Some(flow) = self.flows.get(slot).map(|entry| &entry.flow) else { return };
        if flow.has_unsent() || flow.has_pending_reset() {
            self.detach_or_reset(now, slot, shared);
        } else {
            self.detach(now, slot, shared);
        }
    }
    /// Removes a connection from all tables and totals; segments that were held back are forwarded.
    fn remove(&mut self, slot: u32, shared: &mut Shared) {
        let Some(mut entry) = self.flows.remove(slot) else { return };
        for packet in entry.flow.take_held_back() {
            shared.pass(Side::Server, packet);
        }
        self.journal.remove(slot, &entry, &mut self.flows);
        shared.exposure = self.journal.total_exposure();
        self.turns.forget_flow(slot);
        let id = entry.device;
        let Some(device) = self.devices.get_mut(id) else { return };
        device.release(slot, &entry);
        shared.held -= entry.charged.held;
        if device.flows == 0 {
            self.turns.forget_device(id);
            shared.sharing -= u32::from(device.shares_queue);
            self.devices.remove(id);
        } else {
            self.turns.add_device(id, device);
        }
    }

    /// Lets devices send in turn, one packet each, and sends the ACKs that are due.
    pub fn send(&mut self, now: Instant, shared: &mut Shared) {
        while let Some(id) = self.turns.next_device() {
            let Some(device) = self.devices.get_mut(id) else { continue };
            device.ready = false;
            if device.next_send_at() > now {
                let at = device.next_send_at();
                self.turns.wait_for_pacer(id, device, at);
                continue;
            }
            if self.serve(now, id, shared)
                && let Some(device) = self.devices.get_mut(id)
            {
                self.turns.repeat_device(id, device);
            }
        }
        while let Some(slot) = self.turns.next_ack() {
            let Some(entry) = self.flows.get_mut(slot) else { continue };
            entry.in_due = false;
            let Some(device) = self.devices.get_mut(entry.device) else { continue };
            entry.flow.flush_acks(&mut shared.context(now, device));
            self.end_if_done(now, slot, shared);
        }
    }
    /// Lets the next connection of a device send a packet. Whether one was sent.
    fn serve(&mut self, now: Instant, id: u32, shared: &mut Shared) -> bool {
        loop {
            let Some(device) = self.devices.get_mut(id) else { return false };
            let Some(&slot) = device.backlog.front() else {
                device.on_idle();
                return false;
            };
            let Some(entry) = self.flows.get_mut(slot) else {
                device.backlog.pop_front();
                continue;
            };
            let mut cx = shared.context(now, device);
            let before = device.in_flight;
            match entry.flow.send_next(&mut cx, device.path()) {
                SendOutcome::Sent { bytes } => {
                    device.on_send(now, bytes, before);
                    device.reserve.on_sent(now, entry.flow.to_client().age());
                    device.backlog.rotate_left(1);
                    self.update(now, slot, shared);
                    return true;
                }
                SendOutcome::NoRoom => return false,
                SendOutcome::Nothing => {
                    entry.in_backlog = false;
                    device.backlog.pop_front();
                    self.turns.set_alarm(slot, entry, now);
                }
            }
        }
    }

    /// When [`Connections::handle_alarms`] is to be called next.
    pub fn next_alarm(&self) -> Option<Instant> {
        self.turns.next_alarm()
    }
    /// Handles the alarms that are due.
    pub fn handle_alarms(&mut self, now: Instant, shared: &mut Shared) {
        while let Some((at, owner)) = self.turns.pop_alarm(now) {
            match owner {
                Owner::Flow(slot) => self.on_flow_alarm(now, slot, at, shared),
                Owner::Device(id) => {
                    if let Some(device) = self.devices.get_mut(id)
                        && Timers::on_entry(&mut device.alarm, at)
                    {
                        self.turns.add_device(id, device);
                    }
                }
            }
        }
    }
    fn on_flow_alarm(&mut self, now: Instant, slot: u32, at: Instant, shared: &mut Shared) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        if !Timers::on_entry(&mut entry.alarm, at) {
            return;
        }
        if entry.flow.deadline().is_none_or(|deadline| deadline > now) {
            return self.turns.set_alarm(slot, entry, Instant::ZERO);
        }
        if entry.flow.is_reset_overdue(now) {
            return self.end_with_reset(slot, shared);
        }
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        let mut cx = shared.context(now, device);
        let outcome = entry.flow.on_timeout(&mut cx);
        let past_window = cx.past_window;
        shared.note_past_window(device, past_window);
        match outcome {
            TimerOutcome::GoesOn => self.update(now, slot, shared),
            TimerOutcome::GivesUp => self.give_up(now, slot, shared),
            TimerOutcome::Reset(packet) => {
                self.end(slot, shared);
                shared.pass(Side::Mobile, packet);
            }
        }
    }

    /// Panics if an invariant of any connection does not hold.
    pub fn check(&self, shared: &Shared) {
        let sum =
            |amount: fn(&FlowEntry) -> u64| self.flows.iter().map(|(_, entry)| amount(entry)).sum::<u64>();
        for (_, entry) in self.flows.iter() {
            entry.flow.check_state(&self.largest_limits);
            entry.flow.check_depth();
            assert_eq!(entry.charged.in_flight, entry.flow.to_client().in_flight());
        }
        assert_eq!(self.journal.total_exposure(), sum(|entry| entry.flow.exposure()));
        assert_eq!(shared.held, sum(|entry| entry.charged.held));
        for (id, device) in self.devices.iter() {
            let own = || self.flows.iter().map(|(_, entry)| entry).filter(|entry| entry.device == id);
            assert_eq!(device.flows, own().count());
            assert_eq!(device.exposure, own().map(|entry| entry.flow.exposure()).sum::<u64>());
            assert_eq!(device.in_flight, own().map(|entry| entry.charged.in_flight).sum::<u64>());
        }
    }
}
