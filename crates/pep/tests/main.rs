//! The integration tests of the in-network functions: one program, a module for each subject.

mod accelerator;
mod common;
mod documents;
mod invariants;
mod published;
mod safe_limits;
mod safe_pairs;
