//! The order of sending: devices in turn, the connections of a device in turn, then ACKs that no other packet
//! has carried; and the timers.

use crate::accelerator::flow::TimerOutcome;
use crate::accelerator::flow::to_client::SendOutcome;
use crate::accelerator::machine::timers::{Owner, Timers};
use crate::accelerator::{Accelerator, Side, Transmission};
use paceline_net::Instant;

impl Accelerator {
    /// The next packet to send. Must be polled until it is `None` before [`Accelerator::next_timer`] is
    /// asked.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmission> {
        if self.shared.out.is_empty() {
            self.send(now);
            self.flush_acks(now);
        }
        let mut next = self.shared.out.pop_front()?;
        self.identifications.number(&mut next.packet, next.segment);
        Some(next)
    }

    fn flush_acks(&mut self, now: Instant) {
        while let Some(slot) = self.due.pop_front() {
            let Some(entry) = self.flows.get_mut(slot) else { continue };
            entry.in_due = false;
            let Some(device) = self.devices.get_mut(entry.device) else { continue };
            entry.flow.flush_acks(&mut self.shared.context(now, device));
            self.end_if_done(now, slot);
        }
    }

    /// Lets devices send in turn, one packet each.
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

    /// Lets the next connection of a device send a packet. Whether one was sent.
    fn serve(&mut self, now: Instant, id: u32) -> bool {
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
            let mut cx = self.shared.context(now, device);
            let before = device.in_flight;
            match entry.flow.send_next(&mut cx, device.path()) {
                SendOutcome::Sent { bytes } => {
                    device.on_send(now, bytes, before);
                    device.reserve.on_sent(now, entry.flow.to_client().age());
                    device.backlog.rotate_left(1);
                    self.update(now, slot);
                    return true;
                }
                SendOutcome::NoRoom => return false,
                SendOutcome::Nothing => {
                    entry.in_backlog = false;
                    device.backlog.pop_front();
                    if let Some(at) = entry.flow.deadline() {
                        self.timers.set(&mut entry.alarm, Owner::Flow(slot), at.max(now));
                    }
                }
            }
        }
    }

    /// When [`Accelerator::handle_timeout`] is to be called next.
    pub fn next_timer(&self) -> Option<Instant> {
        let draining = self.shared.draining.filter(|_| self.flows.len() > 0);
        let draining = draining.map(|until| until.min(self.next_drain_check));
        [self.timers.next(), self.fragments.next_at(), draining].into_iter().flatten().min()
    }

    /// Handles the timers that are due. Harmless when none is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pass_fragments(now);
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
        let Some(until) = self.shared.draining else { return };
        if until <= now {
            self.abort(now);
        } else if self.next_drain_check <= now {
            self.update_all(now);
        }
    }

    fn on_flow_timer(&mut self, now: Instant, slot: u32, at: Instant) {
        let Some(entry) = self.flows.get_mut(slot) else { return };
        if !Timers::on_entry(&mut entry.alarm, at) {
            return;
        }
        match entry.flow.deadline() {
            Some(deadline) if deadline <= now => {}
            Some(deadline) => return self.timers.set(&mut entry.alarm, Owner::Flow(slot), deadline),
            None => return,
        }
        if entry.flow.is_reset_overdue(now) {
            return self.end_with_reset(slot);
        }
        let Some(device) = self.devices.get_mut(entry.device) else { return };
        let mut cx = self.shared.context(now, device);
        let outcome = entry.flow.on_timeout(&mut cx);
        let past_window = cx.past_window;
        self.shared.note_past_window(device, past_window);
        match outcome {
            TimerOutcome::GoesOn => self.update(now, slot),
            TimerOutcome::GivesUp => self.give_up(now, slot),
            TimerOutcome::Reset(packet) => {
                self.shared.stats.flows_ended += 1;
                self.remove(slot);
                self.shared.pass(Side::Mobile, packet);
            }
        }
    }

    /// Ends a connection that its server has reset, and forwards the reset.
    pub(super) fn end_with_reset(&mut self, slot: u32) {
        if let Some(packet) = self.flows.get_mut(slot).and_then(|entry| entry.flow.release_reset()) {
            self.shared.out.push_back(Transmission::whole(Side::Mobile, packet));
        }
        self.shared.stats.flows_ended += 1;
        self.remove(slot);
    }
}
