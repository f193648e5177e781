//! Tables of the NR physical layer, and the functions that follow from them alone.
//!
//! The tables are read at compile time from `crates/ran/data/nr_*.csv`; each file names its clause and its
//! checks. A carrier ([`carrier`]) has PRBs; a SINR gives a CQI ([`cqi`]) and a number of layers ([`rank`]),
//! both an MCS ([`mcs`]), and with PRBs and symbols, less the [`overhead`], a transport block size ([`tbs`]);
//! the receiver decodes it with the probability of [`block_errors`]. [`bsr`] has the buffer sizes of buffer
//! status reports, [`peak_rate`] the rate that a carrier advertises. [`timing`] has the distances between
//! messages in the slots of a pattern, the processing times that they allow for, and the one-way latency of
//! an idle cell.

pub mod block_errors;
pub mod bsr;
pub mod carrier;
pub mod config;
pub mod cqi;
pub mod mcs;
pub mod overhead;
pub mod peak_rate;
pub mod rank;
pub mod tbs;
pub mod timing;
