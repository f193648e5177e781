//! Modulation and coding schemes: TS 38.214 Tables 5.1.3.1-1 (64QAM), -2 (256QAM) and -3 (64QAM, low spectral
//! efficiency), also of the uplink without transform precoding (§6.1.4.1), with the SINR at 10% block error
//! and the EESM factor of `nr_mcs_sinr.csv`. Left out: the reserved indices, which retransmissions use.

use crate::csv::Reader;

/// A table of MCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum McsTable {
    /// Up to 64QAM (Table 5.1.3.1-1).
    Qam64,
    /// Up to 256QAM (Table 5.1.3.1-2).
    Qam256,
    /// Up to 64QAM with low spectral efficiency (Table 5.1.3.1-3).
    LowEfficiency,
}

/// One row of an MCS table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mcs {
    /// Index in the table.
    pub index: u8,
    /// Modulation order: 2 QPSK, 4 16QAM, 6 64QAM, 8 256QAM.
    pub qm: u8,
    /// Target code rate times 2048, a whole number for every row.
    pub rate_x2048: u16,
    /// SINR in dB of 10% block error for a code block of 2000 bits.
    pub s10_db: f64,
    /// Factor of the exponential effective SINR.
    pub eesm_beta: f64,
}

static QAM64: [Mcs; 29] = read(b"1,");
static QAM256: [Mcs; 28] = read(b"2,");
static LOW_EFFICIENCY: [Mcs; 29] = read(b"3,");

impl McsTable {
    /// The rows with a code rate, in the order of their indices.
    pub fn rows(self) -> &'static [Mcs] {
        match self {
            Self::Qam64 => &QAM64,
            Self::Qam256 => &QAM256,
            Self::LowEfficiency => &LOW_EFFICIENCY,
        }
    }
    /// The row of the highest efficiency with at most 10% block error at a SINR in dB. Efficiency decides and
    /// not the index, since MCS 17 of the first table carries fewer bits than MCS 16.
    pub fn highest(self, sinr_db: f64) -> Option<&'static Mcs> {
        let rows = self.rows();
        let last = rows.partition_point(|mcs| mcs.s10_db <= sinr_db).checked_sub(1)?;
        let before = last.saturating_sub(1);
        Some(if rows[before].bits_x2048() > rows[last].bits_x2048() { &rows[before] } else { &rows[last] })
    }
    /// The row of the highest efficiency that is at most `bits_x2048 / 2048` bits per resource element.
    pub fn at_most(self, bits_x2048: u32) -> Option<&'static Mcs> {
        let rows = self.rows().iter().filter(|mcs| mcs.bits_x2048() <= bits_x2048);
        rows.max_by_key(|mcs| mcs.bits_x2048())
    }
}

impl Mcs {
    /// Information bits per resource element and layer, times 2048.
    pub const fn bits_x2048(&self) -> u32 {
        self.qm as u32 * self.rate_x2048 as u32
    }
    /// Information bits per resource element and layer.
    pub fn efficiency(&self) -> f64 {
        f64::from(self.bits_x2048()) / 2048.0
    }
}

const fn read<const COUNT: usize>(prefix: &[u8]) -> [Mcs; COUNT] {
    let empty = Mcs { index: 0, qm: 0, rate_x2048: 0, s10_db: 0.0, eesm_beta: 0.0 };
    let mut table = [empty; COUNT];
    let mut line = Reader::new(include_bytes!("../../data/nr_mcs_sinr.csv"));
    let mut mcs = 0;
    while mcs < COUNT {
        if line.starts_with(prefix) {
            line = line.skip(1);
            assert!(line.integer() as usize == mcs, "rows of nr_mcs_sinr.csv are in order");
            line = line.skip(1);
            let qm = line.integer() as u8;
            line = line.skip(1);
            let rate_x2048 = (line.thousandths() / 500) as u16;
            line = line.skip(1);
            let s10_db = line.thousandths() as f64 / 1000.0;
            line = line.skip(3);
            let eesm_beta = line.thousandths() as f64 / 1000.0;
            table[mcs] = Mcs { index: mcs as u8, qm, rate_x2048, s10_db, eesm_beta };
            mcs += 1;
        }
        line = line.next_line();
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_standard_holds() {
        let mut count = 0;
        for line in
            include_str!("../../data/nr_mcs.csv").lines().filter(|line| line.as_bytes()[0].is_ascii_digit())
        {
            let fields: Vec<&str> = line.split(',').collect();
            let table = [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency]
                [fields[0].parse::<usize>().unwrap() - 1];
            let mcs = table.rows()[fields[1].parse::<usize>().unwrap()];
            assert_eq!(mcs.qm.to_string(), fields[2]);
            assert_eq!(f64::from(mcs.rate_x2048) / 2.0, fields[4].parse::<f64>().unwrap(), "{line}");
            // The standard rounds to four decimals.
            assert!((mcs.efficiency() - fields[5].parse::<f64>().unwrap()).abs() < 5.1e-5, "{line}");
            count += 1;
        }
        assert_eq!(count, 29 + 28 + 29);
    }

    #[test]
    fn thresholds_rise_and_agree_with_published_curves() {
        for table in [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency] {
            assert!(table.rows().windows(2).all(|pair| pair[0].s10_db < pair[1].s10_db), "{table:?}");
        }
        let mut count = 0;
        for line in include_str!("../../data/nr_mcs_sinr.csv").lines().skip(4) {
            let fields: Vec<&str> = line.split(',').collect();
            if let Ok(published) = fields[5].parse::<f64>() {
                let recommended: f64 = fields[4].parse().unwrap();
                // Sionna's curves are read on a grid of 1.8 dB.
                assert!((recommended - published).abs() <= 0.9, "{line}");
                count += 1;
            }
        }
        assert!(count > 50);
    }

    #[test]
    fn link_adaptation_goes_by_efficiency() {
        let table = McsTable::Qam64;
        assert!(table.rows()[17].bits_x2048() < table.rows()[16].bits_x2048());
        // 8.95 dB reaches MCS 17, whose efficiency is below that of MCS 16.
        assert_eq!(table.highest(8.95).map(|mcs| mcs.index), Some(16));
        assert_eq!(table.highest(9.52).map(|mcs| mcs.index), Some(18));
        assert_eq!(table.highest(-6.54).map(|mcs| mcs.index), None);
        assert_eq!(table.highest(-6.53).map(|mcs| mcs.index), Some(0));
        assert_eq!(McsTable::Qam256.highest(99.0).map(|mcs| mcs.index), Some(27));
        assert_eq!(table.at_most(table.rows()[17].bits_x2048()).map(|mcs| mcs.index), Some(17));
        assert_eq!(table.at_most(1), None);
    }
}
