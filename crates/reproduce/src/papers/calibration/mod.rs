//! 3GPP's calibration of system-level simulators (TR 38.901 7.8.1): distributions of geometry and coupling loss
//! in the deployments.

mod plan;
mod rows;

pub use plan::PAPER;
