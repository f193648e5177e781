//! The proof of gain: devices are divided at random into accelerated and untouched ones, and their transfers
//! are compared (docs/experiment.md, decision 60).
//!
//! - `assignment`: the arm of a device, by a hash of its address with a seed.
//! - `observer`: transfers, measured from the headers of packets at one place: the interface towards the
//!   devices. It measures both arms by the same rules.
//! - `sums`: the sums over transfers of each device, by size of transfer.
//! - `statistics`: a permutation test over devices, and Holm's correction.
//! - `machine`: the course of an experiment with its looks; `report`: its findings.
//!
//! No clock and no input or output: the gateway hands in headers with their times.

mod assignment;
mod connection;
mod machine;
mod observer;
mod report;
mod statistics;
mod sums;

pub use assignment::{Arm, Assignment, device_of};
pub use connection::Segment;
pub use machine::{Analysis, Experiment, LOOKS, Plan, State};
pub use observer::Observer;
pub use report::{Finding, Measure, Report, Row};
pub use statistics::{Comparison, compare, holm};
pub use sums::{Measured, SIZES};
