//! A modulation and coding scheme of either radio technology: block sizes and block errors.

use crate::error_curve::ErrorCurve;
use crate::lte;
use crate::nr;

/// Size of one PRB of a shared channel in a slot. In NR its resource elements; in LTE the eighths of the PRBs
/// whose column of the transport block size table applies (TS 36.213 §7.1.7): 8, or fewer in special
/// subframes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PrbSize(pub u8);

/// PRBs of an LTE slot with all of its symbols, by definition 8 eighths.
#[cfg(test)]
pub(crate) const LTE_PRB: PrbSize = PrbSize(8);

/// A modulation and coding scheme, in NR with a number of layers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Mcs {
    Lte(&'static lte::mcs::Mcs),
    Nr {
        row: &'static nr::mcs::Mcs,
        layers: u8,
    },
    /// Of a direct link in NR, whose allocations have so many resource elements of control information.
    Sidelink {
        row: &'static nr::mcs::Mcs,
        control_re: u16,
    },
}

impl Mcs {
    /// Index in its table.
    pub fn index(self) -> u8 {
        match self {
            Self::Lte(mcs) => mcs.index,
            Self::Nr { row, .. } | Self::Sidelink { row, .. } => row.index,
        }
    }
    /// Modulation order.
    pub fn qm(self) -> u8 {
        match self {
            Self::Lte(mcs) => mcs.qm,
            Self::Nr { row, .. } | Self::Sidelink { row, .. } => row.qm,
        }
    }
    /// Number of layers.
    pub fn layers(self) -> u8 {
        match self {
            Self::Lte(_) | Self::Sidelink { .. } => 1,
            Self::Nr { layers, .. } => layers,
        }
    }
    /// Transport block size in bits of `n_prb` PRBs, at least one.
    pub fn block_bits(self, size: PrbSize, n_prb: u16) -> u32 {
        match self {
            Self::Lte(mcs) => lte::tbs::transport_block_bits(mcs.i_tbs, column(size, n_prb)),
            Self::Nr { row, layers } => nr::tbs::transport_block_bits(row, layers, size.0, n_prb),
            Self::Sidelink { row, control_re } => {
                let elements = u32::from(size.0) * u32::from(n_prb);
                nr::tbs::block_bits_of(row, 1, elements.saturating_sub(u32::from(control_re)))
            }
        }
    }
    /// Bits per PRB of a block of `n_prb` PRBs.
    pub fn bits_per_prb(self, size: PrbSize, n_prb: u16) -> f64 {
        f64::from(self.block_bits(size, n_prb)) / f64::from(n_prb)
    }
    /// The fewest PRBs whose transport block holds `needed` bytes, at least one and at most `max`.
    pub fn fewest_prbs(self, size: PrbSize, needed: u64, max: u16) -> u16 {
        match self {
            Self::Lte(mcs) => {
                let columns = lte::tbs::fewest_prbs(mcs.i_tbs, needed, column(size, max));
                // Few PRBs have the first column.
                if columns == 1 { 1 } else { (8 * columns).div_ceil(u16::from(size.0)).min(max) }
            }
            Self::Nr { .. } | Self::Sidelink { .. } => {
                nr::tbs::fewest_prbs(|prbs| self.block_bits(size, prbs), needed, max)
            }
        }
    }
    /// The error curve of a block of `bits`, in NR by the SINR of each layer.
    pub fn error_curve(self, bits: u32) -> ErrorCurve {
        match self {
            Self::Lte(mcs) => lte::block_errors::curve(mcs, bits),
            Self::Nr { row, .. } | Self::Sidelink { row, .. } => nr::block_errors::curve(row, bits),
        }
    }
}

/// PRBs of the column of the transport block size table (TS 36.213 §7.1.7).
fn column(size: PrbSize, n_prb: u16) -> u16 {
    if size.0 == 8 { n_prb } else { (n_prb * u16::from(size.0) / 8).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lte::mcs::DOWNLINK;
    use crate::nr::mcs::McsTable;

    #[test]
    fn the_fewest_prbs_are_those_of_a_linear_search() {
        let all = [
            (Mcs::Lte(&DOWNLINK[9]), vec![PrbSize(8), PrbSize(6), PrbSize(3)], 100),
            (Mcs::Lte(&DOWNLINK[28]), vec![PrbSize(8), PrbSize(6), PrbSize(3)], 25),
            (Mcs::Nr { row: &McsTable::Qam256.rows()[27], layers: 4 }, vec![PrbSize(144), PrbSize(24)], 273),
            (Mcs::Nr { row: &McsTable::LowEfficiency.rows()[0], layers: 1 }, vec![PrbSize(156)], 51),
        ];
        for (mcs, sizes, max) in all {
            for size in sizes {
                let most = u64::from(mcs.block_bits(size, max) / 8);
                for needed in (0..=most).step_by(1 + most as usize / 997) {
                    let fits = |prbs: &u16| u64::from(mcs.block_bits(size, *prbs) / 8) >= needed;
                    let expected = (1..=max).find(fits).unwrap_or(max);
                    assert_eq!(mcs.fewest_prbs(size, needed, max), expected, "{mcs:?} {size:?} {needed}");
                }
                let beyond = mcs.fewest_prbs(size, most + 1, max);
                assert_eq!(u64::from(mcs.block_bits(size, beyond) / 8), most);
            }
        }
    }

    #[test]
    fn special_subframes_have_the_column_of_fewer_prbs() {
        let mcs = Mcs::Lte(&DOWNLINK[9]);
        assert_eq!(mcs.block_bits(PrbSize(6), 50), mcs.block_bits(LTE_PRB, 37));
        assert_eq!(mcs.block_bits(PrbSize(3), 1), mcs.block_bits(LTE_PRB, 1));
    }
}
