//! Linux: its version, devices, namespaces, priorities, and hooks for programs.

pub mod kernel;
pub(crate) mod netlink;
pub mod netns;
pub(crate) mod priority;
pub mod tcx;
pub mod tun;
