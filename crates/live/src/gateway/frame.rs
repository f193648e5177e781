//! Frames as packet sockets have them: virtio-net header, link header (Ethernet with up to two VLAN tags), datagram.

use super::socket::{Slot, VNET_LEN};
use paceline_net::rewrite::{header_len, leave_checksum};
use paceline_net::{Checksum, Packet, Payload, TcpFlags, wire};
use std::io::IoSlice;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
/// Place of the checksum in a TCP header.
const CHECKSUM_AT: u16 = 16;

/// A link header: addresses, tags and type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Link {
    const MAX: usize = 22;
    /// A header without tags.
    pub fn plain(addresses: [u8; 12], v4: bool) -> Self {
        let mut link = Self { bytes: [0; Self::MAX], len: 14 };
        link.bytes[..12].copy_from_slice(&addresses);
        link.bytes[12..14].copy_from_slice(if v4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        link
    }
    /// The same type behind other addresses, without tags.
    pub fn readdressed(&self, addresses: [u8; 12]) -> Self {
        let mut link = Self { bytes: [0; Self::MAX], len: 14 };
        link.bytes[..12].copy_from_slice(&addresses);
        link.bytes[12..14].copy_from_slice(&self.as_bytes()[usize::from(self.len) - 2..]);
        link
    }
    /// The header as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// A header of so many bytes; none if there is no header of this length.
    pub fn from_bytes(header: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX];
        (14..=Self::MAX).contains(&header.len()).then(|| bytes[..header.len()].copy_from_slice(header))?;
        Some(Self { bytes, len: header.len() as u8 })
    }
    /// The header of an answer.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        let (to, rest) = self.bytes.split_at_mut(6);
        to.swap_with_slice(&mut rest[..6]);
        self
    }
    /// The tags, with the priority bits left out: what network it is.
    pub fn networks(&self) -> impl Iterator<Item = u16> + '_ {
        self.as_bytes()[12..].chunks_exact(4).map(|tag| u16::from_be_bytes([tag[2], tag[3]]) & 0x0fff)
    }
}

/// What a frame holds.
pub enum Arrival {
    /// A datagram.
    Datagram(Link, Packet),
    /// A TCP datagram that is malformed: it is passed on as it came.
    Unread(Link, Unread),
    /// Not for us.
    Ignored,
}

/// A datagram that is not understood.
pub struct Unread {
    vnet: [u8; VNET_LEN],
    /// Where what its checksum covers begins, in the datagram.
    start: u16,
    datagram: Box<[u8]>,
}

/// Link header and first bytes of a frame that need not be whole.
pub fn peek(slot: &Slot) -> Option<(Link, &[u8])> {
    split(slot.buffer.get(VNET_LEN..slot.len)?, slot.tag)
}

/// Reads a frame.
pub fn read(slot: &Slot) -> Arrival {
    let Some((vnet, frame)) = slot.buffer.get(..slot.len).and_then(|all| all.split_at_checked(VNET_LEN))
    else {
        return Arrival::Ignored;
    };
    let Some((link, datagram)) = split(frame, slot.tag).filter(|_| !slot.truncated) else {
        return Arrival::Ignored;
    };
    match wire::parse(datagram) {
        Ok(mut packet) => {
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
        Err(_) if is_tcp(datagram) => {
            let mut vnet: [u8; VNET_LEN] = vnet.try_into().unwrap_or_default();
            vnet[0] &= NEEDS_CSUM;
            let start = u16::from_ne_bytes([vnet[6], vnet[7]]);
            let start = start.saturating_sub((frame.len() - datagram.len()) as u16);
            Arrival::Unread(link, Unread { vnet, start, datagram: datagram.into() })
        }
        Err(_) => Arrival::Ignored,
    }
}

/// Link header, with the tag that the kernel had taken out, and the rest.
fn split(frame: &[u8], tag: Option<(u16, u16)>) -> Option<(Link, &[u8])> {
    let mut link = Link { bytes: [0; Link::MAX], len: 12 };
    link.bytes[..12].copy_from_slice(frame.get(..12)?);
    let mut push = |word: u16| {
        let at = usize::from(link.len);
        link.bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
        link.len += 2;
    };
    if let Some((tpid, tci)) = tag {
        push(tpid);
        push(tci);
    }
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut at = 12;
    if VLAN.contains(&word(at)?) {
        push(word(at)?);
        push(word(at + 2)?);
        at += 4;
    }
    push(word(at)?);
    Some((link, frame.get(at + 2..)?))
}

/// As the kernel program sees it.
fn is_tcp(datagram: &[u8]) -> bool {
    match datagram.first().map(|first| first >> 4) {
        Some(4) => datagram.get(9) == Some(&TCP),
        Some(6) => datagram.get(6) == Some(&TCP),
        _ => false,
    }
}

/// A frame to send.
pub struct Outgoing {
    vnet: [u8; VNET_LEN],
    link: Link,
    body: Body,
}

enum Body {
    Packet(Packet),
    Bytes(Box<[u8]>),
}

impl Outgoing {
    /// A TCP datagram behind `link`, to be cut into segments of `segment` payload bytes where it is longer.
    pub fn new(link: Link, mut packet: Packet, segment: u32) -> Self {
        let mut vnet = [0; VNET_LEN];
        let payload = packet.tcp_header().map_or(0, |tcp| tcp.payload_len);
        let cut = segment > 0 && payload > segment;
        if cut && packet.offload.checksum != Checksum::Partial {
            leave_checksum(&mut packet);
        }
        let ip = packet.ip.plain_len() as u16;
        if packet.offload.checksum == Checksum::Partial {
            vnet[0] = NEEDS_CSUM;
            vnet[6..8].copy_from_slice(&(u16::from(link.len) + ip).to_ne_bytes());
            vnet[8..10].copy_from_slice(&CHECKSUM_AT.to_ne_bytes());
        }
        let headers = u16::from(link.len) + header_len(&packet) as u16;
        vnet[2..4].copy_from_slice(&headers.to_ne_bytes());
        if cut {
            let reduced = packet.tcp_header().is_some_and(|tcp| tcp.flags.contains(TcpFlags::CWR));
            let kind = if ip == 20 { GSO_TCPV4 } else { GSO_TCPV6 };
            vnet[1] = kind | if reduced { GSO_ECN } else { 0 };
            vnet[4..6].copy_from_slice(&(segment as u16).to_ne_bytes());
        }
        Self { vnet, link, body: Body::Packet(packet) }
    }
    /// A datagram that is not understood, behind `link`.
    pub fn unread(link: Link, unread: Unread) -> Self {
        let Unread { mut vnet, start, datagram } = unread;
        if vnet[0] != 0 {
            vnet[6..8].copy_from_slice(&(start + u16::from(link.len)).to_ne_bytes());
        }
        Self { vnet, link, body: Body::Bytes(datagram) }
    }
    /// Header, link header and datagram.
    pub fn parts(&self) -> [IoSlice<'_>; 3] {
        let body: &[u8] = match &self.body {
            Body::Bytes(bytes) => bytes,
            Body::Packet(packet) => match &packet.payload {
                Payload::Datagram(bytes) => bytes,
                Payload::Virtual(_) => &[], // none comes from a device
            },
        };
        [IoSlice::new(&self.vnet), IoSlice::new(self.link.as_bytes()), IoSlice::new(body)]
    }
}
