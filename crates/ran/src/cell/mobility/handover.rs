//! Change of a station's serving cell: handover (TS 36.331 §5.3.5.4, TS 38.331 §5.3.5.5), and cell selection
//! after a radio-link failure (TS 36.331 §5.3.7.2).
//!
//! A handover breaks before make or makes before break. In the first case MAC is reset, the bearer changes to
//! RLC entities of the target, and the station is without service for an interruption and random access
//! there. With `Fate::Duplicate` (dual active protocol stack, TS 38.300 §9.2.3.2) the source serves until
//! random access in the target has succeeded: it has a dedicated preamble, and its three messages take time,
//! but no resources. Copies of the SDUs that the source sends meanwhile wait in the target.
//!
//! Downlink packets above RLC are forwarded (`station/forwarding.rs`), or are in the target at once. Random
//! access that fails in the target stands for the expiry of T304: the station re-establishes its connection.
//! Left out: dedicated preambles of the first kind, transmission on both paths in the same slot, and
//! configured grants in the target, where the station gets dynamic grants.

use super::record::{HandoverCause, HandoverRecord};
use crate::air::{Network, Placed};
use crate::cell::config::{Carrier, Handover};
use crate::cell::random_access::is_prach_occasion;
use crate::cell::station::Station;
use crate::duplex::Direction;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{DropReason, Event, Instant, Output, ServingCell};
use std::collections::VecDeque;

/// A handover command.
pub(in crate::cell) struct Command {
    pub cause: HandoverCause,
    /// The target, among the served cells.
    pub to: usize,
    pub how: Handover,
}

/// The changes of the serving cell.
#[derive(Default)]
pub(in crate::cell) struct Handovers {
    /// In the order of time.
    records: Vec<HandoverRecord>,
}

impl Handovers {
    pub fn records(&self) -> &[HandoverRecord] {
        &self.records
    }
    /// A handover begins that keeps the source until service in the target begins.
    pub fn keep(
        &mut self,
        now: Instant,
        command: &Command,
        (index, station): (usize, &Station),
        network: Option<&Network>,
    ) {
        self.records.push(record(now, command.cause, command.to, (index, station), network));
    }
    /// A handover begins in which the station leaves its source at once.
    pub fn leave(
        &mut self,
        (slot, now): (Slot, Instant),
        command: &Command,
        (index, station): (usize, &mut Station),
        network: Option<&Network>,
        output: &mut VecDeque<Output>,
    ) {
        let mut record = record(now, command.cause, command.to, (index, station), network);
        record.left_at = Some(now);
        let before = output.len();
        station.leave(slot, now, command.how, output);
        for output in output.iter().skip(before) {
            if let Output::Drop(packet, DropReason::PathSwitch) = output {
                record.dropped_packets += 1;
                record.dropped_bytes += u64::from(packet.len);
            }
        }
        self.records.push(record);
    }
    /// Service of a station begins after a change of its cell.
    pub fn on_served(
        &mut self,
        now: Instant,
        (index, station): (usize, &mut Station),
        output: &mut VecDeque<Output>,
    ) {
        if let Some(record) = self.pending(index) {
            record.served_at = Some(now);
            record.left_at.get_or_insert(now);
        }
        // Packets of the station pass the new cell at once, those towards it after the switch of the path.
        tell_core(index, station, true, output);
        if station.forwarding.is_none() {
            tell_core(index, station, false, output);
        }
    }
    /// The packets that the source has forwarded enter the buffer of the target.
    pub fn take_forwarded(
        &mut self,
        now: Instant,
        (index, station): (usize, &mut Station),
        output: &mut VecDeque<Output>,
    ) {
        let Some(forwarding) = &mut station.forwarding else { return };
        while let Some(packet) = forwarding.pop(now) {
            station.downlink.bearer.buffer.push(now, packet);
        }
        let (forwarded, finished) = (forwarding.forwarded(), forwarding.finished(now));
        let switches = forwarding.take_switch(now);
        station.downlink.collect_dropped(output);
        if finished {
            station.forwarding = None;
        }
        if switches {
            tell_core(index, station, false, output);
        }
        let of_handover = |record: &&mut HandoverRecord| {
            record.station == index && record.cause != HandoverCause::LinkFailure
        };
        if let Some(record) = self.records.iter_mut().rev().find(of_handover) {
            record.forwarded_packets = forwarded;
        }
    }
    /// A station's link has failed, and it selects the served cell `to`; a record of that is kept on request.
    pub fn on_link_failure(
        &mut self,
        now: Instant,
        to: usize,
        (index, station): (usize, &Station),
        network: Option<&Network>,
        recorded: bool,
    ) {
        if let Some(record) = self.pending(index) {
            record.failed = true;
        }
        if recorded {
            let record = record(now, HandoverCause::LinkFailure, to, (index, station), network);
            self.records.push(HandoverRecord { left_at: Some(now), ..record });
        }
    }
    /// The last record of a station, if its service has not begun.
    fn pending(&mut self, index: usize) -> Option<&mut HandoverRecord> {
        let last = self.records.iter_mut().rev().find(|record| record.station == index);
        last.filter(|record| record.served_at.is_none())
    }
}

/// A record whose change has only begun.
fn record(
    at: Instant,
    cause: HandoverCause,
    to: usize,
    (index, station): (usize, &Station),
    network: Option<&Network>,
) -> HandoverRecord {
    let (from, placed) = (station.cell, station.radio.placed());
    let gains_db = match (placed, network) {
        (Some(placed), Some(network)) => {
            let gains = network.served_gains_db(placed);
            (gains[from], gains[to])
        }
        _ => (0.0, 0.0),
    };
    HandoverRecord {
        station: index,
        from,
        to,
        cause,
        at,
        left_at: None,
        served_at: None,
        failed: false,
        place: placed.map(Placed::position),
        gains_db,
        dropped_packets: 0,
        dropped_bytes: 0,
        forwarded_packets: 0,
    }
}
/// Tells the core the serving cell of a direction, if it is another one.
fn tell_core(index: usize, station: &mut Station, uplink: bool, output: &mut VecDeque<Output>) {
    let (cell, known) = (station.cell, &mut station.core_cells[usize::from(uplink)]);
    if std::mem::replace(known, cell) == cell {
        return;
    }
    let event = Event::ServingCell(ServingCell { station: index, cell, uplink });
    output.push_back(Output::Event(event.into()));
}
/// The slot in which service begins after a dedicated preamble in the first occasion from `slot` on: that of
/// Msg3, which carries the completion of the handover.
pub(in crate::cell) fn accessed_at(slot: Slot, carrier: &Carrier) -> Slot {
    let (duplex, mut occasion) = (&carrier.config.duplex, slot);
    while !duplex.has(occasion, Direction::Up) || !is_prach_occasion(carrier, occasion) {
        occasion = occasion + SlotSpan(1);
    }
    let window = occasion + carrier.timing.random_access.window_start;
    carrier.timing.msg3_at(duplex.next(window, Direction::Down))
}
