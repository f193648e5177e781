//! Parsing and writing of datagrams (RFC 791, RFC 8200, RFC 9293, RFC 7323, RFC 2018).
//!
//! [`parse`] never panics. A fragment, an IPv4 option or an IPv6 extension header marks the packet as
//! `special`. Behind other extension headers than options and routing, such as the Authentication Header (RFC
//! 4302), no transport header is read. An unknown or malformed TCP option marks its options as `other`; a
//! malformed transport header becomes [`Transport::Other`]. Checksums are not verified, since a device's
//! kernel has done that. [`emit`] writes simulated packets for captures, with zeros as payload and right
//! checksums.

use super::headers::layout;
use crate::packet::{
    ForeignOptions, IpHeader, Offload, Packet, Parsed, Payload, TcpFlags, TcpHeader, TcpOptions, Timestamps,
    Transport,
};
use crate::seq::SeqNumber;
use etherparse::checksum::Sum16BitWords;
use etherparse::{IpNumber, IpSlice, TcpOptionElement, TcpSlice, UdpSlice};
use std::net::IpAddr;

/// The bytes are no IP datagram.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The IP header is malformed or longer than the data.
    #[error("not an IP datagram: {0}")]
    Ip(String),
}

/// Parses a datagram. Bytes after the IP length (padding) are ignored. The packet owns a copy of the
/// datagram.
pub fn parse(bytes: &[u8]) -> Result<Packet, WireError> {
    let (ip, transport, len) = headers(bytes)?;
    Ok(with_bytes(ip, transport, bytes[..len].into()))
}

/// Parses a datagram as [`parse`] does, into a packet that owns `bytes`. An error returns them.
pub fn parse_owned(mut bytes: Vec<u8>) -> Result<Packet, (WireError, Vec<u8>)> {
    match headers(&bytes) {
        Ok((ip, transport, len)) => {
            bytes.truncate(len);
            Ok(with_bytes(ip, transport, bytes.into()))
        }
        Err(error) => Err((error, bytes)),
    }
}

fn with_bytes(ip: IpHeader, transport: Transport, datagram: Box<[u8]>) -> Packet {
    let len = datagram.len() as u32;
    let (payload, offload) = (Payload::Datagram(datagram), Offload::default());
    Parsed { ip, transport, payload, len, offload }.into()
}

/// The headers and the length of the datagram, of which all bytes are present.
fn headers(bytes: &[u8]) -> Result<(IpHeader, Transport, usize), WireError> {
    let slice = IpSlice::from_slice(bytes).map_err(|error| WireError::Ip(error.to_string()))?;
    let (ip, len) = ip_header(&slice);
    let payload = slice.payload();
    let transport = match payload.ip_number {
        // Behind other headers than those that are passed over, no transport header is read.
        _ if ip.special && layout(bytes).is_none_or(|own| own.protocol != payload.ip_number.0) => {
            Transport::Other(layout(bytes).map_or(payload.ip_number.0, |own| own.protocol))
        }
        // An IPv6 payload length of zero means a jumbogram (RFC 2675), which is not supported.
        number if payload.fragmented || len <= ip.plain_len() as usize => Transport::Other(number.0),
        IpNumber::TCP => {
            TcpSlice::from_slice(payload.payload).map_or(Transport::Other(6), |tcp| tcp_header(&tcp))
        }
        IpNumber::UDP => UdpSlice::from_slice(payload.payload).map_or(Transport::Other(17), |udp| {
            Transport::Udp { src_port: udp.source_port(), dst_port: udp.destination_port(), made_at: None }
        }),
        number => Transport::Other(number.0),
    };
    if len > bytes.len() {
        return Err(WireError::Ip("length beyond the data".into()));
    }
    Ok((ip, transport, len))
}

fn ip_header(slice: &IpSlice<'_>) -> (IpHeader, usize) {
    match slice {
        IpSlice::Ipv4(v4) => {
            let header = v4.header();
            let ip = IpHeader {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                traffic_class: header.dcp().value() << 2 | header.ecn().value(),
                hop_limit: header.ttl(),
                special: header.is_fragmenting_payload()
                    || !header.options().is_empty()
                    || !v4.extensions().is_empty(),
            };
            (ip, usize::from(header.total_len()))
        }
        IpSlice::Ipv6(v6) => {
            let header = v6.header();
            let ip = IpHeader {
                src: header.source_addr().into(),
                dst: header.destination_addr().into(),
                traffic_class: header.traffic_class(),
                hop_limit: header.hop_limit(),
                special: !v6.extensions().is_empty(),
            };
            (ip, 40 + usize::from(header.payload_length()))
        }
    }
}

fn tcp_header(tcp: &TcpSlice<'_>) -> Transport {
    let fixed = tcp.header_slice();
    Transport::Tcp(TcpHeader {
        src_port: tcp.source_port(),
        dst_port: tcp.destination_port(),
        seq: SeqNumber(tcp.sequence_number()),
        ack: SeqNumber(tcp.acknowledgment_number()),
        flags: TcpFlags(u16::from_be_bytes([fixed[12] & 0x0f, fixed[13]])),
        window: tcp.window_size(),
        options: tcp_options(tcp),
        payload_len: tcp.payload().len() as u32,
    })
}

fn tcp_options(tcp: &TcpSlice<'_>) -> TcpOptions {
    let mut options = TcpOptions::default();
    for element in tcp.options_iterator() {
        match element {
            Ok(TcpOptionElement::Noop) => {}
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => options.mss = Some(mss),
            Ok(TcpOptionElement::WindowScale(shift)) => options.window_scale = Some(shift),
            Ok(TcpOptionElement::SelectiveAcknowledgementPermitted) => options.sack_permitted = true,
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, rest)) => {
                for (left, right) in std::iter::once(first).chain(rest.into_iter().flatten()) {
                    options.sack.push(SeqNumber(left), SeqNumber(right));
                }
            }
            Ok(TcpOptionElement::Timestamp(val, ecr)) => options.timestamps = Some(Timestamps { val, ecr }),
            Err(_) => options.other = foreign_options(tcp.options()).or_unknown(),
        }
    }
    options
}

/// The option kinds in a list that have no field in [`TcpOptions`].
fn foreign_options(mut list: &[u8]) -> ForeignOptions {
    let mut found = ForeignOptions::default();
    while let [kind, rest @ ..] = list {
        let known = match kind {
            0 => return found,
            1 => {
                list = rest;
                continue;
            }
            2..=5 | 8 => ForeignOptions::default(),
            19 => ForeignOptions::MD5,
            29 => ForeignOptions::AUTHENTICATION,
            30 => ForeignOptions::MPTCP,
            34 => ForeignOptions::FAST_OPEN,
            172 | 174 => ForeignOptions::ACCURATE_ECN,
            _ => ForeignOptions::UNKNOWN,
        };
        found = found.with(known);
        match rest.first().filter(|len| **len >= 2).and_then(|len| list.get(usize::from(*len)..)) {
            Some(behind) => list = behind,
            None => return found.with(ForeignOptions::UNKNOWN),
        }
    }
    found
}

/// Writes a datagram: a device's bytes unchanged, a simulated packet with zeros as payload.
///
/// # Panics
/// If a simulated packet mixes address versions or exceeds 65,535 bytes.
pub fn emit(packet: &Packet) -> Vec<u8> {
    let virtual_len = match &packet.payload {
        Payload::Datagram(bytes) => return bytes.to_vec(),
        Payload::Virtual(len) => *len,
    };
    let mut l4 = Vec::with_capacity(packet.len as usize);
    let protocol = match &packet.transport {
        Transport::Tcp(tcp) => {
            emit_tcp(&mut l4, tcp);
            6
        }
        Transport::Udp { src_port, dst_port, .. } => {
            l4.extend_from_slice(&src_port.to_be_bytes());
            l4.extend_from_slice(&dst_port.to_be_bytes());
            l4.extend_from_slice(&((8 + virtual_len) as u16).to_be_bytes());
            l4.extend_from_slice(&[0, 0]);
            17
        }
        Transport::Other(number) => *number,
    };
    l4.resize(l4.len() + virtual_len as usize, 0);
    fill_checksum(&mut l4, packet, protocol);
    let mut datagram = ip_bytes(packet, protocol, l4.len());
    datagram.extend_from_slice(&l4);
    datagram
}

pub(super) fn emit_tcp(out: &mut Vec<u8>, tcp: &TcpHeader) {
    let data_offset = (20 + tcp.options.wire_len()) / 4;
    out.extend_from_slice(&tcp.src_port.to_be_bytes());
    out.extend_from_slice(&tcp.dst_port.to_be_bytes());
    out.extend_from_slice(&tcp.seq.0.to_be_bytes());
    out.extend_from_slice(&tcp.ack.0.to_be_bytes());
    out.extend_from_slice(&((data_offset as u16) << 12 | tcp.flags.0).to_be_bytes());
    out.extend_from_slice(&tcp.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    emit_options(out, &tcp.options);
}

fn emit_options(out: &mut Vec<u8>, options: &TcpOptions) {
    if let Some(mss) = options.mss {
        out.extend_from_slice(&[2, 4]);
        out.extend_from_slice(&mss.to_be_bytes());
    }
    match (options.sack_permitted, options.timestamps) {
        (true, Some(_)) => out.extend_from_slice(&[4, 2]),
        (true, None) => out.extend_from_slice(&[1, 1, 4, 2]),
        (false, Some(_)) => out.extend_from_slice(&[1, 1]),
        (false, None) => {}
    }
    if let Some(Timestamps { val, ecr }) = options.timestamps {
        out.extend_from_slice(&[8, 10]);
        out.extend_from_slice(&val.to_be_bytes());
        out.extend_from_slice(&ecr.to_be_bytes());
    }
    if let Some(shift) = options.window_scale {
        out.extend_from_slice(&[1, 3, 3, shift]);
    }
    if !options.sack.is_empty() {
        out.extend_from_slice(&[1, 1, 5, 2 + 8 * options.sack.len() as u8]);
        for (left, right) in options.sack.as_slice() {
            out.extend_from_slice(&left.0.to_be_bytes());
            out.extend_from_slice(&right.0.to_be_bytes());
        }
    }
}

fn fill_checksum(l4: &mut [u8], packet: &Packet, protocol: u8) {
    let at = match protocol {
        6 => 16,
        17 => 6,
        _ => return,
    };
    let sum = match (packet.ip.src, packet.ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Sum16BitWords::new().add_4bytes(src.octets()).add_4bytes(dst.octets())
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Sum16BitWords::new().add_16bytes(src.octets()).add_16bytes(dst.octets())
        }
        _ => panic!("a packet's addresses are of one IP version"),
    };
    let length = (l4.len() as u32).to_be_bytes();
    let sum = sum.add_2bytes([0, protocol]).add_4bytes(length).add_slice(l4);
    // A UDP checksum of zero means "none": the all-ones form is sent instead (RFC 768).
    let value = if protocol == 17 { sum.to_ones_complement_with_no_zero() } else { sum.ones_complement() };
    l4[at..at + 2].copy_from_slice(&value.to_ne_bytes()); // `etherparse` sums in memory order
}

fn ip_bytes(packet: &Packet, protocol: u8, l4_len: usize) -> Vec<u8> {
    let ip = &packet.ip;
    match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = u16::try_from(20 + l4_len).expect("an IPv4 datagram has at most 65,535 bytes");
            let mut header = vec![0x45, ip.traffic_class];
            header.extend_from_slice(&total.to_be_bytes());
            header.extend_from_slice(&[0, 0, 0x40, 0, ip.hop_limit, protocol, 0, 0]); // DF
            header.extend_from_slice(&src.octets());
            header.extend_from_slice(&dst.octets());
            let sum = Sum16BitWords::new().add_slice(&header).ones_complement();
            header[10..12].copy_from_slice(&sum.to_ne_bytes());
            header
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let length = u16::try_from(l4_len).expect("an IPv6 payload has at most 65,535 bytes");
            let mut header = vec![0x60 | ip.traffic_class >> 4, ip.traffic_class << 4, 0, 0];
            header.extend_from_slice(&length.to_be_bytes());
            header.extend_from_slice(&[protocol, ip.hop_limit]);
            header.extend_from_slice(&src.octets());
            header.extend_from_slice(&dst.octets());
            header
        }
        _ => panic!("a packet's addresses are of one IP version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{CLIENT, SERVER, extended, segment};
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const V4: [IpAddr; 2] = [CLIENT, SERVER];
    const V6: [IpAddr; 2] = [v6(1), v6(2)];

    const fn v6(host: u16) -> IpAddr {
        IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, host))
    }

    fn options() -> impl Strategy<Value = TcpOptions> {
        let sack = proptest::collection::vec((any::<u32>(), any::<u32>()), 0..=3);
        (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>(), any::<Option<(u32, u32)>>(), sack)
            .prop_map(|(mss, window_scale, sack_permitted, timestamps, sack)| {
                let mut options = TcpOptions { sack_permitted, ..Default::default() };
                options.timestamps = timestamps.map(|(val, ecr)| Timestamps { val, ecr });
                // A header has room for 40 bytes of options: not for SYN options and SACK blocks together.
                if sack.is_empty() {
                    (options.mss, options.window_scale) = (mss, window_scale);
                } else {
                    options.sack_permitted = false;
                    sack.iter().for_each(|(l, r)| options.sack.push(SeqNumber(*l), SeqNumber(*r)));
                }
                options
            })
    }

    proptest! {
        #[test]
        fn an_emitted_packet_parses_to_the_same_headers(
            options in options(), v6: bool, ports: (u16, u16), seq: u32, ack: u32, flags in 0u16..0x1000,
            window: u16, payload_len in 0u32..1500, traffic_class: u8,
        ) {
            let [src, dst] = if v6 { V6 } else { V4 };
            let tcp = TcpHeader {
                src_port: ports.0, dst_port: ports.1, seq: SeqNumber(seq), ack: SeqNumber(ack),
                flags: TcpFlags(flags), window, options, payload_len,
            };
            let mut packet = Packet::tcp(src, dst, tcp);
            packet.ip.traffic_class = traffic_class;
            let bytes = emit(&packet);
            prop_assert_eq!(bytes.len(), packet.len as usize);
            let parsed = parse(&bytes).unwrap();
            prop_assert_eq!(&parsed.ip, &packet.ip);
            prop_assert_eq!(&parsed.transport, &packet.transport);
            prop_assert_eq!(emit(&parsed), bytes);
        }

        #[test]
        fn the_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&bytes);
        }
    }

    /// The checksum of RFC 1071 §1: big-endian words, carries folded at the end.
    fn internet_checksum(parts: &[&[u8]]) -> u16 {
        let words = parts.iter().flat_map(|part| part.chunks(2));
        let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |low| u32::from(*low))).sum();
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn checksums_are_right() {
        for (payload_len, [src, dst]) in (0..9).flat_map(|len| [V4, V6].map(|pair| (len, pair))) {
            let numbers = segment().ports(40_000, 5001).seq(0x1234_5678).ack(0x9abc_def0).window(0x4321);
            let packet = numbers.between(src, dst).payload_len(payload_len);
            let bytes = emit(&packet.with(|tcp| tcp.options.mss = Some(1460)).build());
            let (addresses, l4) = if bytes[0] >> 4 == 4 {
                (&bytes[12..20], &bytes[20..])
            } else {
                (&bytes[8..40], &bytes[40..])
            };
            let pseudo = [&[0, 6], &(l4.len() as u16).to_be_bytes()[..]].concat();
            assert_eq!(internet_checksum(&[addresses, &pseudo, l4]), 0, "TCP, {payload_len} bytes, {src}");
            assert!(bytes[0] >> 4 == 6 || internet_checksum(&[&bytes[..20]]) == 0, "IPv4 header");
        }
    }

    // keeps: ack-filter.6
    #[test]
    fn padding_is_ignored_and_truncation_is_an_error() {
        let bytes = emit(&segment().build());
        let padded = [&bytes[..], &[0; 6]].concat();
        assert_eq!(parse(&padded).unwrap().len, 40);
        assert!(parse(&padded).unwrap().is_pure_ack(), "Ethernet padding is no payload");
        assert!(parse(&bytes[..39]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn a_packet_can_own_the_parsed_bytes() {
        let bytes = emit(&segment().build());
        let padded = [&bytes[..], &[0; 6]].concat();
        assert_eq!(parse_owned(padded.clone()).unwrap(), parse(&padded).unwrap());
        let (_, returned) = parse_owned(bytes[..39].to_vec()).unwrap_err();
        assert_eq!(returned, bytes[..39]);
    }

    #[test]
    fn an_ipv6_payload_length_of_zero_has_no_transport() {
        let mut bytes = emit(&segment().between(V6[0], V6[1]).build());
        bytes[4..6].copy_from_slice(&[0, 0]);
        let packet = parse(&bytes).unwrap();
        assert_eq!((packet.len, packet.tcp_header()), (40, None));
    }

    // keeps: ack-filter.5
    #[test]
    fn fragments_and_ip_options_are_special() {
        let mut bytes = emit(&segment().build());
        bytes[6] = 0x20; // more fragments
        let packet = parse(&bytes).unwrap();
        assert!(packet.ip.special && packet.tcp_header().is_none());
        let packet = extended(&segment().datagram(b"abc"), 0, &[148, 4, 0, 0]); // router alert
        assert!(packet.ip.special && packet.tcp_header().is_some_and(|tcp| tcp.payload_len == 3));
    }

    #[test]
    fn behind_an_authentication_header_there_is_no_segment() {
        let plain = segment().between(V6[0], V6[1]).datagram(b"abc");
        let packet = extended(&plain, 51, &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!((packet.transport.clone(), packet.ip.special), (Transport::Other(51), true));
    }
}
