//! Processing times of a station: from a PDSCH to its HARQ-ACK (N1, TS 38.214 §5.3) and from a grant to its
//! PUSCH (N2, §6.4), in half symbols, and the smallest K1 and K2 that they allow. Left out: the terms for
//! short allocations and overlapping channels (d_1,1, d_2,1), timing advance.

use crate::slot::Numerology;
use paceline_net::tdd::SYMBOLS_PER_SLOT;

/// N1 in half symbols by numerology with no additional DMRS: capability 1 (TS 38.214 Table 5.3-1).
const N1_CAPABILITY_1: [u8; 4] = [16, 20, 34, 40];
/// N1 in half symbols by numerology with additional DMRS: capability 1 (TS 38.214 Table 5.3-1).
const N1_ADDITIONAL_DMRS: [u8; 4] = [26, 26, 40, 48];
/// N1 in half symbols by numerology: capability 2, in FR1 (TS 38.214 Table 5.3-2).
const N1_CAPABILITY_2: [u8; 3] = [6, 9, 18];
/// N2 in half symbols by numerology: capability 1 (TS 38.214 Table 6.4-1).
const N2_CAPABILITY_1: [u8; 4] = [20, 24, 46, 72];
/// N2 in half symbols by numerology: capability 2, in FR1 (TS 38.214 Table 6.4-2).
const N2_CAPABILITY_2: [u8; 3] = [10, 11, 22];

/// Processing capability of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// Capability 1.
    One,
    /// Capability 1 where the downlink has additional DMRS symbols.
    OneAdditionalDmrs,
    /// Capability 2; numerology 3 has that of capability 1.
    Two,
}

impl Capability {
    /// N1 in symbols.
    pub fn n1(self, numerology: Numerology) -> f64 {
        f64::from(self.n1_half(numerology)) / 2.0
    }
    /// N2 in symbols.
    pub fn n2(self, numerology: Numerology) -> f64 {
        f64::from(self.n2_half(numerology)) / 2.0
    }
    /// The smallest K1 of a PDSCH that ends with its slot, whose HARQ-ACK begins at symbol `start`.
    pub fn smallest_k1(self, numerology: Numerology, start: u8) -> u8 {
        1 + self.n1_half(numerology).saturating_sub(2 * start).div_ceil(2 * SYMBOLS_PER_SLOT)
    }
    /// The smallest K2 of a grant in the first `pdcch_symbols` symbols, whose PUSCH begins with its slot.
    pub fn smallest_k2(self, numerology: Numerology, pdcch_symbols: u8) -> u8 {
        (self.n2_half(numerology) + 2 * pdcch_symbols).div_ceil(2 * SYMBOLS_PER_SLOT)
    }
    fn n1_half(self, numerology: Numerology) -> u8 {
        let mu = usize::from(numerology.mu());
        match self {
            Self::One => N1_CAPABILITY_1[mu],
            Self::OneAdditionalDmrs => N1_ADDITIONAL_DMRS[mu],
            Self::Two => *N1_CAPABILITY_2.get(mu).unwrap_or(&N1_CAPABILITY_1[mu]),
        }
    }
    fn n2_half(self, numerology: Numerology) -> u8 {
        let mu = usize::from(numerology.mu());
        match self {
            Self::One | Self::OneAdditionalDmrs => N2_CAPABILITY_1[mu],
            Self::Two => *N2_CAPABILITY_2.get(mu).unwrap_or(&N2_CAPABILITY_1[mu]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_distances_hold_by_hand() {
        let all = [0, 1, 2, 3].map(|mu| Numerology::new(mu).unwrap());
        // PDSCH ends with slot 0; 8 and 10 symbols fit into slot 1, 17 and 20 into slots 1 and 2.
        assert_eq!(all.map(|mu| Capability::One.smallest_k1(mu, 0)), [2, 2, 3, 3]);
        // PUCCH in the last two symbols of slot 1 leaves 12 symbols.
        assert_eq!(all.map(|mu| Capability::One.smallest_k1(mu, 12)), [1, 1, 2, 2]);
        // 10, 12, 23 and 36 symbols after one PDCCH symbol.
        assert_eq!(all.map(|mu| Capability::One.smallest_k2(mu, 1)), [1, 1, 2, 3]);
        // At 30 kHz, three PDCCH symbols leave 11 of the 12 symbols in the slot.
        assert_eq!(Capability::One.smallest_k2(all[1], 3), 2);
        assert_eq!(Capability::Two.n1(all[1]), 4.5);
        assert_eq!(Capability::OneAdditionalDmrs.n1(all[1]), 13.0);
        assert_eq!(Capability::Two.n2(all[3]), 36.0);
    }
}
