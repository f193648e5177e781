//! The directions of transmission and the slots that each of them has.

use crate::slot::Slot;

/// Symbols of a slot with normal cyclic prefix (TS 36.211 §5.2.3, TS 38.211 Table 4.3.2-1).
const SYMBOLS_PER_SLOT: u8 = 14;

/// The direction of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// From the base station to a station.
    Down,
    /// From a station to the base station.
    Up,
}

/// The division of a carrier between both directions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Duplex {
    /// A carrier of its own for each direction (frame structure type 1, TS 36.211 §4.1).
    #[default]
    Fdd,
}

impl Duplex {
    /// Number of symbols that a direction has in a slot; zero without transmissions.
    pub fn symbols(&self, _slot: Slot, _direction: Direction) -> u8 {
        match self {
            Self::Fdd => SYMBOLS_PER_SLOT,
        }
    }
    /// Whether a direction has transmissions in a slot.
    pub fn has(&self, slot: Slot, direction: Direction) -> bool {
        self.symbols(slot, direction) > 0
    }
    /// The first slot from `from` on in which a direction has transmissions.
    pub fn next(&self, from: Slot, _direction: Direction) -> Slot {
        match self {
            Self::Fdd => from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdd_has_both_directions_in_every_slot() {
        for direction in [Direction::Down, Direction::Up] {
            for slot in (0..20).map(Slot) {
                assert_eq!(Duplex::Fdd.symbols(slot, direction), 14);
                assert_eq!(Duplex::Fdd.next(slot, direction), slot);
            }
        }
    }
}
