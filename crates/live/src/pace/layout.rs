//! Map layouts shared with the kernel programs, translated from `bpf/pace.h` by `build.rs`.
#![allow(dead_code)] // the kernel programs use more of them

include!(concat!(env!("OUT_DIR"), "/pace_layout.rs"));
