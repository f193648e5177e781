//! Map layouts and numbers shared with the kernel programs; the build script translates `bpf/shared.h`.
#![allow(dead_code)] // the kernel programs use more of them

include!(concat!(env!("OUT_DIR"), "/layout.rs"));
