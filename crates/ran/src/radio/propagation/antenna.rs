//! Antenna patterns of a sector: TR 36.814 Table A.2.1.1-2, ITU-R M.2135 §8.5, TR 38.901 Table 7.3-1.
//!
//! The gain depends on the azimuth off the boresight and on the angle below the horizon; the downtilt shifts
//! the vertical pattern. Left out: polarisation, the coupling of both angles by a mechanical tilt, arrays
//! other than a vertical column.

use std::f64::consts::PI;

/// The shape of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Equal gain in all directions.
    Omni,
    /// TR 36.814, horizontal only: beamwidth 70 degrees, attenuation at most 25 dB.
    Horizontal36814,
    /// TR 36.814: horizontal 70 degrees and 25 dB, vertical 10 degrees and 20 dB, in total at most 25 dB.
    Tr36814,
    /// M.2135: horizontal 70 degrees and 20 dB, vertical 15 degrees and 20 dB, in total at most 20 dB.
    M2135,
    /// One element of TR 38.901: 65 degrees and 30 dB in both planes, in total at most 30 dB.
    Element38901,
    /// A column of this many elements of TR 38.901, half a wavelength apart, with phases for the downtilt;
    /// the elements themselves point at the horizon (the single-port mapping of TR 38.901 Table 7.8-1 has
    /// ten).
    Column38901(u32),
}

/// An antenna of a base station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Antenna {
    /// The shape.
    pub pattern: Pattern,
    /// Gain in dBi at the boresight, less feeder loss; for a column, that of one element.
    pub max_gain_dbi: f64,
    /// Angle of the beam below the horizon in degrees.
    pub downtilt_deg: f64,
}

/// An angle in degrees, wrapped to -180..180.
pub fn wrap_deg(angle: f64) -> f64 {
    angle - 360.0 * ((angle + 180.0) / 360.0).floor()
}

/// Attenuation of a lobe in dB: `12 (angle / width)^2`, at most `limit` (TR 36.814 Table A.2.1.1-2).
fn lobe_db(angle_deg: f64, width_deg: f64, limit: f64) -> f64 {
    let part = angle_deg / width_deg;
    (12.0 * part * part).min(limit)
}

impl Antenna {
    /// Gain in dBi at `azimuth_deg` off the boresight and `depression_deg` below the horizon.
    pub fn gain_db(&self, azimuth_deg: f64, depression_deg: f64) -> f64 {
        let azimuth = wrap_deg(azimuth_deg);
        let below = depression_deg - self.downtilt_deg;
        let loss = match self.pattern {
            Pattern::Omni => 0.0,
            Pattern::Horizontal36814 => lobe_db(azimuth, 70.0, 25.0),
            Pattern::Tr36814 => (lobe_db(azimuth, 70.0, 25.0) + lobe_db(below, 10.0, 20.0)).min(25.0),
            Pattern::M2135 => (lobe_db(azimuth, 70.0, 20.0) + lobe_db(below, 15.0, 20.0)).min(20.0),
            Pattern::Element38901 => (lobe_db(azimuth, 65.0, 30.0) + lobe_db(below, 65.0, 30.0)).min(30.0),
            Pattern::Column38901(elements) => {
                let element = (lobe_db(azimuth, 65.0, 30.0) + lobe_db(depression_deg, 65.0, 30.0)).min(30.0);
                element - column_db(elements, depression_deg, self.downtilt_deg)
            }
        };
        self.max_gain_dbi - loss
    }
}

/// Gain in dB of a column of `elements` relative to one element. Nulls are limited to 30 dB below one
/// element.
fn column_db(elements: u32, depression_deg: f64, downtilt_deg: f64) -> f64 {
    let n = f64::from(elements.max(1));
    let half_phase =
        PI / 2.0 * (libm::sin(depression_deg.to_radians()) - libm::sin(downtilt_deg.to_radians()));
    let below = libm::sin(half_phase);
    // |sum exp(j m 2 half)|^2 / n, which is n where all elements are in phase.
    let power = if below.abs() < 1e-9 {
        n
    } else {
        let ratio = libm::sin(n * half_phase) / below;
        ratio * ratio / n
    };
    10.0 * libm::log10(power.max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn antenna(pattern: Pattern) -> Antenna {
        Antenna { pattern, max_gain_dbi: 14.0, downtilt_deg: 15.0 }
    }

    #[test]
    fn patterns_hold_by_hand() {
        let cases = [
            // Half the beamwidth off the boresight: 3 dB.
            (Pattern::Tr36814, 35.0, 15.0, 11.0),
            (Pattern::Tr36814, -35.0, 20.0, 8.0),
            // 12 (60/70)^2 = 8.816 and 12 (13/10)^2 = 20.28, limited to 20; 25 in total.
            (Pattern::Tr36814, 60.0, 2.0, -11.0),
            (Pattern::Tr36814, 0.0, 2.0, -6.0),
            (Pattern::Horizontal36814, 60.0, 2.0, 14.0 - 8.816_327),
            (Pattern::Horizontal36814, 180.0, 2.0, -11.0),
            (Pattern::M2135, 35.0, 7.5, 8.0),
            (Pattern::M2135, 180.0, 90.0, -6.0),
            (Pattern::Element38901, 32.5, 47.5, 8.0),
            (Pattern::Element38901, 180.0, 15.0, -16.0),
            (Pattern::Omni, 123.0, 45.0, 14.0),
        ];
        for (pattern, azimuth, depression, expected) in cases {
            let got = antenna(pattern).gain_db(azimuth, depression);
            assert!((got - expected).abs() < 1e-6, "{pattern:?} {azimuth} {depression} {got}");
        }
    }

    #[test]
    fn azimuths_wrap_around() {
        for (angle, expected) in [(370.0, 10.0), (-190.0, 170.0), (180.0, -180.0), (0.0, 0.0)] {
            assert_eq!(wrap_deg(angle), expected);
        }
        let antenna = antenna(Pattern::Tr36814);
        assert_eq!(antenna.gain_db(-340.0, 15.0), antenna.gain_db(20.0, 15.0));
    }

    #[test]
    fn a_column_adds_its_elements_in_phase() {
        let column = Antenna { pattern: Pattern::Column38901(10), max_gain_dbi: 8.0, downtilt_deg: 12.0 };
        // In phase: 10 lg 10 over an element at 12 degrees, 12 (12/65)^2 = 0.409.
        assert!((column.gain_db(0.0, 12.0) - (18.0 - 0.408_994)).abs() < 1e-5);
        // First null: sin(depression) - sin(12 deg) = 2/10.
        let null = libm::asin(0.2 + libm::sin(12.0f64.to_radians())).to_degrees();
        assert!(column.gain_db(0.0, null) < 8.0 - 29.0);
        let one = Antenna { pattern: Pattern::Column38901(1), ..column };
        let element = Antenna { pattern: Pattern::Element38901, downtilt_deg: 0.0, ..column };
        assert!((one.gain_db(40.0, 20.0) - element.gain_db(40.0, 20.0)).abs() < 1e-9);
    }
}
