//! The radio environment of a system-level simulation: sites, stations, the gain between them, and the SINR
//! that transmissions reach.
//!
//! `deployment` and `propagation` give the mean gain and the fading of every link; [`interference`] adds up
//! the power that other cells and stations cause per PRB; [`effective_sinr`] maps the SINRs of many PRBs to
//! one SINR (MIESM); [`power_control`] sets the uplink power and computes its headroom (TS 36.213 §5.1.1).
//!
//! Powers are in dBm or mW, gains in dB or linear as the name says, lengths in metres, angles in degrees.
//! Every value is a function of the configuration, the seed and the slot.

mod deployment;
pub mod effective_sinr;
pub mod interference;
pub mod power_control;
mod propagation;
pub(crate) mod route;

pub use crate::decibel::{from_db, to_db};
pub use deployment::calibration::{self, Calibration, calibrate, percentile};
pub use deployment::geometry::{self, Layout, Point, Ray, Region};
pub use deployment::link_budget::{self, Association, Deployment, Station};
pub use deployment::parameters::{DeploymentConfig, Penetration, SiteLayout, noise_per_prb_dbm};
pub use effective_sinr::Modulation;
pub use interference::{Activity, DownlinkReceiver, Load, UplinkNeighbours};
pub use power_control::PowerControl;
pub use propagation::antenna::{Antenna, Pattern};
pub use propagation::blockage::{self, Blockage};
pub use propagation::fading::{self, Fader, FadingModel, Profile};
pub use propagation::path_loss::{Heights, PathLossModel};
pub use propagation::shadowing::Shadowing;
pub use route::Route;
