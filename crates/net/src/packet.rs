//! A packet as the algorithms see it: the parsed IP and TCP headers, and either a payload that exists only as a
//! length (simulation) or the datagram's own bytes (a device).
//!
//! The headers carry what the rules of an ACK filter or an accelerator ask for. Anything that the parser could
//! not vouch for (fragments, extension headers, unknown or malformed options) is marked, never guessed.

use crate::seq::SeqNumber;
use crate::time::Instant;
use std::fmt;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};

/// One IP datagram. A pointer to its [`Parsed`] form, whose fields are used as its own: on its way a packet passes
/// a dozen queues, and what moves is the pointer.
#[derive(Clone, PartialEq)]
pub struct Packet(Box<Parsed>);

/// What a packet holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// The network header.
    pub ip: IpHeader,
    /// The transport header.
    pub transport: Transport,
    /// What follows the headers.
    pub payload: Payload,
    /// Length of the whole IP datagram in bytes, headers included.
    pub len: u32,
    /// What a device said beside the bytes.
    pub offload: Offload,
}

/// Work on a datagram that one device has done, or leaves to the next. Packed: it fits where a [`Parsed`] has padding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(Rust, packed)]
pub struct Offload {
    /// The transport checksum.
    pub checksum: Checksum,
    /// Of a super-packet, payload bytes of the segments that it stands for; 0 for any other.
    pub segment: u16,
}

/// State of a datagram's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// In the bytes; nobody has looked at it.
    #[default]
    Unverified,
    /// In the bytes, and found right.
    Verified,
    /// Not in the bytes: the field holds the sum over the pseudo-header, and a device is to complete it (Linux:
    /// `CHECKSUM_PARTIAL`). What the datagram carries is taken for right.
    Partial,
}

/// The IP header, version 4 or 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// Source address.
    pub src: IpAddr,
    /// Destination address; of the same version as `src`.
    pub dst: IpAddr,
    /// TOS or Traffic Class octet: DSCP and, in its two low bits, ECN.
    pub traffic_class: u8,
    /// TTL or Hop Limit.
    pub hop_limit: u8,
    /// A fragment, an IPv4 option or an IPv6 extension header is present: no algorithm may act on the packet.
    pub special: bool,
}

impl IpHeader {
    /// The ECN codepoint (RFC 3168): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }
    /// Length of the plain header in bytes.
    pub fn plain_len(&self) -> u32 {
        if self.src.is_ipv4() { 20 } else { 40 }
    }
}

/// The transport header.
#[derive(Clone, PartialEq, Debug)]
pub enum Transport {
    /// A TCP segment that parsed well.
    Tcp(TcpHeader),
    /// A UDP datagram.
    Udp {
        /// Source port.
        src_port: u16,
        /// Destination port.
        dst_port: u16,
        /// Simulated: when the sender made it, or what it answers.
        made_at: Option<Instant>,
    },
    /// Any other protocol, by IP protocol number, and segments that did not parse.
    Other(u8),
}

/// What follows the headers of a packet.
#[derive(Clone, PartialEq)]
pub enum Payload {
    /// Simulated: this many payload bytes behind the transport header.
    Virtual(u32),
    /// From a device: the bytes of the whole IP datagram, headers included. The parsed headers are a view of it.
    Datagram(Box<[u8]>),
}

/// A TCP header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; meaningful with the ACK flag.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as on the wire, before window scaling.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload bytes, from the IP length (Ethernet padding does not count).
    pub payload_len: u32,
}

/// The control bits of a TCP header, with the reserved bits: the low 12 bits of octets 13 and 14.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from sender.
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push function.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x020);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN (RFC 9768), formerly the nonce sum.
    pub const AE: Self = Self(0x100);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let set = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.debug_list().entries(set.map(|(_, name)| *name)).finish()
    }
}

/// The TCP options that matter to a middlebox; anything else sets `other`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size (kind 2).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3, RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4, RFC 2018).
    pub sack_permitted: bool,
    /// Timestamps (kind 8, RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (kind 5).
    pub sack: SackBlocks,
    /// Options of other kinds that are present, or that the option list is malformed.
    pub other: ForeignOptions,
}

/// Kinds of options that have no field of their own, as a set: some tell a middlebox to keep its hands off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForeignOptions(pub u8);

impl ForeignOptions {
    /// Multipath TCP (kind 30, RFC 8684).
    pub const MPTCP: Self = Self(0x01);
    /// MD5 signatures (kind 19, RFC 2385).
    pub const MD5: Self = Self(0x02);
    /// The authentication option (kind 29, RFC 5925).
    pub const AUTHENTICATION: Self = Self(0x04);
    /// Fast Open (kind 34, RFC 7413).
    pub const FAST_OPEN: Self = Self(0x08);
    /// Accurate ECN (kinds 172 and 174, RFC 9768).
    pub const ACCURATE_ECN: Self = Self(0x10);
    /// Any other kind, or a malformed list.
    pub const UNKNOWN: Self = Self(0x80);

    /// Whether there is any.
    pub const fn any(self) -> bool {
        self.0 != 0
    }
    /// Whether any of `other` is present.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// Those of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Unknown if there is none.
    #[must_use]
    pub const fn or_unknown(self) -> Self {
        if self.any() { self } else { Self::UNKNOWN }
    }
    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl From<bool> for ForeignOptions {
    /// One that is unknown, or none.
    fn from(present: bool) -> Self {
        if present { Self::UNKNOWN } else { Self::default() }
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval.
    pub val: u32,
    /// TSecr.
    pub ecr: u32,
}

/// Up to four SACK blocks: half-open ranges `[left, right)` in the order of the wire, the newest first.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); 4],
    len: u8,
}

impl SackBlocks {
    /// The blocks present.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.blocks[..usize::from(self.len)]
    }
    /// Adds a block at the end; a fifth is ignored, since the option cannot carry it.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }
    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of blocks.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl TcpOptions {
    /// Length on the wire in bytes, padded to a multiple of four, in the layout that Linux writes.
    pub fn wire_len(&self) -> u32 {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4; // NOP + kind 3
        }
        len += match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => 12, // NOP NOP + kind 8, or SACK-permitted in place of the NOPs
            (false, true) => 4,
            (false, false) => 0,
        };
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.len() as u32; // NOP NOP + kind 5
        }
        len
    }
}

/// Addresses and ports of one direction of a TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl FlowKey {
    /// The key of the other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::net::SocketAddr;
        write!(
            f,
            "{} > {}",
            SocketAddr::new(self.src, self.src_port),
            SocketAddr::new(self.dst, self.dst_port)
        )
    }
}

impl Packet {
    /// A simulated TCP segment from `key.src` to `key.dst`; ports and `payload_len` of `tcp` are used as given.
    pub fn tcp(src: IpAddr, dst: IpAddr, tcp: TcpHeader) -> Self {
        Parsed::tcp(src, dst, tcp).into()
    }
    /// The same in the place of a packet that has ended, whose memory it takes over.
    #[must_use]
    pub fn tcp_in_place_of(mut self, src: IpAddr, dst: IpAddr, tcp: TcpHeader) -> Self {
        *self.0 = Parsed::tcp(src, dst, tcp);
        self
    }
    /// The TCP header, if this is a TCP segment.
    pub fn tcp_header(&self) -> Option<&TcpHeader> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }
    /// Whether the IP header says TCP, and be it a segment that did not parse.
    pub fn is_tcp_protocol(&self) -> bool {
        matches!(self.transport, Transport::Tcp(_) | Transport::Other(6))
    }
    /// Sets Congestion Experienced (RFC 3168 §5), in the bytes of a device's datagram as well.
    pub fn set_congestion_experienced(&mut self) {
        self.ip.traffic_class |= 3;
        let Payload::Datagram(bytes) = &mut self.payload else { return };
        match bytes.first().map(|first| first >> 4) {
            Some(4) if bytes.len() >= 20 => {
                let header = usize::from(bytes[0] & 15) * 4;
                bytes[1] |= 3;
                bytes[10..12].fill(0);
                let words = bytes[..header.clamp(20, bytes.len())].chunks(2);
                let mut sum: u32 =
                    words.map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))).sum();
                while sum > 0xffff {
                    sum = (sum & 0xffff) + (sum >> 16);
                }
                bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            }
            Some(6) if bytes.len() >= 40 => bytes[1] |= 0x30,
            _ => {}
        }
    }
    /// Addresses and ports, if this is a TCP segment.
    pub fn flow_key(&self) -> Option<FlowKey> {
        let tcp = self.tcp_header()?;
        let (src, dst) = (self.ip.src, self.ip.dst);
        Some(FlowKey { src, dst, src_port: tcp.src_port, dst_port: tcp.dst_port })
    }
    /// Whether this is a TCP segment that carries nothing but an acknowledgment: no payload, and of the flags
    /// exactly ACK, with or without the ECN echo bits.
    pub fn is_pure_ack(&self) -> bool {
        let ecn_bits = TcpFlags::ECE.0 | TcpFlags::CWR.0;
        self.tcp_header()
            .is_some_and(|tcp| tcp.payload_len == 0 && tcp.flags.0 & !ecn_bits == TcpFlags::ACK.0)
    }
}

impl Parsed {
    fn tcp(src: IpAddr, dst: IpAddr, tcp: TcpHeader) -> Self {
        let ip = IpHeader { src, dst, traffic_class: 0, hop_limit: 64, special: false };
        let len = ip.plain_len() + 20 + tcp.options.wire_len() + tcp.payload_len;
        let (payload, offload) = (Payload::Virtual(tcp.payload_len), Offload::default());
        Self { ip, payload, transport: Transport::Tcp(tcp), len, offload }
    }
}

impl From<Parsed> for Packet {
    fn from(parsed: Parsed) -> Self {
        Self(Box::new(parsed))
    }
}

impl Deref for Packet {
    type Target = Parsed;
    fn deref(&self) -> &Parsed {
        &self.0
    }
}

impl DerefMut for Packet {
    fn deref_mut(&mut self) -> &mut Parsed {
        &mut self.0
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Virtual(len) => write!(f, "Virtual({len})"),
            Self::Datagram(bytes) => write!(f, "Datagram({} bytes)", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack() -> Packet {
        let tcp = TcpHeader {
            src_port: 5000,
            dst_port: 80,
            seq: SeqNumber(1),
            ack: SeqNumber(2),
            flags: TcpFlags::ACK,
            window: 1000,
            options: TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..Default::default() },
            payload_len: 0,
        };
        Packet::tcp("198.18.0.2".parse().unwrap(), "198.18.0.1".parse().unwrap(), tcp)
    }

    #[test]
    fn an_ack_with_timestamps_is_52_bytes() {
        let packet = ack();
        assert_eq!(packet.len, 52);
        assert!(packet.is_pure_ack());
    }

    #[test]
    fn psh_or_payload_make_it_no_pure_ack() {
        for change in [
            |tcp: &mut TcpHeader| tcp.flags = tcp.flags.with(TcpFlags::PSH),
            |tcp: &mut TcpHeader| {
                tcp.payload_len = 1;
            },
        ] {
            let mut packet = ack();
            let Transport::Tcp(tcp) = &mut packet.transport else { unreachable!() };
            change(tcp);
            assert!(!packet.is_pure_ack());
        }
    }

    #[test]
    fn a_mark_of_congestion_reaches_the_bytes_and_their_checksum() {
        for (src, dst) in [("198.18.0.2", "198.18.0.1"), ("2001:db8::2", "2001:db8::1")] {
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            let mut simulated = Packet::tcp(src, dst, *ack().tcp_header().unwrap());
            simulated.ip.traffic_class = 0xb8 | 2;
            let mut packet = crate::wire::parse(&crate::wire::emit(&simulated)).unwrap();
            packet.set_congestion_experienced();
            simulated.set_congestion_experienced();
            assert_eq!(simulated.ip.traffic_class, 0xb8 | 3);
            let Payload::Datagram(bytes) = &packet.payload else { panic!("a parsed packet has its bytes") };
            assert_eq!(bytes.to_vec(), crate::wire::emit(&simulated));
        }
    }

    #[test]
    fn a_packet_moves_as_one_word_and_its_contents_stay_small() {
        assert_eq!(size_of::<Option<Packet>>(), 8);
        assert!(size_of::<Parsed>() <= 144, "{}", size_of::<Parsed>());
    }

    #[test]
    fn a_fifth_sack_block_is_ignored() {
        let mut blocks = SackBlocks::default();
        for i in 0..5 {
            blocks.push(SeqNumber(i * 10), SeqNumber(i * 10 + 5));
        }
        assert_eq!(blocks.len(), 4);
    }
}
