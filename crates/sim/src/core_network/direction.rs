//! Indices of the directions in a pair.

/// Index of the downlink.
pub(super) const DOWN: usize = 0;
/// Index of the uplink.
pub(super) const UP: usize = 1;
