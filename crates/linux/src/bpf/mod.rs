//! Kernel programs: their hooks at interfaces, and the file system in which they are pinned.

pub mod bpf_fs;
pub mod tcx;
