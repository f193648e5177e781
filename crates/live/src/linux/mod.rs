//! Linux: its version, devices, namespaces, priorities, and hooks for programs.

pub(crate) mod bpf_fs;
pub(crate) mod bridge_state;
pub mod kernel;
pub(crate) mod memory;
pub(crate) mod netlink;
pub mod netns;
pub(crate) mod nftables;
pub(crate) mod priority;
pub mod sniffer;
pub mod tcx;
pub mod tun;
