//! The Linux system, for the programs that run on it: devices, network namespaces, hooks for kernel programs,
//! the clock, signals, and the files that they write.

pub mod ability;
pub mod bpf;
pub mod clock;
pub mod files;
pub mod kernel;
pub mod memory;
pub mod network;
pub mod priority;
pub mod random;
pub mod stop;
pub mod terminal;
