//! Datagrams as bytes.
//!
//! A device's bytes become a packet in [`wire::parse`]. A packet that passes through is changed in place by
//! [`rewrite`]; packets built around stored payload come from [`rewrite::segment`], and have their number
//! from [`identification`]. [`split`] cuts a super-packet into segments (Linux: GSO). [`fragments`] puts
//! fragments together, and cuts the datagram again. [`tunnel`] separates an encapsulation from the datagram
//! inside. [`mss`] lowers the segment size that a SYN announces. [`wire::emit`] turns simulated packets into
//! bytes, for captures.

pub mod fragments;
mod headers;
pub mod identification;
pub mod mss;
pub mod rewrite;
pub mod split;
pub mod tunnel;
pub mod wire;
