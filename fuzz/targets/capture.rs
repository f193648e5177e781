//! See `crates/explain/tests/capture.rs`.
#![no_main]

#[path = "../../crates/explain/tests/capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    capture::run(bytes);
});
