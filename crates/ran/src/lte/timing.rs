//! Timing of LTE: HARQ processes and the distances between grants, data, acknowledgments and random access
//! messages (TS 36.213).

use super::tdd::{Distances, SUBFRAMES};
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
        msg3: BySlot::new(vec![MSG3_DISTANCE]),
    }
}

/// The timing of TDD in one configuration. Downlink HARQ is asynchronous: a retransmission goes out in the
/// first subframe with PDSCH from the verdict on. Uplink HARQ is synchronous: the processes take turns in the
/// uplink subframes, which gives the distances of TS 36.213 §8. Each uplink subframe is granted by the last
/// downlink subframe that may do so; in configuration 0, subframes 1 and 6 grant two uplink subframes (both
/// bits of the UL index, §8).
pub fn tdd(distances: &Distances) -> Timing {
    let of = |distance: &dyn Fn(u8) -> Option<u8>| {
        BySlot::new((0..SUBFRAMES).map(|at| SlotSpan(distance(at).unwrap_or(0).into())).collect())
    };
    let acked = |at: u8| distances.ack_delay(at).filter(|_| distances.is_down(at));
    let latest = |at: u8, delay: u8| (1..delay).all(|k| !distances.grants(at + delay - k).contains(&k));
    let grants = |at: u8| {
        let delays = distances.grants(at).iter().filter(|delay| latest(at, **delay));
        delays.map(|delay| SlotSpan((*delay).into())).collect()
    };
    let up: Vec<bool> = (0..SUBFRAMES).map(|at| distances.is_up(at)).collect();
    let downlink = HarqTiming {
        processes: distances.downlink_processes(),
        retransmission: Retransmission::Asynchronous,
        verdict: of(&|at| Some(acked(at)? + ENB_PROCESSING.0 as u8)),
    };
    let uplink = HarqTiming {
        processes: distances.uplink_processes(),
        retransmission: Retransmission::Synchronous(Turns::new(&up)),
        verdict: of(&|at| distances.phich_delay(at)),
    };
    let least = MSG3_DISTANCE.0 as u8;
    Timing {
        k1: of(&acked),
        k2: BySlot::new((0..SUBFRAMES).map(grants).collect()),
        downlink,
        uplink,
        request_answer: ENB_PROCESSING,
        random_access: RANDOM_ACCESS,
        msg3: of(&|at| (least..).find(|distance| distances.is_up(at + distance))),
    }
}

/// Distances of random access: the response window (TS 36.321 §5.1.4) and the next preamble (TS 36.213
/// §6.1).
pub const RANDOM_ACCESS: RandomAccessTiming =
    RandomAccessTiming { window_start: SlotSpan(3), next_attempt: SlotSpan(4) };
/// Least distance from a random access response to Msg3, which takes the first uplink subframe from then on
/// (TS 36.213 §6.1.1).
const MSG3_DISTANCE: SlotSpan = SlotSpan(6);

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

    fn rows(text: &str) -> impl Iterator<Item = Vec<Vec<u64>>> {
        let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        let numbers = |field: &str| field.split(' ').filter_map(|number| number.parse().ok()).collect();
        lines.map(move |line| line.split(',').map(numbers).collect())
    }
    fn of(configuration: u64) -> (&'static Distances, Timing) {
        let distances = Distances::of(configuration as u8).unwrap();
        (distances, tdd(distances))
    }

    #[test]
    fn downlink_blocks_of_tdd_have_the_distances_of_the_tables() {
        for fields in rows(include_str!("../../data/lte_tdd_dl_harq_rtt.csv")) {
            let ([configuration, subframe, k1, round_trip], frame) =
                ([0, 1, 3, 4].map(|i| fields[i][0]), 10 * 12_345);
            let (distances, timing) = of(configuration);
            let sent_at = Slot(frame + subframe);
            assert_eq!(timing.acknowledged_at(sent_at), sent_at + SlotSpan(k1));
            let verdict = timing.verdict_at(sent_at, Direction::Down);
            let down = |slot: &Slot| distances.is_down((slot.0 % 10) as u8);
            let next = (verdict.0..).map(Slot).find(down).unwrap();
            assert_eq!(next.since(sent_at), SlotSpan(round_trip), "{fields:?}");
        }
        for fields in rows(include_str!("../../data/lte_tdd_config.csv")) {
            let (_, timing) = of(fields[0][0]);
            let processes = [&timing.downlink, &timing.uplink].map(|harq| harq.processes as u64);
            assert_eq!(processes, [12, 13].map(|i| fields[i][0]));
        }
    }

    #[test]
    fn uplink_blocks_of_tdd_are_repeated_as_the_tables_say() {
        for fields in rows(include_str!("../../data/lte_tdd_ul_phich_k.csv")) {
            let [configuration, subframe, phich] = [0, 1, 2].map(|i| fields[i][0]);
            let (distances, timing) = of(configuration);
            let sent_at = Slot(10 * 777 + subframe);
            let verdict = timing.verdict_at(sent_at, Direction::Up);
            assert_eq!(verdict.since(sent_at), SlotSpan(phich));
            // The next turn of the process is one of the round trips, and is granted after the verdict.
            let process = timing.uplink.process_in(sent_at);
            let up = |slot: &Slot| distances.is_up((slot.0 % 10) as u8);
            let mut later = (sent_at.0 + 1..).map(Slot).filter(up);
            let turn = later.find(|slot| timing.uplink.process_in(*slot) == process).unwrap();
            assert!(fields[4].contains(&turn.since(sent_at).0), "{fields:?}");
            assert_eq!(
                Some(turn.since(sent_at).0),
                distances.uplink_round_trip(subframe as u8).map(u64::from)
            );
            let granted =
                (verdict.0..turn.0).map(Slot).filter(|at| timing.granted_by(*at).any(|at| at == turn));
            assert_eq!(granted.count(), 1, "{fields:?}");
        }
    }

    #[test]
    fn every_uplink_subframe_of_tdd_is_granted_once_and_by_the_table() {
        let table: Vec<Vec<Vec<u64>>> = rows(include_str!("../../data/lte_tdd_ul_grant_k.csv")).collect();
        for configuration in 0..7 {
            let (distances, timing) = of(configuration);
            let mut granted = Vec::new();
            for slot in (0..10).map(Slot) {
                for at in timing.granted_by(slot) {
                    let row =
                        table.iter().find(|row| row[0] == [configuration] && row[1] == [slot.0]).unwrap();
                    assert!([2, 4].iter().any(|i| row[*i].contains(&at.since(slot).0)), "{row:?} {at:?}");
                    granted.push(at.0 % 10);
                }
            }
            granted.sort_unstable();
            let up: Vec<u64> = (0..10).filter(|at| distances.is_up(*at as u8)).collect();
            assert_eq!(granted, up, "configuration {configuration}");
            for slot in (0..10).map(Slot) {
                let msg3 = timing.msg3_at(slot);
                assert!(msg3 >= slot + SlotSpan(6) && up.contains(&(msg3.0 % 10)));
            }
        }
        let two: Vec<u64> = (0..10).filter(|slot| of(0).1.granted_by(Slot(*slot)).count() == 2).collect();
        assert_eq!(two, [1, 6], "configuration 0");
    }
}
