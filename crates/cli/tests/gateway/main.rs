//! `paceline gateway` between network namespaces, with programs of this host at both ends. Needs root.
//! Without root the tests are skipped, or fail where `PACELINE_REQUIRE_PRIVILEGED` is set.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // programs run in real time

mod bridge;
#[path = "../common/mod.rs"]
mod common;
mod disguise;
mod filter;
mod mistakes;
mod operation;
mod radio;
mod transfer;
mod tun;
