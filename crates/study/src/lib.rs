//! The part that the command line and Python share, between a scenario file and its runs.
//!
//! [`scenario_file`] finds and reads scenarios, built-in ones by their names; [`similar`] suggests names for
//! mistyped ones; [`grid`] makes the points of a sweep; [`paired`] compares results by their seeds.
//! The callers run the points: the command line with files for an interruption, Python on threads or on other
//! machines.
#![forbid(unsafe_code)]

pub mod controls;
mod error;
pub mod grid;
pub mod paired;
pub mod scenario_file;
pub mod similar;

pub use error::InputError;
pub use grid::{Axis, Grid, Point};
pub use paired::{Difference, Paired, PointDifference};

use paceline_sim::Origin;

/// Version and commit, for people.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PACELINE_COMMIT"), ")");

/// Version and commit that results carry.
pub fn origin() -> Origin {
    Origin { version: env!("CARGO_PKG_VERSION").into(), commit: env!("PACELINE_COMMIT").into() }
}
