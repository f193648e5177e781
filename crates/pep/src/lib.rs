//! Performance-enhancing proxies (RFC 3135): the mobile accelerator, the ACK filter (RFC 3449) and
//! the ACK policer.
//!
//! The code has no sockets, threads, clock or global state. The simulator, the emulator and the gateway run
//! it on simulated and on real packets.
#![forbid(unsafe_code)]

pub mod accelerator;
pub mod ack_filter;
pub mod ack_policer;
mod flows;

pub use accelerator::{Accelerator, AcceleratorConfig, AcceleratorStats};
pub use ack_filter::{AckFilter, AckFilterConfig, AckFilterStats, KeepReason, ParseSchemeError, Scheme};
