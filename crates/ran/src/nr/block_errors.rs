//! Block error probability of an NR transport block, from its MCS and SINR.
//!
//! One LDPC code block fails with `1/2 erfc((SINR - s50) / (sqrt(2) sigma))`: `sigma = 0.37 (500/K)^0.38` dB
//! by its length K as in LTE's model, s50 per MCS such that a block of 2000 bits fails with 10% at the SINR
//! of `nr_mcs_sinr.csv`. A transport block of C code blocks (TS 38.212 §5.2.2) fails with `1 - (1 - p)^C`.
//! With Chase combining (HARQ) the caller adds the linear SINRs of all transmissions. Left out: the loss of
//! short blocks in s50 (about 1 dB at 100 bits), the gain of incremental redundancy, code block group
//! feedback.

use super::mcs::Mcs;
use crate::error_curve::ErrorCurve;
use std::sync::LazyLock;

/// Standard deviation in dB of the curve of a code block of 2000 bits. Follows from `0.37 (500/K)^0.38`.
pub const SIGMA_2000_DB: f64 = 0.218_483;
/// Distance of 10% block error from the 50% point in standard deviations. Follows from 1/2 erfc(z / sqrt 2).
pub const S10_DEVIATIONS: f64 = 1.281_551_6;
/// Largest code block in bits of LDPC base graph 1 (TS 38.212 §5.2.2).
const MAX_GRAPH_1_BITS: u32 = 8448;
/// Largest code block in bits of LDPC base graph 2 (TS 38.212 §5.2.2).
const MAX_GRAPH_2_BITS: u32 = 3840;
/// Bits of the CRC of a code block, and of a transport block above 3824 bits (TS 38.212 §5.2.2, §6.2.1).
const LONG_CRC_BITS: u32 = 24;
/// Bits of the CRC of a transport block up to 3824 bits (TS 38.212 §6.2.1).
const SHORT_CRC_BITS: u32 = 16;

/// Probability that a transport block of `tb_bits` with this MCS fails at a SINR in dB.
pub fn block_error_db(mcs: &Mcs, tb_bits: u32, sinr_db: f64) -> f64 {
    curve(mcs, tb_bits).error(sinr_db)
}

/// The curve of a transport block of `tb_bits` with this MCS.
pub(crate) fn curve(mcs: &Mcs, tb_bits: u32) -> ErrorCurve {
    let (code_blocks, length) = code_blocks(tb_bits, mcs.rate_x2048);
    let s50_db = mcs.s10_db - S10_DEVIATIONS * SIGMA_2000_DB;
    ErrorCurve { s50_db, sigma_db: SIGMA_DB[length.div_ceil(8) as usize], code_blocks }
}

/// Number of code blocks of a transport block and the length of one in bits, its CRC included (TS 38.212
/// §5.2.2, base graphs by §6.2.2).
pub fn code_blocks(tb_bits: u32, rate_x2048: u16) -> (u32, u32) {
    let crc = if tb_bits > 3824 { LONG_CRC_BITS } else { SHORT_CRC_BITS };
    let rate = f64::from(rate_x2048) / 2048.0;
    let second = tb_bits <= 292 || tb_bits <= 3824 && rate <= 0.67 || rate <= 0.25;
    let max = if second { MAX_GRAPH_2_BITS } else { MAX_GRAPH_1_BITS };
    let bits = tb_bits + crc;
    if bits <= max {
        return (1, bits);
    }
    let count = bits.div_ceil(max - LONG_CRC_BITS);
    (count, (bits + count * LONG_CRC_BITS).div_ceil(count))
}

/// Standard deviation in dB of the curve by the length of a code block in bytes.
static SIGMA_DB: LazyLock<Vec<f64>> = LazyLock::new(|| (0..=MAX_GRAPH_1_BITS / 8).map(sigma_db).collect());

fn sigma_db(bytes: u32) -> f64 {
    0.37 * libm::pow(500.0 / f64::from(8 * bytes.max(1)), 0.38)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nr::mcs::McsTable;

    #[test]
    fn one_block_in_ten_fails_at_the_recommended_sinr() {
        assert!((sigma_db(250) - SIGMA_2000_DB).abs() < 1e-5);
        for table in [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency] {
            for mcs in table.rows() {
                // 1984 bits with their CRC are one code block of 2000.
                assert_eq!(code_blocks(1984, mcs.rate_x2048), (1, 2000));
                assert!((block_error_db(mcs, 1984, mcs.s10_db) - 0.1).abs() < 1e-4, "{mcs:?}");
            }
        }
    }

    #[test]
    fn code_blocks_are_those_of_the_clause() {
        assert_eq!(code_blocks(24, 240), (1, 40));
        assert_eq!(code_blocks(3824, 1000), (1, 3840));
        assert_eq!(code_blocks(8424, 1896), (1, 8448));
        assert_eq!(code_blocks(8448, 1896).0, 2);
        // Rates up to 1/4 have base graph 2 at every size.
        assert_eq!(code_blocks(8424, 512).0, 3);
        // By hand: ceil(1,179,888 / 8424) = 141 blocks of 8368 bits and a CRC of 24.
        assert_eq!(code_blocks(1_179_864, 1896), (141, 8392));
    }

    #[test]
    fn many_code_blocks_fail_more_often_by_the_power_of_their_number() {
        let mcs = &McsTable::Qam256.rows()[27];
        let (count, length) = code_blocks(1_179_864, mcs.rate_x2048);
        let at = mcs.s10_db + 0.1;
        let s50 = mcs.s10_db - S10_DEVIATIONS * SIGMA_2000_DB;
        let one = 0.5 * libm::erfc((at - s50) / sigma_db(length.div_ceil(8)) / 2.0f64.sqrt());
        let expected = 1.0 - libm::pow(1.0 - one, f64::from(count));
        assert!((block_error_db(mcs, 1_179_864, at) - expected).abs() < 1e-9, "{expected}");
        assert!(expected > 0.1);
    }

    #[test]
    fn error_falls_with_sinr_and_is_a_probability() {
        for mcs in McsTable::Qam64.rows() {
            for bits in [24, 1000, 50_000, 1_277_992] {
                let mut last = 1.0;
                for step in -200..350 {
                    let p = block_error_db(mcs, bits, f64::from(step) * 0.1);
                    assert!((0.0..=1.0).contains(&p) && p <= last, "{mcs:?} {bits} {step}");
                    last = p;
                }
                assert_eq!(last, 0.0);
            }
        }
    }
}
