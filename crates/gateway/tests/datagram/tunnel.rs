//! The kernel program and the worker agree on encapsulations: what the worker can take apart, the kernel
//! program gives it, with the same connection, and nothing else is taken for a tunnel by one of them alone.

use crate::datagram::host::{Kind, findings_in};
use crate::datagram::random_datagram;
use etherparse::{IpNumber, Ipv4Header, Ipv6Header, UdpHeader};
use paceline_net::fragments::is_fragment;
use paceline_net::tunnel::{Parsed, parse, peek};
use paceline_net::{Stream, wire};

/// Random frames.
const INPUTS: u64 = 60_000;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE: u16 = 0x8864;
const VLAN: u16 = 0x8100;

/// EtherType and packet of a tunnel with a random datagram, up to two changed bytes, and sometimes a cut.
fn random_frame(stream: &mut Stream) -> (u16, Vec<u8>) {
    let datagram = random_datagram(stream);
    let mut below = |limit: u64| stream.below(limit) as usize;
    let (ethertype, mut packet) = if below(4) == 0 {
        let len = ((2 + datagram.len()) as u16).to_be_bytes();
        let protocol = if datagram[0] >> 4 == 4 { 0x21 } else { 0x57 };
        (PPPOE, [&[0x11, 0, 0, 7, len[0], len[1], 0, protocol][..], &datagram].concat())
    } else {
        let flags = below(8) as u8;
        let mut optional = if flags == 0 { vec![] } else { vec![0x12, 0x34, 0x56, 0] };
        if flags & 4 != 0 {
            for _ in 0..below(7) {
                *optional.last_mut().unwrap() = [0x85, 0xc0, 0x40, 0x20][below(4)];
                let units = 1 + below(3) as u8;
                optional.push(units);
                optional.extend((2..4 * units).map(|n| n * 3));
                optional.push(0);
            }
        }
        let len = ((optional.len() + datagram.len()) as u16).to_be_bytes();
        let gtp = [&[0x30 | flags, 255, len[0], len[1], 1, 2, 3, 4], &optional[..], &datagram].concat();
        outer(below(2) == 1, below(2) == 1, &gtp)
    };
    let headers = packet.len() - datagram.len();
    for _ in 0..below(3) {
        let bit = below(8 * headers as u64);
        packet[bit / 8] ^= 1 << (bit % 8);
    }
    if below(10) == 0 {
        packet.truncate(below(packet.len() as u64));
    }
    (ethertype, packet)
}

fn outer(v6: bool, checksum: bool, payload: &[u8]) -> (u16, Vec<u8>) {
    let len = UdpHeader::LEN + payload.len();
    let (ethertype, ip, mut udp) = if v6 {
        let ip = Ipv6Header {
            payload_length: len as u16,
            next_header: IpNumber::UDP,
            hop_limit: 64,
            source: [0xfd; 16],
            destination: [0xfe; 16],
            ..Ipv6Header::default()
        };
        (IPV6, ip.to_bytes().to_vec(), UdpHeader::with_ipv6_checksum(2152, 2152, &ip, payload).unwrap())
    } else {
        let mut ip = Ipv4Header::new(len as u16, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        ip.header_checksum = ip.calc_header_checksum();
        (IPV4, ip.to_bytes().to_vec(), UdpHeader::with_ipv4_checksum(2152, 2152, &ip, payload).unwrap())
    };
    if !checksum {
        udp.checksum = 0;
    }
    (ethertype, [&ip, &udp.to_bytes()[..], payload].concat())
}

#[test]
fn the_kernel_program_and_the_worker_agree_on_tunnels() {
    let mut stream = Stream::new(31, "tunnel frames");
    let frames: Vec<(u16, Vec<u8>)> = (0..INPUTS).map(|_| random_frame(&mut stream)).collect();
    // As the kernel program sees frames with one or two VLAN tags, of which the kernel has removed one.
    let tagged: Vec<(u16, Vec<u8>)> = frames
        .iter()
        .map(|(ethertype, packet)| (VLAN, [&[0, 9], &ethertype.to_be_bytes()[..], packet].concat()))
        .collect();
    let Some(plain) = findings_in("tunnels", &frames) else { return };
    let Some(in_vlan) = findings_in("tagged", &tagged) else { return };
    assert_eq!(plain, in_vlan);
    let (mut segments, mut parts, mut malformed) = (0, 0, 0);
    for ((ethertype, packet), (kind, tunnelled)) in frames.iter().zip(plain) {
        let taken = kind != Kind::Other;
        let (tunnel, end) = match parse(*ethertype, packet, false) {
            Parsed::Inside(tunnel, end) => (tunnel, end),
            Parsed::Plain => {
                assert!(!tunnelled, "a tunnel for the kernel program alone: {ethertype:x} {packet:02x?}");
                continue;
            }
            // The worker forwards it unchanged.
            Parsed::Malformed => {
                malformed += u64::from(taken);
                continue;
            }
        };
        assert_eq!(peek(*ethertype, packet).as_ref(), Some(&tunnel));
        let Ok(inner) = wire::parse(&packet[tunnel.header_len()..end]) else { continue };
        if let Some(tcp) = inner.tcp_header() {
            let ports = [tcp.src_port, tcp.dst_port];
            let expected = Kind::Segment { ports, seq: tcp.seq.0, payload: tcp.payload_len };
            assert_eq!((kind, tunnelled), (expected, true), "{ethertype:x} {packet:02x?}");
            segments += 1;
        } else if is_fragment(&inner) {
            assert!(matches!(kind, Kind::First { .. } | Kind::Later) && tunnelled, "{kind:?} {packet:02x?}");
            parts += 1;
        }
    }
    println!("{segments} segments, {parts} fragments, {malformed} malformed packets for the worker");
    assert!(segments > INPUTS / 10 && parts > INPUTS / 30 && malformed > INPUTS / 100);
}
