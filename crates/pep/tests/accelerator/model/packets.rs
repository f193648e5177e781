//! Datagrams with a known byte stream, for the tests of the accelerator. The segments themselves come from
//! `paceline_net::test_support`.
#![allow(dead_code)] // each test file uses a part of it

use paceline_net::fragments::fragment;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::test_support::extended;
use paceline_net::{Checksum, FlowKey, IpHeader, Offload, Packet, Payload, TcpFlags, TcpHeader};

pub const SYN: TcpFlags = TcpFlags::SYN;
pub const ACK: TcpFlags = TcpFlags::ACK;
pub const FIN: TcpFlags = TcpFlags(TcpFlags::FIN.0 | TcpFlags::ACK.0);
pub const RST: TcpFlags = TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0);

/// The byte at an offset of a stream.
pub fn byte(off: u64) -> u8 {
    (off.wrapping_mul(0x9e37_79b9) >> 7) as u8
}
/// `len` bytes of a stream from `off`.
pub fn payload(off: u64, len: u32) -> Vec<u8> {
    (off..off + u64::from(len)).map(byte).collect()
}
pub fn header(packet: &Packet) -> TcpHeader {
    *packet.tcp_header().expect("a TCP segment")
}
/// All bytes of a datagram.
pub fn bytes(packet: &Packet) -> Vec<u8> {
    let Payload::Datagram(bytes) = &packet.payload else { panic!("a datagram") };
    bytes.to_vec()
}
/// The payload of a datagram.
pub fn body(packet: &Packet) -> Vec<u8> {
    let Payload::Datagram(bytes) = &packet.payload else { panic!("a datagram") };
    bytes[rewrite::header_len(packet)..].to_vec()
}
/// A datagram with an urgent pointer or a flow label.
pub fn datagram(key: FlowKey, tcp: TcpHeader, unparsed: Unparsed, payload: &[u8]) -> Packet {
    let ip = IpHeader { src: key.src, dst: key.dst, traffic_class: 0, hop_limit: 64, special: false };
    rewrite::segment(ip, tcp, unparsed, Checksum::Unverified, std::iter::once(payload))
}

/// The datagram with an IPv4 option (router alert) or IPv6 Destination Options (padding).
pub fn with_option(packet: &Packet) -> Packet {
    let v6 = packet.ip.src.is_ipv6();
    if v6 { extended(packet, 60, &[0, 0, 1, 4, 0, 0, 0, 0]) } else { extended(packet, 0, &[148, 4, 0, 0]) }
}
/// The fragments of the datagram number `id`, of `size` bytes at most.
pub fn fragmented(packet: &Packet, size: u16, id: u16) -> Vec<Packet> {
    let [high, low] = id.to_be_bytes();
    let mut whole = if packet.ip.src.is_ipv6() {
        extended(packet, 44, &[0, 0, 0, 0, 0, 0, high, low])
    } else {
        // Without DF.
        let mut raw = bytes(packet);
        (raw[4], raw[5], raw[6]) = (high, low, 0);
        paceline_net::wire::parse(&raw).expect("a datagram")
    };
    whole.offload = Offload { segment: size, reassembled: true, ..Offload::default() };
    fragment(whole)
}
