//! The types that every other crate uses: time, units, sequence numbers, packets, the [`Node`] contract,
//! bounded and managed queues, TDD patterns, traces of links, pacing and named random streams.
//!
//! No sockets, threads, wall clock or global state: the same input gives the same bits on every machine.
#![forbid(unsafe_code)]

mod collections;
pub mod datagram;
pub mod discipline;
pub mod event_trace;
pub mod node;
pub mod pacing;
pub mod packet;
pub mod queue;
pub mod rng;
pub mod seq;
pub mod tdd;
pub mod test_support;
pub mod time;
pub mod trace;
pub mod units;
pub mod words;

pub use collections::{address_table, keyed_hash, ranges};

pub use address_table::AddressTable;
pub use datagram::{fragments, identification, mss, rewrite, split, tunnel, wire};
pub use discipline::{CodelConfig, FairConfig, ManagedCounters, ManagedQueue, Queued};
pub use keyed_hash::{HashKey, KeyedHasher};
pub use node::{DropReason, Event, Node, Output, Port, ServingCell};
pub use packet::{
    Checksum, FlowKey, ForeignOptions, IpHeader, Offload, Packet, Parsed, Payload, SackBlocks, TcpFlags,
    TcpHeader, TcpOptions, Timestamps, Transport,
};
pub use queue::{DropTail, QueueCounters, SduQueue, Waited};
pub use ranges::Ranges;
pub use rng::Stream;
pub use seq::SeqNumber;
pub use tdd::{SlotKind, SlotPattern};
pub use time::{Duration, Instant};
pub use units::{Bytes, Rate};
