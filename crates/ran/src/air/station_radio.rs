//! The radio of one station: the same questions (CQI, uplink estimate, SINR of a transmission) for a stated
//! SINR and for a place in a deployment.

use super::cqi_report::CqiReport;
use super::network::{Network, Transmission};
use super::placed::Placed;
use super::stated_channel::StatedChannel;
use crate::adaptation::LinkAdaptation;
use crate::decibel::Sinr;
use crate::duplex::Direction;
use crate::rat::{Layer, Quality};
use crate::slot::Slot;

pub(crate) enum StationRadio {
    Stated(StatedChannel, StatedChannel),
    Placed(Box<Placed>),
}

impl StationRadio {
    /// The station measures the wideband CQI.
    pub fn measure_cqi(
        &mut self,
        adaptation: &LinkAdaptation,
        network: &mut Option<Network>,
        slot: Slot,
    ) -> CqiReport {
        match (self, network) {
            (Self::Stated(downlink, _), _) => CqiReport::Known(adaptation.quality(downlink.sinr_db(slot))),
            (Self::Placed(placed), Some(network)) => CqiReport::Measured(network.measure_cqi(placed, slot)),
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    /// The quality of a report; a measurement is replaced by it.
    pub fn quality(
        &mut self,
        adaptation: &LinkAdaptation,
        network: &mut Option<Network>,
        report: &mut CqiReport,
    ) -> Quality {
        if let CqiReport::Known(quality) = report {
            return *quality; // in most slots the report is not a new one
        }
        let quality = match (self, network, std::mem::replace(report, CqiReport::Known(Quality::default()))) {
            (Self::Placed(placed), Some(network), CqiReport::Measured(measurement)) => {
                network.quality(adaptation, placed, measurement)
            }
            _ => unreachable!("a measurement belongs to a placed station in a network"),
        };
        *report = CqiReport::Known(quality);
        quality
    }
    /// The eNB's estimate of the uplink SINR in dB, for link adaptation.
    pub fn estimate_uplink(&mut self, network: &mut Option<Network>, cell: usize, slot: Slot) -> f64 {
        match (self, network) {
            (Self::Stated(_, uplink), _) => uplink.sinr_db(slot),
            (Self::Placed(placed), Some(network)) => network.estimate_uplink_db(placed, cell, slot),
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    /// SINR of each layer of a transmission.
    pub fn sinr(
        &mut self,
        network: &mut Option<Network>,
        cell: usize,
        slot: Slot,
        transmission: &Transmission,
        layer: Layer,
    ) -> Sinr {
        match (self, network) {
            (Self::Stated(downlink, uplink), _) => {
                let channel = if transmission.direction == Direction::Down { downlink } else { uplink };
                let one_layer = Sinr::Db(channel.sinr_db(slot));
                if layer.gain == 1.0 { one_layer } else { Sinr::Linear(one_layer.linear() * layer.gain) }
            }
            (Self::Placed(placed), Some(network)) => {
                Sinr::Linear(network.sinr(placed, cell, slot, transmission, layer))
            }
            (Self::Placed(_), None) => unreachable!("a placed station has a network"),
        }
    }
    pub fn placed_mut(&mut self) -> Option<&mut Placed> {
        match self {
            Self::Stated(..) => None,
            Self::Placed(placed) => Some(placed),
        }
    }
    pub fn placed(&self) -> Option<&Placed> {
        match self {
            Self::Stated(..) => None,
            Self::Placed(placed) => Some(placed),
        }
    }
}
