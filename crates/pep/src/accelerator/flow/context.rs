//! The arguments of every call of a connection, and its verdict on a packet.

use crate::accelerator::Transmission;
use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::to_client::overshoot::PastWindow;
use crate::accelerator::stats::AcceleratorStats;
use paceline_net::{Duration, Instant, Packet};
use std::collections::VecDeque;

/// The machine's state that a connection reads or adds to.
pub(in crate::accelerator) struct Context<'a> {
    pub now: Instant,
    /// Whether the device takes data past its window; connections change it.
    pub past_window: PastWindow,
    pub config: &'a AcceleratorConfig,
    pub stats: &'a mut AcceleratorStats,
    /// Packets to send.
    pub out: &'a mut VecDeque<Transmission>,
    /// Early ACKs are allowed: the accelerator is not draining.
    pub early_acks: bool,
    /// Packets may have bypassed the machine: see [`crate::accelerator::Accelerator::on_absence`].
    pub unseen_packets: bool,
    /// Bytes by which the server may be ahead of the client: the connection's share of its device's buffer.
    pub share: u64,
    /// The path to the device, which bounds the data stored ahead of the radio; `None`: only memory does.
    pub ahead: Option<Ahead>,
    /// Bytes that may be acknowledged early in addition, of all connections together.
    pub exposure_room: u64,
    /// Buffers are more than three quarters full: receive windows do not grow.
    pub buffers_low: bool,
    /// Buffers are full: new data is refused.
    pub buffers_full: bool,
}

/// The bytes that the path to a device has use for.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Ahead {
    /// Bytes that may be in flight to the device.
    pub window: u64,
    /// Bytes that it takes in a second.
    pub capacity: u64,
    /// Bytes that wait for its radio or are in flight, and connections with such bytes.
    pub queued: u64,
    pub busy: u64,
    /// The rate control looks for the capacity still.
    pub starting: bool,
    /// Whether the capacity was measured.
    pub measured: bool,
    /// Time beyond the round trip to the server for which data is stored.
    pub reserve: Duration,
    /// The operator's bound of the time for which data is stored.
    pub most: Option<Duration>,
}

/// The decision on a packet, and on its connection.
#[derive(Debug)]
pub(in crate::accelerator) enum Verdict {
    /// The packet is forwarded, possibly rewritten.
    Pass(Packet),
    /// The packet ends here; its content was taken over.
    Absorbed,
    /// The connection has ended; the packet is forwarded.
    Ended(Packet),
    /// The connection continues end to end; the packet is forwarded.
    Detach(Packet),
}
