//! See `crates/net/tests/wire.rs`.
#![no_main]

#[path = "../../crates/net/tests/wire.rs"]
mod wire;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    wire::run(bytes);
});
