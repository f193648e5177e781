//! PRACH occasions of preamble format 0 in TDD (TS 36.211 Tables 5.7.1-3 and 5.7.1-4, indices 0 to 15).
//!
//! Left out: formats 1 to 4, which stand in several subframes or in UpPTS, and further resources of a
//! subframe in frequency.

use super::tdd::SUBFRAMES;
use crate::slot::Slot;
use std::sync::LazyLock;

/// Occasions of one prach-ConfigIndex.
struct Row {
    /// The frames that have occasions: of all, even or odd number.
    even: bool,
    odd: bool,
    /// Bit n of a configuration: whether subframe n is an occasion.
    subframes: [u16; 7],
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(read);

/// Whether a slot is an occasion in an uplink-downlink configuration.
pub fn is_tdd_occasion(configuration: u8, prach_index: u8, slot: Slot) -> bool {
    let row = &TABLE[usize::from(prach_index)];
    let (frame, subframe) = (slot.0 / u64::from(SUBFRAMES), slot.0 % u64::from(SUBFRAMES));
    let in_frame = if frame.is_multiple_of(2) { row.even } else { row.odd };
    in_frame && row.subframes[usize::from(configuration)] & 1 << subframe != 0
}

/// The indices of preamble format 0 that have an occasion in an uplink-downlink configuration.
pub fn tdd_indices(configuration: u8) -> impl Iterator<Item = u8> {
    let rows = (0..).zip(TABLE.iter());
    rows.filter(move |(_, row)| row.subframes[usize::from(configuration)] != 0).map(|(index, _)| index)
}

fn read() -> Vec<Row> {
    let text = include_str!("../../data/lte_tdd_prach.csv");
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let bits =
        |list: &str| list.split(' ').filter_map(|at| at.parse::<u8>().ok()).fold(0, |set, at| set | 1 << at);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        Row {
            even: fields[1] != "odd",
            odd: fields[1] != "even",
            subframes: std::array::from_fn(|configuration| bits(fields[2 + configuration])),
        }
    };
    lines.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::tdd::Distances;

    #[test]
    fn occasions_stand_in_uplink_subframes() {
        for configuration in 0..7 {
            let distances = Distances::of(configuration).unwrap();
            for index in 0..16 {
                let occasions = (0..20)
                    .filter(|slot| is_tdd_occasion(configuration, index, Slot(*slot)))
                    .collect::<Vec<u64>>();
                assert!(
                    occasions.iter().all(|slot| distances.is_up((slot % 10) as u8)),
                    "{configuration} {index}"
                );
                let has = tdd_indices(configuration).any(|with| with == index);
                assert_eq!(has, !occasions.is_empty(), "{configuration} {index}");
            }
        }
    }

    #[test]
    fn indices_have_the_frames_and_subframes_of_the_table() {
        let of = |configuration, index| {
            (0..20).filter(|slot| is_tdd_occasion(configuration, index, Slot(*slot))).collect::<Vec<u64>>()
        };
        assert_eq!(of(1, 0), [3], "even frames");
        assert_eq!(of(1, 1), [13], "odd frames");
        assert_eq!(of(2, 6), [2, 7, 12, 17]);
        assert_eq!(of(0, 12), [3, 4, 8, 9, 13, 14, 18, 19]);
        // Index 5 is not defined in configurations 2, 4 and 5.
        assert!([of(2, 5), of(4, 5), of(5, 5)].iter().all(Vec::is_empty));
        assert_eq!(tdd_indices(5).collect::<Vec<u8>>(), [0, 1, 3, 6, 9, 12, 15]);
    }
}
