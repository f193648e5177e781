//! The observers of a cell: a capture of its blocks, and pictures of single stations' packets.

mod captured;
mod watched;

pub use captured::{BlockSink, CapturedBlock};
pub use watched::{RadioEvent, RadioStep, StepSink};

use super::config::Carrier;
use super::station::{RadioLink, Station};
use crate::air::Transmission;
use crate::duplex::{Direction, Duplex};
use crate::slot::Slot;
use paceline_net::{Instant, Packet};
use watched::Watched;

/// The sinks of a cell.
#[derive(Default)]
pub(super) struct Observers {
    block_sink: Option<BlockSink>,
    watched: Vec<Watched>,
}

impl Observers {
    /// Captures the blocks of these stations from now on.
    pub fn capture<'a>(&mut self, sink: BlockSink, stations: impl Iterator<Item = &'a mut Station>) {
        for station in stations {
            station.downlink.captures = true;
            station.uplink.captures = true;
        }
        self.block_sink = Some(sink);
    }
    /// Gives the steps of this station's packets to `sink` from now on.
    pub fn watch(&mut self, index: usize, station: &mut Station, sink: StepSink) {
        station.downlink.watched = true;
        station.uplink.watched = true;
        self.watched.push(Watched { station: index, sink });
    }
    pub fn arrived(&mut self, at: Instant, station: usize, direction: Direction, packet: &Packet) {
        self.watched.iter_mut().for_each(|watched| watched.arrived(at, station, direction, packet));
    }
    pub fn requested(&mut self, at: Instant, station: usize) {
        self.watched.iter_mut().for_each(|watched| watched.requested(at, station));
    }
    /// A block of the link was sent in a slot; if it was decoded, RLC has it in slot `due`.
    pub fn sent(
        &mut self,
        carrier: &Carrier,
        (slot, due): (Slot, Slot),
        sent: &Transmission,
        link: &mut RadioLink,
    ) {
        let Transmission { station, direction, process, .. } = *sent;
        if let Some(sink) = &mut self.block_sink
            && let Some(pdu) = link.captured.take()
        {
            let (clock, tdd) = (carrier.clock, matches!(carrier.config.duplex, Duplex::Tdd(_)));
            sink(CapturedBlock { station, direction, slot, process, clock, tdd, pdu });
        }
        let times = (carrier.start(slot), carrier.start(due));
        for watched in self.watched.iter_mut().filter(|own| own.station == station) {
            watched.sent(times, direction, process, link);
        }
        link.carried.clear();
    }
}
