//! Traffic sources and sinks of a model: a [`Host`] has TCP endpoints, [`Udp`] one side of constant-rate UDP
//! flows.
//!
//! Each is a node whose port 0 is its network interface. A station has one such node and so has its server;
//! the core network and the access carry packets between the two.

pub mod host;
mod udp;

pub(crate) use host::Host;
pub(crate) use udp::{Arrivals, Logged, Udp, UdpFlow, UdpStats};
