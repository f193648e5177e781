//! Looking ahead. With many connections a good part of what a packet costs is waiting for memory, for its connection and
//! its device. A driver that has several packets says so before it hands in the first: what they concern is looked at
//! together, and the waits overlap. Nothing else comes of it.

use crate::accelerator::Side;
use crate::accelerator::machine::Accelerator;
use paceline_net::Packet;

/// Connections from which on it pays. Fewer are in a processor's own caches anyway, where a look costs more than it saves.
const MANY: usize = 5_000;
/// Connections that are looked at together: with their devices 110 kB, which stay near until their packets come.
const TOGETHER: usize = 64;

impl Accelerator {
    /// These packets arrive from `side` next, in this order; at best there are a few dozen of them. Returns how many
    /// connections were looked at.
    pub fn expect<'a>(&self, side: Side, packets: impl IntoIterator<Item = &'a Packet>) -> usize {
        if self.flows.len() < MANY {
            return 0;
        }
        let mut slots = [None; TOGETHER];
        let (mut count, mut last) = (0, None);
        for key in packets.into_iter().filter_map(Packet::flow_key) {
            if count < TOGETHER && last.replace(key) != Some(key) {
                let key = if side == Side::Server { key } else { key.reversed() };
                slots[count] = self.flows.peek(&key);
                count += 1;
            }
        }
        // No round of a loop waits for what another reads.
        let flows = || slots.iter().flatten().filter_map(|slot| self.flows.get(*slot));
        flows().for_each(|flow| flow.look_at());
        flows().filter_map(|flow| self.devices.get(flow.device)).for_each(|device| device.look_at());
        flows().count()
    }
}
