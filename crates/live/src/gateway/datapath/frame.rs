//! Frames as packet sockets have them: virtio-net header, link header (Ethernet with up to two VLAN tags), datagram.

use super::slot::{Slot, VNET_LEN};
use paceline_net::rewrite::{header_len, leave_checksum};
use paceline_net::{Checksum, Packet, Payload, TcpFlags, wire};
use paceline_pep::accelerator::PayloadSlice;
use std::io::IoSlice;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
/// Bytes of an Ethernet header and of a tag behind it.
const ETHERNET: usize = 14;
const TAG: usize = 4;
const VLAN: [u16; 2] = [0x8100, 0x88a8];
/// A datagram of up to so many bytes is copied; a longer one takes the buffer along that it was received in.
const COPIED: usize = 2048;
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

impl Arrival {
    /// The datagram, if it is understood.
    pub fn packet(&self) -> Option<&Packet> {
        if let Self::Datagram(_, packet) = self { Some(packet) } else { None }
    }
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
    let (link, at) = link(slot)?;
    Some((link, slot.rest.get(at..)?))
}

/// Reads a frame.
pub fn read(slot: &mut Slot) -> Arrival {
    let Some((link, at)) = link(slot).filter(|_| !slot.truncated) else { return Arrival::Ignored };
    let parsed = match &mut slot.rest {
        rest if at > 0 || rest.len() <= COPIED => wire::parse(&rest[at..]).ok(),
        rest => wire::parse_owned(std::mem::take(rest)).map_err(|(_, bytes)| *rest = bytes).ok(),
    };
    let vnet = *slot.head.first_chunk::<VNET_LEN>().unwrap_or(&[0; VNET_LEN]);
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
        None if is_tcp(&slot.rest[at..]) => {
            let mut vnet = vnet;
            vnet[0] &= NEEDS_CSUM;
            let start = u16::from_ne_bytes([vnet[6], vnet[7]]).saturating_sub((ETHERNET + at) as u16);
            Arrival::Unread(link, Unread { vnet, start, datagram: slot.rest[at..].into() })
        }
        None => Arrival::Ignored,
    }
}

/// Link header, with the tag that the kernel had taken out, and where the datagram begins in the rest of the frame.
fn link(slot: &Slot) -> Option<(Link, usize)> {
    let frame: &[u8; ETHERNET] = slot.head.get(VNET_LEN..slot.head_len)?.try_into().ok()?;
    let mut link = Link { bytes: [0; Link::MAX], len: 12 };
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
    let tagged = VLAN.contains(&u16::from_be_bytes([frame[12], frame[13]]));
    if tagged {
        push(slot.rest.get(..TAG)?);
    }
    Some((link, if tagged { TAG } else { 0 }))
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
    /// Virtio-net header, link header, and the datagram, or what of it is beside its payload, if there is room for it:
    /// what is sent in one part costs less.
    head: [u8; Self::ROOM],
    head_len: u8,
    /// What follows.
    body: Body,
}

enum Body {
    /// A packet for which there was no room, and payload that is elsewhere.
    Packet(Option<Packet>, Vec<PayloadSlice>),
    Bytes(Box<[u8]>),
}

impl Outgoing {
    const ROOM: usize = 192;
    /// A TCP datagram with all its bytes behind `link`, to be cut into segments of `segment` payload bytes where it is
    /// longer.
    pub fn new(link: Link, packet: Packet, segment: u32) -> Self {
        Self::gathered(link, packet, segment, Vec::new())
    }
    /// The same with its payload beside it, if any.
    pub fn gathered(link: Link, mut packet: Packet, segment: u32, body: Vec<PayloadSlice>) -> Self {
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
        let mut out = Self::behind(vnet, link, Body::Bytes(Box::default()));
        // Simulated packets do not come here.
        let rest = match &packet.payload {
            Payload::Datagram(bytes) if out.add(bytes) => None,
            _ => Some(packet),
        };
        out.body = Body::Packet(rest, body);
        out
    }
    /// A datagram that is not understood, behind `link`.
    pub fn unread(link: Link, unread: Unread) -> Self {
        let Unread { mut vnet, start, datagram } = unread;
        if vnet[0] != 0 {
            vnet[6..8].copy_from_slice(&(start + u16::from(link.len)).to_ne_bytes());
        }
        Self::behind(vnet, link, Body::Bytes(datagram))
    }
    fn behind(vnet: [u8; VNET_LEN], link: Link, body: Body) -> Self {
        let mut out = Self { head: [0; Self::ROOM], head_len: 0, body };
        out.add(&vnet);
        out.add(link.as_bytes());
        out
    }
    /// Whether there was room for it.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let at = usize::from(self.head_len);
        let Some(room) = self.head.get_mut(at..at + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.head_len += bytes.len() as u8;
        true
    }
    /// Adds headers and datagram to `parts`.
    pub fn add_parts<'a>(&'a self, parts: &mut Vec<IoSlice<'a>>) {
        parts.push(IoSlice::new(&self.head[..usize::from(self.head_len)]));
        match &self.body {
            Body::Bytes(bytes) => parts.push(IoSlice::new(bytes)),
            Body::Packet(rest, stretches) => {
                if let Some(Payload::Datagram(bytes)) = rest.as_ref().map(|packet| &packet.payload) {
                    parts.push(IoSlice::new(bytes));
                }
                parts.extend(stretches.iter().map(|stretch| IoSlice::new(stretch.as_bytes())));
            }
        }
    }
}
