//! Whose turn is next: devices with something to send, connections with an ACK due, the deadlines of both.

use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::timers::{Owner, Timers};
use paceline_net::Instant;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Turns {
    timers: Timers,
    /// Devices with something to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// Connections with an ACK due to either end.
    due: VecDeque<u32>,
}

impl Turns {
    /// A device gets a turn if its connections have something to send.
    pub fn add_device(&mut self, id: u32, device: &mut Device) {
        if !device.backlog.is_empty() {
            self.repeat_device(id, device);
        }
    }
    /// A device that has sent a packet gets another turn.
    pub fn repeat_device(&mut self, id: u32, device: &mut Device) {
        if !device.ready {
            device.ready = true;
            self.ready.push_back(id);
        }
    }
    pub fn next_device(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }
    /// The device's pacer allows its next packet at that time.
    pub fn wait_for_pacer(&mut self, id: u32, device: &mut Device, at: Instant) {
        self.timers.set(&mut device.alarm, Owner::Device(id), at);
    }
    pub fn add_ack(&mut self, slot: u32, entry: &mut FlowEntry) {
        if !entry.in_due {
            entry.in_due = true;
            self.due.push_back(slot);
        }
    }
    pub fn next_ack(&mut self) -> Option<u32> {
        self.due.pop_front()
    }
    /// Sets the alarm of a connection to its deadline, or to `earliest`.
    pub fn set_alarm(&mut self, slot: u32, entry: &mut FlowEntry, earliest: Instant) {
        if let Some(at) = entry.flow.deadline() {
            self.timers.set(&mut entry.alarm, Owner::Flow(slot), at.max(earliest));
        }
    }
    pub fn next_alarm(&self) -> Option<Instant> {
        self.timers.next()
    }
    pub fn pop_alarm(&mut self, now: Instant) -> Option<(Instant, Owner)> {
        self.timers.pop_due(now)
    }
    pub fn forget_flow(&mut self, slot: u32) {
        self.due.retain(|other| *other != slot);
    }
    pub fn forget_device(&mut self, id: u32) {
        self.ready.retain(|other| *other != id);
    }
}
