//! The two parsers of datagrams agree: `bpf/datagram.h` in C, by which the kernel program decides what a
//! worker gets, and `wire`, `fragments` and `tunnel` of the crate `net`. The C form is compiled for the host.
//! Without a C compiler the tests say so and do nothing, but fail where `PACELINE_REQUIRE_PRIVILEGED` is set.

use host::{Kind, findings};
use paceline_net::fragments::{fragment, is_fragment};
use paceline_net::test_support::{extended, segment};
use paceline_net::{Offload, Packet, Stream, wire};
use std::net::IpAddr;

mod host;
mod tunnel;

/// Random datagrams.
const INPUTS: u64 = 30_000;

fn plain(v6: bool, payload: usize) -> Packet {
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    let own = segment().ports(443, 40_000).seq(0x8000_0001);
    let own = if v6 { own.between(address("2001:db8::1"), address("2001:db8::2")) } else { own };
    own.datagram(&vec![7; payload])
}
fn fragments(mut whole: Packet, size: u16) -> Vec<Packet> {
    whole.offload = Offload { segment: size, reassembled: true, ..Offload::default() };
    fragment(whole)
}

#[test]
fn segments_and_fragments_are_found_behind_options_and_extension_headers() {
    let (v4, v6) = (plain(false, 1400), plain(true, 1400));
    let router_alert = extended(&v4, 0, &[148, 4, 0, 0]);
    let padding = extended(&v6, 60, &[0, 0, 1, 4, 0, 0, 0, 0]);
    let routed = [&[0, 2][..], &[0; 22]].concat();
    let routed = extended(&extended(&padding, 43, &routed), 0, &[0; 8]);
    let long = (0..9).fold(v6.clone(), |packet, _| extended(&packet, 60, &[0, 0, 1, 4, 0, 0, 0, 0]));
    let atomic = extended(&v6, 44, &[0, 0, 0, 0, 1, 2, 3, 4]);
    let authenticated = extended(&v6, 51, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    let too_big = |quoted: &Packet, header: &[u8], icmp: &[u8]| {
        [header, icmp, &wire::emit(quoted)[..quoted.ip.plain_len() as usize + 8]].concat()
    };
    let mut v4_icmp = wire::emit(&plain(false, 0))[..20].to_vec();
    (v4_icmp[9], v4_icmp[3]) = (1, 56);
    let mut v6_icmp = wire::emit(&plain(true, 0))[..40].to_vec();
    (v6_icmp[6], v6_icmp[5]) = (58, 56);
    let found = Kind::Segment { ports: [443, 40_000], seq: 0x8000_0001, payload: 1400 };
    let mut table: Vec<(Vec<u8>, Kind)> = [&v4, &v6, &router_alert, &padding, &routed, &atomic]
        .map(|packet| (wire::emit(packet), found))
        .into();
    table.extend([&long, &authenticated].map(|packet| (wire::emit(packet), Kind::Other)));
    table.push((too_big(&v4, &v4_icmp, &[3, 4, 0, 0, 0, 0, 5, 0]), Kind::TooBig));
    table.push((too_big(&v6, &v6_icmp, &[2, 0, 0, 0, 0, 0, 5, 0]), Kind::TooBig));
    table.push((too_big(&v4, &v4_icmp, &[3, 3, 0, 0, 0, 0, 0, 0]), Kind::Other));
    for whole in [&v4, &router_alert, &atomic, &extended(&atomic, 60, &[0, 0, 1, 4, 0, 0, 0, 0])] {
        for (n, part) in fragments(whole.clone(), 600).iter().enumerate() {
            let kind = if n == 0 { Kind::First { ports: [443, 40_000] } } else { Kind::Later };
            table.push((wire::emit(part), kind));
        }
    }
    let datagrams: Vec<Vec<u8>> = table.iter().map(|(bytes, _)| bytes.clone()).collect();
    let Some(kinds) = findings("kinds", &datagrams) else { return };
    assert_eq!(kinds.len(), table.len());
    for ((bytes, expected), kind) in table.iter().zip(kinds) {
        assert_eq!(kind, *expected, "{:02x?}", &bytes[..bytes.len().min(100)]);
    }
}

/// Otherwise the kernel would forward packets of accelerated connections past the worker.
#[test]
fn the_kernel_program_takes_every_segment_and_fragment_that_a_worker_can_read() {
    let mut stream = Stream::new(17, "datagrams");
    let datagrams: Vec<Vec<u8>> = (0..INPUTS).map(|_| random_datagram(&mut stream)).collect();
    let Some(kinds) = findings("random", &datagrams) else { return };
    let (mut segments, mut parts) = (0, 0);
    for (bytes, kind) in datagrams.iter().zip(kinds) {
        let Ok(packet) = wire::parse(bytes) else { continue };
        if let Some(tcp) = packet.tcp_header() {
            let ports = [tcp.src_port, tcp.dst_port];
            let expected = Kind::Segment { ports, seq: tcp.seq.0, payload: tcp.payload_len };
            assert_eq!(kind, expected, "{bytes:02x?}");
            segments += 1;
        } else if is_fragment(&packet) {
            assert!(matches!(kind, Kind::First { .. } | Kind::Later), "{kind:?} {bytes:02x?}");
            parts += 1;
        }
    }
    assert!(segments > INPUTS / 5 && parts > INPUTS / 10, "{segments} segments, {parts} fragments");
}

/// A datagram with up to three options or extension headers, maybe a fragment, with up to two flipped bits.
fn random_datagram(stream: &mut Stream) -> Vec<u8> {
    let v6 = stream.chance(0.5);
    let mut packet = plain(v6, stream.below(100) as usize);
    if stream.chance(0.3) {
        let whole = if v6 { extended(&packet, 44, &[0, 0, 0, 0, 1, 2, 3, 4]) } else { packet };
        let parts = fragments(whole, if v6 { 88 } else { 60 });
        packet = parts[stream.below(parts.len() as u64) as usize].clone();
    }
    for _ in 0..stream.below(4) {
        let number = [43, 60][stream.below(2) as usize];
        let header: &[u8] = if v6 { &[0, 0, 1, 4, 0, 0, 0, 0] } else { &[148, 4, 0, 0] };
        packet = extended(&packet, number, header);
    }
    let mut bytes = wire::emit(&packet);
    for _ in 0..stream.below(3) {
        let bit = stream.below(8 * bytes.len().min(80) as u64) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes
}
