//! Encapsulations between link header and datagram: GTP-U (TS 29.281) over UDP and IPv4 or IPv6, with
//! extension headers such as the PDU session container (TS 38.415), and PPPoE sessions (RFC 2516).
//!
//! [`parse`] separates the encapsulation from the inner datagram, and [`Tunnel::emit`] writes it for any
//! inner datagram: lengths, checksums and identification are of the packet, all other bytes (addresses, TEID,
//! extension headers with the QFI) are those of the direction's last packet.
//!
//! Left out: outer IPv4 options, outer IPv6 extension headers and outer fragments, which the kernel forwards.

use etherparse::checksum::Sum16BitWords;
use std::net::IpAddr;

/// The UDP port of GTP-U (TS 29.281, clause 4.4.2).
const GTPU_PORT: u16 = 2152;
/// Message type of a G-PDU (TS 29.281, clause 6.1).
const G_PDU: u8 = 255;
/// Version 1 and protocol type GTP (TS 29.281, clause 5.1).
const VERSION_1: u8 = 0x30;
/// Flags for extension header, sequence number and N-PDU number (TS 29.281, clause 5.1).
const FLAGS: u8 = 0x07;
const SEQUENCE_FLAG: u8 = 0x02;
/// Extension headers that are read. Same as MAX_GTPU_EXTENSIONS in bpf/datagram.h.
const MAX_EXTENSIONS: usize = 4;
/// EtherType of PPPoE sessions (RFC 2516, section 4).
const PPPOE_SESSION: u16 = 0x8864;
/// Bytes of the longest encapsulation that is understood. Chosen: IPv6, UDP and GTP-U take 60; the rest is
/// for extension headers, of which a PDU session container has 4 or 8.
pub const MAX_LEN: usize = 104;
/// Bytes of the UDP header and of the mandatory part of GTP-U's.
const UDP_LEN: usize = 8;
const GTP_LEN: usize = 8;

/// An encapsulation. Two of them are equal if they differ in numbers of a single packet at most.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// All bytes, with zeros for lengths, checksums, and the numbers below.
    header: Vec<u8>,
    kind: Kind,
    /// Identification of the outer IPv4 packet, and GTP-U sequence number.
    id: [u8; 2],
    sequence: [u8; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Pppoe,
    /// `udp`: byte offset of the UDP header. `checksum`: it has a checksum.
    Gtpu {
        udp: usize,
        checksum: bool,
    },
}

impl PartialEq for Tunnel {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.header == other.header
    }
}
impl Eq for Tunnel {}

/// The result of [`parse`].
pub enum Parsed {
    /// The packet has no encapsulation.
    Plain,
    /// An encapsulation; the inner datagram is behind it, until the given byte offset.
    Inside(Tunnel, usize),
    /// The encapsulation cannot be parsed, or is corrupt: the packet has to be forwarded unchanged.
    Malformed,
}

/// Separates the encapsulation of the packet behind a link header with this EtherType. `verify`: the outer
/// UDP checksum has to be verified.
pub fn parse(ethertype: u16, packet: &[u8], verify: bool) -> Parsed {
    if ethertype == PPPOE_SESSION {
        return pppoe(packet).map_or(Parsed::Malformed, |(tunnel, end)| Parsed::Inside(tunnel, end));
    }
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.get(9) == Some(&17) => {}
        Some(6) if packet.get(6) == Some(&17) => {}
        _ => return Parsed::Plain,
    }
    gtpu(packet, verify).map_or(Parsed::Malformed, |(tunnel, end)| Parsed::Inside(tunnel, end))
}

/// Like [`parse`] for a packet of which only the first bytes are there.
pub fn peek(ethertype: u16, packet: &[u8]) -> Option<Tunnel> {
    if ethertype == PPPOE_SESSION { pppoe_header(packet) } else { gtpu_header(packet) }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn pppoe_header(packet: &[u8]) -> Option<Tunnel> {
    let mut header = packet.get(..8)?.to_vec();
    let known = header[..2] == [0x11, 0] && matches!(word(&header, 6), Some(0x0021 | 0x0057));
    header[4..6].fill(0);
    known.then_some(Tunnel { header, kind: Kind::Pppoe, id: [0; 2], sequence: [0; 2] })
}

fn pppoe(packet: &[u8]) -> Option<(Tunnel, usize)> {
    let tunnel = pppoe_header(packet)?;
    let end = 6 + usize::from(word(packet, 4)?);
    let version = if word(packet, 6)? == 0x21 { 4 } else { 6 };
    (end <= packet.len()).then_some(())?;
    is_whole(packet.get(8..end)?, Some(version)).then_some((tunnel, end))
}

fn gtpu_header(packet: &[u8]) -> Option<Tunnel> {
    let udp = match packet.first()? {
        0x45 if packet.get(9) == Some(&17) && word(packet, 6)? & 0x3fff == 0 => 20,
        first if first >> 4 == 6 && packet.get(6) == Some(&17) => 40,
        _ => return None,
    };
    let gtp = udp + UDP_LEN;
    let fixed = packet.get(gtp..gtp + GTP_LEN)?;
    if word(packet, udp + 2)? != GTPU_PORT || fixed[0] & 0xf0 != VERSION_1 || fixed[1] != G_PDU {
        return None;
    }
    let mut end = gtp + GTP_LEN;
    let flags = fixed[0] & FLAGS;
    if flags != 0 {
        end += 4;
        let mut next = *packet.get(end - 1)?;
        for _ in 0..MAX_EXTENSIONS {
            if flags & 4 == 0 || next == 0 {
                break;
            }
            let len = 4 * usize::from(*packet.get(end)?);
            (len > 0).then_some(())?;
            end += len;
            next = *packet.get(end - 1)?;
        }
        if flags & 4 != 0 && next != 0 {
            return None;
        }
    }
    let mut header = packet.get(..end).filter(|header| header.len() <= MAX_LEN)?.to_vec();
    let checksum = header[udp + 6..udp + 8] != [0; 2];
    let mut tunnel =
        Tunnel { header: Vec::new(), kind: Kind::Gtpu { udp, checksum }, id: [0; 2], sequence: [0; 2] };
    if udp == 20 {
        tunnel.id.copy_from_slice(&header[4..6]);
        header[2..6].fill(0);
        header[10..12].fill(0);
    } else {
        header[4..6].fill(0);
    }
    header[udp + 4..udp + 8].fill(0);
    header[gtp + 2..gtp + 4].fill(0);
    if flags & SEQUENCE_FLAG != 0 {
        tunnel.sequence.copy_from_slice(&header[gtp + 8..gtp + 10]);
        header[gtp + 8..gtp + 10].fill(0);
    }
    tunnel.header = header;
    Some(tunnel)
}

fn gtpu(packet: &[u8], verify: bool) -> Option<(Tunnel, usize)> {
    let tunnel = gtpu_header(packet)?;
    let Kind::Gtpu { udp, checksum } = tunnel.kind else { return None };
    let end = match udp {
        20 => usize::from(word(packet, 2)?),
        _ => udp + usize::from(word(packet, 4)?),
    };
    let (udp_len, gtp_len) =
        (usize::from(word(packet, udp + 4)?), usize::from(word(packet, udp + UDP_LEN + 2)?));
    let consistent = udp + udp_len == end && udp_len == UDP_LEN + GTP_LEN + gtp_len;
    let inner = packet.get(tunnel.header.len()..end).filter(|_| consistent && end <= packet.len())?;
    let right = |sum: Sum16BitWords| sum.ones_complement() == 0;
    if udp == 20 && !right(Sum16BitWords::new().add_slice(&packet[..20])) {
        return None;
    }
    // IPv6 has no UDP datagrams without a checksum, except by agreement (RFC 6935).
    if verify && checksum && !right(pseudo_header(packet, udp, udp_len).add_slice(&packet[udp..end])) {
        return None;
    }
    is_whole(inner, None).then_some((tunnel, end))
}

/// Whether a datagram is as long as its header says, and of this version.
fn is_whole(inner: &[u8], version: Option<u8>) -> bool {
    let Some(own) = inner.first().map(|first| first >> 4) else { return false };
    let len = match own {
        4 => word(inner, 2).map(usize::from),
        6 => word(inner, 4).map(|len| 40 + usize::from(len)),
        _ => None,
    };
    len == Some(inner.len()) && version.is_none_or(|version| version == own)
}

fn pseudo_header(packet: &[u8], udp: usize, udp_len: usize) -> Sum16BitWords {
    let addresses = if udp == 20 { &packet[12..20] } else { &packet[8..40] };
    Sum16BitWords::new().add_slice(addresses).add_2bytes([0, 17]).add_2bytes((udp_len as u16).to_be_bytes())
}

impl Tunnel {
    /// The normalised bytes, to be stored. [`Self::restore`] is the reverse.
    pub fn as_bytes(&self) -> &[u8] {
        &self.header
    }
    /// Whether the UDP datagrams of the tunnel have a checksum.
    pub fn has_checksum(&self) -> bool {
        matches!(self.kind, Kind::Gtpu { checksum: true, .. })
    }
    /// The encapsulation with these normalised bytes.
    pub fn restore(ethertype: u16, bytes: &[u8], checksum: bool) -> Option<Self> {
        let mut tunnel = peek(ethertype, bytes).filter(|tunnel| tunnel.header.len() == bytes.len())?;
        if let Kind::Gtpu { checksum: own, .. } = &mut tunnel.kind {
            *own = checksum;
        }
        Some(tunnel)
    }
    /// Bytes of the encapsulation.
    pub fn header_len(&self) -> usize {
        self.header.len()
    }
    /// Bytes that the encapsulation takes of the MTU. Packets of the other direction may have an extension
    /// header where these have none: the shortest one is counted. Same as GTPU_MIN_OVERHEAD of
    /// bpf/datagram.h.
    pub fn overhead(&self) -> u16 {
        let least = match self.kind {
            Kind::Pppoe => 0,
            Kind::Gtpu { udp, .. } => udp + UDP_LEN + GTP_LEN + 4 + 4,
        };
        self.header_len().max(least) as u16
    }
    /// The addresses of a tunnel, which change at a handover, or the number of a PPPoE session.
    pub fn endpoint(&self) -> &[u8] {
        match self.kind {
            Kind::Pppoe => &self.header[2..4],
            Kind::Gtpu { udp, .. } => &self.header[if udp == 20 { 12 } else { 8 }..udp],
        }
    }
    /// Source and destination of the outer IPv4 header.
    pub fn hosts_v4(&self) -> Option<(IpAddr, IpAddr)> {
        let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(self.header.get(at..at + 4)?).ok()?));
        matches!(self.kind, Kind::Gtpu { udp: 20, .. }).then_some(address(12)?).zip(address(16))
    }
    /// The encapsulation of an inner datagram, to be written ahead of it. `own`: the identification of the
    /// outer IPv4 packet, if the caller has made the packet; without it, the packet is one that is forwarded,
    /// and has its own numbers. Made packets have no GTP-U sequence number, which is optional (TS 29.281,
    /// clause 5.1), since the numbers belong to the sender of the tunnel.
    ///
    /// None if the packet would be longer than its length fields can say.
    pub fn emit(&self, inner: &[u8], own: Option<u16>) -> Option<Vec<u8>> {
        let mut header = self.header.clone();
        let Kind::Gtpu { udp, checksum } = self.kind else {
            header[4..6].copy_from_slice(&u16::try_from(2 + inner.len()).ok()?.to_be_bytes());
            return Some(header);
        };
        let gtp = udp + UDP_LEN;
        if header[gtp] & SEQUENCE_FLAG != 0 {
            if own.is_none() {
                header[gtp + 8..gtp + 10].copy_from_slice(&self.sequence);
            } else {
                header[gtp] &= !SEQUENCE_FLAG;
                if header[gtp] & FLAGS == 0 {
                    header.drain(gtp + GTP_LEN..gtp + GTP_LEN + 4);
                }
            }
        }
        let total = u16::try_from(header.len() + inner.len()).ok()?;
        if udp == 20 {
            let id = own.map_or(self.id, u16::to_be_bytes);
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[4..6].copy_from_slice(&id);
            let sum = Sum16BitWords::new().add_slice(&header[..20]).ones_complement();
            header[10..12].copy_from_slice(&sum.to_ne_bytes());
        } else {
            header[4..6].copy_from_slice(&(total - 40).to_be_bytes());
        }
        let udp_len = total - udp as u16;
        header[udp + 4..udp + 6].copy_from_slice(&udp_len.to_be_bytes());
        header[gtp + 2..gtp + 4].copy_from_slice(&(udp_len - (UDP_LEN + GTP_LEN) as u16).to_be_bytes());
        if checksum {
            let sum = pseudo_header(&header, udp, usize::from(udp_len)).add_slice(&header[udp..]);
            let field = match sum.add_slice(inner).ones_complement() {
                0 => 0xffff,
                field => field,
            };
            header[udp + 6..udp + 8].copy_from_slice(&field.to_ne_bytes());
        }
        Some(header)
    }
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
