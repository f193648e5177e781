//! CR

use crate::slot::Tti;

/// A CQI report: the CQI, or, until somebody asks for it, what it follows from.
pub(crate) enum Report {
    Known(u8),
    Measured(Measurement),
}

/// Interference and noise in mW per block of each downlink group, as a station measured them in a TTI.
pub(crate) struct Measurement {
    pub tti: Tti,
    pub noise_mw: Vec<f64>,
}
