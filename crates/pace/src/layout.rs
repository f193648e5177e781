//! Map layouts shared with the kernel programs, translated from `bpf/pace.h` by the build script.
#![allow(dead_code)] // the kernel programs use more of them

include!(concat!(env!("OUT_DIR"), "/layout.rs"));
