//! From a scenario file to results, one way: `scenario -> model -> engine -> run -> results`.
//!
//! Pure: no sockets, no threads, no wall clock. The emulator runs the same [`Model`] in real time.
#![forbid(unsafe_code)]

pub mod address;
mod agenda;
mod cell;
pub mod core_network;
pub mod counters;
pub mod engine;
pub mod hops;
pub mod host;
pub mod link;
pub mod model;
pub mod monitor;
pub mod pep;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
pub mod split;
pub mod udp;

pub use engine::{Capture, Engine};
pub use model::Model;
pub use paceline_tcp::Variant;
pub use results::{Origin, RunResult, Summary, Totals};
pub use run::{Reading, simulate};
pub use scenario::{Scenario, ScenarioError};
