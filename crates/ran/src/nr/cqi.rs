//! Channel quality indicator: TS 38.214 Tables 5.2.2.1-2 (64QAM), -3 (256QAM) and -4 (low efficiency).
//!
//! A CQI states a modulation and code rate that the station receives with 10% block error, with 0.001% in the
//! low-efficiency table (§5.2.2.1). Its SINR threshold is that of the MCS with the same modulation and rate,
//! moved along the block error curve to the target. The scheduler takes the MCS of the highest efficiency
//! that does not exceed the efficiency of the CQI.

use super::block_errors::{S10_DEVIATIONS, SIGMA_2000_DB};
use super::mcs::{Mcs, McsTable};
use crate::csv::Reader;

/// Distance of 0.001% block error from the 50% point in standard deviations. Follows from 1/2 erfc(z / sqrt
/// 2).
const S00001_DEVIATIONS: f64 = 4.264_890_8;

/// One CQI.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cqi {
    /// Lowest SINR in dB.
    pub threshold_db: f64,
    /// Information bits per resource element and layer, times 2048.
    pub bits_x2048: u32,
}

static QAM64: [Cqi; 15] = read(b"1,", 0.0);
static QAM256: [Cqi; 15] = read(b"2_256qam,", 0.0);
static LOW_EFFICIENCY: [Cqi; 15] = read(b"3_nr_lowse,", (S00001_DEVIATIONS - S10_DEVIATIONS) * SIGMA_2000_DB);

/// The CQIs 1 to 15 of the table that belongs to an MCS table.
pub fn rows(table: McsTable) -> &'static [Cqi; 15] {
    match table {
        McsTable::Qam64 => &QAM64,
        McsTable::Qam256 => &QAM256,
        McsTable::LowEfficiency => &LOW_EFFICIENCY,
    }
}

/// The lowest SINR in dB of a CQI; none for CQI 0.
pub fn threshold_db(table: McsTable, cqi: u8) -> Option<f64> {
    row(table, cqi).map(|cqi| cqi.threshold_db)
}

/// The MCS for a CQI; none for CQI 0, and for CQIs below the lowest MCS of the table.
pub fn mcs(table: McsTable, cqi: u8) -> Option<&'static Mcs> {
    table.at_most(row(table, cqi)?.bits_x2048)
}

fn row(table: McsTable, cqi: u8) -> Option<&'static Cqi> {
    rows(table).get(usize::from(cqi).checked_sub(1)?)
}

/// Threshold in thousandths of a dB at 10% block error of the MCS with this modulation and rate.
const fn s10_of(qm: u32, rate_thousandths: i64) -> i64 {
    let mut line = Reader::new(include_bytes!("../../data/nr_mcs_sinr.csv"));
    while !line.at_end() {
        let field = line.skip(2);
        if field.integer() == qm && field.skip(1).thousandths() == rate_thousandths {
            return field.skip(2).thousandths();
        }
        line = line.next_line();
    }
    panic!("every CQI has an MCS of its modulation and rate");
}

const fn read(prefix: &[u8], offset_db: f64) -> [Cqi; 15] {
    let mut table = [Cqi { threshold_db: 0.0, bits_x2048: 0 }; 15];
    let mut line = Reader::new(include_bytes!("../../data/cqi.csv"));
    let mut cqi = 0;
    while cqi < 15 {
        if line.starts_with(prefix) {
            assert!(line.skip(1).integer() as usize == cqi + 1, "rows of cqi.csv are in order");
            let (qm, rate) = (line.skip(2).integer(), line.skip(4).thousandths());
            let threshold_db = s10_of(qm, rate) as f64 / 1000.0 + offset_db;
            table[cqi] = Cqi { threshold_db, bits_x2048: qm * (rate / 500) as u32 };
            cqi += 1;
        }
        line = line.next_line();
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: [McsTable; 3] = [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency];

    #[test]
    fn thresholds_rise_and_follow_the_file() {
        for table in TABLES {
            for cqi in 1..=15 {
                let below = threshold_db(table, cqi - 1).unwrap_or(f64::NEG_INFINITY);
                assert!(below < threshold_db(table, cqi).unwrap(), "{table:?} {cqi}");
            }
            assert_eq!((threshold_db(table, 0), threshold_db(table, 16)), (None, None));
        }
        assert_eq!(threshold_db(McsTable::Qam256, 15), Some(25.01));
        // The low-efficiency table targets 0.001%: 2.98 standard deviations above 10%.
        let (low, high) =
            (threshold_db(McsTable::Qam64, 1).unwrap(), threshold_db(McsTable::LowEfficiency, 3));
        assert!((high.unwrap() - low - 2.983 * SIGMA_2000_DB).abs() < 1e-3);
    }

    #[test]
    fn the_mcs_of_a_cqi_has_at_most_its_efficiency() {
        // By hand from the tables: equal rates where they exist, the next lower one elsewhere.
        let of = |table| [1, 2, 7, 8, 15].map(|cqi| mcs(table, cqi).map(|mcs| mcs.index));
        assert_eq!(of(McsTable::Qam64), [None, Some(0), Some(11), Some(13), Some(28)]);
        assert_eq!(of(McsTable::Qam256), [None, Some(1), Some(11), Some(13), Some(27)]);
        assert_eq!(of(McsTable::LowEfficiency), [Some(0), Some(2), Some(12), Some(14), Some(28)]);
        assert_eq!(mcs(McsTable::Qam64, 0), None);
    }
}
