//! The distances between the messages of a cell, as data: from a grant to its transmission, from data to the
//! verdict on them, from a request to its answer.
//!
//! Distances that depend on the slot are tables over one period of the frame structure; FDD has a period of
//! one slot. Downlink assignments are for blocks of their own slot (k0 = 0). The values of a technology stand
//! beside its tables (`lte::timing`).

use crate::duplex::Direction;
use crate::slot::{Slot, SlotSpan};

/// Largest number of HARQ processes per station and direction (TS 38.214 §5.1 and §6.1).
pub const MAX_PROCESSES: usize = 16;

/// A value for each slot of a period that begins with slot 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BySlot<T>(Vec<T>);

impl<T> BySlot<T> {
    /// The values of one period, which has at least one slot.
    pub fn new(period: Vec<T>) -> Self {
        assert!(!period.is_empty(), "a period has at least one slot");
        Self(period)
    }
    /// The value of a slot.
    pub fn of(&self, slot: Slot) -> &T {
        match &self.0[..] {
            [same] => same,
            values => &values[(slot.0 % values.len() as u64) as usize],
        }
    }
}

/// The turns of synchronous HARQ processes in the slots of their direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turns {
    /// Slots of the direction before each slot of a period.
    before: BySlot<u64>,
    /// Slots of the direction in a period.
    count: u64,
}

impl Turns {
    /// Turns in the slots of a period for which `has` is true.
    pub fn new(has: &[bool]) -> Self {
        let mut count = 0;
        let before = has.iter().map(|has| {
            count += u64::from(*has);
            count - u64::from(*has)
        });
        let before = BySlot::new(before.collect());
        Self { before, count }
    }
    /// Number of slots of the direction before this one, since slot 0.
    pub fn index(&self, slot: Slot) -> u64 {
        match &self.before.0[..] {
            [_] => slot.0 * self.count,
            period => slot.0 / period.len() as u64 * self.count + self.before.of(slot),
        }
    }
}

/// How a failed block is repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Retransmission {
    /// In any slot, by a message with the number of the HARQ process.
    Asynchronous,
    /// In the next slot of its process, without a message: the processes take turns in the slots of the
    /// direction.
    Synchronous(Turns),
}

/// HARQ of one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HarqTiming {
    /// Number of processes per station, at most [`MAX_PROCESSES`].
    pub processes: usize,
    pub retransmission: Retransmission,
    /// By the slot of a block: the distance to the slot in which the base station reacts to its reception, or
    /// to the station's acknowledgment of it.
    pub verdict: BySlot<SlotSpan>,
}

impl HarqTiming {
    /// The process whose turn a slot is, in synchronous HARQ.
    pub fn process_in(&self, slot: Slot) -> Option<usize> {
        match &self.retransmission {
            Retransmission::Asynchronous => None,
            Retransmission::Synchronous(turns) => {
                let (turn, count) = (turns.index(slot), self.processes as u64);
                // Asked for every station in every slot: a mask is much faster than a division.
                let process = if count.is_power_of_two() { turn & (count - 1) } else { turn % count };
                Some(process as usize)
            }
        }
    }
}

/// Distances of random access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomAccessTiming {
    /// From a preamble to the first slot of its response window.
    pub window_start: SlotSpan,
    /// From the last slot of a window without a response to the next preamble.
    pub next_attempt: SlotSpan,
}

/// The distances between the messages of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// By the slot of a downlink block: the distance to its acknowledgment.
    pub k1: BySlot<SlotSpan>,
    /// By the slot of an uplink grant: the distances to its block. A slot without grants has none; where a
    /// slot grants for several uplink slots, there are several.
    pub k2: BySlot<Vec<SlotSpan>>,
    pub downlink: HarqTiming,
    pub uplink: HarqTiming,
    /// From a scheduling request to the base station's reaction.
    pub request_answer: SlotSpan,
    pub random_access: RandomAccessTiming,
    /// By the slot of a random access response: the distance to the Msg3 that it grants.
    pub msg3: BySlot<SlotSpan>,
}

impl Timing {
    /// HARQ of a direction.
    pub fn harq(&self, direction: Direction) -> &HarqTiming {
        match direction {
            Direction::Down => &self.downlink,
            Direction::Up => &self.uplink,
        }
    }
    /// The slot in which the base station reacts to a block that was sent in `sent_at`.
    pub fn verdict_at(&self, sent_at: Slot, direction: Direction) -> Slot {
        sent_at + *self.harq(direction).verdict.of(sent_at)
    }
    /// The slot in which a station has acknowledged a downlink block of `sent_at`.
    pub fn acknowledged_at(&self, sent_at: Slot) -> Slot {
        sent_at + *self.k1.of(sent_at)
    }
    /// The slots of blocks that grants of `slot` are for.
    pub fn granted_by(&self, slot: Slot) -> impl Iterator<Item = Slot> + use<'_> {
        self.k2.of(slot).iter().map(move |distance| slot + *distance)
    }
    /// Whether the grants for the uplink of `sent_at` have been sent, in `slot` at the latest.
    pub fn is_granted(&self, sent_at: Slot, slot: Slot) -> bool {
        (slot.0 + 1..sent_at.0).all(|later| self.granted_by(Slot(later)).all(|at| at != sent_at))
    }
    /// The slot of the Msg3 that a response of `slot` grants.
    pub fn msg3_at(&self, slot: Slot) -> Slot {
        slot + *self.msg3.of(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_take_turns_in_the_slots_of_the_direction() {
        // LTE TDD configuration 1 has uplink subframes 2, 3, 7 and 8 and four processes (TS 36.213 Table
        // 8-1): a process returns after ten slots.
        let uplink = [2, 3, 7, 8];
        let turns = Turns::new(&std::array::from_fn::<bool, 10, _>(|slot| uplink.contains(&slot)));
        let verdict = BySlot::new(vec![SlotSpan(4)]);
        let retransmission = Retransmission::Synchronous(turns);
        let harq = HarqTiming { processes: 4, retransmission, verdict };
        let processes = |frame: u64| uplink.map(|slot| harq.process_in(Slot(10 * frame + slot as u64)));
        assert_eq!(processes(0), [0, 1, 2, 3].map(Some));
        assert_eq!(processes(7), processes(0));
        // Configuration 0 has six uplink subframes and seven processes: they move by one per frame.
        let turns = Turns::new(&[false, false, true, true, true, false, false, true, true, true]);
        let harq = HarqTiming { processes: 7, retransmission: Retransmission::Synchronous(turns), ..harq };
        assert_eq!([2, 3, 12, 13, 22].map(|slot| harq.process_in(Slot(slot))), [0, 1, 6, 0, 5].map(Some));
    }

    #[test]
    fn a_table_repeats_after_its_period() {
        let table = BySlot::new(vec![SlotSpan(4), SlotSpan(7), SlotSpan(6)]);
        assert_eq!([0, 1, 5, 3_000_000_001].map(|slot| table.of(Slot(slot)).0), [4, 7, 6, 7]);
    }
}
