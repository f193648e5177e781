//! The mobile accelerator: K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP
//! Performance in Mobile Data Networks" (2011), with the safety rules that live traffic requires (RFC 3135,
//! RFC 5961, RFC 9293).
//!
//! The accelerator stands between servers and a mobile network. A server's segments are stored and
//! acknowledged at once, and sent to the client at the rate of its radio; losses of the mobile segment are
//! repaired here. Handshake, sequence numbers and the uplink stay end to end. A connection that cannot be
//! accelerated safely passes untouched.
//!
//! # Driving it
//!
//! There is no I/O and no clock: the driver passes the time, which must not go back. An [`Accelerator`] has
//! two sides, [`Side::Server`] (port 0 of [`paceline_net::Node`]) and [`Side::Mobile`] (port 1).
//!
//! - [`Accelerator::input`] takes a packet from a side. Any number of packets may be passed before the next
//!   step.
//! - [`Accelerator::poll_transmit`] returns packets to send until it returns `None`. ACKs are decided in this
//!   step, so that a batch of packets costs one ACK.
//! - [`Accelerator::next_timer`], after that, returns when [`Accelerator::handle_timeout`] is to be called,
//!   followed by polling. An early or late call is harmless; pacing is as fine as the calls.
//! - [`Accelerator::drain`] stops the accelerator without harm; [`Accelerator::flow_count`] is zero when it
//!   has stopped.
//!
//! Packets may be simulated lengths or a device's datagrams, also with IPv4 options, IPv6 extension headers
//! or in fragments. Super-packets (GRO) are accepted, and sent with their segment size where
//! [`AcceleratorConfig::super_packet`] allows. Workers that share the traffic by a hash of the connection
//! have one accelerator each.
//!
//! ```
//! # use paceline_pep::{Accelerator, AcceleratorConfig};
//! # use paceline_pep::accelerator::Side;
//! # use paceline_net::{Instant, Packet};
//! # fn receive() -> Option<(Side, Packet)> { None }
//! # fn send(_: Side, _: Packet) {}
//! let mut accelerator = Accelerator::new(AcceleratorConfig::default());
//! let now = Instant::from_millis(5);
//! while let Some((side, packet)) = receive() {
//!     accelerator.input(now, side, packet);
//! }
//! if accelerator.next_timer().is_some_and(|at| at <= now) {
//!     accelerator.handle_timeout(now);
//! }
//! while let Some(transmission) = accelerator.poll_transmit(now) {
//!     send(transmission.side, transmission.packet);
//! }
//! ```
//!
//! # Parts
//!
//! `machine` has the tables of connections and devices, the order of sending and the operator's calls. Each
//! connection is a `flow`: a receiver towards its server, a sender towards its client, and the upload that
//! passes. `rate` measures each device's path and sets its rate and window. Calls go from `machine` to `flow`
//! to `rate`, never back. `pacing` has the other spacings of packets, for TDD cells among others.
//!
//! Left out: tunnels (a GTP-U packet passes untouched; the place for an accelerator is N6 or SGi),
//! acceleration of uploads, and the storage of the journal.

mod config;
mod flow;
mod histogram;
mod machine;
mod pacing;
mod rate;
mod stats;

pub use config::{AcceleratorConfig, Pacing};
pub use flow::from_server::payload_slice::PayloadSlice;
pub use histogram::Histogram;
pub use machine::Accelerator;
pub use rate::RateControl;
pub use rate::adaptive::AdaptiveParameters;
pub use rate::paper::PaperParameters;
pub use rate::state::{ControlSnapshot, ControlState};
pub use stats::{AcceleratorStats, BypassReason, Rates, Times};

use paceline_net::pacing::Learned;
use paceline_net::{Duration, FlowKey, Packet, Port, SeqNumber};
use std::net::IpAddr;

/// A side of the accelerator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The wired segment.
    Server = 0,
    /// The mobile segment.
    Mobile = 1,
}

impl Side {
    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Server => Self::Mobile,
            Self::Mobile => Self::Server,
        }
    }
    /// The side's port as a [`paceline_net::Node`].
    pub const fn port(self) -> Port {
        Port(self as u16)
    }
}

/// A packet to send.
#[derive(Clone, PartialEq, Debug)]
pub struct Transmission {
    /// The side on which to send it.
    pub side: Side,
    /// The packet. A datagram that was put together has to leave as fragments again
    /// ([`paceline_net::fragments::fragment`]).
    pub packet: Packet,
    /// Payload bytes of the segments into which a super-packet is to be cut; 0 for any other packet.
    pub segment: u32,
    /// The payload, if the packet has only headers: see [`AcceleratorConfig::gather`].
    pub body: Vec<PayloadSlice>,
}

impl Transmission {
    /// A packet that contains its payload.
    pub(crate) fn whole(side: Side, packet: Packet) -> Self {
        Self { side, packet, segment: 0, body: Vec::new() }
    }
}

/// The record of an exposed connection that must survive a crash, so that both ends can be reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// Direction from server to mobile.
    pub key: FlowKey,
    /// The server's next sequence number at the client.
    pub client_expects: SeqNumber,
    /// End of the data sent to the client.
    pub client_sent: SeqNumber,
    /// The client's next sequence number at the server.
    pub server_expects: SeqNumber,
    /// The acknowledgment number that the server has.
    pub server_acked: SeqNumber,
    /// TSval for a segment in the client's name.
    pub client_timestamp: Option<u32>,
    /// TSval for a segment in the server's name.
    pub server_timestamp: Option<u32>,
}

/// The reason why a connection's client is sent no more at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientLimit {
    /// Everything that the server has sent is sent to the client, and the server may send more: its data, its
    /// send buffer or its congestion control limits.
    Server,
    /// Everything is sent, and the connection's share of the memory, or of the time for which data is stored,
    /// is used up.
    Memory,
    /// The client's window is used up.
    Window,
    /// The rate control, or its bound of the bytes in flight: the radio.
    Rate,
}

impl ClientLimit {
    /// Its name; part of the interface, never changed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Memory => "memory",
            Self::Window => "client-window",
            Self::Rate => "radio",
        }
    }
}

/// State of one connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowSnapshot {
    /// Direction from server to mobile.
    pub key: FlowKey,
    /// Bytes acknowledged to the server that the client has not acknowledged.
    pub exposure: u64,
    /// Bytes stored, bookkeeping included.
    pub held: u64,
    /// Bytes in flight to the client.
    pub in_flight: u64,
    /// Payload bytes that the client has acknowledged.
    pub delivered: u64,
    /// How long the data that was sent last had been stored.
    pub age: Duration,
    /// Smoothed round-trip time of the mobile segment.
    pub srtt: Option<Duration>,
    /// Minimum round-trip time of the mobile segment; zero before the first sample.
    pub min_rtt: Duration,
    /// The rate control of the client's device.
    pub control: ControlSnapshot,
    /// Why the client is sent no more.
    pub limit: ClientLimit,
    /// The TDD period that the device's ACKs show, if it is learned and known.
    pub pattern: Option<Learned>,
}

/// State of one device with connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceSnapshot {
    /// Its IPv4 address, or the /64 of its IPv6 address.
    pub address: IpAddr,
    /// Connections being accelerated.
    pub flows: usize,
    /// Bytes stored for it, bookkeeping included.
    pub held: u64,
    /// Bytes in flight to it.
    pub in_flight: u64,
    /// Payload bytes that it has acknowledged since its first connection was admitted.
    pub delivered: u64,
    /// Its rate control.
    pub control: ControlSnapshot,
    /// Whether it was found to share a queue with others, and yields to them.
    pub shares_queue: bool,
}
