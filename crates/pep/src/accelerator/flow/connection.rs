//! The constant facts of a connection: its addresses, the server's initial sequence number and the options
//! that the handshake negotiated.

use crate::accelerator::flow::paws::Epoch;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{Checksum, Duration, FlowKey, IpHeader, Packet, SeqNumber, TcpHeader};

/// Options that both SYNs offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) struct Negotiated {
    /// Window scale of the windows that the client advertises, and the accelerator in the client's name.
    pub client_shift: u8,
    /// Window scale of the server's windows.
    pub server_shift: u8,
    pub timestamps: bool,
    pub sack: bool,
    /// Classic ECN (RFC 3168).
    pub ecn: bool,
}

/// The result of a handshake, at the server's first data.
#[derive(Clone, Copy, Debug)]
pub(in crate::accelerator) struct Handshake {
    pub negotiated: Negotiated,
    /// Payload bytes of a full segment to the client.
    pub segment: u32,
    pub server_isn: SeqNumber,
    /// Right edge of the client's window, as an offset from the server's initial sequence number.
    pub client_edge: u64,
    /// The client has acknowledged the server's SYN. False under TCP Fast Open (RFC 7413) until it does.
    pub complete: bool,
    /// TSval of the server's SYN, and when it passed.
    pub server_timestamp: u32,
    pub server_epoch: Epoch,
    /// Round-trip time of the mobile segment: server's SYN to the client's answer.
    pub rtt: Option<Duration>,
    /// Round-trip time of the wired segment: client's SYN to the server's answer.
    pub server_rtt: Option<Duration>,
}

#[derive(Debug)]
pub(in crate::accelerator) struct Connection {
    /// Direction from server to mobile.
    pub key: FlowKey,
    pub server_isn: SeqNumber,
    pub negotiated: Negotiated,
    /// Packets are datagrams of bytes, not simulated lengths.
    pub real: bool,
}

impl Connection {
    /// The sequence number of an offset.
    pub fn seq(&self, off: u64) -> SeqNumber {
        self.server_isn + off as u32
    }
    /// The offset of a sequence number near `near`; `None` before the start of the stream.
    pub fn offset(&self, seq: SeqNumber, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(seq.distance(self.seq(near))))
    }
    /// Bytes of the TCP options in a data segment.
    pub fn option_bytes(&self) -> u32 {
        if self.negotiated.timestamps { 12 } else { 0 }
    }
    /// A segment without payload.
    pub fn empty_segment(&self, ip: IpHeader, tcp: TcpHeader, unparsed: Unparsed) -> Packet {
        if self.real {
            rewrite::segment(ip, tcp, unparsed, Checksum::Unverified, std::iter::empty())
        } else {
            let mut packet = Packet::tcp(ip.src, ip.dst, tcp);
            packet.ip = ip;
            packet
        }
    }
}
