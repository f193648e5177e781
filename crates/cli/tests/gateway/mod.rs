//! `paceline gateway` between network namespaces, with programs of this host at both ends. Needs root.
//! Without root the tests are skipped, or fail where `PACELINE_REQUIRE_PRIVILEGED` is set.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs run in real time

mod bridge;
mod bridge_state;
mod deploy;
mod disguise;
mod edges;
mod experiment;
mod fields;
mod filter;
mod firewall;
mod mistakes;
mod mtu;
mod operation;
mod queue;
mod radio;
mod seeing;
mod service;
mod shared_bottleneck;
mod transfer;
mod tun;
mod tunnels;
