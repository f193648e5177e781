//! The directions of transmission and the slots that each of them has.

use crate::slot::{Slot, SlotSpan};
use paceline_net::SlotPattern;
use paceline_net::tdd::SYMBOLS_PER_SLOT;

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
    /// One carrier for both directions: the slots of one period, from slot 0 on (frame structure type 2, TS
    /// 36.211 §4.2; TS 38.213 §11.1).
    Tdd(SlotPattern),
}

impl Duplex {
    /// Number of symbols that a direction has in a slot; zero without transmissions.
    pub fn symbols(&self, slot: Slot, direction: Direction) -> u8 {
        let (Self::Tdd(pattern), direction) = (self, direction) else { return SYMBOLS_PER_SLOT };
        let kind = pattern.kind(slot.0);
        match direction {
            Direction::Down => kind.down,
            Direction::Up => kind.up,
        }
    }
    /// Whether a slot carries the direction's shared channel. PUSCH and PUCCH take slots of uplink symbols
    /// alone; the uplink symbols of a special slot stay empty.
    pub fn has(&self, slot: Slot, direction: Direction) -> bool {
        let least = match direction {
            Direction::Down => 1,
            Direction::Up => SYMBOLS_PER_SLOT,
        };
        self.symbols(slot, direction) >= least
    }
    /// The first slot from `from` on that carries the direction's shared channel. Every pattern has one.
    pub fn next(&self, from: Slot, direction: Direction) -> Slot {
        (from.0..).map(Slot).find(|slot| self.has(*slot, direction)).expect("a slot of each direction")
    }
    /// The offset of a station's occasions in the uplink that have a period of so many slots: the stations
    /// take turns in the offsets.
    pub fn uplink_offset(&self, station: u64, period: SlotSpan) -> SlotSpan {
        let usable = self.uplink_offsets(period);
        SlotSpan(usable[(station % usable.len() as u64) as usize])
    }
    /// The offsets in a period of so many slots whose slots carry the uplink always, or, without such, at
    /// times.
    pub fn uplink_offsets(&self, period: SlotSpan) -> Vec<u64> {
        let slots = |offset: &u64| {
            let repeats = 0..self.period() as u64;
            let offset = *offset;
            repeats.map(move |n| self.has(Slot(offset + n * period.0), Direction::Up))
        };
        let always: Vec<u64> = (0..period.0).filter(|offset| slots(offset).all(|up| up)).collect();
        if always.is_empty() {
            return (0..period.0).filter(|offset| slots(offset).any(|up| up)).collect();
        }
        always
    }
    /// Number of slots after which the directions repeat.
    pub fn period(&self) -> usize {
        match self {
            Self::Fdd => 1,
            Self::Tdd(pattern) => pattern.slots().len(),
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

    #[test]
    fn tdd_repeats_its_pattern() {
        let duplex = Duplex::Tdd(SlotPattern::from_letters("DDDSU 10:2:2", 1).unwrap());
        let row = |direction| (0..10).map(|slot| duplex.symbols(Slot(slot), direction)).collect::<Vec<_>>();
        assert_eq!(row(Direction::Down), [14, 14, 14, 10, 0, 14, 14, 14, 10, 0]);
        assert_eq!(row(Direction::Up), [0, 0, 0, 2, 14, 0, 0, 0, 2, 14]);
        let next = |from, direction| duplex.next(Slot(from), direction).0;
        assert_eq!([0, 3, 4, 5, 10_000_003].map(|from| next(from, Direction::Up)), [4, 4, 4, 9, 10_000_004]);
        assert_eq!([0, 3, 4, 9].map(|from| next(from, Direction::Down)), [0, 3, 5, 10]);
        assert_eq!((duplex.period(), Duplex::Fdd.period()), (5, 1));
    }

    #[test]
    fn occasions_of_the_uplink_lie_in_its_slots() {
        for station in 0..30 {
            for period in [1, 2, 5, 10, 20, 40, 80] {
                let offset = Duplex::Fdd.uplink_offset(station, SlotSpan(period));
                assert_eq!(offset, SlotSpan(station % period));
            }
        }
        let offsets = |configuration, period| {
            let duplex = Duplex::Tdd(SlotPattern::lte(configuration, 7).unwrap());
            [0, 1, 2, 3, 4].map(|station| duplex.uplink_offset(station, SlotSpan(period)).0)
        };
        assert_eq!(offsets(1, 5), [2, 3, 2, 3, 2]);
        assert_eq!(offsets(1, 10), [2, 3, 7, 8, 2]);
        assert_eq!(offsets(2, 20), [2, 7, 12, 17, 2]);
        // Every other occasion of period 5 is in subframe 7 to 9, without uplink.
        assert_eq!(offsets(3, 5), [2, 3, 4, 2, 3]);
        assert_eq!(offsets(5, 1), [0; 5]);
    }
}
