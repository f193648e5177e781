//! The proof of gain: devices are divided at random into accelerated and untouched ones, and their transfers
//! are compared (docs/experiment.md, decision 41).
//!
//! - `assignment`: the arm of a device, by a hash of its address with a seed.
//! - `observer`: transfers, measured from the headers of packets at one place: the interface towards the
//!   devices. It measures both arms by the same rules.
//! - `sums`: the sums over transfers of each device, by size of transfer.
//! - `statistics`: permutation tests over devices and over pairs of periods, and Holm's correction.
//! - `plan`: which devices are accelerated when; `pairs`: the values of two periods, of which one
//!   accelerates.
//! - `machine`: the course of an experiment with its looks; `measure`, `report`: its findings.
//!
//! No clock and no input or output: the gateway hands in headers with their times.
#![forbid(unsafe_code)]

mod assignment;
mod connection;
mod machine;
mod measure;
mod observer;
mod pairs;
mod plan;
mod report;
mod statistics;
mod sums;

pub use assignment::{Arm, Assignment, device_of};
pub use connection::Segment;
pub use machine::{Analysis, Experiment, LOOKS, State};
pub use measure::{Finding, Measure, Row};
pub use observer::Observer;
pub use plan::{Design, Plan};
pub use report::Report;
pub use statistics::{Comparison, compare, compare_pairs, holm};
pub use sums::{Measured, SIZES};
