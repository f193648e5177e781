//! The radio channel between the antennas: the SINR of every transmission of a slot.
//!
//! The cell first collects the transmissions of all served cells; `Network` then computes the interference in
//! every PRB and gives each transmission its effective SINR. A station has a stated SINR (`stated_channel`)
//! or a place in a deployment (`placed`); `station_radio` serves both kinds.
//!
//! - `network`: the deployment around the served cells: interference, uplink power, link adaptation
//!   estimates.
//! - `serving`: a station that changes its serving cell or moves.
//! - `cqi_report`: a CQI measurement on its way to the scheduler; `wideband_cqi`: one CQI from the SINRs of
//!   many PRBs.
//! - `blocked_path`: blockage of a station's path by people and vehicles over time.

mod blocked_path;
mod cqi_report;
mod network;
mod placed;
mod serving;
mod stated_channel;
mod station_radio;
mod wideband_cqi;

pub use blocked_path::BlockageConfig;
pub use network::RadioConfig;
pub use stated_channel::Fading;

pub(crate) use cqi_report::CqiReport;
pub(crate) use network::{Network, Transmission, served_cells};
pub(crate) use placed::Placed;
pub(crate) use stated_channel::StatedChannel;
pub(crate) use station_radio::StationRadio;
