//! Connections of special kinds: opened by the server, short, many, with super-packets, with a retransmitted
//! SYN.

use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, Duration, TcpFlags, TcpOptions};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};

/// FTP in active mode opens such connections.
#[test]
fn connections_opened_by_the_server_are_accelerated() {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let options = bed.syn_options();
    let syn = bed.server_packet(0, SYN, 0, |tcp| tcp.options = options);
    bed.server_sends(syn.clone());
    bed.wait(10);
    let answer = bed.client_packet(0, Some(1), SYN.with(ACK), 0, |tcp| tcp.options = options);
    bed.client_sends(answer.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![syn], vec![answer]));
    bed.echo = [bed.clock; 2];
    let ack = bed.server_packet(1, ACK, 0, |_| ());
    bed.server_sends(ack);
    let end = bed.send(1, 5);
    bed.wait(20);
    assert_eq!((bed.acked(), bed.data().len()), (Some(end), 5));
}

/// Packets may have bypassed the accelerator meanwhile, so handshakes that were seen before count for
/// nothing.
#[test]
fn after_a_cancelled_drain_only_new_connections_are_accelerated() {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    bed.handshake();
    bed.accelerator.drain(bed.now, Duration::from_secs(1));
    bed.wait(5_000);
    bed.accelerator.resume();
    bed.clear();
    let data = bed.server_data(5_001, SEGMENT);
    bed.server_sends(data.clone());
    assert_eq!((bed.taken_by_client(), bed.stats().bypassed(BypassReason::MidFlow)), (vec![data], 1));
    bed.key.dst_port = 2_000;
    (bed.client_next, bed.server_isn, bed.client_isn) = (1, 1 << 20, 1 << 18);
    bed.handshake();
    bed.clear();
    let end = bed.send(1, 5);
    bed.wait(2_000);
    assert_eq!((bed.acked(), bed.accelerator.flow_count()), (Some(end), 1));
}

#[test]
fn thousands_of_short_connections_leave_nothing_behind() {
    let config = AcceleratorConfig { max_openings: 64, max_flows: 8, ..AcceleratorConfig::default() };
    let mut bed = TestBed::new(config);
    for n in 0..3_000u16 {
        bed.key.dst_port = 2_000 + n;
        (bed.client_next, bed.server_isn, bed.client_isn) = (1, u32::from(n) << 20, u32::from(n) << 18);
        bed.handshake();
        let request = bed.client_packet(1, Some(1), ACK, 200, |_| ());
        bed.client_sends(request);
        bed.client_next = 201;
        let end = bed.send(1, 2);
        let last = bed.server_packet(end, FIN, 300, |_| ());
        bed.server_sends(last);
        bed.wait(15);
        bed.ack(end + 301);
        let fin = bed.client_packet(201, Some(end + 301), FIN, 0, |_| ());
        bed.client_sends(fin);
        bed.client_next = 202;
        let ack = bed.server_packet(end + 301, ACK, 0, |_| ());
        bed.server_sends(ack);
        bed.clear();
    }
    assert_eq!((bed.accelerator.flow_count(), bed.accelerator.held(), bed.accelerator.exposure()), (0, 0, 0));
    assert_eq!((bed.stats().flows, bed.stats().flows_ended), (3_000, 3_000));
    assert!(bed.accelerator.opening_count() <= 64);
    bed.wait(10_000);
    assert!(bed.to_client.is_empty() && bed.to_server.is_empty());
}

// keeps: accelerator.checksums
#[test]
fn super_packets_are_accepted_and_sent() {
    let config = AcceleratorConfig { super_packet: Bytes(65_000), ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |_| ());
    bed.clear();
    // At first the rate allows one segment a tick; on a fast path it grows.
    let mut off = 1;
    let mut largest = (0, 0);
    for _ in 0..60 {
        let packet = bed.server_data(off, 60_000);
        bed.accelerator.input(bed.now, Side::Server, packet);
        off += 60_000;
        for _ in 0..10 {
            let now = bed.now;
            if bed.accelerator.next_timer().is_some_and(|at| at <= now) {
                bed.accelerator.handle_timeout(now);
            }
            while let Some(sent) = bed.accelerator.poll_transmit(now) {
                let len = sent.packet.tcp_header().unwrap().payload_len;
                if sent.side == Side::Mobile && len > 0 {
                    assert_eq!(sent.segment > 0, len > SEGMENT, "a super-packet has its segment size");
                    largest = largest.max((len, sent.segment));
                    bed.to_client.push(sent.packet);
                }
            }
            bed.wait(1);
        }
        let have = bed.data().iter().map(|(off, len)| off + u64::from(*len)).max().unwrap_or(1);
        bed.clear();
        bed.ack(have);
    }
    assert!(largest.0 >= 4 * SEGMENT && largest.1 == SEGMENT, "{largest:?}");
    assert_eq!(bed.stats().conflicts, 0);
}

/// A connection whose SYN was sent twice, the second time with fewer options; the answer is to the first.
fn answer_to_first_syn(
    (first, second): (TcpFlags, TcpFlags),
    remove: impl FnOnce(&mut TcpOptions),
    answer: TcpFlags,
) -> TestBed {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let options = bed.syn_options();
    let mut less = options;
    remove(&mut less);
    for (flags, options) in [(first, options), (second, less)] {
        let syn = bed.client_packet(0, None, SYN.with(flags), 0, |tcp| tcp.options = options);
        bed.client_sends(syn);
        bed.wait(1000);
    }
    let syn_ack = bed.server_packet(0, SYN.with(ACK).with(answer), 0, |tcp| tcp.options = options);
    bed.server_sends(syn_ack);
    bed.wait(10);
    bed.echo = [bed.clock; 2];
    bed.ack(1);
    bed.clear();
    bed
}

/// RFC 3168, section 6.1.1.1, and RFC 9768, section 3.1.4: the second SYN may lack ECN while the answer to
/// the first is in flight.
// keeps: accelerator.handshake
#[test]
fn an_answer_may_be_to_the_first_transmission_of_the_syn() {
    let none = TcpFlags(0);
    let classic = TcpFlags::ECE.with(TcpFlags::CWR);
    let accurate = classic.with(TcpFlags::AE);
    for offers in [(classic, none), (accurate, classic), (accurate, none)] {
        let mut bed = answer_to_first_syn(offers, |_| (), TcpFlags::ECE);
        let marked = patched_valid(&bed.server_data(1, SEGMENT), |raw| raw[1] = 3);
        bed.server_sends(marked);
        let echoed = bed.to_server.iter().all(|packet| header(packet).flags.contains(TcpFlags::ECE));
        assert!(echoed && !bed.to_server.is_empty(), "classic ECN was negotiated");
        assert_eq!(bed.to_client.last().map(|packet| packet.ip.ecn()), Some(2));
    }
    // Accurate ECN with each of its answers, and any second SYN.
    let (cwr, ece, ae) = (TcpFlags::CWR, TcpFlags::ECE, TcpFlags::AE);
    for answer in [cwr, cwr.with(ece), ae, ae.with(cwr)] {
        for second in [classic, none] {
            let mut bed = answer_to_first_syn((accurate, second), |_| (), answer);
            bed.send(1, 1);
            assert_eq!((bed.accelerator.flow_count(), bed.to_server.len()), (0, 0), "{answer:?}");
            assert_eq!(bed.stats().bypassed(BypassReason::AccurateEcn), 1);
        }
    }
    // Options that only the first SYN offered.
    let mut bed = answer_to_first_syn((none, none), |less| *less = TcpOptions::default(), none);
    let end = bed.send(1, 3);
    bed.wait(20);
    let early = header(bed.to_server.last().expect("acknowledged early"));
    assert!(early.options.timestamps.is_some() && u64::from(early.window) << bed.shift > 500_000);
    assert_eq!((bed.acked(), bed.data().len()), (Some(end), 3));
    bed.ack(end);
    assert_eq!((bed.exposure(), bed.stats().invalid), (0, 0));
}

/// With enough connections for prefetching; some packets belong to no connection, and some exceed the batch.
#[test]
fn prefetching_among_thousands_of_connections_changes_nothing() {
    /// Chosen: more than the 5000 from which prefetching begins.
    const CONNECTIONS: u16 = 5_100;
    let config = AcceleratorConfig { max_flows_per_device: 10_000, ..AcceleratorConfig::default() };
    let mut bed = TestBed::new(config);
    for n in 0..CONNECTIONS {
        bed.key.dst_port = 2_000 + n;
        bed.client_next = 1;
        bed.handshake();
        let end = bed.send(1, 1);
        bed.wait(2);
        bed.ack(end);
        bed.clear();
    }
    assert_eq!(bed.accelerator.flow_count(), usize::from(CONNECTIONS));
    let next = 1 + u64::from(SEGMENT);
    // The last hundred ports belong to no connection.
    let ports = (0..CONNECTIONS + 100).step_by(50).map(|n| 2_000 + n);
    let batch: Vec<_> = ports
        .map(|port| {
            bed.key.dst_port = port;
            bed.server_data(next, SEGMENT)
        })
        .collect();
    assert_eq!(bed.accelerator.prefetch(Side::Server, &batch), 64);
    assert_eq!(bed.accelerator.prefetch(Side::Server, batch.iter().rev()), 62, "two belong to no connection");
    for packet in &batch {
        bed.server_sends(packet.clone());
    }
    bed.wait(1_000);
    let acks: Vec<_> = bed.taken_by_server().iter().map(|ack| header(ack).ack).collect();
    assert_eq!(acks.len(), batch.len() - 2, "each connection's server is answered");
    assert_eq!(bed.stats().bypassed(BypassReason::MidFlow), 2);
    let acks = [2_000, 2_050, 1_000].map(|port| {
        bed.key.dst_port = port;
        bed.client_packet(1, Some(next + u64::from(SEGMENT)), ACK, 0, |_| ())
    });
    assert_eq!(bed.accelerator.prefetch(Side::Mobile, &acks), 2);
    let few = TestBed::open();
    assert_eq!(
        few.accelerator.prefetch(Side::Server, &[few.server_data(1, SEGMENT)]),
        0,
        "too few connections"
    );
}
