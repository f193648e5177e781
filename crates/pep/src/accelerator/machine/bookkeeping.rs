//! After a connection was called: tables, timers and turns are brought up to date, and one that has come to its end
//! leaves them.

use crate::accelerator::flow::{Context, Flow};
use crate::accelerator::machine::context;
use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::timers::Owner;
use crate::accelerator::{Accelerator, Side, Transmission};
use paceline_net::{Duration, Instant};

/// While the machine is being stopped, a device's connections stay for so long when all that was waiting here has left.
/// The round trips that their servers see, and so their timers, become those of the path meanwhile.
const SETTLING: Duration = Duration::from_secs(1);
/// Every so many packets a connection's invariants are checked in depth, in debug builds.
const DEEP_CHECK: u64 = 32;

/// While the machine is being stopped, whether a connection may go on end to end. A device's connections do so together,
/// when none is owed anything and none is behind: those that went first would fill the radio's queue, ahead of what the
/// others wait for.
fn may_go(now: Instant, flow: &Flow, device: &mut Device) -> bool {
    if flow.is_idle(now) {
        return true;
    }
    if device.exposure > 0 {
        device.settled_since = None; // of an earlier stop that was called off
        return false;
    }
    if device.behind > 0 {
        return false;
    }
    let since = *device.settled_since.get_or_insert(now);
    now.since(since) >= SETTLING && flow.reset.is_none()
}

impl Accelerator {
    /// What had overtaken the end of a rest comes behind it.
    pub(in crate::accelerator) fn follow(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot).filter(|flow| !flow.uplink.resting) else { return };
        for packet in flow.ahead.take() {
            self.input(now, Side::Server, packet);
        }
    }

    /// Brings tables, timers and turns up to date with a connection that was called.
    pub(in crate::accelerator) fn settle(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(flow.device) else { return };
        let (held, in_flight) = (flow.held(), flow.on_its_way());
        device.held = device.held + held - flow.charged_held;
        self.held = self.held + held - flow.charged_held;
        device.in_flight = device.in_flight + in_flight - flow.charged_in_flight;
        (flow.charged_held, flow.charged_in_flight) = (held, in_flight);
        let busy = !flow.is_quiet();
        device.busy = device.busy + usize::from(busy) - usize::from(flow.counted_busy);
        flow.counted_busy = busy;
        let behind = flow.is_behind();
        device.behind = device.behind + usize::from(behind) - usize::from(flow.counted_behind);
        flow.counted_behind = behind;
        if flow.force && flow.in_backlog {
            // What may leave regardless does not wait behind those that may not.
            device.backlog.retain(|other| *other != slot);
            device.backlog.push_front(slot);
        } else if flow.force {
            flow.in_backlog = true;
            device.backlog.push_front(slot);
        } else if (flow.board.has_lost() || flow.has_unsent()) && !flow.in_backlog {
            flow.in_backlog = true;
            device.backlog.push_back(slot);
        }
        if !device.ready && !device.backlog.is_empty() {
            device.ready = true;
            self.ready.push_back(flow.device);
        }
        if let Some(at) = flow.deadline() {
            self.timers.set(&mut flow.alarm, Owner::Flow(slot), at.max(now));
        }
        if (flow.ack_due || flow.news) && !flow.in_due {
            flow.in_due = true;
            self.due.push_back(slot);
        }
        if cfg!(debug_assertions) {
            flow.check_state(&self.widest);
            if self.steps.is_multiple_of(DEEP_CHECK) {
                flow.check_depth();
            }
        }
        self.finish(now, slot);
    }

    /// Ends a connection that has come to its end, or that may go on end to end while the machine is being stopped.
    pub(in crate::accelerator) fn finish(&mut self, now: Instant, slot: u32) {
        let Some(flow) = self.flows.get_mut(slot) else { return };
        let Some(device) = self.devices.get_mut(flow.device) else { return };
        device.exposure -= flow.charged_exposure;
        self.exposed.note(slot, flow);
        device.exposure += flow.charged_exposure;
        if flow.reset.is_some() && flow.una >= flow.store.next() {
            if let Some(packet) = flow.release_reset() {
                self.out.push_back(Transmission::whole(Side::Mobile, packet));
            }
            self.stats.flows_ended += 1;
            self.remove(slot);
        } else if flow.is_over() && !flow.ack_due {
            self.stats.flows_ended += 1;
            self.remove(slot);
        } else if self.draining.is_some() && may_go(now, flow, device) {
            self.let_go(now, slot);
        }
    }

    /// Lets a connection of exposure 0 go on end to end. What of it is held and was not sent leaves with it, as it would
    /// have left without us. Its server has all that, but would repeat what was lost at the end of a flight only when its
    /// timer comes, which it has set by the long round trips of a machine that is being stopped: after seconds.
    pub(in crate::accelerator) fn let_go(&mut self, now: Instant, slot: u32) {
        self.stats.flows_detached += 1;
        if let Some(flow) = self.flows.get_mut(slot)
            && let Some(device) = self.devices.get_mut(flow.device)
        {
            let mut cx = context!(self, now, device);
            flow.send_rest(&mut cx, device);
        }
        self.remove(slot);
    }

    pub(in crate::accelerator) fn remove(&mut self, slot: u32) {
        let Some(mut flow) = self.flows.remove(slot) else { return };
        for packet in flow.ahead.take() {
            self.pass(Side::Server, packet);
        }
        self.exposed.forget(slot, &flow, &mut self.flows);
        let Some(device) = self.devices.get_mut(flow.device) else { return };
        device.held -= flow.charged_held;
        device.in_flight -= flow.charged_in_flight;
        device.exposure -= flow.charged_exposure;
        device.flows -= 1;
        device.busy -= usize::from(flow.counted_busy);
        device.behind -= usize::from(flow.counted_behind);
        self.held -= flow.charged_held;
        device.backlog.retain(|other| *other != slot);
        self.due.retain(|other| *other != slot);
        if device.flows == 0 {
            self.ready.retain(|other| *other != flow.device);
            self.devices.remove(flow.device);
        } else if !device.ready && !device.backlog.is_empty() {
            device.ready = true;
            self.ready.push_back(flow.device);
        }
    }
}
