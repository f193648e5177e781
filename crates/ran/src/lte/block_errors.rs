//! Block error probability of a transport block, from its MCS and SINR.
//!
//! One turbo code block fails with `1/2 erfc((SINR - s50) / (sqrt(2) sigma))`: s50 per MCS and block length
//! from `lte_mcs_sinr.csv`, `sigma = 0.37 (500/K)^0.38` dB. A transport block of C code blocks (TS 36.212
//! §5.1.2) fails with `1 - (1 - p)^C`. With Chase combining (HARQ) the caller adds the linear SINRs of all
//! transmissions. Left out: the gain of incremental redundancy, feedback errors, PDCCH decoding errors.

use super::mcs::Mcs;
use crate::error_curve::ErrorCurve;
use std::sync::LazyLock;

/// Largest turbo code block in bits, with its 24-bit CRC (TS 36.212 §5.1.2).
const MAX_CODE_BLOCK_BITS: u32 = 6144;
/// Largest transport block in bytes whose curve is tabulated: MCS 28 on 100 PRBs (TS 36.213 Table
/// 7.1.7.2.1-1).
const MAX_TABULATED_BYTES: u32 = 9422;

/// Probability that a transport block of `tb_bits` with this MCS fails at a SINR in dB.
pub fn block_error_db(mcs: &Mcs, tb_bits: u32, sinr_db: f64) -> f64 {
    curve(mcs, tb_bits).error(sinr_db)
}

/// The curve of a transport block of `tb_bits` with this MCS.
pub(crate) fn curve(mcs: &Mcs, tb_bits: u32) -> ErrorCurve {
    let Shape { code_blocks, position, sigma_db } = Shape::of(tb_bits);
    let s50_db = mcs.s50_1024_db + position * (mcs.s50_6144_db - mcs.s50_1024_db);
    ErrorCurve { s50_db, sigma_db, code_blocks }
}

/// Number of code blocks of a transport block and the length of one, in bits.
fn code_blocks(tb_bits: u32) -> (u32, f64) {
    let with_crc = tb_bits + 24;
    let count = if with_crc <= MAX_CODE_BLOCK_BITS { 1 } else { with_crc.div_ceil(MAX_CODE_BLOCK_BITS - 24) };
    (count, f64::from(with_crc) / f64::from(count))
}

/// Parameters of the error curve that depend on the transport block size alone.
#[derive(Clone, Copy, Debug)]
struct Shape {
    code_blocks: u32,
    /// Position of the code block length between 1024 (0) and 6144 bits (1), linear in the logarithm of the
    /// length.
    position: f64,
    sigma_db: f64,
}

impl Shape {
    fn new(tb_bits: u32) -> Self {
        let (code_blocks, length) = code_blocks(tb_bits);
        let position = (libm::log2(length / 1024.0) / libm::log2(6.0)).clamp(0.0, 1.0);
        Self { code_blocks, position, sigma_db: 0.37 * libm::pow(500.0 / length, 0.38) }
    }
    fn of(tb_bits: u32) -> Self {
        static OF_BYTES: LazyLock<Vec<Shape>> =
            LazyLock::new(|| (0..=MAX_TABULATED_BYTES).map(|bytes| Shape::new(8 * bytes)).collect());
        let known = OF_BYTES.get(tb_bits as usize / 8).filter(|_| tb_bits.is_multiple_of(8));
        known.copied().unwrap_or_else(|| Self::new(tb_bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::mcs::DOWNLINK;

    #[test]
    fn half_of_the_blocks_fail_at_s50() {
        let mcs = &DOWNLINK[10];
        assert!((block_error_db(mcs, 1000, mcs.s50_1024_db) - 0.5).abs() < 1e-12);
        // 6120 bits with CRC fill one code block of 6144.
        assert!((block_error_db(mcs, 6120, mcs.s50_6144_db) - 0.5).abs() < 1e-12);
        assert_eq!(code_blocks(6120), (1, 6144.0));
        assert_eq!(code_blocks(75_376), (13, 5800.0));
    }

    #[test]
    fn more_code_blocks_fail_more_often() {
        // By hand: MCS 28, 75,376 bits, 13 code blocks of 5800 bits, 0.2 dB above their 50% point.
        let mcs = &DOWNLINK[28];
        let position = libm::log2(5800.0 / 1024.0) / libm::log2(6.0);
        let s50 = 19.40 - 0.15 * position;
        let sigma = 0.37 * libm::pow(500.0 / 5800.0, 0.38);
        let one = 0.5 * libm::erfc(0.2 / sigma / 2.0f64.sqrt());
        let expected = 1.0 - libm::pow(1.0 - one, 13.0);
        assert!((block_error_db(mcs, 75_376, s50 + 0.2) - expected).abs() < 1e-9);
    }

    #[test]
    fn error_falls_with_sinr_and_is_a_probability() {
        for mcs in &DOWNLINK {
            let mut last = 1.0;
            for step in -150..300 {
                let p = block_error_db(mcs, 5000, f64::from(step) * 0.1);
                assert!((0.0..=1.0).contains(&p) && p <= last);
                last = p;
            }
            assert_eq!(last, 0.0);
        }
    }
}
