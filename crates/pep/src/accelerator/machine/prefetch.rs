//! Prefetching of connections. With many connections a large part of a packet's cost is the memory latency of
//! its connection and device. A driver with several packets announces them, and their cache misses overlap.

use crate::accelerator::Side;
use crate::accelerator::machine::device::Device;
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::index::Table;
use paceline_net::Packet;

/// Connections above which prefetching pays. Chosen: the state of fewer connections fits into a processor's
/// caches.
const MIN_FLOWS: usize = 5_000;
/// Connections that are prefetched together. Chosen: with their devices 110 kB, which stay cached until their
/// packets are handled.
const MAX_BATCH: usize = 64;

/// Reads the connections of packets that arrive from `side` next. Returns their number.
pub(super) fn prefetch<'a>(
    flows: &Table<FlowEntry>,
    devices: &Table<Device>,
    side: Side,
    packets: impl IntoIterator<Item = &'a Packet>,
) -> usize {
    if flows.len() < MIN_FLOWS {
        return 0;
    }
    let mut slots = [None; MAX_BATCH];
    let (mut count, mut last) = (0, None);
    for key in packets.into_iter().filter_map(Packet::flow_key) {
        if count < MAX_BATCH && last.replace(key) != Some(key) {
            let key = if side == Side::Server { key } else { key.reversed() };
            slots[count] = flows.peek(&key);
            count += 1;
        }
    }
    // No iteration of a loop depends on a read of another, so their cache misses overlap.
    let entries = || slots.iter().flatten().filter_map(|slot| flows.get(*slot));
    entries().for_each(|entry| entry.prefetch());
    entries().filter_map(|entry| devices.get(entry.device)).for_each(|device| device.prefetch());
    entries().count()
}
