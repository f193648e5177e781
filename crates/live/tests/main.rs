//! The integration tests of the live programs: one program, a module for each subject.

mod clamp;
mod clocks;
mod datagram;
mod documents;
mod experiment;
mod holdout;
mod parity;
mod police_twin;
