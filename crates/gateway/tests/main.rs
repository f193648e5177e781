//! The integration tests of the gateway: one program, a module for each subject.

mod clamp;
mod clocks;
mod datagram;
mod documents;
mod experiment;
mod holdout;
