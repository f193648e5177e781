//! ACK rate control in front of a router: L. Pavilanskas, A. Statkus, "TCP acknowledgment mechanism's
//! influence on router performance" (Elektronika ir Elektrotechnika 7(103), 2010).
//!
//! `parts` has the path and the settings of the simulated runs, `rows` sets their figures beside the
//! published ones, and `measured` does both for runs with the kernel's TCP and forwarding.

pub mod measured;
mod parts;
mod pictures;
mod plan;
mod rows;

pub use plan::PAPER;
