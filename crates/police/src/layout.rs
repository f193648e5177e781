//! Map layouts and numbers shared with the kernel programs; the build script translates `bpf/police.h`.
#![allow(dead_code)] // the kernel programs use more of them

use std::net::{IpAddr, Ipv6Addr};

/// Key of the maps with one entry, by definition of an array map.
pub const ONLY: [u8; 4] = 0u32.to_ne_bytes();

/// The address that 16 bytes of a map mean.
pub fn address(bytes: [u8; 16]) -> IpAddr {
    let v6 = Ipv6Addr::from(bytes);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

include!(concat!(env!("OUT_DIR"), "/layout.rs"));
