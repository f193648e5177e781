//! A base station of LTE or NR with its stations as one [`paceline_net::Node`]: [`Cell`].
//!
//! Downlink packets enter at the port [`CORE`] and leave at a [`station_port`]; uplink packets go the other
//! way. In a slot with work (`enb`), in this order: decoded PDUs are delivered, uplink HARQ feedback and
//! scheduling requests are processed, `random_access` advances, `uplink` and `downlink` allocate PRBs, the
//! stations transmit, and `crate::air` gives the SINRs that decide which blocks are decoded.
//!
//! State: `station` and its two directions (`link`); `responder` for random access; `configured` for
//! configured grants. `mobility` moves stations and changes their serving cell. `captured` serves
//! captures, `watched` pictures.

mod captured;
mod config;
mod configured;
mod downlink;
mod enb;
mod link;
mod mobility;
mod ports;
mod processing;
mod random_access;
mod responder;
mod station;
mod uplink;
mod watched;

pub use captured::{BlockSink, CapturedBlock};
pub use config::{CellConfig, ForwardingConfig, Handover, StationConfig, StationLink};
pub use downlink::DownlinkState;
pub use enb::Cell;
pub use mobility::{EventA3, HandoverCause, HandoverRecord, LinkMonitorConfig};
pub use ports::{CORE, station_port};
pub use watched::{RadioEvent, RadioStep, StepSink};
