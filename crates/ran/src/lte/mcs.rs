//! Modulation and coding schemes: TS 36.213 Table 7.1.7.1-1 (downlink) and 8.6.1-1 (uplink), with points of
//! the AWGN block error curves of one turbo code block at two block lengths (`lte_mcs_sinr.csv`).
//!
//! An uplink MCS has the curve of the downlink MCS with the same I_TBS, which is the same block size in the
//! same PRBs. The error of this is up to 1 dB where the modulation differs (I_TBS 10 and 16 to 19). 256QAM is
//! left out.

use crate::csv::Reader;

/// Number of MCS indices with a transport block size (TS 36.213 Table 7.1.7.1-1: 0..=28).
pub const MCS_COUNT: usize = 29;

/// One row of an MCS table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mcs {
    /// Index in the table.
    pub index: u8,
    /// Modulation order: 2 QPSK, 4 16QAM, 6 64QAM.
    pub qm: u8,
    /// Column of the transport block size table.
    pub i_tbs: u8,
    /// SINR in dB of 50% block error for a code block of 1024 bits.
    pub s50_1024_db: f64,
    /// SINR in dB of 10% block error for a code block of 1024 bits.
    pub s10_1024_db: f64,
    /// SINR in dB of 50% block error for a code block of 6144 bits.
    pub s50_6144_db: f64,
}

/// The downlink table.
pub static DOWNLINK: [Mcs; MCS_COUNT] = read(b"dl,");
/// The uplink table.
pub static UPLINK: [Mcs; MCS_COUNT] = read(b"ul,");

/// The highest MCS of a table with at most 10% block error for a code block of 1024 bits.
pub fn highest(table: &'static [Mcs], sinr_db: f64) -> Option<&'static Mcs> {
    table[..table.partition_point(|mcs| mcs.s10_1024_db <= sinr_db)].last()
}

/// Points of the block error curve of each downlink MCS, in thousandths of a dB: the SINR of 50% and of 10%
/// error at 1024 bits, and of 50% error at 6144 bits. Follows from `lte_mcs_sinr.csv`.
const CURVES: [(i64, i64, i64); MCS_COUNT] = read_curves();

const fn read_curves() -> [(i64, i64, i64); MCS_COUNT] {
    let mut curves = [(0, 0, 0); MCS_COUNT];
    let mut line = Reader::new(include_bytes!("../../data/lte_mcs_sinr.csv"));
    let mut mcs = 0;
    while mcs < MCS_COUNT {
        assert!(line.integer() as usize == mcs, "rows of lte_mcs_sinr.csv are in order");
        line = line.skip(4);
        let s50_6144 = line.thousandths();
        line = line.skip(4);
        let s50_1024 = line.thousandths();
        line = line.skip(1);
        curves[mcs] = (s50_1024, line.thousandths(), s50_6144);
        line = line.next_line();
        mcs += 1;
    }
    curves
}

/// Rows (Q_m, I_TBS) of the table in `lte_mcs.csv` whose lines start with `prefix`.
const fn read_rows(prefix: &[u8]) -> [(u8, u8); MCS_COUNT] {
    let mut rows = [(0, 0); MCS_COUNT];
    let mut line = Reader::new(include_bytes!("../../data/lte_mcs.csv"));
    let mut mcs = 0;
    while mcs < MCS_COUNT {
        if line.starts_with(prefix) {
            line = line.skip(1);
            assert!(line.integer() as usize == mcs, "rows of lte_mcs.csv are in order");
            line = line.skip(1);
            let qm = line.integer() as u8;
            line = line.skip(2);
            rows[mcs] = (qm, line.integer() as u8);
            mcs += 1;
        }
        line = line.next_line();
    }
    rows
}

const fn read(prefix: &[u8]) -> [Mcs; MCS_COUNT] {
    let downlink = read_rows(b"dl,");
    let rows = read_rows(prefix);
    let empty = Mcs { index: 0, qm: 0, i_tbs: 0, s50_1024_db: 0.0, s10_1024_db: 0.0, s50_6144_db: 0.0 };
    let mut table = [empty; MCS_COUNT];
    let mut mcs = 0;
    while mcs < MCS_COUNT {
        let (qm, i_tbs) = rows[mcs];
        let curve = CURVES[same_block(&downlink, i_tbs, qm)];
        table[mcs] = Mcs {
            index: mcs as u8,
            qm,
            i_tbs,
            s50_1024_db: curve.0 as f64 / 1000.0,
            s10_1024_db: curve.1 as f64 / 1000.0,
            s50_6144_db: curve.2 as f64 / 1000.0,
        };
        mcs += 1;
    }
    table
}

/// The downlink MCS with this I_TBS; of two, the one with this modulation.
const fn same_block(downlink: &[(u8, u8); MCS_COUNT], i_tbs: u8, qm: u8) -> usize {
    let mut found = MCS_COUNT;
    let mut mcs = 0;
    while mcs < MCS_COUNT {
        if downlink[mcs].1 == i_tbs && (found == MCS_COUNT || downlink[mcs].0 == qm) {
            found = mcs;
        }
        mcs += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::tbs::transport_block_bits;

    /// The file has the sizes at 25, 50 and 100 PRBs beside each MCS.
    #[test]
    fn block_sizes_agree_with_the_mcs_file() {
        let text = include_str!("../../data/lte_mcs.csv");
        let mut checked = 0;
        for line in text.lines().filter(|l| l.starts_with("dl,") || l.starts_with("ul,")) {
            let fields: Vec<&str> = line.split(',').collect();
            let table = if fields[0] == "dl" { &DOWNLINK } else { &UPLINK };
            let mcs = table[fields[1].parse::<usize>().unwrap()];
            assert_eq!(mcs.qm.to_string(), fields[2]);
            assert_eq!(mcs.i_tbs.to_string(), fields[4]);
            for (n_prb, size) in [25, 50, 100].into_iter().zip(&fields[5..8]) {
                assert_eq!(transport_block_bits(mcs.i_tbs, n_prb).to_string(), *size, "{line}");
            }
            checked += 1;
        }
        assert_eq!(checked, 2 * MCS_COUNT);
    }

    #[test]
    fn curves_rise_with_the_mcs() {
        for table in [&DOWNLINK, &UPLINK] {
            for pair in table.windows(2) {
                assert!(pair[0].s50_6144_db <= pair[1].s50_6144_db, "{pair:?}");
                assert!(pair[0].s10_1024_db <= pair[1].s10_1024_db, "{pair:?}");
            }
        }
        assert_eq!(DOWNLINK[28].s50_6144_db, 19.25);
        assert_eq!(DOWNLINK[28].s10_1024_db, 19.81);
        assert_eq!(DOWNLINK[0].s50_1024_db, -7.33);
    }
}
