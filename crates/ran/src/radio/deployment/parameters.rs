//! Parameter sets of system simulations: 3GPP case 1 and 3 (TR 25.814, TR 36.814 Table A.2.1.1-1), urban
//! macro and micro of ITU-R M.2135, the large-scale calibration of TR 38.901 Table 7.8-1 at 6 GHz, and its
//! rural macro.

use crate::decibel::to_db;
use crate::radio::propagation::antenna::{Antenna, Pattern};
use crate::radio::propagation::path_loss::{Heights, PathLossModel};
use crate::slot::Numerology;

/// Thermal noise density in dBm/Hz. Follows from kT at 290 K.
pub const NOISE_DENSITY_DBM: f64 = -174.0;

/// Penetration loss of a station, added to path loss and shadowing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Penetration {
    /// This loss in dB for every station.
    Fixed(f64),
    /// TR 38.901 §7.4.3: this share of the stations is indoors on a random floor (Table 7.2-1, note on UMa
    /// and UMi), half of them in low-loss and half in high-loss buildings.
    Indoor38901(f64),
    /// TR 38.901 §7.4.3: this share of the stations is indoors on the ground floor in low-loss buildings, the
    /// others are in cars (Table 7.2-3).
    Rural38901(f64),
}

/// Places of the sites.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteLayout {
    /// Hexagons: 1, 7 or 19 sites.
    Hexagonal,
    /// The hall of TR 38.901 Table 7.2-2: 12 sites, without wrap-around.
    Hall,
}

/// The parameters of a network that determine its coupling gains.
#[derive(Clone, PartialEq, Debug)]
pub struct DeploymentConfig {
    /// Places of the sites.
    pub layout: SiteLayout,
    /// Number of sites: 1, 7 or 19; 12 in a hall.
    pub sites: usize,
    /// Whether six copies of the network surround it.
    pub wrap_around: bool,
    /// Distance of neighbouring sites in metres.
    pub isd_m: f64,
    /// Carrier frequency in GHz.
    pub carrier_ghz: f64,
    /// PRBs of the carrier.
    pub resource_blocks: u32,
    /// Numerology, which determines the bandwidth of a PRB.
    pub numerology: Numerology,
    /// Path loss and shadowing.
    pub model: PathLossModel,
    /// Correlation of the shadowing towards two sites: 0.5 in TR 36.814 A.2.1.1, 0 in TR 38.901 §7.5 (step
    /// 4).
    pub site_correlation: f64,
    /// Antenna of every sector.
    pub antenna: Antenna,
    /// Gain of a station's antenna in dBi.
    pub ue_antenna_dbi: f64,
    /// Antenna heights; for stations, that of one outdoors.
    pub heights: Heights,
    /// Power of a cell in dBm over all PRBs.
    pub enb_power_dbm: f64,
    /// Maximum power of a station in dBm.
    pub ue_power_dbm: f64,
    /// Noise figure of a base station in dB.
    pub enb_noise_figure_db: f64,
    /// Noise figure of a station in dB.
    pub ue_noise_figure_db: f64,
    /// Loss into buildings and vehicles.
    pub penetration: Penetration,
    /// Smallest distance in metres between a station and a site.
    pub min_distance_m: f64,
    /// Smallest loss in dB between the antenna ports of a station and a cell.
    pub min_coupling_loss_db: f64,
}

impl DeploymentConfig {
    /// 3GPP case 1 with the antenna of TR 36.814 in three dimensions, 10 MHz: 500 m, 20 dB penetration, 46
    /// dBm. The height of 32 m is that of TR 36.814 A.2.1.1; distances of the path loss are horizontal.
    pub fn case1() -> Self {
        Self {
            layout: SiteLayout::Hexagonal,
            sites: 19,
            wrap_around: true,
            isd_m: 500.0,
            carrier_ghz: 2.0,
            resource_blocks: 50,
            numerology: Numerology::LTE,
            model: PathLossModel::Case1,
            site_correlation: 0.5,
            antenna: Antenna { pattern: Pattern::Tr36814, max_gain_dbi: 14.0, downtilt_deg: 15.0 },
            ue_antenna_dbi: 0.0,
            heights: Heights { bs_m: 32.0, ut_m: 1.5 },
            enb_power_dbm: 46.0,
            ue_power_dbm: 23.0,
            enb_noise_figure_db: 5.0,
            ue_noise_figure_db: 9.0,
            penetration: Penetration::Fixed(20.0),
            min_distance_m: 35.0,
            min_coupling_loss_db: 70.0,
        }
    }
    /// 3GPP case 3: case 1 with 1732 m between sites and a downtilt of 6 degrees.
    pub fn case3() -> Self {
        let antenna = Antenna { downtilt_deg: 6.0, ..Self::case1().antenna };
        Self { isd_m: 1732.0, antenna, ..Self::case1() }
    }
    /// Urban macro of M.2135: 500 m, 2 GHz, 17 dBi less 2 dB of feeder. Stations count as outdoors, and
    /// coupling losses have no minimum.
    pub fn uma_m2135() -> Self {
        Self {
            model: PathLossModel::UmaM2135,
            antenna: Antenna { pattern: Pattern::M2135, max_gain_dbi: 15.0, downtilt_deg: 12.0 },
            heights: Heights { bs_m: 25.0, ut_m: 1.5 },
            ue_power_dbm: 24.0,
            ue_noise_figure_db: 7.0,
            penetration: Penetration::Fixed(0.0),
            min_distance_m: 25.0,
            min_coupling_loss_db: 0.0,
            ..Self::case1()
        }
    }
    /// Urban micro of M.2135: as the macro, with 200 m, 2.5 GHz, 10 m height, 41 dBm.
    pub fn umi_m2135() -> Self {
        Self {
            model: PathLossModel::UmiM2135,
            isd_m: 200.0,
            carrier_ghz: 2.5,
            heights: Heights { bs_m: 10.0, ut_m: 1.5 },
            enb_power_dbm: 41.0,
            min_distance_m: 10.0,
            ..Self::uma_m2135()
        }
    }
    /// Urban macro of the large-scale calibration of TR 38.901: 500 m, 6 GHz, 49 dBm in 20 MHz, a column of
    /// ten elements, 80% of the stations indoors. Coupling losses have no minimum there.
    pub fn uma_38901() -> Self {
        Self {
            model: PathLossModel::Uma38901,
            carrier_ghz: 6.0,
            resource_blocks: 100,
            antenna: Antenna { pattern: Pattern::Column38901(10), max_gain_dbi: 8.0, downtilt_deg: 12.0 },
            heights: Heights { bs_m: 25.0, ut_m: 1.5 },
            enb_power_dbm: 49.0,
            penetration: Penetration::Indoor38901(0.8),
            min_distance_m: 35.0,
            min_coupling_loss_db: 0.0,
            ..Self::case1()
        }
    }
    /// Urban micro of the large-scale calibration of TR 38.901: as the macro, with 200 m, 10 m height, 44
    /// dBm.
    pub fn umi_38901() -> Self {
        Self {
            model: PathLossModel::Umi38901,
            isd_m: 200.0,
            heights: Heights { bs_m: 10.0, ut_m: 1.5 },
            enb_power_dbm: 44.0,
            min_distance_m: 10.0,
            ..Self::uma_38901()
        }
    }
    /// Rural macro of TR 38.901 Table 7.2-3: 1732 m between sites, antennas at 35 m, half of the stations
    /// indoors (low-loss buildings) and half in cars. Carrier, power and downtilt are not stated there.
    /// Chosen: 700 MHz, and power, bandwidth and downtilt of case 3.
    pub fn rma_38901() -> Self {
        let antenna = Antenna { downtilt_deg: 6.0, ..Self::uma_38901().antenna };
        Self {
            model: PathLossModel::Rma38901,
            isd_m: 1732.0,
            carrier_ghz: 0.7,
            resource_blocks: 50,
            antenna,
            heights: Heights { bs_m: 35.0, ut_m: 1.5 },
            enb_power_dbm: 46.0,
            penetration: Penetration::Rural38901(0.5),
            site_correlation: 0.0,
            ..Self::uma_38901()
        }
    }
    /// Indoor hotspot, open office, of the large-scale calibration of TR 38.901 (Tables 7.2-2 and 7.8-1): 12
    /// sites in a hall of 120 m by 50 m, 6 GHz, 24 dBm in 20 MHz, a column of ten elements with 20 degrees of
    /// downtilt at 3 m, stations at 1 m.
    pub fn inh_open_38901() -> Self {
        let antenna = Antenna { downtilt_deg: 20.0, ..Self::uma_38901().antenna };
        Self {
            layout: SiteLayout::Hall,
            sites: 12,
            wrap_around: false,
            isd_m: 20.0,
            model: PathLossModel::InhOpen38901,
            antenna,
            heights: Heights { bs_m: 3.0, ut_m: 1.0 },
            enb_power_dbm: 24.0,
            penetration: Penetration::Fixed(0.0),
            min_distance_m: 0.0,
            site_correlation: 0.0,
            ..Self::uma_38901()
        }
    }
    /// The indoor hotspot in a mixed office.
    pub fn inh_mixed_38901() -> Self {
        Self { model: PathLossModel::InhMixed38901, ..Self::inh_open_38901() }
    }
    /// The network with another number of PRBs of a numerology at the same power density: case 1 then has 49
    /// dBm in 20 MHz.
    #[must_use]
    pub fn with_carrier(self, resource_blocks: u32, numerology: Numerology) -> Self {
        let wider = numerology.prb_hz() / self.numerology.prb_hz();
        let ratio = f64::from(resource_blocks) / f64::from(self.resource_blocks) * wider;
        Self { enb_power_dbm: self.enb_power_dbm + to_db(ratio), resource_blocks, numerology, ..self }
    }
    /// Power of a cell in dBm per PRB.
    pub fn enb_power_per_prb_dbm(&self) -> f64 {
        self.enb_power_dbm - to_db(f64::from(self.resource_blocks))
    }
}

/// Thermal noise in dBm per PRB of a numerology at a receiver with `noise_figure_db`.
pub fn noise_per_prb_dbm(numerology: Numerology, noise_figure_db: f64) -> f64 {
    NOISE_DENSITY_DBM + to_db(numerology.prb_hz()) + noise_figure_db
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_and_power_per_prb_hold_by_hand() {
        // 10 lg 180e3 = 52.5527.
        assert!((noise_per_prb_dbm(Numerology::LTE, 9.0) + 112.4473).abs() < 1e-4);
        assert!((noise_per_prb_dbm(Numerology::LTE, 5.0) + 116.4473).abs() < 1e-4);
        // 46 - 10 lg 50 = 29.0103.
        let config = DeploymentConfig::case1();
        assert!((config.enb_power_per_prb_dbm() - 29.0103).abs() < 1e-4);
        let wide = config.clone().with_carrier(100, Numerology::LTE);
        assert!((wide.enb_power_dbm - 49.0103).abs() < 1e-4);
        assert!((wide.enb_power_per_prb_dbm() - 29.0103).abs() < 1e-4);
        // A PRB of 30 kHz has twice the bandwidth, and at the same density twice the power.
        let nr = config.with_carrier(51, Numerology::new(1).unwrap());
        assert!((nr.enb_power_per_prb_dbm() - 29.0103 - 3.0103).abs() < 1e-4);
    }
}
