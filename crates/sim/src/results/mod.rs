//! Figures of a run and of several runs, and the tables that they are written as.
//!
//! The last part of the one-way path `model -> counters -> results`: its input is a [`Record`] of plain data,
//! its output are figures. A [`RunResult`] holds the figures of one seed: totals, stations, connections and
//! the time series. A [`Summary`] holds all seeds of a scenario and, over seeds, means with their 95%
//! confidence intervals (Student's t). Rates and means cover the time after the warm-up; figures of
//! connections cover the whole run. [`Table`]s are CSV or columns.

mod group;
mod kernel;
mod limits;
mod network;
mod ping;
mod run;
mod run_group;
mod service;
mod statistics;
mod summary;
mod tables;
mod totals;
mod uplink;

pub use group::{GroupMeans, GroupResult};
pub use kernel::{KernelConnection, KernelEnd};
pub use limits::{LimitShares, RadioDelays, Side, SideResult, StationSenders};
pub use network::handover::HandoverResult;
pub use network::paths::{PathResult, SwitchResult};
pub use network::queue::QueueResult;
pub use network::router::{PolicerResult, RouterResult};
pub use ping::{PingPart, PingResult, Times};
pub(crate) use run::Record;
pub use run::{FlowResult, PlaceResult, RunResult, Sample, StationResult};
pub use run_group::{GroupFigures, RunGroup};
pub use statistics::{jain, mean_and_half};
pub use summary::{Origin, Summary, mean_and_ci95};
pub use tables::{Column, Table, Values};
pub use totals::Totals;
pub use uplink::UplinkResult;
