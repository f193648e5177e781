//! Builds packets of tunnels: inner datagrams, GTP messages, outer packets and their fragments.

use etherparse::{IpNumber, Ipv4Header, Ipv4Options, Ipv6Header, PacketBuilder, UdpHeader};

/// The port of GTP-U (TS 29.281, clause 4.4.2).
pub const GTPU: u16 = 2152;
/// Message type of a G-PDU.
pub const G_PDU: u8 = 255;
/// The optional octets of a GTP-U header with a PDU session container of the QFI 9 (TS 38.415).
pub const CONTAINER: [u8; 8] = [0, 0, 0, 0x85, 1, 0x10, 9, 0];
const V4: [[u8; 4]; 2] = [[10, 9, 0, 77], [10, 9, 0, 78]];
const V6: [[u8; 16]; 2] = [[0xfd; 16], [0xfe; 16]];
const TTL: u8 = 61;

/// The protocol of an inner datagram.
#[derive(Clone, Copy)]
pub enum Inner {
    /// With this port of the device.
    Tcp(u16),
    Udp,
    Echo,
}

/// A datagram with this payload. Its TCP segment belongs to no connection that was opened.
pub fn datagram(v6: bool, protocol: Inner, payload: &[u8]) -> Vec<u8> {
    let ip = if v6 {
        PacketBuilder::ipv6([0x20; 16], [0x21; 16], TTL)
    } else {
        PacketBuilder::ipv4([172, 16, 0, 9], [192, 0, 2, 9], TTL)
    };
    let mut bytes = Vec::new();
    match protocol {
        Inner::Tcp(port) => ip.tcp(port, 443, 7, 1024).ack(8).write(&mut bytes, payload),
        Inner::Udp => ip.udp(40_000, 443).write(&mut bytes, payload),
        Inner::Echo if v6 => ip.icmpv6_echo_request(1, 2).write(&mut bytes, payload),
        Inner::Echo => ip.icmpv4_echo_request(1, 2).write(&mut bytes, payload),
    }
    .unwrap();
    bytes
}

/// A message of GTP version 1: flags, type, TEID, the optional octets, and the rest.
pub fn gtp(flags: u8, kind: u8, teid: u32, optional: &[u8], rest: &[u8]) -> Vec<u8> {
    let len = ((optional.len() + rest.len()) as u16).to_be_bytes();
    [&[0x30 | flags, kind, len[0], len[1]], &teid.to_be_bytes()[..], optional, rest].concat()
}

/// A G-PDU with these flags, for each of which there is a value in the optional octets.
pub fn g_pdu(flags: u8, datagram: &[u8]) -> Vec<u8> {
    let optional: &[u8] = match flags {
        0 => &[],
        flags if flags & 4 != 0 => &[0x12, 0x34, 0x56, 0x85, 1, 0x10, 9, 0],
        _ => &[0x12, 0x34, 0x56, 0],
    };
    gtp(flags, G_PDU, 0xdead_beef, optional, datagram)
}

/// The outer packet of a UDP payload.
#[derive(Clone, Copy)]
pub struct Outer {
    pub v6: bool,
    /// Without it, the checksum field is 0.
    pub checksum: bool,
    /// With IPv4 options, or with an IPv6 hop-by-hop header.
    pub extended: bool,
}

impl Outer {
    /// Over both versions of IP, with and without checksum.
    pub const PLAIN: [Self; 4] = [
        Self::plain(false, true),
        Self::plain(false, false),
        Self::plain(true, true),
        Self::plain(true, false),
    ];
    /// With options or an extension header.
    pub const EXTENDED: [Self; 2] = [
        Self { v6: false, checksum: true, extended: true },
        Self { v6: true, checksum: true, extended: true },
    ];
    const fn plain(v6: bool, checksum: bool) -> Self {
        Self { v6, checksum, extended: false }
    }
    /// The packet of a payload that is sent to `port`.
    pub fn packet(self, port: u16, payload: &[u8]) -> Vec<u8> {
        let len = UdpHeader::LEN + payload.len();
        let (ip, mut udp) = if self.v6 {
            let option: &[u8] = if self.extended { &[17, 0, 1, 4, 0, 0, 0, 0] } else { &[] };
            let header = Ipv6Header {
                payload_length: (option.len() + len) as u16,
                next_header: if self.extended { IpNumber::IPV6_HEADER_HOP_BY_HOP } else { IpNumber::UDP },
                hop_limit: TTL,
                source: V6[0],
                destination: V6[1],
                ..Ipv6Header::default()
            };
            let udp = UdpHeader::with_ipv6_checksum(GTPU, port, &header, payload).unwrap();
            ([&header.to_bytes()[..], option].concat(), udp)
        } else {
            let mut header = Ipv4Header::new(0, TTL, IpNumber::UDP, V4[0], V4[1]).unwrap();
            header.identification = 0x7788;
            header.dont_fragment = false;
            if self.extended {
                header.options = Ipv4Options::from([148, 4, 0, 0]);
            }
            header.set_payload_len(len).unwrap();
            header.header_checksum = header.calc_header_checksum();
            let udp = UdpHeader::with_ipv4_checksum(GTPU, port, &header, payload).unwrap();
            (header.to_bytes().to_vec(), udp)
        };
        if !self.checksum {
            udp.checksum = 0;
        }
        [&ip, &udp.to_bytes()[..], payload].concat()
    }
}

/// The fragments of a packet without options and extension headers: pieces of `size` bytes, a multiple of 8.
pub fn fragments(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
    let v6 = packet[0] >> 4 == 6;
    let (header, payload) = packet.split_at(if v6 { 40 } else { 20 });
    let count = payload.len().div_ceil(size);
    let fragment = |(n, part): (usize, &[u8])| {
        let (at, more) = ((n * size) as u16, n + 1 < count);
        if v6 {
            let mut own = header.to_vec();
            own[4..6].copy_from_slice(&(8 + part.len() as u16).to_be_bytes());
            own[6] = 44;
            let offset = (at | u16::from(more)).to_be_bytes();
            return [&own[..], &[17, 0, offset[0], offset[1], 0x55, 0x66, 0x77, 0x88], part].concat();
        }
        let mut own = Ipv4Header::from_slice(header).unwrap().0;
        own.fragment_offset = (at / 8).try_into().unwrap();
        own.more_fragments = more;
        own.set_payload_len(part.len()).unwrap();
        own.header_checksum = own.calc_header_checksum();
        [&own.to_bytes(), part].concat()
    };
    payload.chunks(size).enumerate().map(fragment).collect()
}
