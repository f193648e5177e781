//! Conversion between decibels and linear ratios.

/// A linear ratio from dB, or a power in mW from dBm.
pub fn from_db(db: f64) -> f64 {
    libm::exp(db * (std::f64::consts::LN_10 / 10.0))
}
/// A ratio in dB from a linear one, or a power in dBm from mW.
pub fn to_db(linear: f64) -> f64 {
    10.0 * libm::log10(linear)
}
