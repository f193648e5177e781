//! The ACK filter under arbitrary pushes, grants and pops, checked by the model of the property tests.
#![no_main]

#[path = "../../crates/pep/tests/common/model.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::run(bytes);
});
