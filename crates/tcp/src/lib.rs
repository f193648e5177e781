//! TCP endpoints as plain state machines, for simulation: no sockets, no clock, no bytes, only lengths.
//!
//! An [`Endpoint`] is one side of one connection (RFC 9293) that behaves like the Linux kernel where that decides
//! goodput and delay: initial window of ten segments, SACK recovery (RFC 2018, RFC 6675) with the window of
//! RFC 6937, retransmission timer (RFC 6298), timestamps and window scale (RFC 7323), delayed and quick ACKs, a
//! receive window that grows with what the application reads, and congestion control by [`Variant`].
//!
//! Left out: urgent data, resets in answer to nonsense, ECN, TCP segmentation offload, tail loss probes.
#![forbid(unsafe_code)]

mod ack_policy;
mod app;
pub mod cc;
pub mod config;
mod connection;
mod ecn;
pub mod endpoint;
mod handshake;
pub mod options;
mod pacing;
mod prr;
mod rack;
mod ranges;
mod rate;
mod receive_window;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod sender_acks;
mod sender_timers;
mod stretch;
mod tlp;

pub use cc::{AckSample, CongestionControl, CongestionEvent, Controller, Ecn, Variant};
pub use config::{DelayedAck, EndpointConfig, Snapshot, Source, Stats};
pub use endpoint::Endpoint;
pub use options::{
    BeyondWindow, EcnMode, Keepalive, LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode, RtoStyle,
    SackCompression, StretchAck,
};
pub use rate::{LossSample, RateSample};
