//! Headers of a frame down to TCP: Ethernet with up to two VLAN tags, PPPoE sessions, IPv4 and IPv6, and
//! optionally one GTP-U tunnel. The kernel program reads frames in the same steps, so that both agree on
//! malformed ones too. Other frames pass.

use super::segment::{Segment, marks};

/// The first header of a device's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstHeader {
    /// An Ethernet header.
    Ethernet,
    /// An IP header (tunnels, PPP, modems).
    Ip,
}

/// A connection: addresses and ports of the packet's direction, and what tells equal ones in other networks
/// apart (rule 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameKey {
    /// Source address; an IPv4 address as IPv4-mapped IPv6 (RFC 4291 2.5.5.2).
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// VLAN identifiers, outer then inner; 0 without a tag.
    pub vlan: [u16; 2],
    /// PPPoE session plus 1; 0 outside PPPoE.
    pub session: u32,
    /// Version of IP: an IPv6 header may have IPv4-mapped addresses too.
    pub version: u8,
}

/// The end of a GTP-U tunnel that a packet goes to: its address and TEID name the tunnel in full (TS 29.281
/// 3.1). The two directions of a subscriber have two. All zero outside GTP-U.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tunnel {
    /// Destination of the outer IP header.
    pub end: [u8; 16],
    /// Tunnel endpoint identifier, not 0.
    pub teid: u32,
}

impl FrameKey {
    /// The key of the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port, ..self }
    }
}

/// A TCP segment in a frame, with its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The connection in this direction.
    pub key: FrameKey,
    /// The tunnel around it.
    pub tunnel: Tunnel,
    /// The segment.
    pub segment: Segment,
}

/// IEEE 802 numbers (IANA).
const ETHERTYPE_IPV4: u16 = 0x0800;
/// IEEE 802 numbers (IANA).
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q and 802.1ad tags.
const ETHERTYPE_VLAN: [u16; 2] = [0x8100, 0x88a8];
/// RFC 2516, session stage.
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// PPP protocol numbers (RFC 1332, RFC 5072).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
/// UDP port and message type of user data (TS 29.281 4.4.2, 6.1).
const GTP_U_PORT: u16 = 2152;
const GTP_U_G_PDU: u8 = 255;
/// Extension headers of GTP-U that are walked. Chosen: more than a PDU session container and a PDCP number.
const MAX_GTP_EXTENSIONS: usize = 4;
/// Longest extension header in bytes that is walked. Chosen: bounds the headers for the kernel's verifier.
const MAX_GTP_EXTENSION_LEN: usize = 32;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Options that are read: the longest list (RFC 9293 3.1) has 40 bytes.
const MAX_OPTIONS: usize = 40;

/// The TCP segment in a frame; `None` if there is none that can be read in full. `gtp`: look into GTP-U.
/// `super_segment`: payload of one segment of a super-packet, 0 for others.
pub fn parse(link: FirstHeader, bytes: &[u8], gtp: bool, super_segment: u32) -> Option<Frame> {
    let mut key = FrameKey::default();
    let (at, version) = match link {
        FirstHeader::Ip => (0, be8(bytes, 0)? >> 4),
        FirstHeader::Ethernet => link_header(bytes, &mut key)?,
    };
    let outer = ip(bytes, at, version, &mut key)?;
    if outer.protocol == PROTOCOL_UDP && gtp && !outer.special {
        let (inner, teid) = gtp_u(bytes, &outer)?;
        let tunnel = Tunnel { end: key.dst, teid };
        let version = be8(bytes, inner)? >> 4;
        let ip = ip(bytes, inner, version, &mut key)?;
        return tcp(bytes, &ip, key, tunnel, super_segment);
    }
    tcp(bytes, &outer, key, Tunnel::default(), super_segment)
}

/// Ethernet, VLAN tags and PPPoE: the offset and the version of the IP header.
fn link_header(bytes: &[u8], key: &mut FrameKey) -> Option<(usize, u8)> {
    let (mut at, mut kind) = (14, be16(bytes, 12)?);
    for tag in 0..2 {
        if ETHERTYPE_VLAN.contains(&kind) {
            key.vlan[tag] = be16(bytes, at)? & 0x0fff;
            kind = be16(bytes, at + 2)?;
            at += 4;
        }
    }
    if kind == ETHERTYPE_PPPOE {
        if be16(bytes, at)? != 0x1100 {
            return None; // version 1, type 1, code 0: session data
        }
        key.session = u32::from(be16(bytes, at + 2)?) + 1;
        kind = match be16(bytes, at + 6)? {
            PPP_IPV4 => ETHERTYPE_IPV4,
            PPP_IPV6 => ETHERTYPE_IPV6,
            _ => return None,
        };
        at += 8;
    }
    match kind {
        ETHERTYPE_IPV4 => Some((at, 4)),
        ETHERTYPE_IPV6 => Some((at, 6)),
        _ => None,
    }
}

/// An IP header: where the transport header begins, and how many bytes the datagram has behind that.
struct Ip {
    transport: usize,
    rest: u32,
    len: u32,
    protocol: u8,
    special: bool,
    ecn: u8,
}

fn ip(bytes: &[u8], at: usize, version: u8, key: &mut FrameKey) -> Option<Ip> {
    key.version = version;
    match version {
        4 => ipv4(bytes, at, key),
        6 => ipv6(bytes, at, key),
        _ => None,
    }
}

fn ipv4(bytes: &[u8], at: usize, key: &mut FrameKey) -> Option<Ip> {
    let header = bytes.get(at..at + 20)?;
    let (version, words) = (header[0] >> 4, u32::from(header[0] & 15));
    let len = u32::from(be16(header, 2)?);
    if version != 4 || words < 5 || len < words * 4 {
        return None;
    }
    let fragment = be16(header, 6)?;
    if fragment & 0x1fff != 0 {
        return None; // a later fragment has no TCP header
    }
    key.src = mapped(&header[12..16]);
    key.dst = mapped(&header[16..20]);
    Some(Ip {
        transport: at + words as usize * 4,
        rest: len - words * 4,
        len,
        protocol: header[9],
        special: words > 5 || fragment & 0x2000 != 0,
        ecn: header[1] & 3,
    })
}

/// IPv6 without extension headers; behind any of them nothing is read.
fn ipv6(bytes: &[u8], at: usize, key: &mut FrameKey) -> Option<Ip> {
    let header = bytes.get(at..at + 40)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let rest = u32::from(be16(header, 4)?);
    key.src.copy_from_slice(&header[8..24]);
    key.dst.copy_from_slice(&header[24..40]);
    let ecn = (header[1] >> 4) & 3;
    Some(Ip { transport: at + 40, rest, len: rest + 40, protocol: header[6], special: false, ecn })
}

fn mapped(v4: &[u8]) -> [u8; 16] {
    let mut address = [0; 16];
    address[10..12].copy_from_slice(&[0xff, 0xff]);
    address[12..].copy_from_slice(v4);
    address
}

/// GTP-U with its extension headers (TS 29.281 5.1, 5.2): the offset of the inner IP header, and the TEID.
/// User data has no TEID of 0.
fn gtp_u(bytes: &[u8], outer: &Ip) -> Option<(usize, u32)> {
    let udp = outer.transport;
    if be16(bytes, udp + 2)? != GTP_U_PORT {
        return None;
    }
    let at = udp + 8;
    let flags = be8(bytes, at)?;
    // Version 1, protocol type GTP.
    if flags >> 5 != 1 || flags & 0x10 == 0 || be8(bytes, at + 1)? != GTP_U_G_PDU {
        return None;
    }
    let teid = be32(bytes, at + 4).filter(|teid| *teid != 0)?;
    if flags & 0x07 == 0 {
        return Some((at + 8, teid));
    }
    let mut next = be8(bytes, at + 11)?;
    let mut inner = at + 12;
    if flags & 0x04 == 0 {
        return Some((inner, teid)); // without the E flag the type field is not valid
    }
    for _ in 0..MAX_GTP_EXTENSIONS {
        if next == 0 {
            return Some((inner, teid));
        }
        let len = usize::from(be8(bytes, inner)?) * 4;
        if len == 0 || len > MAX_GTP_EXTENSION_LEN {
            return None;
        }
        next = be8(bytes, inner + len - 1)?;
        inner += len;
    }
    if next == 0 { Some((inner, teid)) } else { None }
}

fn tcp(bytes: &[u8], ip: &Ip, mut key: FrameKey, tunnel: Tunnel, super_segment: u32) -> Option<Frame> {
    if ip.protocol != PROTOCOL_TCP {
        return None;
    }
    let at = ip.transport;
    let header = bytes.get(at..at + 20)?;
    let header_len = u32::from(header[12] >> 4) * 4;
    if header_len < 20 || ip.rest < header_len {
        return None;
    }
    key.src_port = be16(header, 0)?;
    key.dst_port = be16(header, 2)?;
    let payload = ip.rest - header_len;
    let mut segment = Segment {
        seq: be32(header, 4)?,
        ack: be32(header, 8)?,
        flags: be16(header, 12)? & 0x0fff,
        window: be16(header, 14)?,
        payload,
        segment: if super_segment == 0 { payload } else { super_segment },
        len: ip.len,
        ..Segment::default()
    };
    if ip.special {
        segment.marks |= marks::SPECIAL;
    }
    if ip.ecn != 0 {
        segment.marks |= marks::IP_ECN;
    }
    options(bytes, at + 20, header_len as usize - 20, &mut segment)?;
    Some(Frame { key, tunnel, segment })
}

/// The options of a TCP header (RFC 9293 3.2, RFC 7323, RFC 2018).
fn options(bytes: &[u8], start: usize, len: usize, segment: &mut Segment) -> Option<()> {
    bytes.get(start..start + len)?;
    let mut at = 0;
    for _ in 0..MAX_OPTIONS {
        if at >= len {
            break;
        }
        let kind = bytes[start + at];
        if kind == 0 {
            break;
        }
        if kind == 1 {
            at += 1;
            continue;
        }
        if at + 2 > len {
            segment.marks |= marks::OPTIONS | marks::FORBIDS;
            break;
        }
        let size = usize::from(bytes[start + at + 1]);
        if size < 2 || at + size > len {
            segment.marks |= marks::OPTIONS | marks::FORBIDS;
            break;
        }
        match (kind, size) {
            (2, 4) => {
                segment.mss = be16(bytes, start + at + 2)?;
                segment.marks |= marks::OPTIONS;
            }
            (3, 3) => {
                segment.shift = be8(bytes, start + at + 2)?.min(14);
                segment.marks |= marks::OPTIONS | marks::SCALE;
            }
            (4, 2) => segment.marks |= marks::OPTIONS,
            (5, 10 | 18 | 26 | 34) => segment.marks |= marks::SACK,
            (8, 10) => {
                segment.tsval = be32(bytes, start + at + 2)?;
                segment.tsecr = be32(bytes, start + at + 6)?;
                segment.marks |= marks::TIMESTAMPS;
            }
            _ => segment.marks |= marks::OPTIONS | marks::FORBIDS,
        }
        at += size;
    }
    Some(())
}

fn be8(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
