//! A base station of LTE or NR with its stations as one [`paceline_net::Node`]: [`Cell`].
//!
//! Downlink packets enter at the port [`CORE`] and leave at a [`station_port`]; uplink packets go the other
//! way. In a slot with work (`enb`), in this order: decoded PDUs are delivered, stations move, uplink HARQ
//! feedback and scheduling requests are processed, random access advances, uplink and downlink allocate PRBs,
//! the stations transmit, and `crate::air` gives the SINRs that decide which blocks are decoded.
//!
//! Each part has its state to itself, in its file or folder:
//!
//! - `node`: ports, routes, packets that wait for processing, the next slot; `enb` holds the parts below.
//! - `config`: parameters, and the values that follow from them.
//! - `station`: the stations, each with its two directions.
//! - `configured`: configured grants of the uplink.
//! - `random_access`, `uplink`, `downlink`: the eNB's side of each.
//! - `air`: the transmissions of a slot.
//! - `mobility`: movement, measurements, changes of the serving cell.
//! - `observers`: captures and pictures.

mod air;
mod config;
mod configured;
mod downlink;
mod enb;
mod mobility;
mod node;
mod observers;
mod random_access;
mod station;
mod uplink;

pub use config::{CORE, CellConfig, ForwardingConfig, Handover, StationConfig, StationLink, station_port};
pub use downlink::DownlinkState;
pub use mobility::{EventA3, HandoverCause, HandoverRecord, LinkMonitorConfig};
pub use node::Cell;
pub use observers::{BlockSink, CapturedBlock, RadioEvent, RadioStep, StepSink};
