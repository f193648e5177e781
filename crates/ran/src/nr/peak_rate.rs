//! The maximum data rate of a carrier (TS 38.306 §4.1.2), which capability lists advertise.

use super::carrier::FrequencyRange;
use crate::slot::Numerology;

/// Largest code rate times 1024 (TS 38.306 §4.1.2).
const MAX_RATE_X1024: f64 = 948.0;

/// Maximum rate in Mb/s of one FDD carrier, or of a TDD carrier that has this direction all the time: `prbs`
/// PRBs, `layers` layers, modulation order `qm`, scaling factor 1.
pub fn peak_mbps(
    range: FrequencyRange,
    downlink: bool,
    numerology: Numerology,
    prbs: u16,
    layers: u8,
    qm: u8,
) -> f64 {
    // Overheads of TS 38.306 §4.1.2.
    let overhead = match (range, downlink) {
        (FrequencyRange::Fr1, true) => 0.14,
        (FrequencyRange::Fr2, true) => 0.18,
        (FrequencyRange::Fr1, false) => 0.08,
        (FrequencyRange::Fr2, false) => 0.10,
    };
    let symbols_per_us = 14.0 * numerology.slots_per_second() / 1e6;
    let bits = f64::from(layers) * f64::from(qm) * MAX_RATE_X1024 / 1024.0;
    bits * f64::from(prbs) * 12.0 * symbols_per_us * (1.0 - overhead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_rates_of_known_carriers_hold() {
        let mu = |mu| Numerology::new(mu).unwrap();
        let downlink = |layers| peak_mbps(FrequencyRange::Fr1, true, mu(1), 273, layers, 8);
        assert_eq!(format!("{:.1} {:.1}", downlink(4), downlink(2)), "2337.0 1168.5");
        // By hand: 1 layer of 64QAM, 106 PRB at 15 kHz: 6 * 0.92578 * 1272 * 14000 * 0.92 = 91.0e6.
        let uplink = peak_mbps(FrequencyRange::Fr1, false, mu(0), 106, 1, 6);
        assert!((uplink - 91.0).abs() < 0.05, "{uplink}");
    }
}
