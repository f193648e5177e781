//! Segments of an accelerated connection are taken in all forms that the kernel forwards: with options, with
//! extension headers, in fragments. In particular the server sends none of them twice.

use crate::accelerator::test_bed::*;
use paceline_net::fragments::{fragment, is_fragment};
use paceline_net::rewrite::{checksum_is_right, transport_at};
use paceline_net::{Node, Output, Packet, TcpHeader};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};

/// Bytes of the longest fragment in these tests.
const FRAGMENT: u16 = 600;

/// Each third packet has an option or extension header, or arrives in fragments.
fn forms(fragments: bool, n: u16, packet: &Packet) -> Vec<Packet> {
    match (n % 3, fragments) {
        (2, false) => vec![with_option(packet)],
        (2, true) => fragmented(packet, FRAGMENT, n),
        _ => vec![packet.clone()],
    }
}

fn for_each_kind(test: impl Fn(TestBed, bool)) {
    for (v6, fragments) in [(false, false), (false, true), (true, false), (true, true)] {
        let bed = TestBed::new(AcceleratorConfig::default());
        let mut bed = if v6 { bed.v6() } else { bed };
        bed.handshake();
        bed.clear();
        test(bed, fragments);
    }
}

/// Segments of the server in these forms are stored.
// keeps: accelerator.fragments
#[test]
fn options_extension_headers_and_fragments_of_the_server_are_stored() {
    for_each_kind(|mut bed, fragments| {
        let segments = 30;
        for n in 0..segments {
            let packet = bed.server_data(1 + u64::from(n) * 1000, SEGMENT);
            for part in forms(fragments, n, &packet) {
                bed.server_sends(part);
            }
            assert_eq!(bed.acked(), Some(1 + 1000 * (u64::from(n) + 1)), "acknowledged at once");
        }
        let gaps = bed.to_server.iter().map(header).filter(|tcp| !tcp.options.sack.is_empty()).count();
        assert_eq!((gaps, bed.stats().server_retransmissions, bed.stats().corrupt), (0, 0, 0));
        for _ in 0..segments {
            bed.wait(20);
            let end = bed.data().iter().map(|(off, len)| off + u64::from(*len)).max();
            bed.ack(end.unwrap());
        }
        let sent: u64 = bed.data().iter().map(|(_, len)| u64::from(*len)).sum();
        assert_eq!(sent, 1000 * u64::from(segments), "`data` verifies the bytes");
        assert!(bed.to_client.iter().all(|packet| !packet.ip.special));
        assert_eq!((bed.exposure(), bed.stats().retransmissions), (0, 0));
    });
}

/// Uploads in these forms keep them.
// keeps: accelerator.fragments
#[test]
fn uploads_with_options_extension_headers_and_fragments_keep_them_and_have_the_new_acknowledgment() {
    for_each_kind(|mut bed, fragments| {
        let end = bed.send(1, 3);
        bed.clear();
        for n in 0..9 {
            // The client has acknowledged less than the accelerator.
            let packet = bed.client_packet(1 + n * 1000, Some(1), ACK, SEGMENT, |_| ());
            let arrived = forms(fragments, n as u16, &packet);
            arrived.iter().for_each(|part| bed.client_sends(part.clone()));
            bed.client_next += SEGMENT;
            let forwarded = bed.taken_by_server().pop().expect("data is forwarded");
            assert!(checksum_is_right(&forwarded));
            let tcp = header(&forwarded);
            assert_eq!((tcp.seq, bed.offset(tcp.ack)), (header(&packet).seq, end));
            assert_eq!(body(&forwarded), body(&packet));
            let left = fragment(forwarded);
            let lengths = |parts: &[Packet]| parts.iter().map(|part| part.len).collect::<Vec<_>>();
            assert_eq!(lengths(&left), lengths(&arrived));
            let kept = |packet: &Packet| bytes(packet)[20..transport_at(packet)].to_vec();
            assert_eq!(kept(&left[0]), kept(&arrived[0]));
        }
    });
}

#[test]
fn as_a_node_the_accelerator_sends_a_forwarded_datagram_in_fragments() {
    let mut bed = TestBed::open_cleared(|_| ());
    let packet = bed.client_packet(1, Some(1), ACK, SEGMENT, |_| ());
    let node: &mut dyn Node = &mut bed.accelerator;
    for part in fragmented(&packet, FRAGMENT, 7) {
        node.handle_packet(bed.now, Side::Mobile.port(), part);
    }
    let sent: Vec<Output> = std::iter::from_fn(|| node.poll_output(bed.now)).collect();
    let is_part = |output: &Output| {
        matches!(output, Output::Transmit(port, part)
            if *port == Side::Server.port() && is_fragment(part) && part.len <= FRAGMENT.into())
    };
    assert!(sent.len() == 2 && sent.iter().all(is_part), "{sent:?}");
}

#[test]
fn acknowledgments_of_the_client_with_options_or_in_fragments_are_taken() {
    for_each_kind(|mut bed, fragments| {
        bed.send(1, 3);
        bed.wait(20);
        bed.clear();
        let ack = bed.client_packet(1, Some(3001), ACK, 0, |_| ());
        let parts = if fragments { fragmented(&ack, 64, 1) } else { vec![with_option(&ack)] };
        parts.into_iter().for_each(|part| bed.client_sends(part));
        assert_eq!((bed.exposure(), bed.to_server.len()), (0, 0));
    });
}

#[test]
fn a_pure_acknowledgment_of_the_server_keeps_its_options() {
    for_each_kind(|mut bed, fragments| {
        if fragments {
            return;
        }
        let upload = bed.client_packet(1, Some(1), ACK, SEGMENT, |_| ());
        bed.client_sends(upload);
        bed.client_next += SEGMENT;
        bed.send(1, 3);
        bed.clear();
        let ack = with_option(&bed.server_packet(3001, ACK, 0, |_| ()));
        bed.server_sends(ack.clone());
        let forwarded = bed.taken_by_client().pop().expect("it is forwarded");
        assert!(checksum_is_right(&forwarded));
        assert_eq!(forwarded.ip, ack.ip);
        assert_eq!(header(&forwarded), TcpHeader { seq: header(&forwarded).seq, ..header(&ack) });
    });
}

#[test]
fn fragments_of_other_connections_pass_unchanged() {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    for (side, packet) in
        [(Side::Server, bed.server_data(1, SEGMENT)), (Side::Mobile, bed.server_data(1, SEGMENT))]
    {
        let parts = fragmented(&packet, FRAGMENT, 7);
        for part in &parts {
            bed.input(side, part.clone());
        }
        let passed = if side == Side::Server { bed.taken_by_client() } else { bed.taken_by_server() };
        assert_eq!(passed, parts);
    }
}

/// Fragments of an incomplete datagram pass after a while.
// keeps: accelerator.fragments
#[test]
fn fragments_of_an_incomplete_datagram_pass_after_a_while() {
    let mut bed = TestBed::open_cleared(|_| ());
    let parts = fragmented(&bed.server_data(1, SEGMENT), FRAGMENT, 7);
    bed.server_sends(parts[0].clone());
    assert!(bed.taken_by_client().is_empty());
    bed.wait(200);
    assert_eq!(bed.taken_by_client(), parts[..1]);
}

#[test]
fn a_client_that_has_data_which_bypassed_the_accelerator_is_detached() {
    let mut bed = TestBed::open_cleared(|_| ());
    bed.send(1, 1);
    bed.wait(5);
    bed.ack(1001);
    let beyond = bed.client_packet(1, Some(2001), ACK, 0, |_| ());
    bed.clear();
    bed.client_sends(beyond.clone());
    assert_eq!((bed.taken_by_server(), bed.accelerator.flow_count()), (vec![beyond], 0));
}

/// These connections pass.
// keeps: accelerator.fragments
#[test]
fn a_handshake_with_an_extension_header_keeps_its_connection_from_being_accelerated() {
    let mut bed = TestBed::new(AcceleratorConfig::default()).v6();
    let options = bed.syn_options();
    let syn = with_option(&bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options));
    assert!(syn.ip.special);
    bed.client_sends(syn);
    assert_eq!(bed.stats().bypassed(BypassReason::SpecialIp), 1);
}
