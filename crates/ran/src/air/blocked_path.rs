//! Blockage of the path between a station and its serving cell over time (TR 38.901 §7.6.4.1, model A).
//!
//! The process of [`Blockage`] advances in steps that are short against its correlation, with the station's
//! speed and that of the blockers. All of the signal takes the loss of the line-of-sight direction, in both
//! directions of transmission. Left out: blockage of interferers, losses of single clusters, the station's
//! turns.

use crate::radio::blockage::{Blockage, Hold, Surroundings};
use crate::slot::{Numerology, Slot};
use paceline_net::Stream;

/// Blockage of the stations' paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlockageConfig {
    /// Distance, correlation and speed of the blockers.
    pub surroundings: Surroundings,
    /// How a person holds the station.
    pub hold: Hold,
}

/// Step of the process in correlation lengths. Chosen: the direction of a region, uniform over 360 degrees,
/// turns by 9 degrees in a step, less than a region's width.
const STEP_LENGTHS: f64 = 0.002;
/// Steps whose gains are kept. Chosen: CQI reports are read some steps after their slot.
const KEPT: usize = 16;

/// The blockage of one station's path.
pub(super) struct BlockedPath {
    process: Blockage,
    /// Azimuth and zenith angle of the path at the station, in degrees.
    direction_deg: (f64, f64),
    /// Length of a step in slots, seconds, and metres of the station's way.
    step_slots: u64,
    step_s: f64,
    step_m: f64,
    /// The last computed step, and the linear power gains of the last steps.
    last: u64,
    gains: [f64; KEPT],
}

impl BlockedPath {
    /// The path of a station with a speed in m/s that arrives from `direction_deg`, at a carrier of `f_ghz`.
    pub fn new(
        config: BlockageConfig,
        (direction_deg, speed_m_s): ((f64, f64), f64),
        (f_ghz, numerology): (f64, Numerology),
        mut stream: Stream,
    ) -> Self {
        // The station's orientation is random.
        let direction_deg = (direction_deg.0 + stream.uniform_in(0.0, 360.0), direction_deg.1);
        let Surroundings { correlation_m, blocker_speed_m_s, .. } = config.surroundings;
        let step_s = STEP_LENGTHS * correlation_m / (speed_m_s + blocker_speed_m_s);
        let step_slots = (step_s * numerology.slots_per_second()).clamp(1.0, u32::MAX.into()) as u64;
        let step_s = step_slots as f64 * numerology.slot_seconds();
        let process = Blockage::new(config.surroundings, f_ghz, config.hold, stream);
        let gains = [loss_gain(&process, direction_deg); KEPT];
        Self { process, direction_deg, step_slots, step_s, step_m: step_s * speed_m_s, last: 0, gains }
    }
    /// Turns the path; both directions are in degrees and without the station's own orientation, which stays.
    /// The gains of earlier slots become those of the new path.
    pub fn turn(&mut self, from_deg: (f64, f64), to_deg: (f64, f64)) {
        self.direction_deg = (self.direction_deg.0 + to_deg.0 - from_deg.0, to_deg.1);
        self.gains = [loss_gain(&self.process, self.direction_deg); KEPT];
    }
    /// Linear power gain of the path in `slot`; before the kept steps, the oldest of them.
    pub fn gain(&mut self, slot: Slot) -> f64 {
        let step = slot.0 / self.step_slots;
        while self.last < step {
            self.last += 1;
            self.process.advance(self.step_m, self.step_s);
            self.gains[self.last as usize % KEPT] = loss_gain(&self.process, self.direction_deg);
        }
        let oldest = (self.last + 1).saturating_sub(KEPT as u64);
        self.gains[step.max(oldest) as usize % KEPT]
    }
}

fn loss_gain(process: &Blockage, (azimuth_deg, zenith_deg): (f64, f64)) -> f64 {
    crate::decibel::from_db(-process.loss_db(azimuth_deg, zenith_deg))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decibel::to_db;

    fn path(zenith_deg: f64, speed_m_s: f64, blockers_m_s: f64, name: &str) -> BlockedPath {
        let config = BlockageConfig { surroundings: Surroundings::outdoor(blockers_m_s), hold: Hold::Free };
        let carrier = (28.0, Numerology::new(3).unwrap());
        BlockedPath::new(config, ((77.0, zenith_deg), speed_m_s), carrier, Stream::new(5, name))
    }

    /// Four regions reach 2 x 30 of 360 degrees in the mean: a horizontal path is blocked for 1 - (1 - 1/6)^4
    /// = 0.518 of the time. The mean loss of a region over its widths, heights and angles, by integration of
    /// the formulas at 28 GHz and 10 m, is 1.2335 dB: 4.934 dB for four, and more than 10 dB for 1 - (1 -
    /// 0.0756)^4 = 0.270 of the time.
    #[test]
    fn time_and_depth_of_blockage_hold_by_hand() {
        let (mut losses, mut stepwise, mut apart) = (Vec::new(), 0.0, 0.0);
        for station in 0..1500 {
            let mut blocked = path(90.0, 5.0, 5.0, &format!("share{station}"));
            // 2 ms per step, 0.002 correlation lengths: 16 slots of 0.125 ms.
            assert_eq!(blocked.step_slots, 16);
            let of_station: Vec<f64> = (0..200).map(|step| -to_db(blocked.gain(Slot(16 * step)))).collect();
            stepwise += (of_station[0] - of_station[1]).abs();
            apart += (of_station[0] - of_station[199]).abs();
            losses.extend(of_station);
        }
        let n = losses.len() as f64;
        let share = |above: f64| losses.iter().filter(|loss| **loss > above).count() as f64 / n;
        let mean = losses.iter().sum::<f64>() / n;
        // 1,500 independent stations: standard errors of 0.013 and 0.16 dB.
        assert!((share(1e-9) - 0.518).abs() < 0.04, "{}", share(1e-9));
        assert!((share(10.0) - 0.270).abs() < 0.04, "{}", share(10.0));
        assert!((mean - 4.934).abs() < 0.5, "{mean}");
        assert!(stepwise < 0.5 * apart, "correlated in time: {stepwise} {apart}");
    }

    #[test]
    fn a_path_from_above_is_free_and_slow_blockers_change_little() {
        let mut above = path(60.0, 1.0, 1.0, "above");
        assert!((0..1000).all(|step| above.gain(Slot(step * 800)) == 1.0));
        let mut still = path(90.0, 0.0, 0.0, "still");
        let first = still.gain(Slot(0));
        assert_eq!(still.gain(Slot(80_000_000)), first);
        let mut fast = path(90.0, 30.0, 0.0, "fast");
        assert!((fast.step_s - STEP_LENGTHS * 10.0 / 30.0).abs() < 1.25e-4);
        let _ = fast.gain(Slot(1_000_000));
    }

    #[test]
    fn earlier_slots_have_the_gain_that_they_had() {
        let mut blocked = path(90.0, 20.0, 0.0, "earlier");
        let step = blocked.step_slots;
        let then: Vec<f64> = (0..200).map(|at| blocked.gain(Slot(at * step))).collect();
        for at in 190..200 {
            assert_eq!(blocked.gain(Slot(at * step)), then[at as usize]);
        }
        let mut again = path(90.0, 20.0, 0.0, "earlier");
        assert_eq!(again.gain(Slot(199 * step)), then[199]);
    }
}
