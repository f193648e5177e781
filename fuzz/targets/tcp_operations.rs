//! Two TCP endpoints, with all variants and options, over a network that loses, duplicates, delays and
//! reorders packets as the bytes say; when the network recovers, both transfers complete with every byte in
//! order, once.
#![no_main]

#[path = "../../crates/tcp/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::operations::run(bytes);
});
