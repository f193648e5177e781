//! In-network functions that act on other people's TCP connections (RFC 3135, RFC 3449).
//!
//! Pure: no sockets, no threads, no clock, no global state. The same code runs in the simulator, the emulator and
//! the gateway, on simulated and on real packets.
#![forbid(unsafe_code)]

pub mod accelerator;
pub mod ack_filter;

pub use accelerator::{Accelerator, AcceleratorConfig, AcceleratorStats};
pub use ack_filter::{AckFilter, AckFilterConfig, AckFilterStats, KeepReason, ParseSchemeError, Scheme};
