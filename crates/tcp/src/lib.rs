//! TCP endpoints as plain state machines, for simulation: no sockets, no clock, no bytes, only lengths.
//!
//! An [`Endpoint`] is one side of one connection (RFC 9293). By default it behaves like the Linux kernel where that
//! decides goodput and delay: initial window of ten segments, RACK-TLP recovery (RFC 8985) with the window of RFC 9937,
//! F-RTO, retransmission timer (RFC 6298), timestamps and window scale (RFC 7323), delayed, quick and merged ACKs, a
//! receive window that grows with what the application reads, ECN, and congestion control by [`Variant`]. Every
//! mechanism is a field of [`EndpointConfig`] (its kinds are in [`options`]), and a [`Profile`] sets them all to the
//! defaults of another host or simulator.
//!
//! Left out: urgent data, resets in answer to nonsense, Accurate ECN, TCP segmentation offload, Fast Open.
#![forbid(unsafe_code)]

mod ack_policy;
mod app;
pub mod cc;
pub mod config;
mod connection;
mod ecn;
pub mod endpoint;
mod handshake;
pub mod limits;
pub mod options;
mod pacing;
pub mod profile;
mod prr;
mod rack;
mod ranges;
mod rate;
mod receive_window;
mod receiver;
mod recovery;
mod relay;
mod rtt;
mod scoreboard;
mod sender;
mod sender_acks;
mod sender_limits;
mod sender_timers;
mod stretch;
mod tlp;

pub use cc::{
    Abc, AckSample, CongestionControl, CongestionEvent, Controller, CwndUnit, Ecn, SlowStartExit, Variant,
};
pub use config::{DelayedAck, EndpointConfig, Snapshot, Source, Stats};
pub use endpoint::Endpoint;
pub use limits::{Limit, LimitTimes};
pub use options::{
    BeyondWindow, EcnMode, Keepalive, LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode, RtoStyle,
    SackCompression, StretchAck,
};
pub use profile::Profile;
pub use rate::{LossSample, RateSample};
