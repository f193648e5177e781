//! Change of a station's serving cell: movement, handover (TS 36.331 §5.3.5.4, TS 38.331 §5.3.5.5), and cell
//! selection after a radio-link failure (TS 36.331 §5.3.7.2).
//!
//! A handover breaks before make or makes before break. In the first case MAC is reset, the bearer changes to
//! RLC entities of the target, and the station is without service for an interruption and random access
//! there. With [`Fate::Duplicate`] (dual active protocol stack, TS 38.300 §9.2.3.2) the source serves until
//! random access in the target has succeeded: it has a dedicated preamble, and its three messages take time,
//! but no resources. Copies of the SDUs that the source sends meanwhile wait in the target.
//!
//! The buffers above RLC move with the station at once: as if the source forwarded them without delay. Left
//! out: dedicated preambles of the first kind, T304, transmission on both paths in the same slot, and
//! configured grants in the target, where the station gets dynamic grants.

use super::config::Handover;
use super::enb::Cell;
use super::measurement::{EventA3, Measured, Measurements};
use crate::bearer::Fate;
use crate::duplex::Direction;
use crate::mac::random_access::Cause;
use crate::radio::Point;
use crate::slot::{Slot, SlotSpan};
use paceline_net::Instant;

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
        assert!(to < self.cells(), "cell {to} is not served: there are {}", self.cells());
        let state = &mut self.stations[station];
        if !state.connected() || state.cell == to || state.target.is_some() {
            return false;
        }
        let slot = self.clock.at_or_after(now).max(self.earliest_slot);
        if how.fate == Fate::Duplicate {
            let at = self.accessed_at(slot + how.interruption);
            self.stations[station].prepare(slot, (to, at), &mut self.output);
        } else {
            state.leave(slot, now, (how.fate, how.keep_harq), &mut self.output);
            self.serve(station, to);
            self.start_random_access(station, Cause::Handover, slot + how.interruption);
        }
        self.wake(now);
        true
    }
    /// From now on event A3 hands over the stations of the deployment. Stations are measured in slots with
    /// work.
    pub fn hand_over_by(&mut self, event: EventA3, how: Handover) {
        let stations = vec![Measurements::default(); self.stations.len()];
        self.measured = Some(Measured { event, how, stations });
    }
    /// Measures the stations if it is time, and hands over those for which event A3 is triggered.
    pub(super) fn measure(&mut self, slot: Slot) {
        let Some(mut measured) = self.measured.take() else { return };
        if slot.within(measured.event.period) == SlotSpan(0) {
            for index in 0..self.stations.len() {
                let (station, measurements) = (&self.stations[index], &mut measured.stations[index]);
                let (Some(placed), Some(network)) = (station.radio.placed(), &self.network) else { continue };
                let rsrp_db = network.served_gains_db(placed);
                let triggered = measurements.sample(slot, &measured.event, station.cell, rsrp_db);
                let Some(to) = triggered.filter(|_| station.connected()) else { continue };
                if self.hand_over(self.clock.start(slot), index, to, measured.how) {
                    measured.stations[index].on_cell_changed();
                }
            }
        }
        self.measured = Some(measured);
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
    pub(super) fn change_cells(&mut self, slot: Slot) {
        for index in 0..self.stations.len() {
            let Some((to, _)) = self.stations[index].target.filter(|(_, at)| *at <= slot) else { continue };
            self.stations[index].change(slot, self.clock.start(slot), &mut self.output);
            self.serve(index, to);
        }
    }
    /// A station whose link failed selects the strongest served cell.
    pub(super) fn select_cell(&mut self, index: usize) {
        if let Some(cell) = self.strongest_cell(index) {
            self.serve(index, cell);
        }
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
