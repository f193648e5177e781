//! What a station's radio is asked for, whether its SINR is stated or follows from its place.

use super::cqi_report::Report;
use super::network::{Network, Sent};
use super::placed::Placed;
use super::stated_channel::Channel;
use crate::decibel::from_db;
use crate::lte::cqi;
use crate::mac::harq::Block;
use crate::slot::Tti;

/// What the air knows of one station.
pub(crate) enum StationRadio {
    /// Its SINR is stated, in the downlink and the uplink.
    Stated(Channel, Channel),
    /// It stands in the deployment.
    Placed(Box<Placed>),
}

impl StationRadio {
    /// The station measures the wideband CQI.
    pub fn measure_cqi(&mut self, network: &mut Option<Network>, tti: Tti) -> Report {
        match (self, network) {
            (Self::Stated(downlink, _), _) => Report::Known(cqi::of_sinr(downlink.sinr_db(tti))),
            (Self::Placed(placed), Some(network)) => Report::Measured(network.measure(placed, tti)),
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    /// The CQI of a report, which knows it from then on.
    pub fn cqi(&mut self, network: &mut Option<Network>, report: &mut Report) -> u8 {
        let cqi = match (self, network, std::mem::replace(report, Report::Known(0))) {
            (_, _, Report::Known(cqi)) => cqi,
            (Self::Placed(placed), Some(network), Report::Measured(measurement)) => {
                network.cqi(placed, measurement)
            }
            _ => unreachable!("what is measured is placed in a network"),
        };
        *report = Report::Known(cqi);
        cqi
    }
    /// What the eNB expects of the uplink: SINR in dB.
    pub fn estimate_uplink(&mut self, network: &mut Option<Network>, cell: usize, tti: Tti) -> f64 {
        match (self, network) {
            (Self::Stated(_, uplink), _) => uplink.sinr_db(tti),
            (Self::Placed(placed), Some(network)) => network.estimate_uplink_db(placed, cell, tti),
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    /// Effective linear SINR of a transmission.
    pub fn sinr(
        &mut self,
        network: &mut Option<Network>,
        cell: usize,
        tti: Tti,
        sent: &Sent,
        block: &Block,
    ) -> f64 {
        match (self, network) {
            (Self::Stated(downlink, _), _) if sent.downlink => from_db(downlink.sinr_db(tti)),
            (Self::Stated(_, uplink), _) => from_db(uplink.sinr_db(tti)),
            (Self::Placed(placed), Some(network)) => network.sinr(placed, cell, tti, sent, block.mcs.qm),
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    /// The station in the deployment, to change it.
    pub fn placed_mut(&mut self) -> Option<&mut Placed> {
        match self {
            Self::Stated(..) => None,
            Self::Placed(placed) => Some(placed),
        }
    }
    /// The station in the deployment, if it stands in one.
    pub fn placed(&self) -> Option<&Placed> {
        match self {
            Self::Stated(..) => None,
            Self::Placed(placed) => Some(placed),
        }
    }
}
