//! Frames of packet sockets: virtio-net header, link header (Ethernet with up to two VLAN tags), datagram.
//! Parses received frames, and builds those to send.
//!
//! Frames of an interface without link headers (TUN, PPP) are given an Ethernet header with zero addresses:
//! they leave by routed mode's pair of devices, which has one.

use super::slot::{ETHERNET_LEN, Slot, VNET_LEN};
use paceline_net::identification::Identifications;
use paceline_net::rewrite::{complete_checksum, header_len, leave_checksum, transport_at};
use paceline_net::split::split;
use paceline_net::tunnel::{self, Tunnel};
use paceline_net::{Checksum, Packet, Payload, TcpFlags, TcpHeader, wire};
use paceline_pep::accelerator::{PayloadSlice, Side};
use std::io::IoSlice;
use std::net::IpAddr;
use std::sync::Arc;

// Flags and types of `struct virtio_net_hdr` (linux/virtio_net.h).
const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_ECN: u8 = 0x80;
/// The IP protocol number of ICMP (IANA).
pub const ICMP: u8 = 1;
/// The IP protocol number of ICMPv6 (IANA).
pub const ICMPV6: u8 = 58;
/// Bytes of a VLAN tag (IEEE 802.1Q).
const TAG_LEN: usize = 4;
/// EtherTypes of VLAN_TYPES tags (IEEE 802.1Q: C-tag and S-tag).
const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];
/// Longest datagram that is copied out of its receive buffer, in bytes; a longer one keeps the buffer.
/// Chosen: a single Ethernet frame, for which the buffer of 64 KiB would be waste.
const MAX_COPY_BYTES: usize = 2048;
/// Byte offset of the checksum in a TCP header (RFC 9293, section 3.1).
const TCP_CHECKSUM_OFFSET: u16 = 16;

/// A link header: Ethernet addresses, VLAN_TYPES tags and EtherType; and the encapsulation behind it, if
/// there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    bytes: [u8; Self::MAX],
    len: u8,
    tunnel: Option<Arc<Tunnel>>,
}

impl Link {
    /// Bytes of the longest header: addresses, two VLAN_TYPES tags and type (IEEE 802.1Q).
    const MAX: usize = 22;
    /// No header, for frames that leave by an interface without link headers.
    pub const NONE: Self = Self { bytes: [0; Self::MAX], len: 0, tunnel: None };
    /// A header without tags.
    pub fn plain(addresses: [u8; 12], v4: bool) -> Self {
        let mut link = Self { bytes: [0; Self::MAX], len: 14, tunnel: None };
        link.bytes[..12].copy_from_slice(&addresses);
        link.bytes[12..14].copy_from_slice(if v4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        link
    }
    /// A header of the same EtherType with other addresses, without tags.
    pub fn readdressed(&self, addresses: [u8; 12]) -> Self {
        let mut link = Self { bytes: [0; Self::MAX], len: 14, tunnel: None };
        link.bytes[..12].copy_from_slice(&addresses);
        link.bytes[12..14].copy_from_slice(&self.as_bytes()[usize::from(self.len) - 2..]);
        link
    }
    /// The bytes of the header.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// A header from its bytes; None if no header has this length.
    pub fn from_bytes(header: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        (14..=Self::MAX).contains(&header.len()).then(|| bytes[..header.len()].copy_from_slice(header))?;
        Some(Self { bytes, len: header.len() as u8, tunnel: None })
    }
    /// The encapsulation behind the header.
    pub fn tunnel(&self) -> Option<&Tunnel> {
        self.tunnel.as_deref()
    }
    /// The header with an encapsulation behind it.
    #[must_use]
    pub fn with_tunnel(mut self, tunnel: Tunnel) -> Self {
        self.tunnel = Some(Arc::new(tunnel));
        self
    }
    /// Bytes that tags and encapsulation take of an interface's MTU, in either direction. One VLAN tag takes
    /// none (IEEE 802.3, clause 3.2.7).
    pub fn overhead(&self) -> u16 {
        let tags = self.len.saturating_sub((ETHERNET_LEN + TAG_LEN) as u8);
        u16::from(tags) + self.tunnel().map_or(0, Tunnel::overhead)
    }
    /// The EtherType.
    pub fn ethertype(&self) -> u16 {
        self.as_bytes()
            .last_chunk()
            .filter(|_| usize::from(self.len) >= ETHERNET_LEN)
            .map_or(0, |&type_| u16::from_be_bytes(type_))
    }
    /// The header with its addresses exchanged.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        let (to, rest) = self.bytes.split_at_mut(6);
        to.swap_with_slice(&mut rest[..6]);
        self
    }
    /// The VLAN_TYPES identifiers, without the priority bits.
    pub fn networks(&self) -> impl Iterator<Item = u16> + '_ {
        self.as_bytes()[12..].chunks_exact(4).map(|tag| u16::from_be_bytes([tag[2], tag[3]]) & 0x0fff)
    }
}

/// A parsed frame.
pub enum Arrival {
    /// A TCP datagram or an ICMP message.
    Datagram(Link, Packet),
    /// A datagram that cannot be parsed, and has to be forwarded unchanged.
    Malformed(Link, Malformed),
    /// An ICMP message that cannot be parsed: the kernel has forwarded it.
    Copied,
    /// An incomplete frame: the socket has counted it as lost.
    Truncated,
}

impl Arrival {
    /// The packet, if it was parsed.
    pub fn packet(&self) -> Option<&Packet> {
        if let Self::Datagram(_, packet) = self { Some(packet) } else { None }
    }
}

/// A malformed datagram.
pub struct Malformed {
    vnet: [u8; VNET_LEN],
    /// The byte offset in the datagram from which on its checksum is computed.
    checksum_start: u16,
    datagram: Box<[u8]>,
}

/// Link header with encapsulation, and the rest of a frame that may be truncated.
pub fn peek(slot: &Slot) -> Option<(Link, &[u8])> {
    let (link, at) = link(slot)?;
    let rest = slot.rest.get(at..)?;
    match tunnel::peek(link.ethertype(), rest) {
        Some(tunnel) => {
            let datagram = rest.get(tunnel.header_len()..)?;
            Some((link.with_tunnel(tunnel), datagram))
        }
        None => Some((link, rest)),
    }
}

/// Parses a frame. A long datagram takes the slot's buffer.
pub fn parse(slot: &mut Slot) -> Arrival {
    let Some((link, at)) = link(slot).filter(|_| !slot.truncated) else { return Arrival::Truncated };
    let vnet = *slot.head.first_chunk::<VNET_LEN>().unwrap_or(&[0; VNET_LEN]);
    match tunnel::parse(link.ethertype(), &slot.rest[at..], vnet[0] & (NEEDS_CSUM | DATA_VALID) == 0) {
        tunnel::Parsed::Plain => {}
        tunnel::Parsed::Inside(tunnel, end) => return parse_inside(slot, (link, at), vnet, tunnel, at + end),
        tunnel::Parsed::Malformed => return malformed(slot, link, at, vnet),
    }
    let parsed = match &mut slot.rest {
        rest if at > 0 || rest.len() <= MAX_COPY_BYTES => wire::parse(&rest[at..]).ok(),
        rest => wire::parse_owned(std::mem::take(rest)).map_err(|(_, bytes)| *rest = bytes).ok(),
    };
    match parsed {
        Some(mut packet) => {
            packet.offload.checksum = match vnet[0] {
                flags if flags & NEEDS_CSUM != 0 => Checksum::Partial,
                flags if flags & DATA_VALID != 0 => Checksum::Verified,
                _ => Checksum::Unverified,
            };
            if vnet[1] != 0 {
                packet.offload.segment = u16::from_ne_bytes([vnet[4], vnet[5]]);
            }
            Arrival::Datagram(link, packet)
        }
        None if is_copied(&slot.rest[at..]) => Arrival::Copied,
        None => malformed(slot, link, at, vnet),
    }
}

fn malformed(slot: &Slot, link: Link, at: usize, mut vnet: [u8; VNET_LEN]) -> Arrival {
    vnet[0] &= NEEDS_CSUM;
    let checksum_start = u16::from_ne_bytes([vnet[6], vnet[7]]).saturating_sub((slot.link_len + at) as u16);
    Arrival::Malformed(link, Malformed { vnet, checksum_start, datagram: slot.rest[at..].into() })
}

/// Parses the datagram inside an encapsulation that begins at byte `at` of the slot; the datagram ends at
/// byte `end`.
fn parse_inside(
    slot: &Slot,
    (link, at): (Link, usize),
    vnet: [u8; VNET_LEN],
    tunnel: Tunnel,
    end: usize,
) -> Arrival {
    let from = at + tunnel.header_len();
    let inner = &slot.rest[from..end];
    // Offloads describe the inner segment, or the outer UDP datagram; a super-packet of UDP is no datagram.
    let start = usize::from(u16::from_ne_bytes([vnet[6], vnet[7]]));
    let is_inner = vnet[0] & NEEDS_CSUM != 0 && start >= slot.link_len + from;
    if vnet[1] != 0 && !is_inner {
        return malformed(slot, link, at, vnet);
    }
    let Ok(mut packet) = wire::parse(inner) else {
        return if is_copied(inner) { Arrival::Copied } else { malformed(slot, link, at, vnet) };
    };
    packet.offload.checksum = if is_inner { Checksum::Partial } else { Checksum::Unverified };
    if vnet[1] != 0 {
        packet.offload.segment = u16::from_ne_bytes([vnet[4], vnet[5]]);
    }
    Arrival::Datagram(link.with_tunnel(tunnel), packet)
}

/// The link header, with the VLAN_TYPES tag that the kernel had removed, and the byte offset of the datagram
/// in `slot.rest`.
fn link(slot: &Slot) -> Option<(Link, usize)> {
    if slot.link_len == 0 {
        let version = slot.rest.first()? >> 4;
        return (slot.head_len == VNET_LEN).then(|| (Link::plain([0; 12], version == 4), 0));
    }
    let frame: &[u8; ETHERNET_LEN] = slot.head.get(VNET_LEN..slot.head_len)?.try_into().ok()?;
    let mut link = Link { bytes: [0; Link::MAX], len: 12, tunnel: None };
    link.bytes[..12].copy_from_slice(&frame[..12]);
    let mut push = |bytes: &[u8]| {
        let at = usize::from(link.len);
        link.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        link.len += bytes.len() as u8;
    };
    if let Some((tpid, tci)) = slot.tag {
        push(&tpid.to_be_bytes());
        push(&tci.to_be_bytes());
    }
    push(&frame[12..]);
    let tagged = VLAN_TYPES.contains(&u16::from_be_bytes([frame[12], frame[13]]));
    if tagged {
        push(slot.rest.get(..TAG_LEN)?);
    }
    Some((link, if tagged { TAG_LEN } else { 0 }))
}

/// Whether the kernel has forwarded the datagram, so that the worker has a copy: an ICMP message, by the same
/// bytes as in the kernel program.
fn is_copied(datagram: &[u8]) -> bool {
    match datagram.first() {
        Some(0x45) => datagram.get(9) == Some(&ICMP),
        Some(first) if first >> 4 == 6 => datagram.get(6) == Some(&ICMPV6),
        _ => false,
    }
}

/// A frame to send.
pub struct Outgoing {
    /// Virtio-net header, link header, and the packet's own bytes if there is room for them: a frame in one
    /// part costs less.
    head: [u8; Self::HEAD_BYTES],
    head_len: u8,
    body: Body,
    /// Source and destination of the datagram, of that inside an encapsulation.
    hosts: Option<(IpAddr, IpAddr)>,
    is_ack: bool,
}

/// The bytes that follow the head of a frame.
enum Body {
    /// A packet that did not fit into the head, and slices of payload.
    Packet(Option<Packet>, Vec<PayloadSlice>),
    Bytes(Box<[u8]>),
}

impl Outgoing {
    /// Chosen: link header, headers and options, and a payload of some 60 bytes.
    const HEAD_BYTES: usize = 192;
    /// A frame of a packet with the link header `link`. If the packet's payload is longer than `segment`
    /// bytes, the kernel or the device splits it into segments of that length (GSO).
    pub fn new(link: Link, packet: Packet, segment: u32) -> Self {
        Self::gathered(link, packet, segment, Vec::new())
    }
    /// A frame whose payload, or the rest of it, is in slices.
    pub fn gathered(link: Link, mut packet: Packet, segment: u32, body: Vec<PayloadSlice>) -> Self {
        debug_assert!(!packet.offload.unnumbered, "a made datagram leaves with an identification");
        let (mut vnet, hosts, is_ack) =
            ([0; VNET_LEN], (packet.ip.src, packet.ip.dst), packet.tcp_header().is_some_and(is_ack));
        let payload = packet.tcp_header().map_or(0, |tcp| tcp.payload_len);
        let cut = segment > 0 && payload > segment;
        if cut && packet.offload.checksum != Checksum::Partial {
            leave_checksum(&mut packet);
        }
        let ip = transport_at(&packet) as u16;
        if packet.offload.checksum == Checksum::Partial {
            vnet[0] = NEEDS_CSUM;
            vnet[6..8].copy_from_slice(&(u16::from(link.len) + ip).to_ne_bytes());
            vnet[8..10].copy_from_slice(&TCP_CHECKSUM_OFFSET.to_ne_bytes());
        }
        let headers = u16::from(link.len) + header_len(&packet) as u16;
        vnet[2..4].copy_from_slice(&headers.to_ne_bytes());
        if cut {
            let reduced = packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(TcpFlags::CWR));
            let kind = if packet.ip.src.is_ipv4() { GSO_TCPV4 } else { GSO_TCPV6 };
            vnet[1] = kind | if reduced { GSO_ECN } else { 0 };
            vnet[4..6].copy_from_slice(&(segment as u16).to_ne_bytes());
        }
        let mut out = Self::with_headers(vnet, &link, Body::Bytes(Box::default()));
        // Only simulated packets have other payloads, and they do not come here.
        let rest = match &packet.payload {
            Payload::Datagram(bytes) if out.add(bytes) => None,
            _ => Some(packet),
        };
        out.body = Body::Packet(rest, body);
        (out.hosts, out.is_ack) = (Some(hosts), is_ack);
        out
    }
    /// The frames of a packet: one, unless it is a super-packet inside an encapsulation. `own`: the gateway
    /// has made the packet, and numbers its outer IPv4 headers.
    pub fn frames(
        link: Link,
        packet: Packet,
        segment: u32,
        body: Vec<PayloadSlice>,
        own: Option<&mut Identifications>,
    ) -> Vec<Self> {
        match link.tunnel() {
            Some(tunnel) => Self::tunnelled(&link, tunnel, packet, (segment, &body), own),
            None => vec![Self::gathered(link, packet, segment, body)],
        }
    }
    /// The frames of a packet inside the encapsulation of `link`: neither the kernel nor the device cuts
    /// super-packets there, nor completes the inner checksum.
    fn tunnelled(
        link: &Link,
        tunnel: &Tunnel,
        packet: Packet,
        (segment, body): (u32, &[PayloadSlice]),
        mut own: Option<&mut Identifications>,
    ) -> Vec<Self> {
        let frame = |mut packet: Packet| {
            complete_checksum(&mut packet);
            let Payload::Datagram(inner) = &packet.payload else { return None };
            debug_assert!(!packet.offload.unnumbered, "a made datagram leaves with an identification");
            let outer = tunnel.hosts_v4();
            let id = own.as_mut().map(|own| outer.map_or(0, |(src, dst)| own.take(src, dst, 1)));
            let header = tunnel.emit(inner, id)?;
            let bytes = [&header[..], inner].concat();
            let mut frame = Self::with_headers([0; VNET_LEN], link, Body::Bytes(bytes.into()));
            frame.hosts = Some((packet.ip.src, packet.ip.dst));
            Some(frame)
        };
        let mut packet = paceline_net::rewrite::with_payload(packet, body.iter().map(PayloadSlice::as_bytes));
        if packet.tcp_header().is_some_and(|tcp| segment > 0 && tcp.payload_len > segment) {
            if packet.offload.checksum != Checksum::Partial {
                leave_checksum(&mut packet);
            }
            packet.offload.segment = segment as u16;
        }
        split(packet).into_iter().filter_map(frame).collect()
    }
    /// A frame of a malformed datagram with the link header `link`.
    pub fn malformed(link: Link, malformed: Malformed) -> Self {
        let Malformed { mut vnet, checksum_start, datagram } = malformed;
        if vnet[0] != 0 {
            vnet[6..8].copy_from_slice(&(checksum_start + u16::from(link.len)).to_ne_bytes());
        }
        Self::with_headers(vnet, &link, Body::Bytes(datagram))
    }
    fn with_headers(vnet: [u8; VNET_LEN], link: &Link, body: Body) -> Self {
        let mut out = Self { head: [0; Self::HEAD_BYTES], head_len: 0, body, hosts: None, is_ack: false };
        out.add(&vnet);
        out.add(link.as_bytes());
        out
    }
    /// Appends bytes to the head. False if there is no room for them.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let at = usize::from(self.head_len);
        let Some(room) = self.head.get_mut(at..at + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.head_len += bytes.len() as u8;
        true
    }
    /// Whether it is a plain frame with an empty segment that acknowledges.
    pub fn is_ack(&self) -> bool {
        self.is_ack
    }
    /// The address of the device, of a frame that leaves by `side`.
    pub fn device(&self, side: Side) -> Option<IpAddr> {
        self.hosts.map(|(src, dst)| if side == Side::Mobile { dst } else { src })
    }
    /// Adds the parts of the frame to `parts`, for sendmsg(2).
    pub fn add_parts<'a>(&'a self, parts: &mut Vec<IoSlice<'a>>) {
        parts.push(IoSlice::new(&self.head[..usize::from(self.head_len)]));
        match &self.body {
            Body::Bytes(bytes) => parts.push(IoSlice::new(bytes)),
            Body::Packet(rest, slices) => {
                if let Some(Payload::Datagram(bytes)) = rest.as_ref().map(|packet| &packet.payload) {
                    parts.push(IoSlice::new(bytes));
                }
                parts.extend(slices.iter().map(|slice| IoSlice::new(slice.as_bytes())));
            }
        }
    }
}

fn is_ack(tcp: &TcpHeader) -> bool {
    let other = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
    tcp.payload_len == 0 && tcp.flags.contains(TcpFlags::ACK) && !tcp.flags.intersects(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IP header with this first byte and protocol, and no more: it cannot be parsed.
    fn frame(link_len: usize, ethertype: [u8; 2], first: u8, protocol_at: usize, protocol: u8) -> Slot {
        let mut slot = Slot::new();
        slot.link_len = link_len;
        let mut head = vec![0; VNET_LEN + link_len];
        if link_len > 0 {
            head[VNET_LEN + 12..].copy_from_slice(&ethertype);
        }
        let mut datagram = [0; 20];
        (datagram[0], datagram[protocol_at]) = (first, protocol);
        slot.fill(&head, &datagram, None);
        slot
    }

    #[test]
    fn frames_that_cannot_be_parsed_are_forwarded_unless_the_kernel_has_forwarded_them() {
        let (v4, v6) = ([0x08, 0x00], [0x86, 0xdd]);
        for link_len in [ETHERNET_LEN, 0] {
            for (ethertype, first, at, protocol) in
                [(v4, 0x45, 9, 6), (v6, 0x60, 6, 6), (v6, 0x50, 6, 6), (v4, 0x45, 9, 17)]
            {
                let arrival = parse(&mut frame(link_len, ethertype, first, at, protocol));
                assert!(matches!(arrival, Arrival::Malformed(..)), "{first:#x} {protocol}");
            }
            for (ethertype, first, at, protocol) in [(v4, 0x45, 9, 1), (v6, 0x60, 6, 58)] {
                let arrival = parse(&mut frame(link_len, ethertype, first, at, protocol));
                assert!(matches!(arrival, Arrival::Copied), "{first:#x} {protocol}");
            }
        }
    }

    #[test]
    fn frames_without_a_link_header_are_given_one_with_the_type_of_their_datagram() {
        for (first, at, ethertype) in [(0x45, 9, [0x08, 0x00]), (0x60, 6, [0x86, 0xdd])] {
            let (link, datagram) = peek(&frame(0, [0, 0], first, at, 6)).map(|(l, d)| (l, d.len())).unwrap();
            assert_eq!((&link.as_bytes()[12..], datagram), (&ethertype[..], 20));
        }
    }
}
