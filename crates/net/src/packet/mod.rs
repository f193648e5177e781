//! A packet as the algorithms see it: the parsed IP and TCP headers, and a payload, which is a length in
//! simulations and the bytes of the datagram from a device.
//!
//! The headers have the fields that an ACK filter or an accelerator needs. Packets that the parser could not
//! fully parse (fragments, extension headers, unknown or malformed options) are marked.

mod tcp;

pub use tcp::{FlowKey, ForeignOptions, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps};

use crate::time::Instant;
use std::fmt;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};

/// One IP datagram: a pointer to its [`Parsed`] form, so that moving a packet between queues moves one word.
#[derive(Clone, PartialEq)]
pub struct Packet(Box<Parsed>);

/// The contents of a packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed {
    /// The network header.
    pub ip: IpHeader,
    /// The transport header.
    pub transport: Transport,
    /// The payload.
    pub payload: Payload,
    /// Length of the whole IP datagram in bytes, headers included.
    pub len: u32,
    /// Offload state from or for a device.
    pub offload: Offload,
}

/// Work on a datagram that one device has done or leaves to the next (Linux: checksum offload and GSO).
/// Packed, so that it fits into the padding of [`Parsed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(Rust, packed)]
pub struct Offload {
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// For a super-packet, payload bytes of its segments (Linux `gso_size`); for a datagram that was put
    /// together from fragments, bytes of the longest one; 0 for other packets.
    pub segment: u16,
    /// The datagram was put together from fragments: see [`crate::fragments`].
    pub reassembled: bool,
    /// The datagram was made here and has no IPv4 identification yet: see [`crate::identification`].
    pub unnumbered: bool,
}

impl Offload {
    /// Payload bytes of a super-packet's segments; 0 for other packets.
    pub fn super_segment(self) -> u32 {
        if self.reassembled { 0 } else { self.segment.into() }
    }
}

/// State of a datagram's transport checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// Present, not verified.
    #[default]
    Unverified,
    /// Present and verified.
    Verified,
    /// Absent: the field has the sum over the pseudo-header, and a device is to complete it (Linux
    /// `CHECKSUM_PARTIAL`). The payload counts as intact.
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
    /// A well-formed TCP segment.
    Tcp(TcpHeader),
    /// A UDP datagram.
    Udp {
        /// Source port.
        src_port: u16,
        /// Destination port.
        dst_port: u16,
        /// Simulation: when the sender made the datagram, or made the one that this one answers.
        made_at: Option<Instant>,
    },
    /// Another protocol, by IP protocol number, or a malformed segment.
    Other(u8),
}

/// The payload of a packet.
#[derive(Clone, PartialEq)]
pub enum Payload {
    /// Simulation: the number of bytes after the transport header.
    Virtual(u32),
    /// From a device: the bytes of the whole IP datagram, headers included. The parsed headers are read from
    /// them.
    Datagram(Box<[u8]>),
}

impl Packet {
    /// A simulated TCP segment from `src` to `dst`, with the ports and `payload_len` of `tcp`.
    #[inline]
    pub fn tcp(src: IpAddr, dst: IpAddr, tcp: TcpHeader) -> Self {
        Parsed::tcp(src, dst, tcp).into()
    }
    /// The same in the memory of a packet that is no longer needed.
    #[must_use]
    #[inline]
    pub fn tcp_in_place_of(mut self, src: IpAddr, dst: IpAddr, tcp: TcpHeader) -> Self {
        *self.0 = Parsed::tcp(src, dst, tcp);
        self
    }
    /// The TCP header, if this is a TCP segment.
    #[inline]
    pub fn tcp_header(&self) -> Option<&TcpHeader> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }
    /// Whether the IP protocol is TCP; true for a malformed segment, too.
    pub fn is_tcp_protocol(&self) -> bool {
        matches!(self.transport, Transport::Tcp(_) | Transport::Other(6))
    }
    /// Sets the ECN codepoint CE (RFC 3168 §5), also in the bytes of a device's datagram.
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
    #[inline]
    pub fn flow_key(&self) -> Option<FlowKey> {
        let tcp = self.tcp_header()?;
        let (src, dst) = (self.ip.src, self.ip.dst);
        Some(FlowKey { src, dst, src_port: tcp.src_port, dst_port: tcp.dst_port })
    }
    /// Whether this is a TCP segment of the connection with this key, in the direction against the key's.
    #[inline]
    pub fn is_against(&self, key: &FlowKey) -> bool {
        // Ports first: they differ most.
        self.tcp_header().is_some_and(|tcp| (tcp.src_port, tcp.dst_port) == (key.dst_port, key.src_port))
            && (self.ip.src, self.ip.dst) == (key.dst, key.src)
    }
    /// Whether this is a pure ACK: a TCP segment without payload whose flags are exactly ACK, with or without
    /// ECE and CWR.
    pub fn is_pure_ack(&self) -> bool {
        let ecn_bits = TcpFlags::ECE.0 | TcpFlags::CWR.0;
        self.tcp_header()
            .is_some_and(|tcp| tcp.payload_len == 0 && tcp.flags.0 & !ecn_bits == TcpFlags::ACK.0)
    }
}

impl Parsed {
    #[inline]
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
    use crate::seq::SeqNumber;
    use crate::test_support::{segment, tcp_mut};

    fn ack() -> Packet {
        segment().seq(1).ack(2).window(1000).timestamps(1, 2).build()
    }

    #[test]
    fn an_ack_with_timestamps_is_52_bytes() {
        let packet = ack();
        assert_eq!(packet.len, 52);
        assert!(packet.is_pure_ack());
    }

    #[test]
    fn a_segment_is_against_the_reversed_key_alone() {
        let key = ack().flow_key().unwrap();
        assert!(ack().is_against(&key.reversed()));
        assert!(!ack().is_against(&key));
        assert!(!ack().is_against(&FlowKey { src_port: key.dst_port + 1, ..key.reversed() }));
        assert!(!ack().is_against(&FlowKey { src: key.src, ..key.reversed() }));
    }

    #[test]
    fn a_segment_with_psh_or_payload_is_no_pure_ack() {
        for change in [
            |tcp: &mut TcpHeader| tcp.flags = tcp.flags.with(TcpFlags::PSH),
            |tcp: &mut TcpHeader| tcp.payload_len = 1,
        ] {
            let mut packet = ack();
            change(tcp_mut(&mut packet));
            assert!(!packet.is_pure_ack());
        }
    }

    #[test]
    fn a_congestion_mark_is_written_into_the_bytes_and_their_checksum() {
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
    fn a_packet_is_one_word_and_its_contents_at_most_144_bytes() {
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
