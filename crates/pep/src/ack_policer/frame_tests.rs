use super::*;
use paceline_net::test_support::segment;
use paceline_net::wire;
use paceline_net::{SeqNumber, Stream, TcpFlags};

/// A datagram with random flags, options, payload and addresses of either version.
fn datagram(rng: &mut Stream) -> Vec<u8> {
    let v6 = rng.chance(0.5);
    let mut builder = segment().seq(rng.next_u64() as u32).ack(rng.next_u64() as u32);
    if v6 {
        let (src, dst): ([u8; 16], [u8; 16]) = ([0x20; 16], [0x21; 16]);
        builder = builder.between(src, dst);
    }
    builder = builder
        .flags(TcpFlags(rng.below(0x1000) as u16))
        .window(rng.next_u64() as u16)
        .payload_len(if rng.chance(0.5) { 0 } else { rng.below(1400) as u32 });
    if rng.chance(0.7) {
        builder = builder.timestamps(rng.next_u64() as u32, rng.next_u64() as u32);
    }
    let packet = builder.build();
    let mut tcp = *packet.tcp_header().expect("a segment");
    if rng.chance(0.2) {
        tcp.options.sack.push(SeqNumber(1), SeqNumber(2));
    }
    if tcp.flags.contains(TcpFlags::SYN) {
        tcp.options.mss = Some(1460);
        tcp.options.window_scale = Some(rng.below(15) as u8);
    }
    let mut packet = paceline_net::Packet::tcp(packet.ip.src, packet.ip.dst, tcp);
    packet.ip.traffic_class = rng.below(256) as u8;
    wire::emit(&packet)
}

fn ethernet(header: &[u16], rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    header.iter().for_each(|word| frame.extend(word.to_be_bytes()));
    frame.extend(rest);
    frame
}

fn ethertype(datagram: &[u8]) -> u16 {
    if datagram[0] >> 4 == 4 { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 }
}

#[test]
fn a_frame_and_the_packet_of_its_datagram_give_the_same_segment() {
    let mut rng = Stream::new(1, "frames");
    for case in 0..2_000 {
        let bytes = datagram(&mut rng);
        let packet = wire::parse(&bytes).expect("an IP datagram");
        let frame = parse(FirstHeader::Ip, &bytes, false, 0).map(|frame| frame.segment);
        assert_eq!(frame, Segment::of(&packet), "seed 1, case {case}");
    }
}

#[test]
fn tags_and_tunnels_lead_to_the_same_segment_with_a_key_of_their_own() {
    let mut rng = Stream::new(2, "frames");
    for _ in 0..200 {
        let inner = datagram(&mut rng);
        let plain = parse(FirstHeader::Ip, &inner, true, 0).expect("TCP");
        let kind = ethertype(&inner);
        let ppp = if kind == ETHERTYPE_IPV4 { PPP_IPV4 } else { PPP_IPV6 };
        let frames = [
            (ethernet(&[kind], &inner), [0, 0], 0),
            (ethernet(&[0x8100, 0x2005, kind], &inner), [5, 0], 0),
            (ethernet(&[0x88a8, 7, 0x8100, 9, kind], &inner), [7, 9], 0),
            (ethernet(&[0x8864, 0x1100, 77, inner.len() as u16 + 2, ppp], &inner), [0, 0], 78),
        ];
        for (bytes, vlan, session) in frames {
            let frame = parse(FirstHeader::Ethernet, &bytes, false, 0).expect("TCP");
            assert_eq!(frame.segment, plain.segment);
            assert_eq!(frame.key, FrameKey { vlan, session, ..plain.key });
        }
    }
}

/// A G-PDU with a PDU session container (TS 38.415) between two IPv4 ends.
fn gtp_frame(ends: [u8; 2], teid: u8, inner: &[u8]) -> Vec<u8> {
    let gtp = [0x34, 255, 0, 0, 0, 0, 0, teid, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
    let len = 20 + 8 + gtp.len() + inner.len();
    let mut bytes = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 64, 17, 0, 0];
    bytes.extend([10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
    bytes.extend([0x08, 0x68, 0x08, 0x68, 0, 0, 0, 0]);
    bytes.extend(gtp);
    bytes.extend(inner);
    bytes
}

#[test]
fn a_tunnel_is_named_by_its_end_and_teid() {
    let mut rng = Stream::new(3, "frames");
    let inner = datagram(&mut rng);
    let plain = parse(FirstHeader::Ip, &inner, false, 0).expect("TCP");
    let there = parse(FirstHeader::Ip, &gtp_frame([1, 2], 9, &inner), true, 0).expect("TCP in GTP-U");
    assert_eq!((there.segment, there.key), (plain.segment, plain.key));
    let mut end = [0; 16];
    end[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 2]);
    assert_eq!(there.tunnel, Tunnel { end, teid: 9 });
    assert_eq!(plain.tunnel, Tunnel::default());
    assert_eq!(parse(FirstHeader::Ip, &gtp_frame([1, 2], 0, &inner), true, 0), None, "user data has a TEID");
    assert_eq!(
        parse(FirstHeader::Ip, &gtp_frame([1, 2], 9, &inner), false, 0),
        None,
        "GTP-U only on request"
    );
}

#[test]
fn no_bytes_and_no_truncation_panic() {
    let mut rng = Stream::new(4, "frames");
    for _ in 0..20_000 {
        let mut bytes = datagram(&mut rng);
        for _ in 0..rng.below(6) {
            let at = rng.below(bytes.len().min(80) as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        let _ = parse(FirstHeader::Ip, &bytes, true, 0);
        let _ = parse(FirstHeader::Ethernet, &bytes, true, 0);
    }
}
