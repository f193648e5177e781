//! From a scenario file to results, one way: `scenario -> model -> engine -> counters -> results`.
//!
//! [`scenario`] reads a file; [`Model`] builds its network as nodes of an [`Engine`]: hosts (`endpoints`),
//! the core network, a proxy if there is one, and the access, a cell or a [`link`]. [`simulate`] runs the
//! engine, has the model read (`counters`), and computes figures ([`results`]). [`episode`] lets a caller act
//! between steps of a run, [`event_trace`] has the events of one. [`cell_facts`] states what follows from a
//! cell's configuration without a run.
//!
//! Pure: no sockets, no threads, no wall clock. The emulator runs the same [`Model`] in real time.
#![forbid(unsafe_code)]

pub mod address;
pub mod cell_facts;
pub mod core_network;
mod counters;
mod endpoints;
pub mod engine;
pub mod episode;
pub mod event_trace;
pub mod journey;
pub mod link;
mod managed;
pub mod model;
mod pings;
mod proxy;
pub mod results;
mod run;

pub use core_network::hops;
pub use counters::{StationView, View};
pub use endpoints::host;
pub use engine::Engine;
pub use event_trace::{EventSink, EventTrace};
pub use model::{Capture, Model};
pub use paceline_ran::BlockSink;
pub use paceline_scenario as scenario;
pub use paceline_tcp::Variant;
pub use results::{Origin, RunResult, Summary, Totals};
pub use run::{Recorder, Run, simulate, simulate_while};
pub use scenario::{Scenario, ScenarioError};
