//! Tables of the LTE physical layer, and the block error curves that follow from them.
//!
//! The tables are read at compile time from `crates/ran/data/*.csv`; each file names its clause and its
//! checks. The scheduler goes from a SINR to a CQI ([`cqi`]), from the CQI to an MCS ([`mcs`]), and with the
//! number of PRBs to a transport block size ([`tbs`]); the receiver decodes it with the probability of
//! [`block_errors`]. [`bsr`] has the buffer sizes of buffer status reports, `timing` the distances between
//! messages in FDD, [`tdd`] those in TDD.

pub mod block_errors;
pub mod bsr;
pub mod cqi;
pub mod mcs;
pub mod prach;
pub mod tbs;
pub mod tdd;
pub(crate) mod timing;
