//! K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP Performance in Mobile Data
//! Networks" (2011): the probes' tables and the published quantities 2a to 2g from runs on the two channels
//! that the probes calibrated.
//!
//! A row holds if our figures agree with the published ones in the way that the row states: within a
//! tolerance, in order, or by a share. Accelerated rows exist for the published rate control and for the
//! adaptive one. Data moves from `parts` (the runs to make, and the published values) through `plan` to `rows`.

mod parts;
mod plan;
mod rows;

pub use plan::PAPER;
