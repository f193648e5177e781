//! The steps of single stations' packets through the cell, for pictures of their way and for pings. Nothing
//! is kept, and one branch is taken per packet and block, unless a station is watched.

use crate::bearer::Carried;
use crate::cell::station::RadioLink;
use crate::duplex::Direction;
use paceline_net::{Instant, Packet};

/// A step of a watched station's packets.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioStep {
    /// Its time; of a transmission, the start of its slot.
    pub at: Instant,
    /// The direction of the packets.
    pub direction: Direction,
    /// The event.
    pub event: RadioEvent,
}

/// An event of a watched station.
#[derive(Clone, PartialEq, Debug)]
pub enum RadioEvent {
    /// A packet arrives at the base station, or at the buffer of the station, which may drop it.
    Arrived(Packet),
    /// A scheduling request is sent.
    Requested,
    /// A transport block is sent.
    Sent {
        /// The HARQ process.
        process: usize,
        /// Number of the transmission of this block, from 1.
        number: u32,
        /// Size of the block, bytes.
        bytes: u32,
        /// Index of its MCS.
        mcs: u8,
        /// Time at which RLC has its data, if it is decoded.
        decoded_at: Option<Instant>,
        /// The packets in it; at the first transmission alone.
        carried: Vec<Carried>,
    },
}

/// Receives the steps.
pub type StepSink = Box<dyn FnMut(RadioStep) + Send>;

/// The watched station.
pub(super) struct Watched {
    pub station: usize,
    pub sink: StepSink,
}

impl Watched {
    pub fn arrived(&mut self, at: Instant, station: usize, direction: Direction, packet: &Packet) {
        if station == self.station {
            (self.sink)(RadioStep { at, direction, event: RadioEvent::Arrived(packet.clone()) });
        }
    }
    pub fn requested(&mut self, at: Instant, station: usize) {
        if station == self.station {
            (self.sink)(RadioStep { at, direction: Direction::Up, event: RadioEvent::Requested });
        }
    }
    /// A block of the station's link was sent at the first time; if it was decoded, RLC has it at the second.
    pub fn sent(
        &mut self,
        (at, due): (Instant, Instant),
        direction: Direction,
        process: usize,
        link: &RadioLink,
    ) {
        let carried = link.carried.clone();
        let Some(block) = link.mac.harq.block(process) else { return };
        let event = RadioEvent::Sent {
            process,
            number: block.transmissions,
            bytes: block.bits / 8,
            mcs: block.mcs.index(),
            decoded_at: block.decoded.then_some(due),
            carried,
        };
        (self.sink)(RadioStep { at, direction, event });
    }
}
