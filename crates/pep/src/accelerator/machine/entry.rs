//! A connection's entry in the machine's tables.

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::index::Keyed;
use crate::accelerator::machine::timers::Alarm;
use paceline_net::FlowKey;
use std::hint::black_box;

/// Not in the list of exposed connections.
pub(in crate::accelerator) const NOT_LISTED: u32 = u32::MAX;

/// The amounts with which a connection is included in the totals of its device and of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::accelerator) struct Charged {
    /// Bytes stored.
    pub held: u64,
    /// Bytes in flight to the device.
    pub in_flight: u64,
    /// Bytes acknowledged early.
    pub exposure: u64,
    /// Bytes that wait for the radio or are in flight: see [`Flow::queued`].
    pub queued: u64,
}

/// Flat: nested structures would cost some bytes of padding for each of many connections.
#[derive(Debug)]
pub(in crate::accelerator) struct FlowEntry {
    pub flow: Flow,
    /// Slot of its device.
    pub device: u32,
    pub alarm: Alarm,
    pub charged: Charged,
    /// Counted as active by the device: see [`Flow::is_transparent`].
    pub counted_active: bool,
    /// Counted as backlogged by the device: see [`Flow::is_backlogged`].
    pub counted_backlogged: bool,
    /// Its place in the journal's list of exposed connections, or [`NOT_LISTED`].
    pub journal_place: u32,
    /// The acknowledged offset that the journal has.
    pub journal_acked: u64,
    /// In the journal's list of changed connections.
    pub journal_changed: bool,
    /// In the device's backlog.
    pub in_backlog: bool,
    /// In the machine's queue of connections with an ACK due.
    pub in_due: bool,
    /// A handshake with the same addresses and ports has passed that the client has not confirmed.
    pub replacement_pending: bool,
}

impl FlowEntry {
    pub fn new(flow: Flow, device: u32) -> Self {
        Self {
            flow,
            device,
            alarm: Alarm::default(),
            charged: Charged::default(),
            counted_active: false,
            counted_backlogged: false,
            journal_place: NOT_LISTED,
            journal_acked: 0,
            journal_changed: false,
            in_backlog: false,
            in_due: false,
            replacement_pending: false,
        }
    }
    /// Reads each cache line that packets need.
    pub fn prefetch(&self) {
        black_box((self.device, self.alarm, self.charged.in_flight, self.in_due));
        self.flow.prefetch();
    }
    /// Whether the connection is a mere upload that may bypass the machine.
    pub fn may_offload(&self) -> bool {
        self.flow.may_offload() && !self.replacement_pending
    }
}

impl Keyed for FlowEntry {
    type Key = FlowKey;
    fn key(&self) -> FlowKey {
        self.flow.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    /// The entry, its slot, its part of an index that is at least a quarter full, and the memory that queues
    /// keep for a few segments.
    #[test]
    fn a_connection_costs_less_than_a_kilobyte() {
        let slot = size_of::<Option<Box<FlowEntry>>>();
        let all = size_of::<FlowEntry>() + slot + 4 * size_of::<u64>();
        assert!(all < 1_000, "{} + {slot}, in all {all} bytes", size_of::<FlowEntry>());
    }
}
