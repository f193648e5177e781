//! TCP endpoints as plain state machines, for simulation: no sockets, no clock, no bytes, only lengths.
//!
//! An [`Endpoint`] is one side of one connection (RFC 9293). By default it behaves like the Linux kernel in
//! everything that decides goodput and delay: an initial window of ten segments, RACK-TLP recovery (RFC 8985)
//! with the window of RFC 9937, F-RTO, retransmission timer (RFC 6298), timestamps and window scale (RFC
//! 7323), delayed, quick and merged ACKs, a receive window that grows as the application reads, ECN, and
//! congestion control by [`Variant`]. Every mechanism is a field of [`EndpointConfig`], with its values in
//! [`options`]; a [`Profile`] sets all of them to the defaults of another host or simulator.
//!
//! Left out: urgent data, resets in answer to invalid segments, Accurate ECN, segmentation offload, Fast
//! Open.
#![forbid(unsafe_code)]

mod application;
pub mod cc;
pub mod config;
mod connection;
mod ecn;
pub mod limits;
pub mod options;
pub mod profile;
mod receiver;
mod sender;
mod stats;
mod timestamps;

pub use cc::{
    Abc, AckSample, AnyControl, CongestionControl, CongestionEvent, ControlParameters, Controller, CwndUnit,
    Ecn, Interval, LossSample, OwnControl, RateSample, RttInterval, Setting, SlowStartExit, Variant,
};
pub use config::{DelayedAck, EndpointConfig, Source};
pub use connection::endpoint::{self, Endpoint};
pub use limits::{Limit, LimitTimes};
pub use options::{
    BeyondWindow, DelaySignal, EcnMode, Keepalive, LossRecovery, Nagle, NewRenoTimer, Pacing, PrrMode,
    RtoStyle, SackCompression, StretchAck,
};
pub use profile::Profile;
pub use stats::{Snapshot, Stats};
