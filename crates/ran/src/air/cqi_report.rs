//! A CQI report. The CQI is computed when the scheduler first reads the report, since most reports are never
//! read.

use crate::rat::Quality;
use crate::slot::Slot;

pub(crate) enum CqiReport {
    Known(Quality),
    /// The measurement from which the CQI can be computed.
    Measured(Measurement),
}

/// Interference and noise that a station measured in a slot.
pub(crate) struct Measurement {
    pub slot: Slot,
    /// Power in mW per PRB, for each downlink resource block group.
    pub noise_mw: Vec<f64>,
}
