//! A TCP segment as the policer sees it: integers only.

use paceline_net::{Packet, TcpFlags, TcpHeader};

/// Bits of [`Segment::marks`].
pub mod marks {
    /// SACK blocks. Chosen: one bit of the set.
    pub const SACK: u8 = 0x01;
    /// An option that a pure ACK of a plain connection does not have, or a malformed list.
    /// Chosen: one bit of the set.
    pub const OPTIONS: u8 = 0x02;
    /// A fragment, an IPv4 option, an IPv6 extension header, or inconsistent lengths.
    /// Chosen: one bit of the set.
    pub const SPECIAL: u8 = 0x04;
    /// ECN bits in the IP header. Chosen: one bit of the set.
    pub const IP_ECN: u8 = 0x08;
    /// An option of a SYN that forbids policing: MPTCP, MD5, TCP-AO, accurate ECN, unknown, malformed.
    /// Chosen: one bit of the set.
    pub const FORBIDS: u8 = 0x10;
    /// The timestamps option. Chosen: one bit of the set.
    pub const TIMESTAMPS: u8 = 0x20;
    /// The window scale option. Chosen: one bit of the set.
    pub const SCALE: u8 = 0x40;
}

/// One TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits with AE and the reserved ones: 12 bits.
    pub flags: u16,
    /// Window as on the wire.
    pub window: u16,
    /// Payload bytes; of a super-packet, all of them.
    pub payload: u32,
    /// Payload bytes of one segment of a super-packet, or `payload`.
    pub segment: u32,
    /// Bytes of the IP datagram.
    pub len: u32,
    /// Properties of the packet: a set of [`marks`].
    pub marks: u8,
    /// Window scale of a SYN, at most 14 (RFC 7323); 0 without the option.
    pub shift: u8,
    /// Maximum segment size of a SYN; 0 without the option.
    pub mss: u16,
    /// TSval and TSecr (RFC 7323); 0 without the option.
    pub tsval: u32,
    /// See `tsval`.
    pub tsecr: u32,
}

impl Segment {
    /// The segment in a packet; `None` if it carries no well-formed TCP header.
    pub fn of(packet: &Packet) -> Option<Self> {
        let tcp = packet.tcp_header()?;
        let super_segment = packet.offload.super_segment();
        let timestamps = tcp.options.timestamps.unwrap_or_default();
        Some(Self {
            seq: tcp.seq.0,
            ack: tcp.ack.0,
            flags: tcp.flags.0,
            window: tcp.window,
            payload: tcp.payload_len,
            segment: if super_segment == 0 { tcp.payload_len } else { super_segment },
            len: packet.len,
            marks: packet_marks(packet, tcp),
            shift: tcp.options.window_scale.unwrap_or(0).min(14),
            mss: tcp.options.mss.unwrap_or(0),
            tsval: timestamps.val,
            tsecr: timestamps.ecr,
        })
    }

    /// Whether it is an ACK without data, SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        let opening_or_closing = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        self.payload == 0 && self.flags & TcpFlags::ACK.0 != 0 && self.flags & opening_or_closing == 0
    }

    /// Whether all of `flags` are set.
    pub fn has(&self, flags: TcpFlags) -> bool {
        self.flags & flags.0 == flags.0
    }
}

fn packet_marks(packet: &Packet, tcp: &TcpHeader) -> u8 {
    let options = &tcp.options;
    let of_a_syn = options.mss.is_some() || options.window_scale.is_some() || options.sack_permitted;
    let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
    mark(!options.sack.is_empty(), marks::SACK)
        | mark(options.other.any() || of_a_syn, marks::OPTIONS)
        | mark(packet.ip.special, marks::SPECIAL)
        | mark(packet.ip.ecn() != 0, marks::IP_ECN)
        | mark(options.other.any(), marks::FORBIDS)
        | mark(options.timestamps.is_some(), marks::TIMESTAMPS)
        | mark(options.window_scale.is_some(), marks::SCALE)
}
