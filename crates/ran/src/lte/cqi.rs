//! Channel quality indicator (TS 36.213 Table 7.2.3-1, 64QAM): the CQI that a SINR supports at 10% block
//! error, and the downlink MCS that a scheduler uses for it.
//!
//! SINR thresholds are those of the public link-level curves named in `lte_cqi_sinr.csv` (`vienna_s10_db`,
//! within 0.4 dB of two others), of one code block (`crate::adaptation`). The MCS is the highest one with no
//! more spectral efficiency than the CQI and with its modulation.

use crate::csv::Reader;

/// Lowest SINR in dB of each CQI 1..=15.
static THRESHOLD_DB: [f64; 15] = read_thresholds();
/// Downlink MCS of each CQI 1..=15.
static MCS: [u8; 15] = read_mcs();

/// The highest CQI that a wideband SINR in dB supports; 0 means out of range.
pub fn of_sinr(sinr_db: f64) -> u8 {
    THRESHOLD_DB.partition_point(|threshold| *threshold <= sinr_db) as u8
}

/// The lowest SINR in dB of a CQI; none for CQI 0.
pub fn threshold_db(cqi: u8) -> Option<f64> {
    (1..=15).contains(&cqi).then(|| THRESHOLD_DB[usize::from(cqi) - 1])
}

/// The downlink MCS for a CQI; none for CQI 0.
pub fn mcs(cqi: u8) -> Option<u8> {
    (1..=15).contains(&cqi).then(|| MCS[usize::from(cqi) - 1])
}

const fn read_thresholds() -> [f64; 15] {
    let mut thresholds = [0.0; 15];
    let mut line = Reader::new(include_bytes!("../../data/lte_cqi_sinr.csv"));
    let mut cqi = 0;
    while cqi < 15 {
        assert!(line.integer() as usize == cqi + 1, "rows of lte_cqi_sinr.csv are in order");
        line = line.skip(3);
        thresholds[cqi] = line.thousandths() as f64 / 1000.0;
        line = line.next_line();
        cqi += 1;
    }
    thresholds
}

const fn read_mcs() -> [u8; 15] {
    let mut mcs = [0; 15];
    let mut line = Reader::new(include_bytes!("../../data/lte_cqi_sinr.csv"));
    let mut cqi = 0;
    while cqi < 15 {
        mcs[cqi] = line.skip(1).integer() as u8;
        line = line.next_line();
        cqi += 1;
    }
    mcs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::mcs::DOWNLINK;

    #[test]
    fn thresholds_and_mcs_follow_the_files() {
        assert_eq!(of_sinr(-7.0), 0);
        assert_eq!(of_sinr(-6.94), 1);
        assert_eq!(of_sinr(19.82), 14);
        assert_eq!(of_sinr(19.83), 15);
        assert_eq!(of_sinr(f64::NEG_INFINITY), 0);
        assert_eq!(mcs(0), None);
        for line in include_str!("../../data/cqi.csv").lines().filter(|l| l.starts_with("1,")) {
            let fields: Vec<&str> = line.split(',').collect();
            let expected = if fields[1] == "0" { None } else { fields[6].parse().ok() };
            assert_eq!(mcs(fields[1].parse().unwrap()), expected, "{line}");
            if let Some(index) = expected {
                assert_eq!(DOWNLINK[usize::from(index)].qm.to_string(), fields[2], "{line}");
            }
        }
    }
}
