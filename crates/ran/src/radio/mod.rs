//! The radio environment of a system-level simulation: where sites and stations stand, what of the power of one
//! arrives at the other, and what that makes of a transmission.
//!
//! - [`geometry`]: hexagonal sites with three sectors, wrap-around, placement of stations (TR 36.942, TR 36.814).
//! - [`path_loss`]: mean loss, probability of line of sight and shadowing parameters (TR 36.814, TR 38.901).
//! - [`antenna`]: patterns of the sectors.
//! - [`shadowing`]: log-normal deviation, correlated between sites and along the way.
//!
//! Powers are in dBm or mW, gains in dB or linear as the name says, lengths in metres, angles in degrees.
//! Everything is a function of the configuration, the seed and the TTI.

pub mod antenna;
pub mod geometry;
pub mod path_loss;
pub mod shadowing;

pub use antenna::{Antenna, Pattern};
pub use geometry::{Layout, Point, Ray, Region};
pub use path_loss::{Heights, PathLossModel};
pub use shadowing::Shadowing;

/// A ratio or a power in mW from dB or dBm.
pub fn from_db(db: f64) -> f64 {
    libm::exp(db * (std::f64::consts::LN_10 / 10.0))
}
/// A ratio in dB, or a power in dBm from mW.
pub fn to_db(linear: f64) -> f64 {
    10.0 * libm::log10(linear)
}
