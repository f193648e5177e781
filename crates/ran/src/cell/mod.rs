//! An LTE FDD eNB with its stations as one [`paceline_net::Node`]: [`Cell`].
//!
//! Downlink packets enter at the port [`CORE`] and leave at a [`station_port`]; uplink packets go the other
//! way. In a TTI with work (`enb`), in this order: decoded PDUs are delivered to the receivers, the eNB
//! processes uplink HARQ feedback and scheduling requests, `random_access` advances its procedures, `uplink`
//! and `downlink` allocate PRBs, the stations transmit, and `crate::air` gives the SINR that decides which
//! blocks are decoded.
//!
//! - `enb`: the node and the order of a TTI; `config`: its parameters.
//! - `downlink`, `uplink`, `random_access`: the eNB's work in a TTI; `responder`: the eNB's state of random
//!   access.
//! - `station`: one station; `link`: one of its directions (buffer, RLC, HARQ); `link_stats`: counters of a
//!   direction.

mod config;
mod downlink;
mod enb;
mod link;
mod link_stats;
mod random_access;
mod responder;
mod station;
mod uplink;

pub use config::{CellConfig, StationConfig, StationLink};
pub use enb::{CORE, Cell, station_port};
pub use link_stats::{DropCounts, LinkStats};
