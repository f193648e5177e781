//! Whose turn it is: what is said when a batch of packets has been handled, devices in turn, their connections in
//! turn, and timers.

use crate::accelerator::flow::Context;
use crate::accelerator::flow::to_client::outbound::Turn;
use crate::accelerator::machine::context;
use crate::accelerator::machine::timers::{Owner, Timers};
use crate::accelerator::{Accelerator, Side, Transmission};
use paceline_net::{Instant, SackBlocks};

impl Accelerator {
    /// The next packet to send. Poll until there is none before asking for the next timer.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmission> {
        if self.out.is_empty() {
            self.send(now);
            self.flush(now);
        }
        self.out.pop_front()
    }

    /// What was not said by packets that left anyway.
    fn flush(&mut self, now: Instant) {
        while let Some(slot) = self.due.pop_front() {
            let Some(flow) = self.flows.get_mut(slot) else { continue };
            flow.in_due = false;
            let Some(device) = self.devices.get_mut(flow.device) else { continue };
            let mut cx = context!(self, now, device);
            if flow.ack_due {
                flow.flush_server_ack(&mut cx);
            }
            if flow.news {
                flow.emit_client_ack(&mut cx, SackBlocks::default(), false);
            }
            self.finish(now, slot);
        }
    }

    /// Lets devices send in turn, a burst each.
    fn send(&mut self, now: Instant) {
        while let Some(id) = self.ready.pop_front() {
            let Some(device) = self.devices.get_mut(id) else { continue };
            device.ready = false;
            if device.next_send_at() > now {
                let at = device.next_send_at();
                self.timers.set(&mut device.alarm, Owner::Device(id), at);
                continue;
            }
            if self.serve(now, id)
                && let Some(device) = self.devices.get_mut(id).filter(|device| !device.ready)
            {
                device.ready = true;
                self.ready.push_back(id);
            }
        }
    }

    /// Lets the next connection of a device send a packet; whether one was sent.
    fn serve(&mut self, now: Instant, id: u32) -> bool {
        loop {
            let Some(device) = self.devices.get_mut(id) else { return false };
            let Some(&slot) = device.backlog.front() else {
                device.on_idle();
                return false;
            };
            let Some(flow) = self.flows.get_mut(slot) else {
                device.backlog.pop_front();
                continue;
            };
            let mut cx = context!(self, now, device);
            let before = device.in_flight;
            match flow.send_next(&mut cx, device) {
                Turn::Sent { bytes } => {
                    device.on_send(now, bytes, before);
                    device.backlog.rotate_left(1);
                    self.settle(now, slot);
                    return true;
                }
                Turn::NoRoom => return false,
                Turn::Nothing => {
                    flow.in_backlog = false;
                    device.backlog.pop_front();
                    if let Some(at) = flow.deadline() {
                        self.timers.set(&mut flow.alarm, Owner::Flow(slot), at.max(now));
                    }
                }
            }
        }
    }

    /// When [`Accelerator::handle_timeout`] wants to be called.
    pub fn next_timer(&self) -> Option<Instant> {
        let draining = self.draining.map(|until| until.min(self.look_at)).filter(|_| self.flows.len() > 0);
        [self.timers.next(), draining].into_iter().flatten().min()
    }

    /// A timer has come. Calling early is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, owner)) = self.timers.pop_due(now) {
            match owner {
                Owner::Flow(slot) => self.on_flow_timer(now, slot, at),
                Owner::Device(id) => {
                    if let Some(device) = self.devices.get_mut(id)
                        && Timers::on_entry(&mut device.alarm, at)
                        && !device.ready
                        && !device.backlog.is_empty()
                    {
                        device.ready = true;
                        self.ready.push_back(id);
                    }
                }
            }
        }
        if self.draining.is_some_and(|until| until <= now) {
            self.abort(now);
        } else if self.draining.is_some() && self.look_at <= now {
            self.settle_all(now);
        }
    }

    fn on_flow_timer(&mut self, now: Instant, slot: u32, at: Instant) {
        let Some(flow) = self.flows.get_mut(slot) else { return };
        if !Timers::on_entry(&mut flow.alarm, at) {
            return;
        }
        match flow.deadline() {
            Some(deadline) if deadline <= now => {}
            Some(deadline) => return self.timers.set(&mut flow.alarm, Owner::Flow(slot), deadline),
            None => return,
        }
        if flow.reset.as_ref().is_some_and(|reset| reset.until <= now) {
            if let Some(packet) = flow.release_reset() {
                self.out.push_back(Transmission::whole(Side::Mobile, packet));
            }
            self.stats.flows_ended += 1;
            return self.remove(slot);
        }
        let Some(device) = self.devices.get_mut(flow.device) else { return };
        let mut cx = context!(self, now, device);
        if flow.on_timeout(&mut cx) {
            self.settle(now, slot);
        } else {
            self.give_up(now, slot);
        }
    }
}
