//! The integration tests of the radio: one program, a module for each subject.

mod access;
mod air;
mod cell;
mod common;
mod handover;
mod lte_fdd_digest;
mod lte_tdd;
mod nr_cell;
mod pairs;
mod rlc_am;
mod rlc_nr;
mod sidelink;
mod sidelink_nr;
