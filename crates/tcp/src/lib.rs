//! TCP endpoints as plain state machines, for simulation: no sockets, no clock, no bytes, only lengths.
//!
//! An [`Endpoint`] is one side of one connection (RFC 9293) that behaves like the Linux kernel where that decides
//! goodput and delay: initial window of ten segments, SACK recovery (RFC 2018, RFC 6675) with the window of
//! RFC 6937, retransmission timer (RFC 6298), timestamps and window scale (RFC 7323), delayed and quick ACKs, a
//! receive window that grows with what the application reads, and congestion control by [`Variant`].
//!
//! Left out: urgent data, resets in answer to nonsense, ECN, TCP segmentation offload, tail loss probes.
#![forbid(unsafe_code)]

pub mod cc;
pub mod config;
pub mod endpoint;
mod handshake;
mod ranges;
mod rate;
mod receive_window;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;

pub use cc::{Abc, AckSample, CongestionControl, CongestionEvent, Controller, Ecn, SlowStartExit, Variant};
pub use config::{DelayedAck, EndpointConfig, Snapshot, Source, Stats};
pub use endpoint::Endpoint;
pub use rate::{LossSample, RateSample};
