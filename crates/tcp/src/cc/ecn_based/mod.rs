//! Congestion controls that reduce the window in proportion to the share of ECN marks.
//!
//! `dctcp` measures the share per window, `prague` per virtual round trip. Losses halve the window.

mod dctcp;
mod prague;

pub use dctcp::Dctcp;
pub use prague::Prague;
