//! Resource elements that carry no data: demodulation reference signals, PDCCH, synchronization blocks,
//! PUCCH.
//!
//! Left out: CSI reference signals, tracking and phase-tracking signals, which xOverhead stands for (TS
//! 38.214 §5.1.3.2); sounding in the uplink.

use crate::slot::Numerology;

/// Resource element groups of a control channel element (TS 38.211 §7.3.2.2).
const REGS_PER_CCE: u32 = 6;
/// PRBs of a synchronization block (TS 38.211 §7.4.3.1).
pub const SSB_PRBS: u16 = 20;
/// Symbols of a synchronization block (TS 38.211 §7.4.3.1).
pub const SSB_SYMBOLS: u8 = 4;

/// Configuration type of the demodulation reference signals (TS 38.211 §7.4.1.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmrsType {
    /// Six resource elements per PRB, symbol and CDM group; two groups.
    One,
    /// Four resource elements per PRB, symbol and CDM group; three groups.
    Two,
}

/// Resource elements per PRB that the reference signals take: those of the `cdm_groups` groups without data
/// (TS 38.214 §5.1.3.2), in `symbols` symbols.
pub const fn dmrs_re(kind: DmrsType, cdm_groups: u8, symbols: u8) -> u8 {
    let per_group = match kind {
        DmrsType::One => 6,
        DmrsType::Two => 4,
    };
    per_group * cdm_groups * symbols
}

/// Downlink assignments and uplink grants of `level` control channel elements that a control resource set
/// holds; without the blocking of the search spaces.
pub const fn pdcch_capacity(prbs: u16, symbols: u8, level: u8) -> u32 {
    prbs as u32 * symbols as u32 / REGS_PER_CCE / level as u32
}

/// Synchronization blocks in a slot of a half frame, for cases A and C (15 and 30 kHz) and case D (120 kHz)
/// of TS 38.213 §4.1; `beams` blocks in all. The slot counts from the start of the half frame, in the
/// numerology of the blocks. Slots have two blocks; case D leaves out every fifth pair of slots.
pub const fn ssb_blocks(numerology: Numerology, beams: u8, slot: u32) -> u8 {
    let numerology = numerology.mu();
    if numerology == 2 {
        return 0;
    }
    if numerology == 3 && slot / 2 % 5 == 4 {
        return 0;
    }
    let before = if numerology == 3 { slot - slot / 10 * 2 } else { slot };
    let left = (beams as u32).saturating_sub(2 * before);
    if left > 2 { 2 } else { left as u8 }
}

/// Share of the resource elements of a carrier that synchronization blocks take: `beams` blocks every
/// `period_ms`, in the numerology of the carrier.
pub fn ssb_share(numerology: Numerology, prbs: u16, beams: u8, period_ms: u32) -> f64 {
    let taken = f64::from(SSB_PRBS) * f64::from(SSB_SYMBOLS) * f64::from(beams);
    let symbols = 14.0 * f64::from(period_ms) * numerology.slots_per_second() / 1000.0;
    taken / (f64::from(prbs) * symbols)
}

/// Stations that share a PRB by PUCCH format 1 of `symbols` symbols (4 to 14): cyclic shifts times orthogonal
/// covers (TS 38.211 §6.3.2.4). `shift_step` is the distance of the cyclic shifts in use.
pub const fn pucch_format_1_capacity(symbols: u8, shift_step: u8) -> u16 {
    (12 / shift_step as u16) * (symbols as u16 / 2)
}

/// PRBs at the edges of the band that PUCCH takes for `stations` stations: an even number, since format 1
/// hops between both edges (TS 38.213 §9.2.1). A hop halves the symbols of a cover.
pub const fn pucch_prbs(stations: u16, symbols: u8, shift_step: u8) -> u16 {
    let per_pair = 2 * pucch_format_1_capacity(symbols / 2, shift_step);
    2 * stations.div_ceil(per_pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_signals_take_the_elements_of_their_groups() {
        assert_eq!(dmrs_re(DmrsType::One, 2, 1), 12);
        assert_eq!(dmrs_re(DmrsType::One, 1, 1), 6);
        assert_eq!(dmrs_re(DmrsType::One, 2, 2), 24);
        assert_eq!(dmrs_re(DmrsType::Two, 3, 1), 12);
    }

    #[test]
    fn control_resources_hold_whole_elements() {
        // 270 PRBs of one symbol have 45 control channel elements.
        assert_eq!([1, 2, 4, 8, 16].map(|level| pdcch_capacity(270, 1, level)), [45, 22, 11, 5, 2]);
        assert_eq!(pdcch_capacity(48, 2, 4), 4);
    }

    #[test]
    fn synchronization_blocks_stand_in_the_slots_of_the_clause() {
        let mu = |mu| Numerology::new(mu).unwrap();
        let of = |numerology, beams| {
            (0..40).map(|slot| ssb_blocks(mu(numerology), beams, slot)).collect::<Vec<_>>()
        };
        assert_eq!(of(1, 8)[..6], [2, 2, 2, 2, 0, 0]);
        assert_eq!(of(0, 3)[..3], [2, 1, 0]);
        // TS 38.213 §4.1, case D: n = 0-3, 5-8, 10-13, 15-18 of 28 symbols, four blocks each.
        let case_d = of(3, 64);
        assert_eq!(case_d.iter().map(|blocks| u32::from(*blocks)).sum::<u32>(), 64);
        assert_eq!(case_d[6..12], [2, 2, 0, 0, 2, 2]);
        // 8 blocks of 20 PRBs and 4 symbols in 20 ms of 273 PRBs: 640 of 152,880.
        assert!((ssb_share(mu(1), 273, 8, 20) - 640.0 / 152_880.0).abs() < 1e-12);
    }

    #[test]
    fn pucch_grows_by_pairs_of_prbs() {
        assert_eq!(pucch_format_1_capacity(14, 1), 84);
        assert_eq!(pucch_format_1_capacity(7, 3), 12);
        assert_eq!([1, 24, 25].map(|stations| pucch_prbs(stations, 14, 3)), [2, 2, 4]);
        assert_eq!(pucch_prbs(0, 14, 3), 0);
    }
}
