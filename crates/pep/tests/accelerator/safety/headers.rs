//! Safety on live traffic: ECN marks, header fields, packets of other protocols. Each test names its row of
//! the accelerator's table of hazards.

use crate::accelerator::test_bed::*;
use paceline_net::rewrite::Unparsed;
use paceline_net::{Duration, Packet, TcpFlags, TcpOptions, wire};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};

/// Re-ACK; of conflicting bytes keep the first, count.
// keeps: accelerator.server-retransmits
#[test]
fn retransmitted_bytes_are_acknowledged_and_the_first_copy_is_kept() {
    let mut bed = TestBed::open_cleared(|_| ());
    bed.send(1, 3);
    bed.clear();
    let again = bed.server_data(1001, SEGMENT);
    bed.server_sends(again.clone());
    assert_eq!(bed.acked(), Some(3001));
    assert_eq!((bed.stats().server_retransmissions, bed.stats().conflicts), (1, 0));
    let other = patched_valid(&again, |raw| *raw.last_mut().unwrap() ^= 1);
    bed.server_sends(other);
    assert_eq!(bed.stats().conflicts, 1);
    bed.wait(2_000);
    assert!(bed.data().len() >= 3, "`data` verifies the bytes of the first copy");
}

/// CE from the server side is echoed here; ECE from the client is consumed and answered
/// with CWR.
// keeps: accelerator.ecn
#[test]
fn congestion_marks_are_answered_on_their_own_segment() {
    let mut bed = TestBed::open_cleared(|bed| bed.ecn = true);
    let ce = patched_valid(&bed.server_data(1, SEGMENT), |raw| raw[1] |= 3);
    bed.server_sends(ce);
    let echoes =
        |bed: &TestBed| bed.to_server.iter().map(header).filter(|t| t.flags.contains(TcpFlags::ECE)).count();
    assert_eq!(echoes(&bed), 1);
    assert_eq!(bed.to_client.last().map(|packet| packet.ip.ecn()), Some(2), "as the server sent it");
    bed.send(1001, 1);
    assert_eq!(echoes(&bed), 2, "until the server answers with CWR");
    let answer = bed.server_packet(2001, ACK.with(TcpFlags::CWR), SEGMENT, |_| ());
    bed.server_sends(answer);
    bed.send(3001, 1);
    assert_eq!(echoes(&bed), 2);
    bed.wait(20);
    bed.clear();
    for off in [1001, 2001] {
        let echo = bed.client_packet(1, Some(off), ACK.with(TcpFlags::ECE), 100, |_| ());
        bed.client_sends(echo);
        assert_eq!(echoes(&bed), 0, "consumed, while the data is forwarded");
        bed.client_next = 101;
    }
    bed.send(4001, 4);
    bed.wait(20);
    let answers = bed.to_client.iter().map(header).filter(|tcp| tcp.flags.contains(TcpFlags::CWR)).count();
    assert_eq!(answers, 1, "once a flight");
}

/// Keepalives pass end to end; a silent client ends early ACKs.
// keeps: accelerator.keepalive
#[test]
fn keepalives_pass_and_a_silent_client_stops_early_acks() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 2);
    bed.wait(5);
    bed.ack(end);
    bed.clear();
    let keepalive = bed.server_packet(end - 1, ACK, 0, |_| ());
    bed.server_sends(keepalive.clone());
    assert_eq!((bed.taken_by_client(), bed.to_server.len()), (vec![keepalive], 0));
    bed.ack(end);
    assert_eq!(bed.acked(), Some(end), "the client's answer is forwarded");
    bed.clear();
    let probe = bed.client_packet(0, Some(end), ACK, 0, |_| ());
    bed.client_sends(probe);
    assert_eq!(bed.to_server.len(), 1, "the client's keepalive passes as well");
    bed.clear();
    let off = bed.send(end, 4);
    assert_eq!(bed.acked(), Some(off));
    bed.wait(3_500);
    bed.clear();
    bed.send(off, 2);
    assert_eq!(bed.acked(), None);
    bed.ack(off);
    assert_eq!(bed.acked(), Some(off + 2000), "the client has responded");
}

/// The urgent flag and pointer stay; no early ACK crosses urgent data.
// keeps: accelerator.urgent
#[test]
fn urgent_data_keeps_its_pointer_and_waits_for_the_client() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 2);
    let tcp = header(&bed.server_packet(end, ACK.with(TcpFlags::URG), 500, |_| ()));
    let urgent = datagram(bed.key, tcp, Unparsed { urgent: 7, ..Unparsed::default() }, &payload(end, 500));
    bed.server_sends(urgent);
    bed.send(end + 500, 2);
    bed.wait(20);
    assert_eq!(bed.acked(), Some(end), "neither the urgent data nor data after it");
    let sent =
        bed.to_client.iter().find(|packet| header(packet).flags.contains(TcpFlags::URG)).expect("it passes");
    assert_eq!((bed.offset(header(sent).seq), Unparsed::of(sent).urgent), (end, 7));
    bed.ack(end + 500);
    assert_eq!(bed.acked(), Some(end + 2500));
}

/// Validate packet-too-big, re-segment stored data, forward the message.
// keeps: accelerator.mtu
#[test]
fn packet_too_big_is_validated_obeyed_and_forwarded() {
    let icmp = |bed: &TestBed, off: u64, mtu: u16| {
        let quoted = bytes(&bed.server_data(off, SEGMENT));
        let mut raw = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 198, 18, 0, 9, 198, 19, 0, 1];
        raw.extend_from_slice(&[3, 4, 0, 0, 0, 0, (mtu >> 8) as u8, mtu as u8]);
        raw.extend_from_slice(&quoted[..28]);
        wire::parse(&raw).expect("a datagram")
    };
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 3);
    bed.wait(20);
    bed.clear();
    let forged = icmp(&bed, end + 100_000, 600);
    bed.client_sends(forged.clone());
    bed.wait(3);
    assert_eq!(
        (bed.taken_by_server(), bed.taken_by_client()),
        (vec![forged], vec![]),
        "an unknown quote: only forwarded"
    );
    let message = icmp(&bed, 1, 600);
    bed.client_sends(message.clone());
    bed.wait(20);
    assert_eq!(bed.taken_by_server(), [message]);
    let data = bed.data();
    assert!(data.iter().all(|(_, len)| *len <= 600 - 52), "{data:?}");
    assert_eq!(data.iter().map(|(_, len)| u64::from(*len)).sum::<u64>(), end - 1, "all of it is sent again");
}

/// Without a message: an MTU black hole is detected, and an outage is not mistaken for one.
// keeps: accelerator.mtu
#[test]
fn an_mtu_black_hole_is_detected() {
    // Segments of up to `fits` bytes arrive after 20 ms, once an outage has ended.
    let transfer = |fits: u32, outage_ms: u64| {
        let mut bed = TestBed::open_cleared(|_| ());
        let start = bed.now;
        let (end, mut has) = (bed.send(1, 40), 1);
        let mut got = vec![false; end as usize];
        while has < end {
            assert!(bed.now.since(start) < Duration::from_secs(20), "at {has} of {end}");
            let sent: Vec<(u64, u32)> = bed.data();
            bed.clear();
            bed.wait(20);
            let arrives = bed.now.since(start) > Duration::from_millis(outage_ms);
            for (off, len) in sent.into_iter().filter(|(_, len)| *len <= fits && arrives) {
                got[off as usize..(off + u64::from(len)) as usize].fill(true);
                has = (has..end).find(|at| !got[*at as usize]).unwrap_or(end);
                bed.ack(has);
            }
        }
        (bed.now.since(start), bed.stats().black_holes, bed)
    };
    let (took, detected, mut bed) = transfer(700, 0);
    assert!(detected == 1 && took < Duration::from_secs(5), "{detected} after {took:?}");
    let start = bed.now;
    // The device's next connection has the limit from the start; one that begins ten minutes later has not.
    for (minutes, longest) in [(0, 512..=700), (9, 512..=700), (10, SEGMENT..=SEGMENT)] {
        bed.now = start + Duration::from_secs(60 * minutes);
        bed.key.dst_port += 1;
        bed.handshake();
        bed.clear();
        let end = bed.send(1, 3);
        bed.wait(20);
        let sent = bed.data().iter().map(|(_, len)| *len).max().expect("it is sent");
        assert!(longest.contains(&sent), "{sent} bytes after {minutes} minutes");
        bed.ack(end);
    }
    for outage_ms in (0..10_000).step_by(700) {
        assert_eq!(transfer(SEGMENT, outage_ms).1, 0, "an outage of {outage_ms} ms");
    }
}

/// Fields of the IP header are those of the original.
// keeps: accelerator.header-fields
#[test]
fn header_fields_are_those_of_the_original() {
    let mut bed = TestBed::open_cleared(|_| ());
    let marked = patched_valid(&bed.server_data(1, SEGMENT), |raw| (raw[1], raw[8]) = (0xb8, 33));
    bed.server_sends(marked);
    let sent = &bed.to_client[0];
    assert_eq!((sent.ip.traffic_class, sent.ip.hop_limit), (0xb8, 33));
    let request =
        patched_valid(&bed.client_packet(1, Some(1), ACK, 10, |_| ()), |raw| (raw[1], raw[8]) = (0x28, 44));
    bed.client_sends(request);
    bed.clear();
    bed.send(1001, 1);
    let ack = bed.to_server.last().unwrap();
    assert_eq!(
        (ack.ip.traffic_class, ack.ip.hop_limit),
        (0x28, 44),
        "ACKs from here have the client's fields"
    );

    // A retransmission is not ECN-capable (RFC 3168, section 6.1.5); a probe has the class of the data.
    let mut bed = TestBed::open_cleared(|bed| bed.ecn = true);
    let marked = patched_valid(&bed.server_data(1, SEGMENT), |raw| raw[1] = 0xb8 | 2);
    bed.server_sends(marked);
    bed.wait(5000);
    let classes: Vec<u8> = bed.to_client.iter().map(|packet| packet.ip.traffic_class).collect();
    assert!(classes.len() > 1, "it was sent again: {classes:?}");
    assert!(classes[0] == 0xba && classes[1..].iter().all(|class| *class == 0xb8), "{classes:?}");
    let unfragmented = |packet: &Packet| wire::emit(packet)[6] == 0x40;
    assert!(bed.to_client.iter().chain(&bed.to_server).all(unfragmented), "DF, as the ends have it");
    let mut free = TestBed::open_cleared(|_| ());
    let without_df = patched_valid(&free.server_data(1, SEGMENT), |raw| raw[6] = 0);
    free.server_sends(without_df);
    free.wait(3000);
    assert!(free.to_client.len() > 1 && !free.to_client.iter().any(unfragmented), "as the server has it");
    let id = |packet: &Packet| u16::from_be_bytes([wire::emit(packet)[4], wire::emit(packet)[5]]);
    let ids: Vec<u16> = bed.to_client.iter().map(id).collect();
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)), "{ids:?}");

    let mut bed = TestBed::new(AcceleratorConfig::default()).v6();
    bed.handshake();
    bed.clear();
    let tcp = header(&bed.server_data(1, SEGMENT));
    let label = Unparsed { flow_label: 0x54321, ..Unparsed::default() };
    let labelled = datagram(bed.key, tcp, label, &payload(1, SEGMENT));
    bed.server_sends(labelled);
    assert_eq!(Unparsed::of(&bed.to_client[0]), label);
}

/// Never acknowledge a corrupt segment; re-segment what exceeds the MTU.
// keeps: accelerator.checksums, accelerator.contiguous
#[test]
fn corrupt_segments_are_ignored_and_super_packets_are_cut() {
    let mut bed = TestBed::open_cleared(|_| ());
    let corrupt = patched(&bed.server_data(1, SEGMENT), |raw| raw[100] ^= 4);
    bed.server_sends(corrupt.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![corrupt], vec![]));
    assert_eq!(bed.stats().flows, 0, "no connection is admitted for it");
    bed.send(1, 1);
    assert_eq!(bed.stats().flows, 1, "the next, valid segment is admitted");
    bed.clear();
    let corrupt = patched(&bed.server_data(1001, SEGMENT), |raw| raw[100] ^= 4);
    bed.server_sends(corrupt.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![corrupt], vec![]));
    assert_eq!(bed.stats().corrupt, 2);
    let acked = patched(&bed.client_packet(1, Some(1001), ACK, 0, |_| ()), |raw| raw[30] ^= 1);
    bed.client_sends(acked.clone());
    assert_eq!((bed.taken_by_server(), bed.exposure()), (vec![acked], 1000), "a corrupt ACK is no ACK");
    let aggregate = bed.server_data(1001, 10_500);
    bed.server_sends(aggregate);
    bed.wait(30);
    assert_eq!(bed.acked(), Some(11_501), "one ACK for the super-packet");
    let data = bed.data();
    assert_eq!(data.iter().map(|(_, len)| *len).max(), Some(SEGMENT));
    assert_eq!(data.iter().map(|(_, len)| u64::from(*len)).sum::<u64>(), 10_500);
}

/// N6 or SGi is the recommended place; tunnelled packets, echo and end markers pass.
// keeps: accelerator.gtp
#[test]
fn tunnelled_packets_pass() {
    let mut bed = TestBed::open_cleared(|_| ());
    for message in [255u8, 1, 254] {
        let inner = bytes(&bed.server_data(1, 200));
        let mut raw = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let udp_len = (8 + 8 + inner.len()) as u16;
        raw.extend_from_slice(&[0x08, 0x68, 0x08, 0x68]); // port 2152
        raw.extend_from_slice(&udp_len.to_be_bytes());
        raw.extend_from_slice(&[0, 0, 0x30, message]);
        raw.extend_from_slice(&(inner.len() as u16).to_be_bytes());
        raw.extend_from_slice(&[0, 0, 0, 9]);
        raw.extend_from_slice(&inner);
        let len = raw.len() as u16;
        raw[2..4].copy_from_slice(&len.to_be_bytes());
        let packet: Packet = wire::parse(&raw).expect("a datagram");
        bed.server_sends(packet.clone());
        bed.client_sends(packet.clone());
        assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![packet.clone()], vec![packet]));
    }
}

/// Parsers are bounded, and devices have caps.
// keeps: accelerator.hostile
#[test]
fn hostile_packets_do_no_harm_and_devices_have_caps() {
    let config = AcceleratorConfig { max_flows_per_device: 2, ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |_| ());
    bed.send(1, 3);
    for port in [41_000, 41_001, 41_002] {
        bed.key.dst_port = port;
        bed.handshake();
        bed.send(1, 1);
    }
    assert_eq!((bed.accelerator.flow_count(), bed.stats().bypassed(BypassReason::DeviceFull)), (2, 2));
    bed.key.dst_port = 40_000;
    // Each bit of a segment's headers flipped, with a valid checksum.
    let data = bed.server_data(3001, 60);
    let ack = bed.client_packet(1, Some(1001), ACK, 0, |_| ());
    for (side, packet) in [(Side::Server, data), (Side::Mobile, ack)] {
        for bit in 0..8 * (bytes(&packet).len().min(52) as u32) {
            let mut raw = bytes(&packet);
            raw[bit as usize / 8] ^= 1 << (bit % 8);
            if let Ok(flipped) = wire::parse(&raw) {
                let flipped = if flipped.tcp_header().is_some() && !flipped.ip.special {
                    patched_valid(&packet, |raw| raw[bit as usize / 8] ^= 1 << (bit % 8))
                } else {
                    flipped
                };
                bed.input(side, flipped);
            }
        }
    }
    assert!(bed.accelerator.held() < 100_000);
}

/// A client with a larger MSS than the server's receives segments of the server's size.
/// Nothing shows that the path allows more.
// keeps: accelerator.checksums
#[test]
fn no_segment_is_longer_than_the_servers_own() {
    let mut bed = TestBed::open_cleared(|bed| bed.client_mss_excess = 7_500);
    bed.send(1, 1);
    bed.clear();
    let aggregate = bed.server_data(1001, 10_500);
    bed.server_sends(aggregate);
    bed.wait(30);
    assert_eq!(bed.data().iter().map(|(_, len)| *len).max(), Some(SEGMENT));
}

/// No segment exceeds the MSS that the client announced (RFC 9293, section 3.7.1). A
/// connection with smaller segments than 64 bytes passes: each would cost a record and a packet.
// keeps: accelerator.mtu
#[test]
fn any_mss_of_the_client_is_honoured() {
    for mss in (1..=76).chain([536]) {
        for timestamps in [true, false] {
            let mut bed = TestBed::new(AcceleratorConfig::default());
            bed.timestamps = timestamps;
            let own = bed.syn_options();
            let options = TcpOptions { mss: Some(mss), ..own };
            let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
            bed.client_sends(syn);
            let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = own);
            bed.server_sends(syn_ack);
            bed.ack(1);
            bed.clear();
            let segment = u32::from(mss).saturating_sub(if timestamps { 12 } else { 0 });
            let sent = bed.server_data(1, 600);
            bed.server_sends(sent.clone());
            bed.wait(20);
            let small = segment < 64;
            assert_eq!(bed.stats().bypassed(BypassReason::SmallSegments), u64::from(small), "MSS {mss}");
            if small {
                assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![sent], vec![]));
            } else {
                assert!(bed.data().iter().all(|(_, len)| *len <= segment), "MSS {mss}: {:?}", bed.data());
                assert_eq!(bed.data().iter().map(|(_, len)| len).sum::<u32>(), 600, "MSS {mss}");
            }
        }
    }
}
