//! The vocabulary that every other crate speaks: time, units, sequence numbers, packets, the [`Node`]
//! contract, bounded queues and named random streams.
//!
//! Pure: no sockets, no threads, no wall clock, no global state. Everything here gives the same bits on every
//! machine.
#![forbid(unsafe_code)]

pub mod address_table;
pub mod keyed_hash;
pub mod node;
pub mod packet;
pub mod queue;
pub mod rewrite;

pub mod rng;
pub mod seq;
pub mod split;
pub mod time;
pub mod units;
pub mod wire;

pub use address_table::AddressTable;
pub use keyed_hash::{HashKey, KeyedHasher};
pub use node::{DropReason, Event, Node, Output, Port};
pub use packet::{
    Checksum, FlowKey, ForeignOptions, IpHeader, Offload, Packet, Parsed, Payload, SackBlocks, TcpFlags,
    TcpHeader, TcpOptions, Timestamps, Transport,
};
pub use queue::{DropTail, SduQueue, Waited};
pub use rng::Stream;
pub use seq::SeqNumber;
pub use time::{Duration, Instant};
pub use units::{Bytes, Rate};
