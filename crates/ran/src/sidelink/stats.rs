//! Counters, switches and messages of pairs.

use crate::slot::Slot;
use paceline_net::Instant;

/// A path of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathKind {
    /// From one station to the other.
    Direct,
    /// Through the eNB.
    Infrastructure,
}

impl PathKind {
    /// The other path.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Direct => Self::Infrastructure,
            Self::Infrastructure => Self::Direct,
        }
    }
}

/// A direction of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowDirection {
    /// From the peer to the station.
    ToStation,
    /// From the station to the peer.
    ToPeer,
}

impl FlowDirection {
    /// Both directions, in the order of their flows.
    pub const BOTH: [Self; 2] = [Self::ToStation, Self::ToPeer];
}

/// Packets and bytes that one path of a flow has delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets.
    pub packets: u64,
    /// Bytes with IP headers.
    pub bytes: u64,
}

/// A change of path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Switch {
    /// Time of the change.
    pub at: Instant,
    /// The pair.
    pub pair: usize,
    /// The flow.
    pub direction: FlowDirection,
    /// The new path.
    pub to: PathKind,
    /// CQI of the direct link and of the uplink.
    pub cqi: (u8, u8),
    /// Packets and bytes that were dropped.
    pub dropped: Carried,
}

/// A message of a flow's access, for traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The slot.
    pub slot: Slot,
    /// The pair.
    pub pair: usize,
    /// The flow.
    pub direction: FlowDirection,
    /// Kind.
    pub kind: MessageKind,
}

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// A random access request is sent.
    Request,
    /// A block with the short grant, and in it a buffer status report, is sent.
    ShortGrant,
    /// The eNB has decoded a buffer status report.
    ReportDecoded,
    /// A block of data is sent for the first time, on the flow's first hop.
    Data,
    /// A block of data is sent by the eNB for the first time.
    Relayed,
    /// A packet reaches its destination.
    Delivered,
}
