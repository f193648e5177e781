//! Transport block sizes (TS 38.214 §5.1.3.2), in integers, and tables of them.
//!
//! Left out: the scaling of random access responses and paging, limited-buffer rate matching, which does not
//! change sizes.

use super::carrier::MAX_PRB;
use super::mcs::{Mcs, McsTable};
use crate::csv::Reader;

/// Rows of Table 5.1.3.2-1 (TS 38.214).
const SMALL_COUNT: usize = 93;
/// Largest size in bits that Table 5.1.3.2-1 gives (TS 38.214 §5.1.3.2).
const MAX_SMALL_BITS: u64 = 3824;
/// Most resource elements per PRB that count (TS 38.214 §5.1.3.2).
const MAX_RE_PER_PRB: u8 = 156;

/// Sizes in bits up to 3824 (Table 5.1.3.2-1).
static SMALL: [u32; SMALL_COUNT] = read();

/// Resource elements per PRB of a data channel with `symbols` symbols: without those of the demodulation
/// reference signals and of xOverhead (0, 6, 12 or 18), at most 156.
pub fn re_per_prb(symbols: u8, dmrs_re: u8, overhead_re: u8) -> u8 {
    (12 * symbols).saturating_sub(dmrs_re).saturating_sub(overhead_re).min(MAX_RE_PER_PRB)
}

/// Transport block size in bits of `prbs` PRBs with `re_per_prb` resource elements each; zero if either is
/// zero.
pub fn transport_block_bits(mcs: &Mcs, layers: u8, re_per_prb: u8, prbs: u16) -> u32 {
    block_bits_of(mcs, layers, u32::from(re_per_prb) * u32::from(prbs))
}
/// Transport block size in bits of so many resource elements.
pub fn block_bits_of(mcs: &Mcs, layers: u8, elements: u32) -> u32 {
    // N_info times 2048.
    let scaled = u64::from(elements) * u64::from(mcs.bits_x2048()) * u64::from(layers);
    let info = scaled / 2048;
    if scaled == 0 {
        return 0;
    }
    if scaled <= MAX_SMALL_BITS * 2048 {
        let n = info.checked_ilog2().unwrap_or(0).saturating_sub(6).max(3);
        let quantized = ((info >> n) << n).max(24);
        return SMALL[SMALL.partition_point(|bits| u64::from(*bits) < quantized)];
    }
    let above = scaled - 24 * 2048;
    let n = (info - 24).ilog2() - 5;
    let half = 1 << (n - 1);
    let quantized = (((above + half * 2048) >> (n + 11)) << n).max(3840);
    let with_crc = quantized + 24;
    let count = if mcs.rate_x2048 <= 512 {
        with_crc.div_ceil(3816)
    } else if quantized > 8424 {
        with_crc.div_ceil(8424)
    } else {
        1
    };
    (8 * count * with_crc.div_ceil(8 * count) - 24) as u32
}

/// The fewest PRBs whose block, of a size in bits by `bits`, holds `needed` bytes: at least one and at most
/// `max`.
pub fn fewest_prbs(bits: impl Fn(u16) -> u32, needed: u64, max: u16) -> u16 {
    let fits = |prbs| u64::from(bits(prbs) / 8) >= needed;
    let most = u64::from(bits(max) / 8);
    if most < needed {
        return max;
    }
    // Sizes are nearly proportional to PRBs, so the search starts at the proportional number.
    let mut prbs = (needed * u64::from(max) / most).clamp(1, u64::from(max)) as u16;
    while !fits(prbs) {
        prbs += 1;
    }
    while prbs > 1 && fits(prbs - 1) {
        prbs -= 1;
    }
    prbs
}

/// The transport block sizes of all MCS and numbers of PRBs at one number of resource elements per PRB.
#[derive(Clone, Debug)]
pub struct BlockSizes {
    rows: Vec<[u32; MAX_PRB as usize + 1]>,
}

impl BlockSizes {
    /// The sizes with `layers` layers and `re_per_prb` resource elements per PRB.
    pub fn new(table: McsTable, layers: u8, re_per_prb: u8) -> Self {
        let bits = |mcs, prbs| transport_block_bits(mcs, layers, re_per_prb, prbs as u16);
        Self { rows: table.rows().iter().map(|mcs| std::array::from_fn(|prbs| bits(mcs, prbs))).collect() }
    }
    /// Size in bits of a block of `prbs` PRBs, at most 275.
    pub fn bits(&self, mcs: u8, prbs: u16) -> u32 {
        self.rows[usize::from(mcs)][usize::from(prbs)]
    }
    /// The fewest PRBs whose block holds `needed` bytes, at least one and at most `max`.
    pub fn fewest_prbs(&self, mcs: u8, needed: u64, max: u16) -> u16 {
        let row = &self.rows[usize::from(mcs)][1..=usize::from(max)];
        let below = row.partition_point(|bits| u64::from(bits / 8) < needed) as u16;
        (below + 1).min(max)
    }
}

const fn read() -> [u32; SMALL_COUNT] {
    let mut table = [0; SMALL_COUNT];
    let mut line = Reader::new(include_bytes!("../../data/nr_tbs_small.csv"));
    let mut row = 0;
    while row < SMALL_COUNT {
        assert!(line.integer() as usize == row + 1, "rows of nr_tbs_small.csv are in order");
        table[row] = line.skip(1).integer();
        line = line.next_line();
        row += 1;
    }
    assert!(line.at_end());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(number: u32) -> McsTable {
        [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency][number as usize - 1]
    }

    #[test]
    fn every_vector_holds() {
        let mut count = 0;
        for line in include_str!("../../data/nr_tbs_vectors.csv").lines().skip(2) {
            let numbers: Vec<u32> = line.split(',').map(|field| field.parse().unwrap()).collect();
            let &[prbs, symbols, dmrs, overhead, mcs_table, mcs, layers, expected] = numbers.as_slice()
            else {
                panic!("{line}");
            };
            let mcs = &table(mcs_table).rows()[mcs as usize];
            let re = re_per_prb(symbols as u8, dmrs as u8, overhead as u8);
            assert_eq!(transport_block_bits(mcs, layers as u8, re, prbs as u16), expected, "{line}");
            count += 1;
        }
        assert_eq!(count, 810);
    }

    #[test]
    fn examples_of_large_blocks_hold() {
        let top = &table(2).rows()[27];
        assert_eq!(transport_block_bits(top, 4, re_per_prb(13, 12, 0), 273), 1_179_864);
        assert_eq!(transport_block_bits(top, 2, re_per_prb(13, 12, 0), 273), 590_128);
        assert_eq!(transport_block_bits(&table(1).rows()[28], 1, re_per_prb(12, 12, 0), 51), 36_896);
        assert_eq!(re_per_prb(14, 0, 0), 156);
        assert_eq!(re_per_prb(1, 12, 0), 0);
        assert_eq!(transport_block_bits(top, 1, 0, 273), 0);
    }

    /// Downlink bits per second below the MAC header with 273 PRBs, 4 layers of 256QAM, one PDCCH symbol, 12
    /// DMRS elements; by hand from the sizes per slot.
    #[test]
    fn ceilings_of_tdd_patterns_hold() {
        let bits =
            |symbols: u8| transport_block_bits(&table(2).rows()[27], 4, re_per_prb(symbols, 12, 0), 273);
        assert_eq!((bits(9), bits(5)), (770_568, 385_272));
        for (slots, special, ms, expected) in [(3, 9, 2.5, 1724.1), (7, 5, 5.0, 1728.9), (2, 5, 2.5, 1098.0)]
        {
            let rate = (f64::from(slots * bits(13)) + f64::from(bits(special))) / ms / 1000.0;
            assert!((rate - expected).abs() < 0.05, "{rate}");
        }
    }

    #[test]
    fn sizes_grow_with_the_prbs_and_are_whole_bytes() {
        for number in 1..=3 {
            for layers in 1..=4 {
                for re in [12, 30, 96, 144, 156] {
                    let sizes = BlockSizes::new(table(number), layers, re);
                    for mcs in 0..table(number).rows().len() as u8 {
                        assert_eq!(sizes.bits(mcs, 0), 0);
                        for prbs in 1..=MAX_PRB {
                            let bits = sizes.bits(mcs, prbs);
                            assert!(bits.is_multiple_of(8) && bits >= sizes.bits(mcs, prbs - 1));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_fewest_prbs_are_those_of_a_linear_search() {
        let sizes = BlockSizes::new(McsTable::Qam256, 2, 144);
        for mcs in [0, 9, 27] {
            for max in [1, 16, 51, 273] {
                for needed in (0..80_000).step_by(97) {
                    let fits = |prbs: &u16| u64::from(sizes.bits(mcs, *prbs) / 8) >= needed;
                    let expected = (1..=max).find(fits).unwrap_or(max);
                    assert_eq!(sizes.fewest_prbs(mcs, needed, max), expected, "{mcs} {max} {needed}");
                }
            }
        }
    }
}
