//! One TCP endpoint in any state under arbitrary segments: it never panics, no timer lies in the past, the
//! window is never empty, no more is in flight than outstanding, no byte is received twice.
#![no_main]

#[path = "../../crates/tcp/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::segments::run(bytes);
});
