//! Uplink power control of PUSCH (TS 36.213 §5.1.1.1) and the power headroom report (§5.1.1.2, TS 36.133 §9.1.8.4).
//!
//! `P = min(Pcmax, 10 lg M + P0 + alpha PL + Delta_TF + f)`: open loop with a fraction of the path loss, and the
//! closed-loop term `f` as the caller accumulates it (`air`, with the commands and reports of `headroom`). Left out:
//! PUCCH, SRS and random access power, the maximum power reduction, more than one carrier.

use crate::decibel::{from_db, to_db};

/// The values that alpha may take (TS 36.331, `UplinkPowerControlCommon`).
pub const ALPHAS: [f64; 8] = [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Parameters of PUSCH power control.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PowerControl {
    /// Maximum power of the station in dBm.
    pub pcmax_dbm: f64,
    /// Sum of the nominal (-126 to 24) and the station's (-8 to 7) target in dBm per resource block.
    pub p0_dbm: f64,
    /// Share of the path loss that is compensated.
    pub alpha: f64,
    /// Whether the power follows the MCS (`deltaMCS-Enabled`, K_S = 1.25).
    pub delta_mcs: bool,
}

/// One transmission, as power control sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grant {
    /// Resource blocks.
    pub blocks: u32,
    /// Bits per resource element; counts only with `delta_mcs`.
    pub bits_per_element: f64,
    /// Path loss in dB that the station has measured: the coupling loss.
    pub path_loss_db: f64,
    /// Closed-loop correction in dB.
    pub correction_db: f64,
}

impl Grant {
    /// A transmission without closed-loop correction.
    pub fn open_loop(blocks: u32, path_loss_db: f64) -> Self {
        Self { blocks, bits_per_element: 0.0, path_loss_db, correction_db: 0.0 }
    }
}

impl PowerControl {
    /// The power in dBm that the formula asks for, without the limit.
    pub fn wanted_dbm(&self, grant: &Grant) -> f64 {
        to_db(f64::from(grant.blocks)) + self.wanted_per_block_dbm(grant)
    }
    /// The power in dBm that is transmitted.
    pub fn power_dbm(&self, grant: &Grant) -> f64 {
        self.wanted_dbm(grant).min(self.pcmax_dbm)
    }
    /// The power in dBm per resource block that is transmitted.
    pub fn power_per_block_dbm(&self, grant: &Grant) -> f64 {
        self.power_dbm(grant) - to_db(f64::from(grant.blocks))
    }
    /// Power headroom in dB: negative where the formula asks for more than there is.
    pub fn headroom_db(&self, grant: &Grant) -> f64 {
        self.pcmax_dbm - self.wanted_dbm(grant)
    }
    /// The largest number of resource blocks up to `limit` that the power allows at the wanted density; at least
    /// one. `grant.blocks` does not count.
    pub fn max_blocks(&self, grant: &Grant, limit: u32) -> u32 {
        let fits = |blocks: u32| self.wanted_dbm(&Grant { blocks, ..*grant }) <= self.pcmax_dbm + 1e-9;
        let estimate = from_db(self.pcmax_dbm - self.wanted_per_block_dbm(grant)).min(f64::from(limit));
        // Rounding may have put the estimate on the wrong side of a whole number.
        let mut blocks = (estimate.floor() as u32).clamp(1, limit.max(1));
        while blocks < limit && fits(blocks + 1) {
            blocks += 1;
        }
        while blocks > 1 && !fits(blocks) {
            blocks -= 1;
        }
        blocks
    }
    fn wanted_per_block_dbm(&self, grant: &Grant) -> f64 {
        let mcs = if self.delta_mcs { delta_tf_db(grant.bits_per_element) } else { 0.0 };
        self.p0_dbm + self.alpha * grant.path_loss_db + mcs + grant.correction_db
    }
}

/// `Delta_TF = 10 lg(2^(1.25 BPRE) - 1)` in dB for data without control information.
pub fn delta_tf_db(bits_per_element: f64) -> f64 {
    to_db(libm::exp2(1.25 * bits_per_element) - 1.0)
}

/// The reported value 0..=63 of a headroom: rounded to the closest of -23, -22 .. 40 dB (TS 36.213), which are
/// `POWER_HEADROOM_0` to `_63` (TS 36.133).
pub fn headroom_index(headroom_db: f64) -> u8 {
    ((headroom_db + 0.5).floor() + 23.0).clamp(0.0, 63.0) as u8
}
/// The headroom in dB that a reported value stands for, half a dB more or less; 63 stands for 40 dB and more.
pub fn headroom_of_index(index: u8) -> f64 {
    f64::from(index.min(63)) - 23.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: PowerControl =
        PowerControl { pcmax_dbm: 23.0, p0_dbm: -80.0, alpha: 0.8, delta_mcs: false };

    #[test]
    fn power_holds_by_hand() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-3;
        // 10 lg 10 - 80 + 0.8 * 100 = 10 dBm, 13 dB below the limit, 0 dBm per block.
        let grant = Grant::open_loop(10, 100.0);
        assert!(close(CONTROL.power_dbm(&grant), 10.0) && close(CONTROL.headroom_db(&grant), 13.0));
        assert!(close(CONTROL.power_per_block_dbm(&grant), 0.0));
        // 10 lg 50 - 80 + 0.8 * 120 = 32.9897: limited, headroom -9.9897, 23 - 16.9897 per block.
        let far = Grant::open_loop(50, 120.0);
        assert!(close(CONTROL.power_dbm(&far), 23.0) && close(CONTROL.headroom_db(&far), -9.9897));
        assert!(close(CONTROL.power_per_block_dbm(&far), 6.0103));
        // Full compensation meets the target at the eNB at every path loss.
        let full = PowerControl { p0_dbm: -106.0, alpha: 1.0, ..CONTROL };
        for loss in [80.0, 100.0, 115.0] {
            let grant = Grant::open_loop(4, loss);
            assert!(close(full.power_per_block_dbm(&grant) - loss, -106.0), "{loss}");
        }
        // Closed loop and MCS: 2^(1.25 * 2) - 1 = 4.65685, 6.6810 dB.
        let adaptive = PowerControl { delta_mcs: true, ..CONTROL };
        let grant = Grant { bits_per_element: 2.0, correction_db: -1.0, ..Grant::open_loop(10, 100.0) };
        assert!(close(adaptive.power_dbm(&grant), 10.0 + 6.6809 - 1.0), "{}", adaptive.power_dbm(&grant));
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
    fn the_most_blocks_are_those_that_the_power_allows() {
        // 23 + 80 - 0.8 * 110 = 15 dB: 31.62 blocks. 116.25 dB leave exactly 10 dB, ten blocks.
        assert_eq!(CONTROL.max_blocks(&Grant::open_loop(1, 110.0), 100), 31);
        assert_eq!(CONTROL.max_blocks(&Grant::open_loop(1, 110.0), 25), 25);
        assert_eq!(CONTROL.max_blocks(&Grant::open_loop(1, 116.25), 100), 10);
        assert_eq!(CONTROL.max_blocks(&Grant::open_loop(1, 150.0), 100), 1);
        for loss in 80..150 {
            let grant = Grant::open_loop(1, f64::from(loss));
            let most = CONTROL.max_blocks(&grant, 100);
            let headroom = |blocks| CONTROL.headroom_db(&Grant { blocks, ..grant });
            assert!(most == 1 || headroom(most) >= -1e-6);
            assert!(most == 100 || headroom(most + 1) < 0.0);
        }
    }
}
