//! Map layouts and numbers shared with the kernel programs, translated from `bpf/shared.h` by the build script.
#![allow(dead_code)] // the kernel programs use more of them

include!(concat!(env!("OUT_DIR"), "/layout.rs"));
