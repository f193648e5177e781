//! Captures (pcap, pcapng): `file` reads a whole one, `stream` one of any length, packed too; `encapsulation`
//! finds the innermost IP datagram; `largest_flow` makes deliveries of a download; `magic` tells files apart.

pub mod encapsulation;
pub mod file;
pub(crate) mod largest_flow;
pub(crate) mod magic;
pub mod stream;
