//! The data path: frames between the kernel and the workers.
//!
//! A frame that arrives on an interface is classified by the kernel programs (`bpf/`, loaded by
//! [`steering`]): it stays in the kernel, is redirected to the other port, or goes to a worker. A worker
//! reads its frames from a packet socket ([`socket`]), short ones through memory shared with the kernel
//! ([`ring`]), into [`slot`]s. [`frame`] parses a slot into link header and packet, and builds the frame of
//! each packet that leaves, with the encapsulation between link header and datagram. [`links`]
//! remembers the link header of each connection, for packets that the gateway makes itself.
//!
//! [`steering`] is also the way back: policies, heartbeats of the workers, connections left to the kernel,
//! counters. [`layout`] has the map layouts and numbers that both sides share; [`system_call`] wraps the
//! calls of sockets. [`ability`] tells whether this host has all that they need.

pub mod ability;
pub mod frame;
pub mod layout;
pub mod links;
pub mod ring;
pub mod slot;
pub mod socket;
pub mod steering;
pub mod system_call;
