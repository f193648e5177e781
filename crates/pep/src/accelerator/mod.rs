//! The mobile accelerator: K. Liu, J. Y. B. Lee, "Mobile Accelerator: A New Approach to Improve TCP Performance in
//! Mobile Data Networks" (2011), with the safety that live traffic asks for (RFC 3135, RFC 5961, RFC 9293).
//!
//! It stands between servers and a mobile network and divides each connection's downlink, without terminating it: the
//! server's segments are kept and acknowledged at once, and sent to the client at the rate that its radio takes,
//! with losses repaired from here. Handshake, sequence numbers and the uplink stay end to end. What it does not
//! understand passes untouched.
//!
//! # Driving it
//!
//! No I/O and no clock: time is handed in, and never goes back. An [`Accelerator`] has two sides, [`Side::Server`]
//! (port 0 of [`paceline_net::Node`]) and [`Side::Mobile`] (port 1).
//!
//! - [`Accelerator::input`] takes a packet from a side; any number of them may come before the next step.
//! - [`Accelerator::poll_transmit`] gives what is to be sent, until it gives `None`. What was acknowledged and what
//!   may be sent is decided here, so that a batch of packets costs one acknowledgment.
//! - [`Accelerator::next_timer`], asked after that, says when [`Accelerator::handle_timeout`] wants to be called,
//!   which is followed by polling again. Calling early or late is harmless; pacing is as fine as the calls.
//! - [`Accelerator::drain`] ends it without harm; [`Accelerator::flow_count`] is zero when it has.
//!
//! Packets may be simulated lengths or a device's datagrams; payload is held as it came. Super-packets come in as
//! they are, and leave where [`AcceleratorConfig::super_packet`] allows, with the segment size beside them. Workers
//! that share the traffic by a hash of the connection have a machine each.
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
//! `machine` has the tables of connections and devices, the order of sending and the operator's calls. Each connection is
//! a `flow`: a receiver towards its server, a sender towards its client, and the upload that passes. `rate` measures
//! each device's path and sets its rate and window. Calls go from `machine` to `flow` to `rate`, never back.
//!
//! Left out: tunnels (a GTP-U packet passes untouched; the place for an accelerator is N6 or SGi), acceleration of
//! uploads, and the storage of the journal.

mod config;
mod flow;
mod histogram;
mod machine;
mod rate;
mod stats;

pub use config::AcceleratorConfig;
pub use flow::from_server::payload_slice::PayloadSlice;
pub use histogram::Histogram;
pub use machine::Accelerator;
pub use rate::RateControl;
pub use rate::adaptive::AdaptiveParameters;
pub use rate::paper::PaperParameters;
pub use stats::{AcceleratorStats, BypassReason, Rates, Times};

use paceline_net::{Duration, FlowKey, Packet, Port, Rate, SeqNumber};
use std::net::IpAddr;

/// Where packets enter and leave.
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

/// A packet that leaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Transmission {
    /// The side that it leaves by.
    pub side: Side,
    /// The packet.
    pub packet: Packet,
    /// Of a super-packet that was made here, payload bytes of the segments to cut it into; 0 for all others.
    pub segment: u32,
    /// The payload, if it is not among the packet's bytes: see [`AcceleratorConfig::gather`].
    pub body: Vec<PayloadSlice>,
}

impl Transmission {
    /// A packet with all its bytes.
    pub(crate) fn whole(side: Side, packet: Packet) -> Self {
        Self { side, packet, segment: 0, body: Vec::new() }
    }
}

/// What must outlive a crash for a connection's ends not to be left hanging: where each of them stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// Direction from server to mobile.
    pub key: FlowKey,
    /// The number that the client expects of the server.
    pub client_expects: SeqNumber,
    /// The number behind what was sent to the client.
    pub client_sent: SeqNumber,
    /// The number that the server expects of the client.
    pub server_expects: SeqNumber,
    /// What the server has seen acknowledged.
    pub server_acked: SeqNumber,
    /// TSval for a segment in the client's name.
    pub client_timestamp: Option<u32>,
    /// TSval for a segment in the server's name.
    pub server_timestamp: Option<u32>,
}

/// State of one connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowSnapshot {
    /// Direction from server to mobile.
    pub key: FlowKey,
    /// Bytes acknowledged to the server that the client has not acknowledged.
    pub exposure: u64,
    /// Bytes held, bookkeeping included.
    pub held: u64,
    /// Bytes on their way to the client.
    pub in_flight: u64,
    /// Payload bytes that the client has acknowledged.
    pub delivered: u64,
    /// Smoothed round-trip time of the mobile segment.
    pub srtt: Option<Duration>,
    /// Its shortest round-trip time; zero before the first.
    pub min_rtt: Duration,
    /// Rate towards the client's device.
    pub rate: Rate,
    /// Bytes that may be on their way to the device.
    pub window: u64,
}

/// State of one device with connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceSnapshot {
    /// Its address; of IPv6 the /64.
    pub address: IpAddr,
    /// Connections being accelerated.
    pub flows: usize,
    /// Bytes held for it, bookkeeping included.
    pub held: u64,
    /// Bytes on their way to it.
    pub in_flight: u64,
    /// Payload bytes that it has acknowledged since its oldest connection was taken in.
    pub delivered: u64,
    /// Rate towards it.
    pub rate: Rate,
}
