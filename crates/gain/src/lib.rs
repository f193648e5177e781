//! The gain that remedies would bring on the path of a capture.
//!
//! ```text
//! captures, explanation -> measured: transfers with time, data, completion, round trip
//! fit                   -> path: the fitted scenario with values drawn within their confidence
//! both                  -> Plan: jobs (remedy, draw) -> simulate -> report: differences of equal draws
//! ```
//!
//! Each draw has values of the path and a seed, which all remedies share: their differences are paired.
//! Without reproduction of the capture no gain is claimed. Pure: the caller runs the jobs.
#![forbid(unsafe_code)]

mod interval;
mod measured;
mod path;
mod plan;
mod remedy;
mod report;

pub use interval::Interval;
pub use measured::{Measured, Transfer};
pub use plan::{Job, Outcome, Plan};
pub use remedy::Remedy;
pub use report::{Gain, NotApplicable, RemedyGain, TransferGain, Verdict};
