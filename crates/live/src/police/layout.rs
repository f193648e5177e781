//! Map layouts and numbers shared with the kernel programs, translated from `bpf/police.h` by `build.rs`.
#![allow(dead_code)] // the kernel programs use more of them

include!(concat!(env!("OUT_DIR"), "/police_layout.rs"));
