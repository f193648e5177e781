//! Blockage of a path by people and vehicles: model A of TR 38.901 §7.6.4.1, as a process.
//!
//! Four regions of a random direction and size around the station, and one of its own body, weaken the path.
//! Directions and widths vary with the way of the station and with time, correlated by `exp(-(way / d + time
//! / t))`. Angles are those of the path at the station, in degrees. The loss is computed for the
//! line-of-sight direction. Left out: losses of the single clusters, vehicles of given size (model B).

use super::shadowing::step;
use paceline_net::Stream;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, PI};

/// Number of regions without the station's own body (TR 38.901 §7.6.4.1).
const REGIONS: usize = 4;
/// Loss in dB in the region of the station's own body (TR 38.901 §7.6.4.1).
const SELF_LOSS_DB: f64 = 30.0;
/// Speed of light in m/s (TR 38.901 Table 7.4.1-1, note 5).
const SPEED: f64 = 3e8;

/// How a person holds the station: centre and span of the body's region (TR 38.901 Table 7.6.4.1-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Upright.
    Portrait,
    /// Sideways.
    Landscape,
    /// No body beside the station.
    Free,
}

/// Surroundings of the station: distance of the blockers and correlations (TR 38.901 Tables 7.6.4.1-2 and
/// -4).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Surroundings {
    /// Distance of a blocker in metres.
    pub distance_m: f64,
    /// Way in metres over which the correlation falls to 1/e.
    pub correlation_m: f64,
    /// Speed of the blockers in m/s, which gives the correlation in time.
    pub blocker_speed_m_s: f64,
}

impl Surroundings {
    /// Indoors: blockers at 2 m, a correlation over 5 m.
    pub fn indoor(blocker_speed_m_s: f64) -> Self {
        Self { distance_m: 2.0, correlation_m: 5.0, blocker_speed_m_s }
    }
    /// Outdoors: blockers at 10 m, a correlation over 10 m.
    pub fn outdoor(blocker_speed_m_s: f64) -> Self {
        Self { distance_m: 10.0, correlation_m: 10.0, blocker_speed_m_s }
    }
}

/// Blockage around one station.
#[derive(Clone, Debug)]
pub struct Blockage {
    surroundings: Surroundings,
    wavelength_m: f64,
    hold: Hold,
    /// Standard normal deviates of direction, width and height of each region.
    regions: [[f64; 3]; REGIONS],
    stream: Stream,
}

impl Blockage {
    /// Draws the regions around a station with a carrier of `f_ghz`.
    pub fn new(surroundings: Surroundings, f_ghz: f64, hold: Hold, mut stream: Stream) -> Self {
        let regions = std::array::from_fn(|_| std::array::from_fn(|_| stream.normal()));
        Self { surroundings, wavelength_m: SPEED / (f_ghz * 1e9), hold, regions, stream }
    }
    /// Moves the station by `way_m` metres in `seconds`.
    pub fn advance(&mut self, way_m: f64, seconds: f64) {
        let Surroundings { correlation_m, blocker_speed_m_s, .. } = self.surroundings;
        let lengths = (way_m + seconds * blocker_speed_m_s) / correlation_m;
        if lengths > 0.0 {
            self.regions
                .as_flattened_mut()
                .iter_mut()
                .for_each(|value| *value = step(*value, lengths, &mut self.stream));
        }
    }
    /// Loss in dB of a path that arrives from `azimuth_deg` and `zenith_deg` (90 is horizontal), both
    /// relative to the station's orientation.
    pub fn loss_db(&self, azimuth_deg: f64, zenith_deg: f64) -> f64 {
        let regions = self.regions.iter().map(|deviates| {
            let [direction, width, height] = deviates.map(|x| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2));
            // Table 7.6.4.1-2: azimuth 0 to 360, widths 15 to 45, zenith 90, heights 5 to 15 degrees.
            let azimuth = turn(azimuth_deg - 360.0 * direction);
            self.region_db(azimuth, zenith_deg - 90.0, 15.0 + 30.0 * width, 5.0 + 10.0 * height)
        });
        regions.sum::<f64>() + self.self_db(azimuth_deg, zenith_deg)
    }

    /// Loss in dB of a region with a width and height in degrees, at angles from its centre.
    fn region_db(&self, azimuth: f64, zenith: f64, width: f64, height: f64) -> f64 {
        if azimuth.abs() >= width || zenith.abs() >= height {
            return 0.0;
        }
        let screen = self.edges(azimuth, width) * self.edges(zenith, height);
        -20.0 * libm::log10(1.0 - screen)
    }
    /// Sum of the diffraction terms at both edges of a screen of `width` degrees, at an angle from its
    /// centre.
    fn edges(&self, angle: f64, width: f64) -> f64 {
        let edge = |from_edge: f64| {
            let excess = 1.0 / libm::cos(from_edge.to_radians()) - 1.0;
            let argument =
                FRAC_PI_2 * (PI / self.wavelength_m * self.surroundings.distance_m * excess).sqrt();
            libm::atan(argument) / PI
        };
        let (far, near) = (edge(angle.abs() + width / 2.0), edge(angle.abs() - width / 2.0));
        // Table 7.6.4.1-3: outside the screen, the nearer edge counts against the other.
        if angle.abs() <= width / 2.0 { far + near } else { far - near }
    }
    fn self_db(&self, azimuth_deg: f64, zenith_deg: f64) -> f64 {
        // Table 7.6.4.1-1: centre and span in azimuth, centre and span in zenith.
        let (azimuth, width, zenith, height) = match self.hold {
            Hold::Portrait => (260.0, 120.0, 100.0, 80.0),
            Hold::Landscape => (40.0, 160.0, 110.0, 75.0),
            Hold::Free => return 0.0,
        };
        let inside =
            turn(azimuth_deg - azimuth).abs() <= width / 2.0 && (zenith_deg - zenith).abs() <= height / 2.0;
        if inside { SELF_LOSS_DB } else { 0.0 }
    }
}

/// An angle in degrees in -180 to 180.
fn turn(angle_deg: f64) -> f64 {
    angle_deg - 360.0 * ((angle_deg + 180.0) / 360.0).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blockage(name: &str, hold: Hold) -> Blockage {
        Blockage::new(Surroundings::outdoor(1.0), 28.0, hold, Stream::new(1, name))
    }

    #[test]
    fn the_loss_of_a_screen_holds_by_hand() {
        let blockage = blockage("hand", Hold::Free);
        // 30 by 10 degrees at 10 m, 28 GHz, in the middle: F = atan(pi/2 sqrt(2932 (1/cos 15 - 1))) / pi =
        // 0.4801 twice, and 0.4404 twice for 5 degrees: -20 lg(1 - 0.9602 * 0.8808) = 16.3 dB.
        let middle = blockage.region_db(0.0, 0.0, 30.0, 10.0);
        assert!((middle - 16.3).abs() < 0.1, "{middle}");
        // At an edge, half of the field arrives: 6 dB less the other edge's terms.
        let edge = blockage.region_db(15.0, 0.0, 30.0, 10.0);
        assert!((edge - 4.9).abs() < 0.3, "{edge}");
        assert_eq!(blockage.region_db(30.0, 0.0, 30.0, 10.0), 0.0);
        let losses: Vec<f64> =
            (0..300).map(|i| blockage.region_db(f64::from(i) * 0.1, 0.0, 30.0, 10.0)).collect();
        assert!(losses.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9));
    }

    #[test]
    fn horizontal_paths_are_blocked_in_their_share_of_the_time() {
        // Four regions with a mean reach of 2 x 30 of 360 degrees: 1 - (1 - 1/6)^4 = 0.518 of the directions.
        let n = 20_000;
        let blocked = (0..n).filter(|i| blockage(&format!("share{i}"), Hold::Free).loss_db(77.0, 90.0) > 0.0);
        let share = blocked.count() as f64 / f64::from(n);
        assert!((share - 0.518).abs() < 0.015, "{share}");
    }

    #[test]
    fn the_body_blocks_its_region() {
        let [portrait, landscape] = [Hold::Portrait, Hold::Landscape].map(|hold| blockage("body", hold));
        let free = blockage("body", Hold::Free);
        for (azimuth, zenith, upright, sideways) in [
            (260.0, 90.0, 30.0, 0.0),
            (-100.0, 90.0, 30.0, 0.0),
            (40.0, 110.0, 0.0, 30.0),
            (260.0, 20.0, 0.0, 0.0),
        ] {
            let none = free.loss_db(azimuth, zenith);
            assert!((portrait.loss_db(azimuth, zenith) - none - upright).abs() < 1e-9);
            assert!((landscape.loss_db(azimuth, zenith) - none - sideways).abs() < 1e-9);
        }
    }

    #[test]
    fn blockage_decorrelates_over_time_and_stands_still_without() {
        let mut process = blockage("time", Hold::Free);
        let before = process.regions;
        process.advance(0.0, 0.0);
        assert_eq!(process.regions, before);
        // 10 m of correlation at 1 m/s: after 2.5 s the correlation of the deviates is exp(-0.25).
        let (mut products, mut count) = (0.0, 0.0);
        for i in 0..4000 {
            let mut process = blockage(&format!("time{i}"), Hold::Free);
            let before = process.regions;
            process.advance(0.0, 2.5);
            for (a, b) in before.as_flattened().iter().zip(process.regions.as_flattened()) {
                products += a * b;
                count += 1.0;
            }
        }
        assert!((products / count - libm::exp(-0.25)).abs() < 0.03, "{}", products / count);
    }
}
