//! Table `[deployment]`: sites, propagation and power control around the stations.
//!
//! The sectors of the served sites are simulated with their stations, which stand where one of them is the best cell;
//! the cells of the other sites transmit at the stated load. Parameter sets are those of
//! `crates/ran/src/radio/deployment.rs`, with their sources.

use paceline_net::Duration;
use paceline_net::units::Db;
use serde::{Deserialize, Serialize};

/// A network of sites.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deployment {
    /// Parameter set: `3gpp-case1`, `3gpp-case3`, `uma-m2135`, `umi-m2135`, `uma-38901` or `umi-38901`.
    pub model: DeploymentModel,
    /// Sites of three sectors: 1, 7 or 19.
    pub sites: u32,
    /// Sites whose cells are simulated with their stations, the middle one first: 1 to `sites`.
    pub served_sites: u32,
    /// Whether copies of the network surround it (7 or 19 sites).
    pub wrap_around: bool,
    /// Share of resource blocks that the other sites' cells use, in both directions: 0 quiet, 1 full buffer.
    pub neighbour_load: f64,
    /// Fast fading of the stations' links (TS 36.101 Annex B.2): `none`, `epa`, `eva` or `etu`.
    pub fading: FadingProfile,
    /// Speed of the stations in km/h, for the Doppler spread alone.
    pub speed_kmh: f64,
    /// P0 of uplink power control in dBm per resource block (TS 36.213 §5.1.1.1).
    pub p0_dbm: f64,
    /// Share of the path loss that the uplink compensates: 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 or 1.
    pub alpha: f64,
    /// SINR that TPC commands in uplink grants aim at (TS 36.213 §5.1.1.1, accumulated); open loop if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpc_target: Option<Db>,
    /// periodicPHR-Timer: 10, 20, 50, 100, 200, 500 or 1000 ms (TS 36.331); 0 for infinity.
    pub periodic_phr_timer: Duration,
    /// prohibitPHR-Timer: 0, 10, 20, 50, 100, 200, 500 or 1000 ms (TS 36.331).
    pub prohibit_phr_timer: Duration,
    /// dl-PathlossChange that triggers a report: 1, 3 or 6 dB (TS 36.331); 0 for infinity. Stations stand still here,
    /// and fast fading does not count.
    pub path_loss_change_db: u32,
}

impl Default for Deployment {
    fn default() -> Self {
        Self {
            model: DeploymentModel::Case1,
            sites: 7,
            served_sites: 1,
            wrap_around: false,
            neighbour_load: 1.0,
            fading: FadingProfile::None,
            speed_kmh: 3.0,
            p0_dbm: -85.0,
            alpha: 0.8,
            tpc_target: None,
            periodic_phr_timer: Duration::from_millis(100),
            prohibit_phr_timer: Duration::from_millis(20),
            path_loss_change_db: 3,
        }
    }
}

/// A parameter set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DeploymentModel {
    /// 3GPP case 1, TR 36.814 Table A.2.1.1-1: 500 m between sites.
    #[serde(rename = "3gpp-case1")]
    Case1,
    /// 3GPP case 3: 1732 m.
    #[serde(rename = "3gpp-case3")]
    Case3,
    /// Urban macro of ITU-R M.2135.
    #[serde(rename = "uma-m2135")]
    UmaM2135,
    /// Urban micro of ITU-R M.2135.
    #[serde(rename = "umi-m2135")]
    UmiM2135,
    /// Urban macro of the TR 38.901 calibration.
    #[serde(rename = "uma-38901")]
    Uma38901,
    /// Urban micro of the TR 38.901 calibration.
    #[serde(rename = "umi-38901")]
    Umi38901,
}

/// A tapped delay line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FadingProfile {
    /// Constant channels.
    None,
    /// Extended Pedestrian A.
    Epa,
    /// Extended Vehicular A.
    Eva,
    /// Extended Typical Urban.
    Etu,
}

impl FadingProfile {
    /// Its name in the table of taps.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Epa => "EPA",
            Self::Eva => "EVA",
            Self::Etu => "ETU",
        }
    }
}
