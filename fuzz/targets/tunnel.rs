//! See `crates/net/tests/tunnel.rs`.
#![no_main]

#[path = "../../crates/net/tests/tunnel.rs"]
mod tunnel;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tunnel::run(bytes);
});
