//! The accelerator between a server and a client under arbitrary operations of both sides, beside the model
//! that the swarm tests use.
#![no_main]

#[path = "../../crates/pep/tests/accelerator/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::run(bytes);
});
