//! The user plane of LTE and NR cells, from IP packets to transport blocks and back.
//!
//! A [`Cell`] is a [`paceline_net::Node`]. Packets enter a buffer above PDCP; `pdcp` numbers them, `rlc`
//! cuts them into PDUs, `mac` schedules transport blocks and retransmits them by HARQ, `air` computes the
//! SINR of each transmission from the [`radio`] environment, and the tables and block error curves of
//! [`lte`] or [`nr`], chosen in `rat` and `adaptation`, decide whether a block is decoded. `cell` runs the
//! layers once per slot, FDD or TDD, on one carrier. [`sidelink`] is an eNB with pairs of stations that have
//! direct links. Each file states its clause and what it leaves out.
#![forbid(unsafe_code)]

mod adaptation;
mod air;
mod bearer;
mod cell;
mod csv;
mod decibel;
mod duplex;
mod error_curve;
mod hop;
pub mod lte;
mod mac;
mod mcs;
pub mod nr;
mod pdcp;
mod prb;
pub mod radio;
mod rat;
mod rlc;
pub mod sidelink;
mod slot;
mod timing;

pub use air::{BlockageConfig, Fading, RadioConfig};
pub use bearer::{Carried, Fate};
pub use cell::{BlockSink, CORE, CapturedBlock, Cell, DownlinkState, station_port};
pub use cell::{
    CellConfig, EventA3, ForwardingConfig, Handover, HandoverCause, HandoverRecord, LinkMonitorConfig,
    StationConfig, StationLink,
};
pub use cell::{RadioEvent, RadioStep, StepSink};
pub use duplex::{Direction, Duplex};
pub use hop::{DropCounts, LinkStats, SINR_ORIGIN_DB};
pub use mac::power_headroom::HeadroomConfig;
pub use mac::random_access::RandomAccessConfig;
pub use mac::scheduler::{Candidate, Policy, Priority};
pub use mac::scheduling_request::{AccessConfig, AccessStats, ProactiveGrants};
pub use nr::config::{ConfiguredGrant, NrConfig};
pub use pdcp::PdcpSn;
pub use prb::resource_blocks;
pub use rat::Rat;
pub use rlc::RlcConfig;
pub use rlc::am::AmConfig;
pub use rlc::nr as rlc_nr;
pub use slot::{Numerology, Slot, SlotClock, SlotSpan};
