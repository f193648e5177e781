//! Two TCP endpoints and a network that loses, duplicates, delays and reorders as the bytes say: all
//! variants, all options; when the network recovers, both transfers finish with every byte in order, once.
#![no_main]

#[path = "../../crates/tcp/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::operations::run(bytes);
});
