//! Network namespaces and devices, and the state of filters and firewalls; copies of packets that pass.

pub mod device;
pub mod link_type;
pub mod netlink;
pub mod netns;
pub mod nftables;
pub mod sniffer;
pub mod tun;
