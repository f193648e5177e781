//! Numerologies and numbers of PRBs of a carrier: TS 38.101-1 Table 5.3.2-1 (FR1) and TS 38.101-2 Table
//! 5.3.2-1 (FR2). Left out: 35 and 45 MHz of release 17, 480 and 960 kHz of FR2-2.

use crate::csv::Reader;
use crate::slot::Numerology;
use std::fmt;

/// Largest number of PRBs of a carrier (TS 38.331 maxNrofPhysicalResourceBlocks).
pub const MAX_PRB: u16 = 275;
/// Rows of `nr_nrb.csv`: 13 bandwidths of TS 38.101-1 and four of TS 38.101-2.
const ROWS: usize = 17;
/// Subcarrier spacing in kHz of numerology 0 (TS 38.211 Table 4.2-1).
const KHZ: u32 = 15;

/// Range of carrier frequencies (TS 38.101-1 Table 5.1-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrequencyRange {
    /// 410 MHz to 7125 MHz.
    Fr1,
    /// 24.25 GHz to 52.6 GHz.
    Fr2,
}

/// One bandwidth: the numbers of PRBs of numerologies 0 to 3, zero where the combination is forbidden.
#[derive(Clone, Copy)]
struct Row {
    range: FrequencyRange,
    mhz: u32,
    prbs: [u16; 4],
}

static TABLE: [Row; ROWS] = read();

/// A bandwidth and a numerology do not go together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CarrierError {
    range: FrequencyRange,
    mhz: u32,
    numerology: Numerology,
}

impl FrequencyRange {
    /// The range of a carrier frequency in GHz; none between the ranges.
    pub fn of_ghz(f_ghz: f64) -> Option<Self> {
        match f_ghz {
            f if (0.41..=7.125).contains(&f) => Some(Self::Fr1),
            f if (24.25..=52.6).contains(&f) => Some(Self::Fr2),
            _ => None,
        }
    }
    const fn clause(self) -> &'static str {
        match self {
            Self::Fr1 => "TS 38.101-1 Table 5.3.2-1",
            Self::Fr2 => "TS 38.101-2 Table 5.3.2-1",
        }
    }
    fn rows(self) -> impl Iterator<Item = &'static Row> {
        TABLE.iter().filter(move |row| row.range == self)
    }
}

/// Resource block group size P in PRBs, configuration 1, for a carrier of `n_prb` PRBs (TS 38.214 Table
/// 5.1.2.2.1-1).
pub const fn rbg_size(n_prb: u16) -> u16 {
    match n_prb {
        0..=36 => 2,
        37..=72 => 4,
        73..=144 => 8,
        _ => 16,
    }
}

/// Subcarrier spacing in kHz of a numerology (TS 38.211 Table 4.2-1).
pub const fn subcarrier_khz(numerology: Numerology) -> u32 {
    KHZ << numerology.mu()
}

/// Number of PRBs of a channel of `mhz` MHz.
pub fn resource_blocks(range: FrequencyRange, mhz: u32, numerology: Numerology) -> Result<u16, CarrierError> {
    let row = range.rows().find(|row| row.mhz == mhz);
    row.and_then(|row| row.at(numerology)).ok_or(CarrierError { range, mhz, numerology })
}

impl Row {
    fn at(&self, numerology: Numerology) -> Option<u16> {
        Some(self.prbs[usize::from(numerology.mu())]).filter(|prbs| *prbs > 0)
    }
}

impl fmt::Display for CarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { range, mhz, numerology } = *self;
        let rows = range.rows().filter(|row| row.at(numerology).is_some());
        let allowed: Vec<String> = rows.map(|row| row.mhz.to_string()).collect();
        write!(f, "a bandwidth of {mhz} MHz at numerology {}: ", numerology.mu())?;
        if allowed.is_empty() {
            let numerologies = if range == FrequencyRange::Fr1 { "0, 1 and 2" } else { "2 and 3" };
            write!(f, "numerologies {numerologies} are allowed ({})", range.clause())
        } else {
            let khz = subcarrier_khz(numerology);
            write!(f, "allowed at {khz} kHz are {} MHz ({})", allowed.join(", "), range.clause())
        }
    }
}
impl std::error::Error for CarrierError {}

const fn read() -> [Row; ROWS] {
    let mut table = [Row { range: FrequencyRange::Fr1, mhz: 0, prbs: [0; 4] }; ROWS];
    let mut line = Reader::new(include_bytes!("../../data/nr_nrb.csv"));
    let mut row = 0;
    while row < ROWS {
        if line.starts_with(b"fr2") {
            table[row].range = FrequencyRange::Fr2;
        }
        line = line.skip(1);
        table[row].mhz = line.integer();
        let mut numerology = 0;
        while numerology < 4 {
            line = line.skip(1);
            table[row].prbs[numerology] = line.integer() as u16;
            numerology += 1;
        }
        line = line.next_line();
        row += 1;
    }
    assert!(line.at_end());
    table
}

#[cfg(test)]
mod tests {
    use super::FrequencyRange::{Fr1, Fr2};
    use super::*;

    fn mu(numerology: u8) -> Numerology {
        Numerology::new(numerology).unwrap()
    }

    #[test]
    fn numbers_of_prbs_are_those_of_the_table() {
        let of = |range, mhz| [0, 1, 2, 3].map(|numerology| resource_blocks(range, mhz, mu(numerology)).ok());
        assert_eq!(of(Fr1, 100), [None, Some(273), Some(135), None]);
        assert_eq!(of(Fr1, 40), [Some(216), Some(106), Some(51), None]);
        assert_eq!(of(Fr1, 5), [Some(25), Some(11), None, None]);
        assert_eq!(of(Fr2, 400), [None, None, None, Some(264)]);
        assert_eq!(of(Fr2, 100), [None, None, Some(132), Some(66)]);
    }

    #[test]
    fn resource_block_groups_are_those_of_the_table() {
        assert_eq!([36, 37, 72, 73, 144, 145, 275].map(rbg_size), [2, 4, 4, 8, 8, 16, 16]);
    }

    /// The guard bands: PRBs of 12 subcarriers fill the channel to between 79% (5 MHz) and 99%.
    #[test]
    fn prbs_fit_into_their_channel() {
        for row in &TABLE {
            for (numerology, prbs) in row.prbs.into_iter().enumerate().filter(|(_, prbs)| *prbs > 0) {
                let khz = u32::from(prbs) * 12 * subcarrier_khz(mu(numerology as u8));
                let share = f64::from(khz) / (f64::from(row.mhz) * 1000.0);
                assert!((0.79..0.99).contains(&share), "{} MHz, numerology {numerology}: {share}", row.mhz);
                assert!(prbs <= MAX_PRB);
            }
        }
    }

    #[test]
    fn forbidden_combinations_are_refused_with_the_clause() {
        for (range, mhz, numerology, part) in [
            (Fr1, 60, 0, "5, 10, 15, 20, 25, 30, 40, 50 MHz (TS 38.101-1 Table 5.3.2-1)"),
            (Fr1, 5, 2, "10, 15, 20"),
            (Fr1, 100, 3, "numerologies 0, 1 and 2 are allowed (TS 38.101-1"),
            (Fr2, 400, 2, "50, 100, 200 MHz (TS 38.101-2 Table 5.3.2-1)"),
            (Fr2, 100, 1, "numerologies 2 and 3"),
            (Fr1, 33, 1, "allowed at 30 kHz"),
        ] {
            let error = resource_blocks(range, mhz, mu(numerology)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!([3.5, 28.0, 10.0].map(FrequencyRange::of_ghz), [Some(Fr1), Some(Fr2), None]);
    }
}
