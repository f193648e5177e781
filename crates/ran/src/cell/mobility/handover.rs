//! Change of a station's serving cell: movement, handover (TS 36.331 §5.3.5.4, TS 38.331 §5.3.5.5), and cell
//! selection after a radio-link failure (TS 36.331 §5.3.7.2).
//!
//! A handover breaks before make or makes before break. In the first case MAC is reset, the bearer changes to
//! RLC entities of the target, and the station is without service for an interruption and random access
//! there. With [`Fate::Duplicate`] (dual active protocol stack, TS 38.300 §9.2.3.2) the source serves until
//! random access in the target has succeeded: it has a dedicated preamble, and its three messages take time,
//! but no resources. Copies of the SDUs that the source sends meanwhile wait in the target.
//!
//! Downlink packets above RLC are forwarded by `forwarding`, or are in the target at once. Random access that
//! fails in the target stands for the expiry of T304: the station re-establishes its connection. Left out:
//! dedicated preambles of the first kind, transmission on both paths in the same slot, and configured grants
//! in the target, where the station gets dynamic grants.

use super::super::config::Handover;
use super::super::enb::Cell;
use super::record::{HandoverCause, HandoverRecord};
use crate::bearer::Fate;
use crate::duplex::Direction;
use crate::mac::random_access::Cause;
use crate::radio::Point;
use crate::slot::{Slot, SlotSpan};
use paceline_net::{DropReason, Event, Instant, Output, ServingCell};

impl Cell {
    /// Moves a station along a straight line to a position in metres from site 0; its serving cell is kept. A
    /// station with a stated SINR has no position and stays as it is.
    pub fn move_station(&mut self, station: usize, to: Point) {
        if let (Some(placed), Some(network)) = (self.stations[station].radio.placed_mut(), &self.network) {
            network.advance(placed, to);
        }
    }
    /// The served cell with the strongest reference signals at a station, by path loss and shadowing; none
    /// for a stated SINR.
    pub fn strongest_cell(&self, station: usize) -> Option<usize> {
        let (placed, network) = (self.stations[station].radio.placed()?, self.network.as_ref()?);
        Some(network.strongest_served(placed))
    }
    /// Hands a station over to the served cell `to`. Returns false, and does nothing, if the station is not
    /// connected, is being handed over, or `to` serves it already.
    ///
    /// # Panics
    /// If `to` is not a served cell.
    pub fn hand_over(&mut self, now: Instant, station: usize, to: usize, how: Handover) -> bool {
        self.hand_over_for(HandoverCause::Scripted, now, station, to, how)
    }
    pub(super) fn hand_over_for(
        &mut self,
        cause: HandoverCause,
        now: Instant,
        station: usize,
        to: usize,
        how: Handover,
    ) -> bool {
        assert!(to < self.cells(), "cell {to} is not served: there are {}", self.cells());
        let state = &mut self.stations[station];
        if !state.connected() || state.cell == to || state.target.is_some() {
            return false;
        }
        let slot = self.clock.at_or_after(now).max(self.earliest_slot);
        let mut record = self.record(station, to, cause, now);
        if how.fate == Fate::Duplicate {
            let at = self.accessed_at(slot + how.interruption);
            self.stations[station].prepare(slot, (to, at), how.forwarding, &mut self.output);
        } else {
            record.left_at = Some(now);
            let before = self.output.len();
            self.stations[station].leave(slot, now, how, &mut self.output);
            for output in self.output.iter().skip(before) {
                if let Output::Drop(packet, DropReason::PathSwitch) = output {
                    record.dropped_packets += 1;
                    record.dropped_bytes += u64::from(packet.len);
                }
            }
            self.serve(station, to);
            self.start_random_access(station, Cause::Handover, slot + how.interruption);
        }
        self.handovers.push(record);
        self.wake(now);
        true
    }
    fn record(&self, station: usize, to: usize, cause: HandoverCause, at: Instant) -> HandoverRecord {
        let from = self.stations[station].cell;
        let gains_db = match (self.stations[station].radio.placed(), &self.network) {
            (Some(placed), Some(network)) => {
                let gains = network.served_gains_db(placed);
                (gains[from], gains[to])
            }
            _ => (0.0, 0.0),
        };
        HandoverRecord {
            station,
            from,
            to,
            cause,
            at,
            left_at: None,
            served_at: None,
            failed: false,
            place: self.place(station).map(|(place, _)| place),
            gains_db,
            dropped_packets: 0,
            dropped_bytes: 0,
            forwarded_packets: 0,
        }
    }
    /// Changes of the serving cell so far, with those after a radio-link failure where stations move or are
    /// measured.
    pub fn handovers(&self) -> &[HandoverRecord] {
        &self.handovers
    }
    /// Service of a station begins after a change of its cell.
    pub(in crate::cell) fn on_served(&mut self, station: usize, now: Instant) {
        let last = self.handovers.iter_mut().rev().find(|record| record.station == station);
        if let Some(record) = last.filter(|record| record.served_at.is_none()) {
            record.served_at = Some(now);
            record.left_at.get_or_insert(now);
        }
        // Packets of the station pass the new cell at once, those towards it after the switch of the path.
        self.tell_core(station, true);
        if self.stations[station].forwarding.is_none() {
            self.tell_core(station, false);
        }
    }
    /// Tells the core the serving cell of a direction, if it is another one.
    fn tell_core(&mut self, station: usize, uplink: bool) {
        let state = &mut self.stations[station];
        let (cell, known) = (state.cell, &mut state.core_cells[usize::from(uplink)]);
        if std::mem::replace(known, cell) == cell {
            return;
        }
        let event = Event::ServingCell(ServingCell { station, cell, uplink });
        self.output.push_back(Output::Event(event.into()));
    }
    /// The packets that the source has forwarded enter the buffer of the target.
    pub(in crate::cell) fn take_forwarded(&mut self, station: usize, now: Instant) {
        let state = &mut self.stations[station];
        let Some(forwarding) = &mut state.forwarding else { return };
        while let Some(packet) = forwarding.pop(now) {
            state.downlink.bearer.buffer.push(now, packet);
        }
        let (forwarded, finished) = (forwarding.forwarded(), forwarding.finished(now));
        let switches = forwarding.take_switch(now);
        state.downlink.collect_dropped(&mut self.output);
        if finished {
            self.stations[station].forwarding = None;
        }
        if switches {
            self.tell_core(station, false);
        }
        let of_handover = |record: &&mut HandoverRecord| {
            record.station == station && record.cause != HandoverCause::LinkFailure
        };
        if let Some(record) = self.handovers.iter_mut().rev().find(of_handover) {
            record.forwarded_packets = forwarded;
        }
    }
    /// The slot in which service begins after a dedicated preamble in the first occasion from `slot` on: that
    /// of Msg3, which carries the completion of the handover.
    fn accessed_at(&self, slot: Slot) -> Slot {
        let mut occasion = slot;
        while !self.config.duplex.has(occasion, Direction::Up) || !self.is_prach_occasion(occasion) {
            occasion = occasion + SlotSpan(1);
        }
        let window = occasion + self.timing.random_access.window_start;
        self.timing.msg3_at(self.config.duplex.next(window, Direction::Down))
    }
    /// The stations whose random access in the target of a handover has succeeded change their cell.
    pub(in crate::cell) fn change_cells(&mut self, slot: Slot) {
        for index in 0..self.stations.len() {
            let Some((to, _)) = self.stations[index].target.filter(|(_, at)| *at <= slot) else { continue };
            let now = self.clock.start(slot);
            self.stations[index].change(slot, now, &mut self.output);
            self.serve(index, to);
            self.on_served(index, now);
        }
    }
    /// A station whose link failed selects the strongest served cell.
    pub(in crate::cell) fn select_cell(&mut self, index: usize, now: Instant) {
        let last = self.handovers.iter_mut().rev().find(|record| record.station == index);
        if let Some(record) = last.filter(|record| record.served_at.is_none()) {
            record.failed = true;
        }
        let to = self.strongest_cell(index).unwrap_or(self.stations[index].cell);
        let record = self.record(index, to, HandoverCause::LinkFailure, now);
        if self.records_failures {
            self.handovers.push(HandoverRecord { left_at: Some(now), ..record });
        }
        self.serve(index, to);
    }
    fn serve(&mut self, index: usize, to: usize) {
        let station = &mut self.stations[index];
        let from = std::mem::replace(&mut station.cell, to);
        let (Some(placed), Some(network)) = (station.radio.placed_mut(), &self.network) else { return };
        if from == to {
            return;
        }
        network.serve(placed, to);
        station.forget_reports();
        self.members[from].retain(|member| *member != index);
        let place = self.members[to].partition_point(|member| *member < index);
        self.members[to].insert(place, index);
        self.configured.release(index);
    }
}
