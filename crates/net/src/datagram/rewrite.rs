//! Operations of a middlebox on datagrams: change header fields of a packet that passes ([`rewrite`]), build
//! one around stored payload ([`segment`]), and verify checksums ([`checksum_is_right`]).
//!
//! A rewritten datagram keeps all other fields: TTL, flow label, identification, urgent pointer, unknown
//! options. Its checksum is updated by the difference (RFC 1624), so that a corrupt datagram stays corrupt.

use super::headers::layout;
use super::wire::emit_tcp;
use crate::packet::{Checksum, IpHeader, Offload, Packet, Parsed, Payload, TcpHeader, Transport};
use crate::seq::SeqNumber;
use etherparse::checksum::Sum16BitWords;
use std::net::IpAddr;

/// Don't Fragment, in the first byte of IPv4's flags and fragment offset (RFC 791, section 3.1).
const DF: u8 = 0x40;

/// Header fields that [`Packet`] does not have, for a built datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unparsed {
    /// The urgent pointer, which counts from the segment's sequence number; meaningful with the URG flag.
    pub urgent: u16,
    /// The IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// Of IPv4: routers may fragment the datagram (DF is 0).
    pub may_fragment: bool,
}

impl Unparsed {
    /// The fields of a device's datagram; zero for a simulated packet.
    pub fn of(packet: &Packet) -> Self {
        let Payload::Datagram(bytes) = &packet.payload else { return Self::default() };
        let at = transport_at(packet);
        let urgent = match (&packet.transport, bytes.get(at + 18..at + 20)) {
            (Transport::Tcp(_), Some(field)) => u16::from_be_bytes([field[0], field[1]]),
            _ => 0,
        };
        let flow_label = match (packet.ip.src, bytes.get(1..4)) {
            (IpAddr::V6(_), Some(b)) => u32::from_be_bytes([0, b[0] & 0x0f, b[1], b[2]]),
            _ => 0,
        };
        let may_fragment = packet.ip.src.is_ipv4() && bytes.get(6).is_some_and(|field| field & DF == 0);
        Self { urgent, flow_label, may_fragment }
    }
}

/// Length of the headers of a device's TCP datagram in bytes.
pub fn header_len(packet: &Packet) -> usize {
    packet.tcp_header().map_or(packet.len, |tcp| packet.len - tcp.payload_len) as usize
}

/// Byte offset of the transport header in a device's datagram, behind IPv4 options and IPv6 extension
/// headers.
pub fn transport_at(packet: &Packet) -> usize {
    let plain = packet.ip.plain_len() as usize;
    match &packet.payload {
        Payload::Datagram(bytes) if packet.ip.special => {
            layout(bytes).map_or(plain, |layout| layout.transport_at)
        }
        _ => plain,
    }
}

/// A datagram with these headers and the concatenated `parts` as payload, whose lengths must add up to
/// `tcp.payload_len`. Before it leaves, [`super::identification`] has to number it. With
/// [`Checksum::Partial`] the device that sends it completes the checksum; else this function does.
///
/// # Panics
/// If the datagram would exceed 65,535 bytes or mixes address versions.
pub fn segment<'a>(
    ip: IpHeader,
    tcp: TcpHeader,
    unparsed: Unparsed,
    checksum: Checksum,
    parts: impl Iterator<Item = &'a [u8]>,
) -> Packet {
    let len = datagram_len(&ip, &tcp);
    let mut bytes = Vec::with_capacity(len as usize);
    emit_headers(&mut bytes, &ip, &tcp, unparsed);
    parts.for_each(|part| bytes.extend_from_slice(part));
    assert_eq!(bytes.len(), len as usize, "the parts make up the payload");
    finish(ip, tcp, checksum, bytes)
}

/// The headers of a datagram whose payload is stored elsewhere: the packet's length includes the payload, its
/// bytes do not. The checksum is [`Checksum::Partial`].
///
/// # Panics
/// As [`segment`].
pub fn headers(ip: IpHeader, tcp: TcpHeader, unparsed: Unparsed) -> Packet {
    let mut bytes = Vec::with_capacity((datagram_len(&ip, &tcp) - tcp.payload_len) as usize);
    emit_headers(&mut bytes, &ip, &tcp, unparsed);
    finish(ip, tcp, Checksum::Partial, bytes)
}

fn datagram_len(ip: &IpHeader, tcp: &TcpHeader) -> u32 {
    ip.plain_len() + 20 + tcp.options.wire_len() + tcp.payload_len
}

fn emit_headers(bytes: &mut Vec<u8>, ip: &IpHeader, tcp: &TcpHeader, unparsed: Unparsed) {
    let len = datagram_len(ip, tcp);
    match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = u16::try_from(len).expect("an IPv4 datagram has at most 65,535 bytes").to_be_bytes();
            let df = if unparsed.may_fragment { 0 } else { DF };
            bytes.extend_from_slice(&[0x45, ip.traffic_class, total[0], total[1], 0, 0, df, 0]);
            bytes.extend_from_slice(&[ip.hop_limit, 6, 0, 0]);
            bytes.extend_from_slice(&src.octets());
            bytes.extend_from_slice(&dst.octets());
            let sum = Sum16BitWords::new().add_slice(bytes).ones_complement();
            bytes[10..12].copy_from_slice(&sum.to_ne_bytes());
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let l4_len = len - ip.plain_len();
            let payload = u16::try_from(l4_len).expect("an IPv6 payload has at most 65,535 bytes");
            let first = 0x6000_0000 | u32::from(ip.traffic_class) << 20 | unparsed.flow_label & 0xf_ffff;
            bytes.extend_from_slice(&first.to_be_bytes());
            bytes.extend_from_slice(&payload.to_be_bytes());
            bytes.extend_from_slice(&[6, ip.hop_limit]);
            bytes.extend_from_slice(&src.octets());
            bytes.extend_from_slice(&dst.octets());
        }
        _ => panic!("a packet's addresses are of one IP version"),
    }
    emit_tcp(bytes, tcp);
    let at = ip.plain_len() as usize;
    bytes[at + 18..at + 20].copy_from_slice(&unparsed.urgent.to_be_bytes());
}

fn finish(ip: IpHeader, tcp: TcpHeader, checksum: Checksum, mut bytes: Vec<u8>) -> Packet {
    let (len, at) = (datagram_len(&ip, &tcp), ip.plain_len() as usize);
    let sum = pseudo_header(&ip).add_2bytes([0, 6]).add_4bytes((len - ip.plain_len()).to_be_bytes());
    let field = match checksum {
        Checksum::Partial => !sum.ones_complement(),
        _ => sum.add_slice(&bytes[at..]).ones_complement(),
    };
    bytes[at + 16..at + 18].copy_from_slice(&field.to_ne_bytes());
    let offload = Offload { checksum, unnumbered: ip.src.is_ipv4(), ..Offload::default() };
    Parsed { ip, transport: Transport::Tcp(tcp), payload: Payload::Datagram(bytes.into()), len, offload }
        .into()
}

/// Replaces the right checksum of a TCP datagram by [`Checksum::Partial`], as a device requires that cuts
/// super-packets.
pub fn leave_checksum(packet: &mut Packet) {
    let at = transport_at(packet);
    let l4_len = packet.len - at as u32;
    let Parsed { ip, transport: Transport::Tcp(_), payload: Payload::Datagram(bytes), offload, .. } =
        &mut **packet
    else {
        return;
    };
    let sum = pseudo_header(ip).add_2bytes([0, 6]).add_4bytes(l4_len.to_be_bytes());
    bytes[at + 16..at + 18].copy_from_slice(&(!sum.ones_complement()).to_ne_bytes());
    offload.checksum = Checksum::Partial;
}

/// Completes a checksum that is [`Checksum::Partial`], for a packet that no device completes.
pub fn complete_checksum(packet: &mut Packet) {
    let at = transport_at(packet);
    let Parsed { payload: Payload::Datagram(bytes), offload, .. } = &mut **packet else { return };
    if offload.checksum == Checksum::Partial {
        // The field has the sum of the pseudo header.
        let sum = Sum16BitWords::new().add_slice(&bytes[at..]).ones_complement();
        bytes[at + 16..at + 18].copy_from_slice(&sum.to_ne_bytes());
        offload.checksum = Checksum::Unverified;
    }
}

/// A packet of [`headers`] with the payload that is stored elsewhere; any other packet as it is.
pub fn with_payload<'a>(mut packet: Packet, parts: impl Iterator<Item = &'a [u8]>) -> Packet {
    if let Payload::Datagram(bytes) = &mut packet.payload {
        let mut all = std::mem::take(bytes).into_vec();
        parts.for_each(|part| all.extend_from_slice(part));
        *bytes = all.into();
    }
    packet
}

fn pseudo_header(ip: &IpHeader) -> Sum16BitWords {
    let mut sum = Sum16BitWords::new();
    match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => sum.add_4bytes(src.octets()).add_4bytes(dst.octets()),
        (IpAddr::V6(src), IpAddr::V6(dst)) => sum.add_16bytes(src.octets()).add_16bytes(dst.octets()),
        _ => panic!("a packet's addresses are of one IP version"),
    }
}

/// Whether the checksums of a device's TCP datagram are right, including that of an IPv4 header. A TCP
/// checksum that is not [`Checksum::Unverified`] counts as right, and so do simulated packets and other
/// protocols.
pub fn checksum_is_right(packet: &Packet) -> bool {
    let (Payload::Datagram(bytes), Transport::Tcp(_)) = (&packet.payload, &packet.transport) else {
        return true;
    };
    let at = transport_at(packet);
    if packet.ip.src.is_ipv4() && Sum16BitWords::new().add_slice(&bytes[..at]).ones_complement() != 0 {
        return false;
    }
    if packet.offload.checksum != Checksum::Unverified {
        return true;
    }
    let l4_len = (bytes.len() - at) as u32;
    pseudo_header(&packet.ip)
        .add_2bytes([0, 6])
        .add_4bytes(l4_len.to_be_bytes())
        .add_slice(&bytes[at..])
        .ones_complement()
        == 0
}

/// Changes the TCP header of a packet that passes: numbers, flags, window, timestamps and SACK blocks. Ports
/// and payload stay, and in a device's datagram the layout of the options, too: timestamps are only replaced,
/// and SACK blocks are replaced if their number is the same, else overwritten with NOPs.
pub fn rewrite(packet: &mut Packet, new: &TcpHeader) {
    let at = transport_at(packet);
    let headers = header_len(packet);
    let Parsed { ip, transport, payload, len, offload } = &mut **packet;
    let Transport::Tcp(tcp) = transport else { return };
    let Payload::Datagram(bytes) = payload else {
        *tcp = TcpHeader {
            src_port: tcp.src_port,
            dst_port: tcp.dst_port,
            payload_len: tcp.payload_len,
            ..*new
        };
        *len = ip.plain_len() + 20 + tcp.options.wire_len() + tcp.payload_len;
        return;
    };
    let header = &mut bytes[at..headers];
    let before = sum_without_checksum(header);
    header[4..8].copy_from_slice(&new.seq.0.to_be_bytes());
    header[8..12].copy_from_slice(&new.ack.0.to_be_bytes());
    header[12] = header[12] & 0xf0 | (new.flags.0 >> 8) as u8 & 0x0f;
    header[13] = new.flags.0 as u8;
    header[14..16].copy_from_slice(&new.window.to_be_bytes());
    (tcp.seq, tcp.ack, tcp.flags, tcp.window) = (new.seq, new.ack, new.flags, new.window);
    rewrite_options(&mut header[20..], tcp, new);
    if offload.checksum == Checksum::Partial {
        return; // neither addresses nor length have changed
    }
    let after = sum_without_checksum(header);
    // RFC 1624, equation 3, over all words at once.
    let old = u16::from_be_bytes([header[16], header[17]]);
    let sum = fold(u32::from(!old) + u32::from(!before) + u32::from(after));
    header[16..18].copy_from_slice(&(!sum).to_be_bytes());
}

fn rewrite_options(mut list: &mut [u8], tcp: &mut TcpHeader, new: &TcpHeader) {
    let blocks = new.options.sack.as_slice();
    while let Some(&kind) = list.first() {
        let len = match kind {
            0 => return,
            1 => 1,
            _ => list.get(1).map_or(0, |len| usize::from(*len)),
        };
        if len == 0 || len > list.len() {
            return;
        }
        let (option, rest) = std::mem::take(&mut list).split_at_mut(len);
        list = rest;
        match (kind, len) {
            (8, 10) => {
                if let Some(timestamps) = new.options.timestamps {
                    option[2..6].copy_from_slice(&timestamps.val.to_be_bytes());
                    option[6..10].copy_from_slice(&timestamps.ecr.to_be_bytes());
                    tcp.options.timestamps = Some(timestamps);
                }
            }
            (5, _) if len == 2 + 8 * blocks.len() => {
                for (slot, (left, right)) in option[2..].chunks_exact_mut(8).zip(blocks) {
                    slot[..4].copy_from_slice(&left.0.to_be_bytes());
                    slot[4..].copy_from_slice(&right.0.to_be_bytes());
                }
                tcp.options.sack = new.options.sack;
            }
            (5, _) => {
                option.fill(1);
                tcp.options.sack = Default::default();
            }
            _ => {}
        }
    }
}

pub(super) fn sum_without_checksum(header: &[u8]) -> u16 {
    let word = |at: usize| u32::from(header[at]) << 8 | u32::from(header[at + 1]);
    let all: u32 = (0..header.len() / 2).map(|n| word(2 * n)).sum();
    fold(all - word(16))
}

pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A packet-too-big message (ICMP type 3 code 4, RFC 1191; ICMPv6 type 2, RFC 8201) about a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketTooBig {
    /// The direction of the segment that did not fit.
    pub key: crate::FlowKey,
    /// Its sequence number.
    pub seq: SeqNumber,
    /// MTU of the next hop in bytes.
    pub mtu: u32,
}

/// Reads a packet-too-big message with its quotation; `None` for anything else.
pub fn packet_too_big(packet: &Packet) -> Option<PacketTooBig> {
    let Payload::Datagram(bytes) = &packet.payload else { return None };
    let body = bytes.get(packet.ip.plain_len() as usize..).filter(|_| !packet.ip.special)?;
    let field =
        |from: usize| -> Option<u32> { Some(u32::from_be_bytes(body.get(from..from + 4)?.try_into().ok()?)) };
    let (mtu, quoted) = match (&packet.transport, body.get(..2)?, packet.ip.src) {
        (Transport::Other(1), [3, 4], IpAddr::V4(_)) => (field(4)? & 0xffff, body.get(8..)?),
        (Transport::Other(58), [2, 0], IpAddr::V6(_)) => (field(4)?, body.get(8..)?),
        _ => return None,
    };
    let (src, dst, l4): (IpAddr, IpAddr, &[u8]) = match quoted.first()? >> 4 {
        4 if quoted.get(9) == Some(&6) => {
            let address = |from: usize| -> Option<[u8; 4]> { quoted.get(from..from + 4)?.try_into().ok() };
            let header = 4 * usize::from(quoted[0] & 0x0f);
            (address(12)?.into(), address(16)?.into(), quoted.get(header..)?)
        }
        6 if quoted.get(6) == Some(&6) => {
            let address = |from: usize| -> Option<[u8; 16]> { quoted.get(from..from + 16)?.try_into().ok() };
            (address(8)?.into(), address(24)?.into(), quoted.get(40..)?)
        }
        _ => return None,
    };
    let port =
        |from: usize| -> Option<u16> { Some(u16::from_be_bytes([*l4.get(from)?, *l4.get(from + 1)?])) };
    let seq = SeqNumber(u32::from_be_bytes(l4.get(4..8)?.try_into().ok()?));
    Some(PacketTooBig { key: crate::FlowKey { src, dst, src_port: port(0)?, dst_port: port(2)? }, seq, mtu })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::wire::{emit, parse};
    use crate::test_support::{extended, segment as tcp_segment};
    use crate::{TcpFlags, TcpOptions, Timestamps};
    use std::net::Ipv6Addr;

    fn packet(v6: bool, options: TcpOptions) -> Packet {
        let packet =
            tcp_segment().seq(7).ack(8).window(500).payload_len(101).with(|tcp| tcp.options = options);
        let v6_hosts = [1, 2].map(|host| Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, host));
        let packet = if v6 { packet.between(v6_hosts[0], v6_hosts[1]) } else { packet };
        parse(&emit(&packet.build())).unwrap()
    }

    #[test]
    fn a_rewritten_datagram_has_the_new_header_and_a_right_checksum() {
        for v6 in [false, true] {
            let mut options =
                TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..Default::default() };
            options.sack.push(SeqNumber(20), SeqNumber(30));
            let mut packet = packet(v6, options);
            let mut new = *packet.tcp_header().unwrap();
            new.seq = SeqNumber(0xffff_0000);
            new.ack = SeqNumber(0x1234_5678);
            new.flags = TcpFlags::ACK.with(TcpFlags::ECE).with(TcpFlags::AE);
            new.window = 9;
            new.options.timestamps = Some(Timestamps { val: 0xaaaa_bbbb, ecr: 5 });
            new.options.sack = Default::default();
            rewrite(&mut packet, &new);
            assert!(checksum_is_right(&packet));
            let Payload::Datagram(bytes) = &packet.payload else { unreachable!() };
            let read = parse(bytes).unwrap();
            assert_eq!(read.transport, packet.transport);
            assert_eq!(read.tcp_header(), Some(&new));
        }
    }

    #[test]
    fn options_and_extension_headers_are_passed_over() {
        for (v6, number, header) in
            [(false, 0, [148, 4, 0, 0, 1, 1, 1, 0]), (true, 60, [6, 0, 1, 4, 0, 0, 0, 0])]
        {
            let plain = packet(v6, TcpOptions::default());
            let mut special = extended(&plain, number, &header);
            assert!(special.ip.special && checksum_is_right(&special));
            assert_eq!(
                (special.transport.clone(), header_len(&special)),
                (plain.transport.clone(), header_len(&plain) + 8)
            );
            let new = TcpHeader { ack: SeqNumber(0x1234_5678), ..*plain.tcp_header().unwrap() };
            let mut expected = plain;
            rewrite(&mut expected, &new);
            rewrite(&mut special, &new);
            assert_eq!(special, extended(&expected, number, &header));
            leave_checksum(&mut special);
            leave_checksum(&mut expected);
            assert_eq!(special.payload, extended(&expected, number, &header).payload);
        }
    }

    #[test]
    fn a_corrupt_datagram_stays_corrupt() {
        let mut packet = packet(false, TcpOptions::default());
        let Payload::Datagram(bytes) = &mut packet.payload else { unreachable!() };
        *bytes.last_mut().unwrap() ^= 0x40;
        assert!(!checksum_is_right(&packet));
        let new = TcpHeader { ack: SeqNumber(99), ..*packet.tcp_header().unwrap() };
        rewrite(&mut packet, &new);
        assert!(!checksum_is_right(&packet));
    }

    #[test]
    fn a_built_segment_is_parsed_with_flow_label_and_urgent_pointer() {
        for v6 in [false, true] {
            let old = packet(v6, TcpOptions::default());
            let tcp = TcpHeader {
                payload_len: 5,
                flags: TcpFlags::ACK.with(TcpFlags::URG),
                ..*old.tcp_header().unwrap()
            };
            let unparsed =
                Unparsed { urgent: 3, flow_label: if v6 { 0xabcde } else { 0 }, may_fragment: !v6 };
            let parts: [&[u8]; 2] = [b"he", b"llo"];
            let built = segment(old.ip, tcp, unparsed, Checksum::Unverified, parts.into_iter());
            assert!(checksum_is_right(&built));
            let Payload::Datagram(bytes) = &built.payload else { unreachable!() };
            let mut parsed = parse(bytes).unwrap();
            parsed.offload.unnumbered = !v6;
            assert_eq!(parsed, built);
            assert_eq!(Unparsed::of(&built), unparsed);
            assert_eq!(&bytes[header_len(&built)..], b"hello");
            let whole = segment(old.ip, tcp, unparsed, Checksum::Partial, [&b"hello"[..]].into_iter());
            let split = headers(old.ip, tcp, unparsed);
            let (Payload::Datagram(whole_bytes), Payload::Datagram(bytes)) = (&whole.payload, &split.payload)
            else {
                unreachable!()
            };
            assert_eq!([&bytes[..], b"hello"].concat(), whole_bytes[..]);
            assert_eq!((split.len, split.offload), (whole.len, whole.offload));
        }
    }
}
