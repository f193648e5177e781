//! Change of a station's serving cell: movement, handover (TS 36.331 §5.3.5.4, TS 38.331 §5.3.5.5), and cell
//! selection after a radio-link failure (TS 36.331 §5.3.7.2).
//!
//! At a handover MAC is reset, the station is without service for an interruption, accesses the target, and
//! its bearer changes to RLC entities of the target. The buffers above RLC move with the station at once: as
//! if the source forwarded them without delay. Left out: dedicated preambles, T304, measurement events, and
//! configured grants in the target, where the station gets dynamic grants.

use super::enb::Cell;
use crate::bearer::Fate;
use crate::mac::random_access::Cause;
use crate::radio::Point;
use crate::slot::SlotSpan;
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
    /// Hands a station over to the served cell `to`: it sends its first preamble there after `interruption`
    /// slots. Returns false, and does nothing, if the station is not connected or `to` serves it already.
    ///
    /// # Panics
    /// If `to` is not a served cell.
    pub fn hand_over(
        &mut self,
        now: Instant,
        station: usize,
        to: usize,
        interruption: SlotSpan,
        fate: Fate,
    ) -> bool {
        assert!(to < self.cells(), "cell {to} is not served: there are {}", self.cells());
        if !self.stations[station].connected() || self.stations[station].cell == to {
            return false;
        }
        let slot = self.clock.at_or_after(now).max(self.earliest_slot);
        self.stations[station].leave(slot, now, fate, &mut self.output);
        self.serve(station, to);
        self.start_random_access(station, Cause::Handover, slot + interruption);
        self.wake(now);
        true
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
