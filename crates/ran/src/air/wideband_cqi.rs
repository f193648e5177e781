//! The CQI that a station measures over the whole band.
//!
//! The thresholds of [`cqi`] are carried over, once, to the part of a bit that may be lost on average: a measurement then
//! ends where the mean is known, without the way back to a SINR in dB.

use crate::lte::cqi;
use crate::radio::Modulation;
use crate::radio::effective_sinr::{mean_lost, most_lost};
use std::sync::LazyLock;

/// By modulation, most of a bit that may be lost for each CQI 1..=15.
static MOST_LOST: LazyLock<[[f64; 15]; 3]> = LazyLock::new(|| {
    [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64].map(|modulation| {
        std::array::from_fn(|index| {
            let threshold_db = cqi::threshold_db(index as u8 + 1).expect("there are 15 CQIs");
            most_lost(modulation, threshold_db)
        })
    })
});

/// The wideband CQI for these linear SINRs: that of each modulation has to hold for its own effective SINR, and the
/// highest counts.
pub(super) fn of(sinrs: &[f64]) -> u8 {
    let of = |modulation| {
        let lost = mean_lost(modulation, sinrs.iter().copied());
        MOST_LOST[modulation as usize].partition_point(|most| lost <= *most) as u8
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
    use crate::decibel::{from_db, to_db};
    use crate::radio::effective_sinr::miesm;
    use paceline_net::Stream;

    /// By effective SINRs in dB.
    fn by_sinr(sinrs: &[f64]) -> u8 {
        let of = |modulation| cqi::of_sinr(to_db(miesm(modulation, sinrs)));
        match (of(Modulation::Qam64), of(Modulation::Qam16).min(9)) {
            (high @ 10.., _) => high,
            (_, middle @ 7..) => middle,
            _ => of(Modulation::Qpsk).min(6),
        }
    }

    #[test]
    fn agrees_with_the_effective_sinr() {
        let mut stream = Stream::new(1, "sinrs");
        let mut seen = [0; 16];
        for _ in 0..200_000 {
            let (mean, spread) = (stream.uniform_in(-12.0, 26.0), stream.uniform_in(0.0, 6.0));
            let sinrs: Vec<f64> = (0..13).map(|_| from_db(mean + spread * stream.normal())).collect();
            let cqi = of(&sinrs);
            assert_eq!(cqi, by_sinr(&sinrs), "{sinrs:?}");
            seen[usize::from(cqi)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 1000), "{seen:?}");
    }

    #[test]
    fn thresholds_hold_on_both_sides() {
        for cqi in 1..=15 {
            let threshold_db = cqi::threshold_db(cqi).unwrap();
            let at = |db: f64| of(&[from_db(db); 25]);
            let (below, above) = (at(threshold_db - 1e-6), at(threshold_db + 1e-6));
            assert_eq!((below, above), (by_sinr(&[from_db(threshold_db - 1e-6); 25]), cqi), "{cqi}");
            assert!(below < cqi);
        }
    }
}
