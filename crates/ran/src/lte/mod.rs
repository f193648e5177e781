//! The LTE tables, read at compile time from `crates/ran/data/*.csv`; each file names its clause and its checks.

mod csv;

pub mod block_errors;
pub mod bsr;
pub mod cqi;
pub mod mcs;
pub mod tbs;
