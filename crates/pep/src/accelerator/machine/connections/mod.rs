//! Bookkeeping after each call of a connection: totals, queues, timers and the journal are updated, and a
//! connection that has ended is removed.

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::timers::Owner;
use crate::accelerator::{Accelerator, Side};
use paceline_net::{Duration, Instant};

/// While draining, the connections of a device stay for this long after none of them is backlogged. Meanwhile
/// the round trips that their servers measure, and so the servers' timeouts, become those of the whole path.
/// Chosen: a few round trips.
const DETACH_DELAY: Duration = Duration::from_secs(1);
/// In debug builds the invariants of store and scoreboard are checked once in this many packets. Chosen: the
/// checks take time that grows with the window.
const DEEP_CHECK_PACKETS: u64 = 32;

/// Whether a connection may be detached while the machine drains. The connections of a device are detached
/// together, when no byte is exposed and none is backlogged: the first ones would else fill the radio's queue
/// ahead of the other ones' stored data.
fn may_detach(now: Instant, flow: &Flow, device: &mut Device) -> bool {
    if flow.has_sacked() {
        return false; // the server fills the gap in a round trip
    }
    if flow.is_idle(now) {
        return true;
    }
    if device.exposure > 0 {
        device.detachable_since = None; // of an earlier drain that was cancelled
        return false;
    }
    if device.backlogged > 0 {
        return false;
    }
    let since = *device.detachable_since.get_or_insert(now);
    now.since(since) >= DETACH_DELAY && !flow.has_pending_reset()
}

impl Accelerator {
    /// Handles the server's segments that were held back until the offload of the upload ended.
    pub(super) fn input_held_back(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        if entry.flow.upload().is_offloaded() {
            return;
        }
        for packet in entry.flow.take_held_back() {
            self.input(now, Side::Server, packet);
        }
    }

    /// Updates totals, queues and timers after a call of a connection.
    pub(super) fn update(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        let (flow, charged) = (&mut entry.flow, &mut entry.charged);
        let (held, in_flight) = (flow.held(), flow.to_client().in_flight());
        device.held = device.held + held - charged.held;
        self.shared.held = self.shared.held + held - charged.held;
        device.in_flight = device.in_flight + in_flight - charged.in_flight;
        (charged.held, charged.in_flight) = (held, in_flight);
        let active = !flow.is_transparent();
        device.active = device.active + usize::from(active) - usize::from(entry.counted_active);
        entry.counted_active = active;
        let backlogged = flow.is_backlogged();
        device.backlogged =
            device.backlogged + usize::from(backlogged) - usize::from(entry.counted_backlogged);
        entry.counted_backlogged = backlogged;
        if flow.to_client().has_send_now() {
            // The connection does not wait behind those that may not send.
            if entry.in_backlog {
                device.backlog.retain(|other| *other != slot);
            }
            entry.in_backlog = true;
            device.backlog.push_front(slot);
        } else if flow.has_data_to_send() && !entry.in_backlog {
            entry.in_backlog = true;
            device.backlog.push_back(slot);
        }
        if !device.ready && !device.backlog.is_empty() {
            device.ready = true;
            self.ready.push_back(entry.device);
        }
        if let Some(at) = flow.deadline() {
            self.timers.set(&mut entry.alarm, Owner::Flow(slot), at.max(now));
        }
        if flow.has_ack_due() && !entry.in_due {
            entry.in_due = true;
            self.due.push_back(slot);
        }
        if cfg!(debug_assertions) {
            flow.check_state(&self.largest_limits);
            if self.packets.is_multiple_of(DEEP_CHECK_PACKETS) {
                flow.check_depth();
            }
        }
        self.end_if_done(now, slot);
    }

    /// Updates the exposure. Removes a connection that has ended, or that may be detached while the machine
    /// drains.
    pub(super) fn end_if_done(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        device.exposure -= entry.charged.exposure;
        self.journal.update(slot, entry);
        device.exposure += entry.charged.exposure;
        let before = std::mem::replace(&mut entry.charged.queued, entry.flow.queued());
        let after = entry.charged.queued;
        device.queued = device.queued + after - before;
        device.queueing = device.queueing + usize::from(after > 0) - usize::from(before > 0);
        self.shared.exposure = self.journal.total_exposure();
        let flow = &entry.flow;
        if flow.is_reset_deliverable() {
            self.end_with_reset(slot);
        } else if flow.is_closed() && !flow.is_server_ack_due() {
            self.shared.stats.flows_ended += 1;
            self.remove(slot);
        } else if self.shared.draining.is_some() && may_detach(now, flow, device) {
            self.detach(now, slot);
        }
    }

    /// Ends the acceleration of a connection, which continues end to end. Its stored unsent data is sent at
    /// once, also beyond a gap. The server would send it as well, but the last segments of a flight and those
    /// in SACK blocks only after its timeout, which the long round trips of a draining machine have raised to
    /// seconds.
    pub(super) fn detach(&mut self, now: Instant, slot: u32) {
        self.shared.stats.flows_detached += 1;
        if let Some(entry) = self.flows.get_mut(slot)
            && let Some(device) = self.devices.get_mut(entry.device)
        {
            let mut cx = self.shared.context(now, device);
            entry.flow.send_remaining(&mut cx, device.path());
            entry.flow.send_sacked(&mut cx);
        }
        self.remove(slot);
    }

    /// Removes a connection from all tables and totals; segments that were held back are forwarded.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(mut entry) = self.flows.remove(slot) else { return };
        for packet in entry.flow.take_held_back() {
            self.shared.pass(Side::Server, packet);
        }
        self.journal.remove(slot, &entry, &mut self.flows);
        self.shared.exposure = self.journal.total_exposure();
        let (id, charged) = (entry.device, entry.charged);
        let Some(device) = self.devices.get_mut(id) else { return };
        device.held -= charged.held;
        device.in_flight -= charged.in_flight;
        device.exposure -= charged.exposure;
        device.queued -= charged.queued;
        device.queueing -= usize::from(charged.queued > 0);
        device.flows -= 1;
        device.active -= usize::from(entry.counted_active);
        device.backlogged -= usize::from(entry.counted_backlogged);
        self.shared.held -= charged.held;
        device.backlog.retain(|other| *other != slot);
        self.due.retain(|other| *other != slot);
        if device.flows == 0 {
            self.ready.retain(|other| *other != id);
            self.shared.sharing -= u32::from(device.shares_queue);
            self.devices.remove(id);
        } else if !device.ready && !device.backlog.is_empty() {
            device.ready = true;
            self.ready.push_back(id);
        }
    }
}
