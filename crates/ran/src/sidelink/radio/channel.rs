//! Mean SINRs and CQIs of the links of a pair, from distances (TR 36.814 Table B.1.2.1-1).
//!
//! The transmit power is spread over the whole carrier: a grant of few PRBs has the same SINR per PRB. The
//! CQI is that of the SINR less a margin, because the curves of CQIs are those of a channel without fading.

use crate::decibel::{from_db, to_db};
use crate::radio::{Heights, PathLossModel, Point};

/// Thermal noise density in dBm/Hz at 290 K (TR 36.942 §4.5.3).
const NOISE_DBM_HZ: f64 = -174.0;

/// Powers, gains and losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkBudget {
    /// Carrier frequency in GHz.
    pub carrier_ghz: f64,
    /// Path loss, always without line of sight.
    pub model: PathLossModel,
    /// Antenna heights in m, of the eNB and of the stations; the formula has those of the eNB on direct links
    /// too.
    pub heights: Heights,
    /// Transmit power of the eNB in dBm.
    pub enb_power_dbm: f64,
    /// Transmit power of a station in dBm.
    pub ue_power_dbm: f64,
    /// Antenna gain of the eNB in dBi; a station has 0 dBi.
    pub enb_gain_dbi: f64,
    /// Cable loss in dB, once on every link.
    pub cable_loss_db: f64,
    /// Noise figure of the eNB in dB.
    pub enb_noise_figure_db: f64,
    /// Noise figure of a station in dB.
    pub ue_noise_figure_db: f64,
    /// SINR in dB that a CQI needs beyond that of a channel without fading.
    pub cqi_margin_db: f64,
}

impl LinkBudget {
    fn loss_db(&self, from: Point, to: Point) -> f64 {
        let distance = libm::hypot(to.x - from.x, to.y - from.y);
        self.model.loss_db(false, distance, self.carrier_ghz, self.heights) + self.cable_loss_db
    }
    /// Noise in dBm of a bandwidth in Hz at a receiver with this noise figure in dB.
    fn noise_dbm(&self, hz: f64, figure_db: f64) -> f64 {
        NOISE_DBM_HZ + to_db(hz) + figure_db
    }
    /// SNR in dB from one station to another, whose power is spread over a bandwidth in Hz.
    pub fn direct_db(&self, from: Point, to: Point, hz: f64) -> f64 {
        self.ue_power_dbm - self.loss_db(from, to) - self.noise_dbm(hz, self.ue_noise_figure_db)
    }
    /// SNR in dB from a station to the eNB.
    pub fn uplink_db(&self, from: Point, hz: f64) -> f64 {
        let gain = self.enb_gain_dbi - self.loss_db(from, Point::default());
        self.ue_power_dbm + gain - self.noise_dbm(hz, self.enb_noise_figure_db)
    }
    /// SNR in dB from the eNB to a station.
    pub fn downlink_db(&self, to: Point, hz: f64) -> f64 {
        let gain = self.enb_gain_dbi - self.loss_db(Point::default(), to);
        self.enb_power_dbm + gain - self.noise_dbm(hz, self.ue_noise_figure_db)
    }
    /// Power in dBm over the carrier that a station's transmission has at another station.
    pub fn received_dbm(&self, from: Point, to: Point) -> f64 {
        self.ue_power_dbm - self.loss_db(from, to)
    }
    /// Noise of a station's receiver over a bandwidth in Hz, in mW.
    pub(in crate::sidelink) fn ue_noise_mw(&self, hz: f64) -> f64 {
        from_db(self.noise_dbm(hz, self.ue_noise_figure_db))
    }
}

/// State of a radio link.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RadioLink {
    /// SNR in dB.
    pub snr_db: f64,
    /// The same as a ratio.
    pub(in crate::sidelink) snr: f64,
    /// Channel quality indicator; 0 is out of range.
    pub cqi: u8,
}

impl RadioLink {
    /// A link with this SNR in dB and CQI.
    pub(in crate::sidelink) fn new(snr_db: f64, cqi: u8) -> Self {
        Self { snr_db, snr: from_db(snr_db), cqi }
    }
}
