//! Transport block sizes for one layer (TS 36.213 Table 7.1.7.2.1-1).

use crate::csv::Reader;

/// Number of I_TBS columns of the table (TS 36.213 Table 7.1.7.2.1-1).
pub const I_TBS_COUNT: usize = 34;
/// Largest number of PRBs in the table (TS 36.213 Table 7.1.7.2.1-1).
pub const MAX_PRB: usize = 110;

static TABLE: [[u32; I_TBS_COUNT]; MAX_PRB] = read();

/// Transport block size in bits. Panics unless `i_tbs` < 34 and 1 <= `n_prb` <= 110.
pub fn transport_block_bits(i_tbs: u8, n_prb: u16) -> u32 {
    TABLE[usize::from(n_prb) - 1][usize::from(i_tbs)]
}

/// Bits per PRB of a transport block that takes `n_prb` PRBs.
pub fn bits_per_prb(i_tbs: u8, n_prb: u16) -> f64 {
    f64::from(transport_block_bits(i_tbs, n_prb)) / f64::from(n_prb)
}

/// The fewest PRBs whose transport block holds `needed` bytes, at most `max`.
pub fn fewest_prbs(i_tbs: u8, needed: u64, max: u16) -> u16 {
    let bytes = |n_prb: u16| u64::from(transport_block_bits(i_tbs, n_prb) / 8);
    if bytes(1) >= needed {
        return 1; // the only entry larger than its successor, I_TBS 6, is at one PRB
    }
    let most = bytes(max);
    if most < needed {
        return max;
    }
    // Sizes are nearly proportional to PRBs, so the search starts at the proportional number.
    let mut n_prb = (needed * u64::from(max) / most).clamp(2, u64::from(max)) as u16;
    while bytes(n_prb) < needed {
        n_prb += 1;
    }
    while n_prb > 2 && bytes(n_prb - 1) >= needed {
        n_prb -= 1;
    }
    n_prb
}

const fn read() -> [[u32; I_TBS_COUNT]; MAX_PRB] {
    let mut table = [[0; I_TBS_COUNT]; MAX_PRB];
    let mut line = Reader::new(include_bytes!("../../data/tbs_lte.csv"));
    let mut row = 0;
    while row < MAX_PRB {
        assert!(line.integer() as usize == row + 1, "rows of tbs_lte.csv are in order");
        let mut column = 0;
        while column < I_TBS_COUNT {
            line = line.skip(1);
            table[row][column] = line.integer();
            column += 1;
        }
        line = line.next_line();
        row += 1;
    }
    assert!(line.at_end());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_entries_of_the_table_hold() {
        assert_eq!(transport_block_bits(0, 1), 16);
        assert_eq!(transport_block_bits(6, 1), 328, "often mistyped as 88");
        assert_eq!(transport_block_bits(26, 100), 75_376);
        assert_eq!(transport_block_bits(33, 100), 97_896);
    }

    #[test]
    fn sizes_are_whole_bytes_and_grow_with_the_prbs() {
        for i_tbs in 0..I_TBS_COUNT as u8 {
            for n_prb in 1..=MAX_PRB as u16 {
                let bits = transport_block_bits(i_tbs, n_prb);
                assert!(bits >= 16 && bits.is_multiple_of(8), "I_TBS {i_tbs}, {n_prb} PRB: {bits}");
                // The only exception in the table is I_TBS 6 at one PRB.
                if n_prb > 1 && !(i_tbs == 6 && n_prb < 4) {
                    assert!(bits >= transport_block_bits(i_tbs, n_prb - 1), "I_TBS {i_tbs}, {n_prb} PRB");
                }
            }
        }
    }

    #[test]
    fn the_fewest_prbs_are_those_of_a_linear_search() {
        for i_tbs in 0..I_TBS_COUNT as u8 {
            for max in [1, 2, 6, 25, 100, 110] {
                for needed in (0..13_000).step_by(7) {
                    let fits = |n: &u16| u64::from(transport_block_bits(i_tbs, *n) / 8) >= needed;
                    let expected = (1..=max).find(fits).unwrap_or(max);
                    assert_eq!(fewest_prbs(i_tbs, needed, max), expected, "{i_tbs}, {needed} bytes, {max}");
                }
            }
        }
    }
}
