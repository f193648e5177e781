//! A connection that gives its place in a full table to a new one.

use crate::accelerator::flow::Flow;
use crate::accelerator::machine::entry::FlowEntry;
use crate::accelerator::machine::index::Table;
use paceline_net::{Duration, Instant};

/// A transparent connection without a packet for this long gives its place in a full table to a new one.
/// Chosen: long against the pauses of an active user.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Replacement {
    /// Slot at which the last search ended.
    slot: u32,
}

impl Replacement {
    /// A transparent connection without recent packets, of those for which `may` holds, within `probes`
    /// entries.
    pub fn find(
        &mut self,
        now: Instant,
        probes: u32,
        flows: &Table<FlowEntry>,
        may: impl Fn(&FlowEntry) -> bool,
    ) -> Option<u32> {
        let slots = flows.slots();
        let is_unused = |flow: &Flow| {
            now.since(flow.last_packet_at()) > REPLACEABLE_AFTER
                && flow.is_transparent()
                && !flow.has_sacked()
        };
        (0..probes.min(slots)).find_map(|_| {
            self.slot = (self.slot + 1) % slots;
            let entry = flows.get(self.slot)?;
            (may(entry) && is_unused(&entry.flow)).then_some(self.slot)
        })
    }
}
