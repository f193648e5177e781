//! Table `[deployment]`: sites, propagation and power control around the stations.
//!
//! The sectors of the served sites are simulated with their stations. Each station stands where one of these
//! sectors is its best cell. The cells of the other sites transmit at the stated load. The parameter sets and
//! their sources are in `crates/ran/src/radio/deployment/parameters.rs`.

use crate::limits::{self, Limit, Section, key, numbers, one_of, one_of_ms, quantities, relation};
use paceline_net::Duration;
use paceline_net::units::Db;
use paceline_ran::radio::{DeploymentConfig, Layout, Point, power_control};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table `[deployment]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = limits::describe::<Self>)]
pub struct Deployment {
    /// Parameter set of sites, antennas and propagation.
    pub model: DeploymentModel,
    /// Carrier frequency. Default: the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_ghz: Option<f64>,
    /// Power of a cell over its bandwidth. Default: the model's power per hertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_power_dbm: Option<f64>,
    /// Sites, each with three sectors; 12 in the indoor hotspot (TR 38.901 Table 7.2-2).
    pub sites: u32,
    /// Sites whose cells and stations are simulated, the middle one first.
    pub served_sites: u32,
    /// Whether copies of the network surround it, as neighbours of outer sites.
    pub wrap_around: bool,
    /// Share of resource blocks that cells of other sites use: 0 is no load, 1 full buffer.
    pub neighbour_load: f64,
    /// Fast fading of the stations' links (TS 36.101 Annex B.2; TDL: TS 38.101-4 Annex B.2.1).
    pub fading: FadingProfile,
    /// Speed of the stations, for Doppler spread and blockage. Only stations with a `path` change their
    /// places.
    pub speed_kmh: f64,
    /// Blockage by people and vehicles (TR 38.901 §7.6.4, model A), which matters above 24 GHz.
    pub blockage: BlockageModel,
    /// Speed of people or vehicles that block paths.
    pub blocker_speed_kmh: f64,
    /// How a person holds the station: the body blocks some directions.
    pub held: Held,
    /// Maximum power of a station (TS 38.101-1 Table 6.2.1-1: 23 dBm in class 3, 26 dBm in class 2). Default:
    /// the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station_power_dbm: Option<f64>,
    /// P0 of uplink power control, per resource block of 180 kHz (TS 36.213 §5.1.1.1, TS 38.213 §7.1.1).
    pub p0_dbm: f64,
    /// Share of the path loss that uplink power control compensates (TS 36.213 §5.1.1.1).
    pub alpha: f64,
    /// SINR at which TPC commands aim (TS 36.213 §5.1.1.1, accumulated). Default: open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpc_target: Option<Db>,
    /// periodicPHR-Timer (TS 36.331); 0 for infinity.
    pub periodic_phr_timer: Duration,
    /// prohibitPHR-Timer (TS 36.331).
    pub prohibit_phr_timer: Duration,
    /// dl-PathlossChange that triggers a power headroom report (TS 36.331), without fast fading; 0 for
    /// infinity.
    pub path_loss_change_db: u32,
}

impl Default for Deployment {
    fn default() -> Self {
        Self {
            model: DeploymentModel::Case1,
            carrier_ghz: None,
            cell_power_dbm: None,
            sites: 7,
            served_sites: 1,
            wrap_around: false,
            neighbour_load: 1.0,
            fading: FadingProfile::None,
            speed_kmh: 3.0,
            blockage: BlockageModel::None,
            blocker_speed_kmh: 3.0,
            held: Held::Free,
            station_power_dbm: None,
            p0_dbm: -85.0,
            alpha: 0.8,
            tpc_target: None,
            periodic_phr_timer: Duration::from_millis(100),
            prohibit_phr_timer: Duration::from_millis(20),
            path_loss_change_db: 3,
        }
    }
}

impl Section for Deployment {
    fn limits() -> Vec<Limit<Self>> {
        let among_sites = |deployment: &Self| (1..=deployment.sites).contains(&deployment.served_sites);
        let several = |deployment: &Self| {
            !deployment.wrap_around || deployment.sites > 1 && !deployment.model.is_hall()
        };
        let timers = || one_of_ms(&[0, 10, 20, 50, 100, 200, 500, 1000]);
        vec![
            key!(carrier_ghz?, numbers(0.5..=100.0).unit("GHz")),
            key!(cell_power_dbm?, numbers(0.0..=80.0).unit("dBm")),
            relation!(sites, "1, 7 or 19; 12 in the indoor hotspot", |deployment: &Self| {
                deployment.allowed_sites().contains(&deployment.sites)
            })
            .message(|deployment| match deployment.model.is_hall() {
                true => String::from("12 with this model (TR 38.901 Table 7.2-2)"),
                false => String::from("1, 7 or 19"),
            })
            .unit("sites"),
            relation!(served_sites, "1 to sites", among_sites)
                .message(|deployment| format!("1 to deployment.sites, {}", deployment.sites))
                .unit("sites"),
            relation!(wrap_around, "false with one site and indoors", several),
            key!(neighbour_load, numbers(0.0..=1.0)),
            key!(speed_kmh, numbers(0.0..=500.0).unit("km/h")),
            key!(blocker_speed_kmh, numbers(0.0..=500.0).unit("km/h")),
            key!(station_power_dbm?, numbers(10.0..=35.0).unit("dBm")),
            // p0-NominalPUSCH and p0-UE-PUSCH of TS 36.331 together.
            key!(p0_dbm, numbers(-134.0..=31.0).unit("dBm")),
            key!(alpha, one_of(&power_control::ALPHAS)),
            key!(tpc_target?, quantities("-10 dB", "40 dB")),
            key!(periodic_phr_timer, timers()),
            key!(prohibit_phr_timer, timers()),
            key!(path_loss_change_db, one_of(&[0, 1, 3, 6]).unit("dB")),
        ]
    }
}

impl Deployment {
    /// Positions of the sites in metres, the middle one first.
    pub fn site_places(&self) -> Vec<Point> {
        let layout = match self.model.is_hall() {
            true => Layout::hall(),
            false => Layout::new(self.sites as usize, self.model.parameters().isd_m, self.wrap_around),
        };
        (0..layout.sites()).map(|site| layout.site(site)).collect()
    }
    fn allowed_sites(&self) -> &'static [u32] {
        if self.model.is_hall() { &[12] } else { &[1, 7, 19] }
    }
}

impl DeploymentModel {
    /// The parameter set.
    pub fn parameters(self) -> DeploymentConfig {
        match self {
            Self::Case1 => DeploymentConfig::case1(),
            Self::Case3 => DeploymentConfig::case3(),
            Self::UmaM2135 => DeploymentConfig::uma_m2135(),
            Self::UmiM2135 => DeploymentConfig::umi_m2135(),
            Self::Uma38901 => DeploymentConfig::uma_38901(),
            Self::Umi38901 => DeploymentConfig::umi_38901(),
            Self::Rma38901 => DeploymentConfig::rma_38901(),
            Self::InhOpen38901 => DeploymentConfig::inh_open_38901(),
            Self::InhMixed38901 => DeploymentConfig::inh_mixed_38901(),
        }
    }
    /// Whether the sites stand in the hall of TR 38.901 Table 7.2-2.
    pub(crate) fn is_hall(self) -> bool {
        matches!(self, Self::InhOpen38901 | Self::InhMixed38901)
    }
}

/// Parameter set of a deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum DeploymentModel {
    /// Case 1 of TR 36.814 Table A.2.1.1-1: 500 m between sites.
    #[serde(rename = "3gpp-case1")]
    Case1,
    /// Case 3, likewise: 1732 m.
    #[serde(rename = "3gpp-case3")]
    Case3,
    /// ITU-R M.2135, urban macro.
    #[serde(rename = "uma-m2135")]
    UmaM2135,
    /// ITU-R M.2135, urban micro.
    #[serde(rename = "umi-m2135")]
    UmiM2135,
    /// TR 38.901 calibration, urban macro.
    #[serde(rename = "uma-38901")]
    Uma38901,
    /// TR 38.901 calibration, urban micro.
    #[serde(rename = "umi-38901")]
    Umi38901,
    /// TR 38.901, rural macro: 1732 m between sites, half of the stations in cars.
    #[serde(rename = "rma-38901")]
    Rma38901,
    /// TR 38.901 calibration, open office: 12 sites in a hall of 120 m by 50 m.
    #[serde(rename = "inh-open-38901")]
    InhOpen38901,
    /// Likewise, mixed office.
    #[serde(rename = "inh-mixed-38901")]
    InhMixed38901,
}

/// Surroundings of the stations in the blockage of TR 38.901 Table 7.6.4.1-4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockageModel {
    /// No blockage.
    None,
    /// Blockers at 2 m, correlated over 5 m.
    Indoor,
    /// Blockers at 10 m, correlated over 10 m.
    Outdoor,
}

/// How a person holds a station (TR 38.901 Table 7.6.4.1-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// No body beside the station.
    Free,
    /// Upright.
    Portrait,
    /// Sideways.
    Landscape,
}

/// Tapped delay line of fast fading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// TDL-A with a delay spread of 30 ns.
    #[serde(rename = "tdl-a30")]
    TdlA30,
    /// TDL-B with a delay spread of 100 ns.
    #[serde(rename = "tdl-b100")]
    TdlB100,
    /// TDL-C with a delay spread of 300 ns.
    #[serde(rename = "tdl-c300")]
    TdlC300,
}

impl FadingProfile {
    /// The name in the table of taps.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Epa => "EPA",
            Self::Eva => "EVA",
            Self::Etu => "ETU",
            Self::TdlA30 => "TDLA30",
            Self::TdlB100 => "TDLB100",
            Self::TdlC300 => "TDLC300",
        }
    }
}
