//! Uplink power control of PUSCH (TS 36.213 §5.1.1.1, TS 38.213 §7.1.1) and the power headroom (TS 36.213
//! §5.1.1.2, TS 36.133 §9.1.8.4; TS 38.213 §7.7.1, TS 38.133 §10.1.17.1).
//!
//! `P = min(Pcmax, 10 lg M + P0 + alpha PL + Delta_TF + f)`, in NR with `10 lg(2^mu M)`: open loop with
//! fractional path loss compensation; the caller accumulates the closed-loop term `f`. A station cannot send
//! with less than its minimum output power. Left out: power of PUCCH, SRS and random access, maximum power
//! reduction, carrier aggregation.

use crate::decibel::to_db;
use crate::nr::carrier::FrequencyRange;
use crate::slot::Numerology;

/// The values that alpha may take (TS 36.331 §6.3.2, `UplinkPowerControlCommon`).
pub const ALPHAS: [f64; 8] = [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Minimum output power of a station of LTE, and of NR up to 20 MHz, in dBm over all PRBs of a transmission
/// (TS 36.101 §6.3.2, TS 38.101-1 Table 6.3.1-1).
pub const MIN_POWER_DBM: f64 = -40.0;
/// Minimum output power of power class 3 in FR2, in dBm (TS 38.101-2 §6.3.1.3).
const MIN_POWER_FR2_DBM: f64 = -13.0;

/// Minimum output power of a station of NR in dBm in a channel of so many MHz: in FR1 by the formula of TS
/// 38.101-1 Table 6.3.1-1.
pub fn nr_min_power_dbm(range: FrequencyRange, mhz: f64) -> f64 {
    match range {
        FrequencyRange::Fr1 => MIN_POWER_DBM + (10.0 * to_db((mhz / 20.0).max(1.0))).round() / 10.0,
        FrequencyRange::Fr2 => MIN_POWER_FR2_DBM,
    }
}

/// Parameters of PUSCH power control.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerControl {
    /// Maximum power of the station in dBm.
    pub pcmax_dbm: f64,
    /// Minimum output power of the station in dBm.
    pub min_dbm: f64,
    /// P0 in dBm per PRB: sum of the nominal (-126 to 24) and the station-specific (-8 to 7) value.
    pub p0_dbm: f64,
    /// Share of the path loss that is compensated.
    pub alpha: f64,
    /// Whether the power depends on the MCS (`deltaMCS-Enabled`, K_S = 1.25).
    pub delta_mcs: bool,
}

/// The properties of a PUSCH transmission that its power depends on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PuschTransmission {
    /// Number of PRBs.
    pub n_prb: u32,
    /// Bits per resource element; used only with `delta_mcs`.
    pub bits_per_element: f64,
    /// Path loss in dB measured by the station: the coupling loss.
    pub path_loss_db: f64,
    /// Closed-loop correction f in dB.
    pub correction_db: f64,
}

impl PuschTransmission {
    /// A transmission without closed-loop correction.
    pub fn open_loop(n_prb: u32, path_loss_db: f64) -> Self {
        Self { n_prb, bits_per_element: 0.0, path_loss_db, correction_db: 0.0 }
    }
}

impl PowerControl {
    /// Power in dBm by the formula without the limit Pcmax and the minimum output power.
    pub fn unlimited_dbm(&self, pusch: &PuschTransmission) -> f64 {
        to_db(f64::from(pusch.n_prb)) + self.unlimited_per_prb_dbm(pusch)
    }
    /// Transmitted power in dBm.
    pub fn power_dbm(&self, pusch: &PuschTransmission) -> f64 {
        self.unlimited_dbm(pusch).min(self.pcmax_dbm).max(self.min_dbm)
    }
    /// Transmitted power in dBm per PRB.
    pub fn power_per_prb_dbm(&self, pusch: &PuschTransmission) -> f64 {
        self.power_dbm(pusch) - to_db(f64::from(pusch.n_prb))
    }
    /// Power headroom in dB; negative where the formula exceeds Pcmax.
    pub fn headroom_db(&self, pusch: &PuschTransmission) -> f64 {
        self.pcmax_dbm - self.unlimited_dbm(pusch)
    }
    /// The control for PRBs of a numerology: P0 is the power per PRB of 180 kHz, and TS 38.213 §7.1.1 adds 10
    /// lg 2^mu. In LTE the control is unchanged.
    #[must_use]
    pub fn per_prb_of(self, numerology: Numerology) -> Self {
        Self { p0_dbm: self.p0_dbm + to_db(f64::from(1u32 << numerology.mu())), ..self }
    }
    fn unlimited_per_prb_dbm(&self, pusch: &PuschTransmission) -> f64 {
        let mcs = if self.delta_mcs { delta_tf_db(pusch.bits_per_element) } else { 0.0 };
        self.p0_dbm + self.alpha * pusch.path_loss_db + mcs + pusch.correction_db
    }
}

/// `Delta_TF = 10 lg(2^(1.25 BPRE) - 1)` in dB for data without control information (TS 36.213 §5.1.1.1).
pub fn delta_tf_db(bits_per_element: f64) -> f64 {
    to_db(libm::exp2(1.25 * bits_per_element) - 1.0)
}

/// The reported value 0..=63 of a headroom: rounded to the closest of -23, -22 .. 40 dB (TS 36.213 §5.1.1.2),
/// which are `POWER_HEADROOM_0` to `_63` (TS 36.133 §9.1.8.4).
pub fn headroom_index(headroom_db: f64) -> u8 {
    ((headroom_db + 0.5).floor() + 23.0).clamp(0.0, 63.0) as u8
}
/// The headroom in dB of a reported value, within half a dB; 63 means 40 dB or more.
pub fn headroom_of_index(index: u8) -> f64 {
    f64::from(index.min(63)) - 23.0
}

/// The reported values of a power headroom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeadroomTable {
    /// Steps of 1 dB from -23 to 40 dB (TS 36.133 §9.1.8.4).
    #[default]
    Lte,
    /// Steps of 1 dB from -32 to 22 dB and of 2 dB to 38 dB (TS 38.133 Table 10.1.17.1-1).
    Nr,
}

impl HeadroomTable {
    /// The reported value 0..=63 of a headroom.
    pub fn index(self, headroom_db: f64) -> u8 {
        match self {
            Self::Lte => headroom_index(headroom_db),
            Self::Nr if headroom_db < 22.0 => (headroom_db + 33.0).floor().clamp(0.0, 54.0) as u8,
            Self::Nr => (55.0 + ((headroom_db - 22.0) / 2.0).floor()).min(63.0) as u8,
        }
    }
    /// The headroom in dB of a reported value: in LTE within half a dB, in NR the lower end of its interval.
    pub fn headroom_db(self, index: u8) -> f64 {
        match (self, index) {
            (Self::Lte, _) => headroom_of_index(index),
            (Self::Nr, 0..=54) => f64::from(index) - 33.0,
            (Self::Nr, _) => 22.0 + 2.0 * (f64::from(index.min(63)) - 55.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: PowerControl =
        PowerControl { pcmax_dbm: 23.0, min_dbm: -40.0, p0_dbm: -80.0, alpha: 0.8, delta_mcs: false };

    #[test]
    fn the_minimum_power_of_nr_follows_the_bandwidth() {
        let fr1 = |mhz| nr_min_power_dbm(FrequencyRange::Fr1, mhz);
        let values = [5.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 80.0, 90.0, 100.0].map(fr1);
        assert_eq!(values, [-40.0, -40.0, -39.0, -38.2, -37.0, -36.0, -35.2, -34.0, -33.5, -33.0]);
        assert_eq!(nr_min_power_dbm(FrequencyRange::Fr2, 400.0), -13.0);
        let control = PowerControl { min_dbm: -33.0, p0_dbm: -106.0, ..CONTROL };
        assert_eq!(control.power_dbm(&PuschTransmission::open_loop(1, 70.0)), -33.0);
    }

    #[test]
    fn power_holds_by_hand() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-3;
        // 10 lg 10 - 80 + 0.8 * 100 = 10 dBm, 13 dB below the limit, 0 dBm per PRB.
        let grant = PuschTransmission::open_loop(10, 100.0);
        assert!(close(CONTROL.power_dbm(&grant), 10.0) && close(CONTROL.headroom_db(&grant), 13.0));
        assert!(close(CONTROL.power_per_prb_dbm(&grant), 0.0));
        // 10 lg 50 - 80 + 0.8 * 120 = 32.9897: limited, headroom -9.9897, 23 - 16.9897 per PRB.
        let far = PuschTransmission::open_loop(50, 120.0);
        assert!(close(CONTROL.power_dbm(&far), 23.0) && close(CONTROL.headroom_db(&far), -9.9897));
        assert!(close(CONTROL.power_per_prb_dbm(&far), 6.0103));
        // With full compensation the eNB receives P0 at every path loss.
        let full = PowerControl { p0_dbm: -106.0, alpha: 1.0, ..CONTROL };
        for loss in [80.0, 100.0, 115.0] {
            let grant = PuschTransmission::open_loop(4, loss);
            assert!(close(full.power_per_prb_dbm(&grant) - loss, -106.0), "{loss}");
        }
        // Closed loop and MCS: 2^(1.25 * 2) - 1 = 4.65685, 6.6810 dB.
        let adaptive = PowerControl { delta_mcs: true, ..CONTROL };
        let grant = PuschTransmission {
            bits_per_element: 2.0,
            correction_db: -1.0,
            ..PuschTransmission::open_loop(10, 100.0)
        };
        assert!(close(adaptive.power_dbm(&grant), 10.0 + 6.6809 - 1.0), "{}", adaptive.power_dbm(&grant));
    }

    #[test]
    fn a_station_sends_no_less_than_the_minimum_output_power() {
        // -106 + 0.8 * 70 = -50 dBm in one PRB, -40 dBm in ten.
        let weak = PowerControl { p0_dbm: -106.0, ..CONTROL };
        for (n_prb, power_dbm) in [(1, -40.0), (2, -40.0), (10, -40.0), (20, -36.9897)] {
            let grant = PuschTransmission::open_loop(n_prb, 70.0);
            assert!((weak.power_dbm(&grant) - power_dbm).abs() < 1e-3, "{n_prb} PRBs");
            // The headroom is that of the formula (TS 36.213 §5.1.1.2).
            let formula = -50.0 + to_db(f64::from(n_prb));
            assert!((weak.headroom_db(&grant) - (23.0 - formula)).abs() < 1e-9, "{n_prb} PRBs");
        }
    }

    #[test]
    fn power_of_wider_prbs_holds_by_hand() {
        // TS 38.213 §7.1.1 at 30 kHz: 10 lg(2 * 10) - 80 + 0.8 * 100 = 13.0103 dBm.
        let control = CONTROL.per_prb_of(Numerology::new(1).unwrap());
        let grant = PuschTransmission::open_loop(10, 100.0);
        assert!((control.power_dbm(&grant) - 13.0103).abs() < 1e-4);
        // Four times the bandwidth at 120 kHz of 30 kHz: 6.0206 dB.
        let wide = CONTROL.per_prb_of(Numerology::new(3).unwrap());
        assert!((wide.unlimited_dbm(&grant) - control.unlimited_dbm(&grant) - 6.0206).abs() < 1e-4);
        assert_eq!(CONTROL.per_prb_of(Numerology::LTE), CONTROL);
        // Class 2: 26 dBm.
        let class2 = PowerControl { pcmax_dbm: 26.0, ..control };
        assert_eq!(class2.power_dbm(&PuschTransmission::open_loop(273, 120.0)), 26.0);
    }

    /// TS 38.133 Table 10.1.17.1-1: first and last values, and both sides of the change of steps.
    #[test]
    fn headroom_of_nr_is_reported_in_its_intervals() {
        for (headroom_db, index) in [
            (-40.0, 0),
            (-32.01, 0),
            (-32.0, 1),
            (-31.0, 2),
            (0.0, 33),
            (20.99, 53),
            (21.0, 54),
            (21.99, 54),
            (22.0, 55),
            (23.99, 55),
            (24.0, 56),
            (37.99, 62),
            (38.0, 63),
            (90.0, 63),
        ] {
            assert_eq!(HeadroomTable::Nr.index(headroom_db), index, "{headroom_db}");
        }
        for table in [HeadroomTable::Lte, HeadroomTable::Nr] {
            for index in 0..=63 {
                assert_eq!(table.index(table.headroom_db(index)), index, "{table:?}");
            }
        }
    }

    #[test]
    fn headroom_is_reported_in_steps_of_one_decibel() {
        let cases =
            [(-30.0, 0), (-23.0, 0), (-22.6, 0), (-22.4, 1), (-0.6, 22), (0.0, 23), (0.4, 23), (39.4, 62)];
        for (headroom, index) in cases {
            assert_eq!(headroom_index(headroom), index, "{headroom}");
        }
        assert_eq!((headroom_index(39.5), headroom_index(90.0)), (63, 63));
        assert_eq!((headroom_of_index(0), headroom_of_index(23), headroom_of_index(63)), (-23.0, 0.0, 40.0));
    }

    #[test]
    fn headroom_is_negative_beyond_the_prbs_that_the_power_allows() {
        // 23 + 80 - 0.8 * 110 = 15 dB: 31.62 PRBs. 116.25 dB leave exactly 10 dB, ten PRBs.
        for (path_loss_db, most) in [(110.0, 31), (116.25, 10), (103.75, 100)] {
            let headroom = |n_prb| CONTROL.headroom_db(&PuschTransmission::open_loop(n_prb, path_loss_db));
            assert!(headroom(most) >= -1e-6 && headroom(most + 1) < 0.0, "{path_loss_db} dB");
        }
    }
}
