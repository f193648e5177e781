//! The radio channel between the antennas: the SINR of every transmission of a TTI.
//!
//! Transmissions of all served cells are collected first; [`Network`] then knows the interference in every PRB and
//! gives each transmission its effective SINR. A station has a stated SINR (`stated_channel`) or a place in a
//! deployment (`placed`); `station_radio` answers for both.
//!
//! - `network`: the deployment around the served cells, interference, power control.
//! - `cqi_report`: CQI measurements on their way to the scheduler; `wideband_cqi`: the CQI of many PRBs.

mod cqi_report;
mod network;
mod placed;
mod stated_channel;
mod station_radio;
mod wideband_cqi;

pub use network::RadioConfig;
pub use stated_channel::Fading;

pub(crate) use cqi_report::Report;
pub(crate) use network::{Network, Sent, served_count};
pub(crate) use placed::Placed;
pub(crate) use stated_channel::Channel;
pub(crate) use station_radio::StationRadio;
