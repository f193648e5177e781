//! Wideband CQI (TS 36.213 §7.2): one CQI from the SINRs of all resource block groups, by MIESM.
//!
//! The SINR threshold of each CQI is converted once to the largest mean information loss per bit that still
//! supports it (`LteCqis`). A measurement then needs only its mean loss, not the inverse map back to an
//! effective SINR in dB.

use crate::adaptation::{LinkAdaptation, LteCqis};
use crate::decibel::{from_db, to_db};
use crate::radio::Modulation;
use crate::radio::effective_sinr::{mean_loss, miesm_of};
use crate::rat::Quality;

/// Effective SINRs in dB from which NR's effective SINR is that of 64QAM and of 16QAM. Chosen: the thresholds
/// of the lowest CQIs with these modulations, in steps of a dB (TS 38.214 Table 5.2.2.1-2).
const NR_MODULATIONS_DB: [f64; 2] = [10.0, 4.0];

/// The report of a station at these linear SINRs.
pub(super) fn quality(adaptation: &LinkAdaptation, sinrs: &[f64]) -> Quality {
    if let LinkAdaptation::Lte(cqis) = adaptation {
        return Quality { cqi: of(cqis, sinrs), layers: 1 };
    }
    adaptation.quality_by(|gain_db| {
        let gain = from_db(gain_db);
        let effective = |modulation| to_db(miesm_of(modulation, sinrs.iter().map(|sinr| sinr * gain)));
        let high = effective(Modulation::Qam64);
        if high >= NR_MODULATIONS_DB[0] {
            return high;
        }
        let middle = effective(Modulation::Qam16);
        if middle >= NR_MODULATIONS_DB[1] { middle } else { effective(Modulation::Qpsk) }
    })
}

/// The wideband CQI of these linear SINRs: the highest CQI that is supported by the effective SINR of its own
/// modulation (TS 36.213 Table 7.2.3-1: QPSK up to CQI 6, 16QAM up to 9, 64QAM above).
fn of(cqis: &LteCqis, sinrs: &[f64]) -> u8 {
    let of = |modulation| {
        let loss = mean_loss(modulation, sinrs.iter().copied());
        cqis.max_loss[modulation as usize].partition_point(|max| loss <= *max) as u8
    };
    let high = of(Modulation::Qam64);
    if high >= 10 {
        return high;
    }
    let middle = of(Modulation::Qam16).min(9);
    if middle >= 7 { middle } else { of(Modulation::Qpsk).min(6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::Stream;

    /// The CQI from the effective SINR of each modulation in dB.
    fn by_sinr(cqis: &LteCqis, sinrs: &[f64]) -> u8 {
        let of = |modulation| cqis.of_sinr(to_db(miesm_of(modulation, sinrs.iter().copied())));
        match (of(Modulation::Qam64), of(Modulation::Qam16).min(9)) {
            (high @ 10.., _) => high,
            (_, middle @ 7..) => middle,
            _ => of(Modulation::Qpsk).min(6),
        }
    }

    #[test]
    fn the_cqi_agrees_with_the_effective_sinr() {
        let (mut stream, cqis) = (Stream::new(1, "sinrs"), LteCqis::new(50));
        let mut seen = [0; 16];
        for _ in 0..200_000 {
            let (mean, spread) = (stream.uniform_in(-12.0, 26.0), stream.uniform_in(0.0, 6.0));
            let sinrs: Vec<f64> = (0..13).map(|_| from_db(mean + spread * stream.normal())).collect();
            let cqi = of(&cqis, &sinrs);
            assert_eq!(cqi, by_sinr(&cqis, &sinrs), "{sinrs:?}");
            seen[usize::from(cqi)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 1000), "{seen:?}");
    }

    #[test]
    fn cqi_thresholds_hold_on_both_sides() {
        let cqis = LteCqis::new(100);
        for cqi in 1..=15 {
            let threshold_db = cqis.threshold_db(cqi).unwrap();
            let at = |db: f64| of(&cqis, &[from_db(db); 25]);
            let (below, above) = (at(threshold_db - 1e-6), at(threshold_db + 1e-6));
            let expected = by_sinr(&cqis, &[from_db(threshold_db - 1e-6); 25]);
            assert_eq!((below, above), (expected, cqi), "{cqi}");
            assert!(below < cqi);
        }
    }
}
