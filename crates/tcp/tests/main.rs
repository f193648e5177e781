//! The integration tests of the endpoint: one program, a module for each subject.

mod arbitrary;
mod controls;
mod garbage;
mod limits;
mod link;
mod mechanisms;
mod model;
mod packetdrill;
mod relay;
mod response;
mod rfc9438;
mod script;
mod script_runner;
mod topologies;
mod transfer;
