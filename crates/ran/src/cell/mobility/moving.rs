//! State of the movement and of the measurements of all stations.

use super::super::config::Handover;
use super::link_monitor::{LinkMonitor, LinkMonitorConfig};
use super::measurement::{EventA3, Measurements};
use crate::radio::Route;
use crate::slot::{Slot, SlotSpan};

/// The cause of handovers.
pub(super) enum Trigger {
    None,
    EventA3(EventA3, Handover),
    /// In these slots, ascending, of which the first ones are done.
    Scripted(Vec<Slot>, usize, Handover),
}

/// State of one station.
#[derive(Default)]
pub(super) struct Mover {
    pub route: Option<Route>,
    pub measurements: Measurements,
    pub monitor: LinkMonitor,
    /// The target that the source prepares, and the slot of the command.
    pub prepared: Option<(usize, Slot)>,
    /// The serving cell of the last sample.
    pub cell: usize,
}

/// Movement and measurements of all stations.
pub(in crate::cell) struct Moving {
    /// Time between positions.
    pub(super) tick: SlotSpan,
    pub(super) trigger: Trigger,
    pub(super) monitor: Option<LinkMonitorConfig>,
    pub(super) stations: Vec<Mover>,
}

impl Moving {
    /// The first slot with a sample after this one.
    pub fn next_slot(&self, slot: Slot) -> Slot {
        slot.start_of(self.tick) + self.tick
    }
}
