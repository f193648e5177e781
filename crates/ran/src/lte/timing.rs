//! Timing of LTE: HARQ processes and the distances between grants, data, acknowledgments and random access
//! messages (TS 36.213).

use crate::slot::SlotSpan;
use crate::timing::{BySlot, HarqTiming, RandomAccessTiming, Retransmission, Timing, Turns};

/// HARQ processes per station and direction in FDD (TS 36.213 §7 and §8).
const FDD_PROCESSES: usize = 8;
/// Slots from a grant to its block, and from a block to its acknowledgment in FDD (TS 36.213 §7.3, §8 and
/// §9.1.2).
const FDD_DISTANCE: SlotSpan = SlotSpan(4);
/// Slots from a scheduling request or an acknowledgment to the eNB's reaction. Chosen: those from a block to
/// its acknowledgment, so that an eNB has as much time as a station.
const ENB_PROCESSING: SlotSpan = SlotSpan(4);

/// The timing of FDD. Downlink HARQ is asynchronous: a retransmission goes out at the earliest eight slots
/// after the block. Uplink HARQ is synchronous: the processes take turns of eight slots.
pub fn fdd() -> Timing {
    let downlink = HarqTiming {
        processes: FDD_PROCESSES,
        retransmission: Retransmission::Asynchronous,
        verdict: BySlot::new(vec![FDD_DISTANCE + ENB_PROCESSING]),
    };
    let uplink = HarqTiming {
        processes: FDD_PROCESSES,
        retransmission: Retransmission::Synchronous(Turns::new(&[true])),
        verdict: BySlot::new(vec![FDD_DISTANCE]),
    };
    Timing {
        k1: BySlot::new(vec![FDD_DISTANCE]),
        k2: BySlot::new(vec![vec![FDD_DISTANCE]]),
        downlink,
        uplink,
        request_answer: ENB_PROCESSING,
        random_access: RANDOM_ACCESS,
    }
}

/// Distances of random access: the response window (TS 36.321 §5.1.4), Msg3 (TS 36.213 §6.1.1) and the next
/// preamble (§6.1).
pub const RANDOM_ACCESS: RandomAccessTiming =
    RandomAccessTiming { window_start: SlotSpan(3), msg3: SlotSpan(6), next_attempt: SlotSpan(4) };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duplex::Direction;
    use crate::slot::Slot;

    #[test]
    fn a_block_can_be_repeated_eight_slots_later_in_both_directions() {
        let timing = fdd();
        for slot in (0..40).map(Slot) {
            assert_eq!(timing.verdict_at(slot, Direction::Down), slot + SlotSpan(8));
            assert_eq!(timing.acknowledged_at(slot), slot + SlotSpan(4));
            // Uplink: verdict and next grant four slots later, its block another four later.
            let verdict = timing.verdict_at(slot, Direction::Up);
            let next: Vec<Slot> = timing.granted_by(verdict).collect();
            assert_eq!(next, [slot + SlotSpan(8)]);
            assert_eq!(timing.uplink.process_in(next[0]), timing.uplink.process_in(slot));
            assert_eq!(timing.downlink.process_in(slot), None, "asynchronous");
        }
    }
}
