//! The LTE user plane of one cell, from IP packets to transport blocks and back.
//!
//! A [`Cell`] is a [`paceline_net::Node`]. Its layers are plain structs that call each other: PDCP and RLC fill the
//! transport blocks that the scheduler grants, HARQ repeats what the channel broke. Frame structure is FDD; one
//! carrier, one layer. What each part models, after which clause, and what it leaves out stands in its file.
#![forbid(unsafe_code)]

pub mod access;
pub mod air;
pub mod cell;
pub mod channel;
pub mod config;
pub mod harq;
pub mod headroom;
mod link;
pub mod lte;
pub mod mac;
pub mod pdcp;
pub mod phy;
pub mod radio;
pub mod random_access;
pub mod rlc;
pub mod rlc_am;
pub mod rlc_um;
pub mod scheduler;
pub mod slot;
mod station;

pub use access::{AccessConfig, AccessStats};
pub use air::RadioConfig;
pub use cell::{CORE, Cell, station_port};
pub use channel::Fading;
pub use config::StationLink;
pub use config::{CellConfig, StationConfig, resource_blocks};
pub use headroom::HeadroomConfig;
pub use link::{DropCounts, LinkStats};
pub use random_access::RandomAccessConfig;
pub use rlc::RlcConfig;
pub use rlc_am::AmConfig;
pub use scheduler::Policy;
pub use slot::Tti;
