//! Distances of patterns, by hand and by the tables, and the refusal of forbidden ones.

use super::*;
use crate::duplex::Direction;
use crate::slot::Slot;

fn timing(letters: &str, min_k1: u8, min_k2: u8) -> Result<SlotTiming, TimingError> {
    let pattern = SlotPattern::from_letters(letters, 1).unwrap();
    SlotTiming::tdd(Numerology::new(1).unwrap(), &pattern, min_k1, min_k2, 2)
}
fn k1(letters: &str, min_k1: u8) -> Vec<u8> {
    let timing = timing(letters, min_k1, 2).unwrap();
    (0..timing.period() as u64).filter_map(|slot| timing.k1(slot)).collect()
}

#[test]
fn harq_acks_stand_in_the_first_uplink_slot() {
    assert_eq!(k1("DDDDDDDSUU", 2), [8, 7, 6, 5, 4, 3, 2, 2]);
    assert_eq!(k1("DDDDDDDSUU", 4), [8, 7, 6, 5, 4, 4, 12, 11]);
    assert_eq!(k1("DDDSU", 4), [4, 8, 7, 6]);
    let fdd = SlotTiming::fdd(Numerology::LTE, 4, 4, 3).unwrap();
    assert_eq!((fdd.k1(5), fdd.grants(5)), (Some(4), [4].as_slice()));
    // The round trips of LTE FDD.
    assert_eq!((fdd.downlink_round_trip(0), fdd.uplink_round_trip(0)), (Some(8), Some(8)));
}

#[test]
fn a_cell_has_the_distances_of_its_slots() {
    let timing = timing("DDDSU", 2, 2).unwrap();
    let cell = timing.of_cell((16, 8));
    for slot in (0..20).map(Slot) {
        let granted: Vec<u64> = cell.granted_by(slot).map(|at| at.since(slot).0).collect();
        let expected: Vec<u64> = timing.grants(slot.0).iter().map(|k2| u64::from(*k2)).collect();
        assert_eq!(granted, expected);
        let (k1, down, up) = (timing.k1(slot.0), timing.downlink_round_trip(slot.0), timing.is_up(slot.0));
        assert_eq!(cell.acknowledged_at(slot).since(slot).0, k1.map_or(0, u64::from));
        assert_eq!(cell.verdict_at(slot, Direction::Down).since(slot).0, down.unwrap_or(0));
        // The U slot is followed by two slots of the gNB; the fourth slot is special.
        assert_eq!(cell.verdict_at(slot, Direction::Up).since(slot).0, if up { 3 } else { 0 });
    }
    assert_eq!((cell.downlink.processes, cell.uplink.processes), (16, 8));
    // K2 2 and the delta of 30 kHz, 3, up to the next U slot.
    assert_eq!([0, 1, 2, 3].map(|slot| cell.msg3_at(Slot(slot)).0), [9, 9, 9, 9]);
    assert_eq!([5, 8].map(|slot| cell.msg3_at(Slot(slot)).0), [14, 14]);
}

#[test]
fn every_uplink_slot_has_one_grant() {
    for letters in ["DDDSU", "DDDDDDDSUU", "DSUUU", "DDSUU", "DDDSUUUUDD", "DSUUUUUUUU"] {
        for min_k2 in 1..=4 {
            let timing = timing(letters, 2, min_k2).unwrap();
            let period = timing.period() as u64;
            let mut granted = vec![0; timing.period()];
            for slot in 0..period {
                for k2 in timing.grants(slot) {
                    assert!(timing.is_down(slot) && *k2 >= min_k2);
                    granted[((slot + u64::from(*k2)) % period) as usize] += 1;
                }
            }
            let expected: Vec<i32> = (0..period).map(|slot| i32::from(timing.is_up(slot))).collect();
            assert_eq!(granted, expected, "{letters} {min_k2}");
        }
    }
    // Three uplink slots of DSUUU by two slots with PDCCH.
    let uplink = timing("DSUUU", 2, 2).unwrap();
    assert_eq!([0, 1].map(|slot| uplink.grants(slot).to_vec()), [vec![2], vec![2, 3]]);
}

#[test]
fn lte_tdd_has_the_distances_of_its_tables() {
    for distances in (0..=6).map(|configuration| Distances36213::of(configuration).unwrap()) {
        let timing = SlotTiming::lte_tdd(distances);
        for subframe in 0..10u8 {
            let trip = timing.downlink_round_trip(u64::from(subframe));
            assert_eq!(trip, distances.downlink_round_trip(subframe).map(u64::from), "{subframe}");
            // Synchronous repetition is never earlier than a grant of the eNB could be.
            let trips = [timing.uplink_round_trip(u64::from(subframe)).unwrap_or(0)];
            let table = u64::from(distances.uplink_round_trip(subframe).unwrap_or(0));
            assert!(trips[0] <= table, "{distances:?} {subframe} {trips:?} {table}");
        }
    }
}

/// At 60 kHz the short PUCCH leaves 12 symbols of the next slot: N1 has 17 of capability 1 and 9 of
/// capability 2, N2 has 23 and 11.
#[test]
fn capability_2_allows_shorter_distances() {
    let numerology = Numerology::new(2).unwrap();
    let of = |capability, k1, k2| {
        SlotTiming::new(numerology, &Duplex::Fdd, capability, [k1, k2, 1]).map(|timing| timing.k1(0))
    };
    assert_eq!(of(Capability::One, 1, 2), Err(TimingError::EarlyK1 { k1: 1, smallest: 2 }));
    assert_eq!(of(Capability::One, 2, 1), Err(TimingError::EarlyK2 { k2: 1, smallest: 2 }));
    assert_eq!(of(Capability::Two, 1, 1), Ok(Some(1)));
    let stated = |capability: Capability| {
        SlotTiming::new(numerology, &Duplex::Fdd, capability, [2, 2, 1])?.with_k1(&Duplex::Fdd, &[1])
    };
    assert!(stated(Capability::One).is_err() && stated(Capability::Two).is_ok());
}

#[test]
fn forbidden_distances_are_refused_with_the_clause() {
    let pattern = SlotPattern::from_letters("DDDSU", 1).unwrap();
    assert_eq!(check_k1(&pattern, 0, 4), Ok(()));
    for (result, part) in [
        (check_k1(&pattern, 0, 2), "leads into a slot D without uplink symbols; HARQ-ACK needs uplink"),
        (check_k1(&pattern, 0, 2), "TS 38.213 §9.2.3"),
        (check_k1(&pattern, 4, 2), "no downlink symbols"),
        (check_k1(&pattern, 0, 16), "0 to 15 (TS 38.331 dl-DataToUL-ACK)"),
        (timing("DDDSU", 0, 2).map(|_| ()), "N1 symbols, K1 1 or more (TS 38.214 §5.3)"),
        (timing("DDDSU", 2, 0).map(|_| ()), "N2 symbols, K2 1 or more (TS 38.214 §6.4)"),
        (timing("DDDDDDDDDDDDDDDDDDSU", 4, 2).map(|_| ()), "needs K1 19"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let pattern = SlotPattern::from_letters("DDDSU", 1).unwrap();
    let other = SlotTiming::tdd(Numerology::LTE, &pattern, 2, 2, 2);
    assert_eq!(other, Err(TimingError::Numerology));
}
