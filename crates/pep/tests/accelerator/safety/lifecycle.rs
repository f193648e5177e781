//! Safety on live traffic: how connections begin and end, crashes and overload. Each test names its row of
//! the accelerator's table of hazards.

use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, ForeignOptions, SeqNumber, TcpFlags, TcpHeader};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, BypassReason, Side};

/// Handshakes are never answered or altered; both sides are learned from the passing SYN pair.
// keeps: accelerator.handshake
#[test]
fn handshake_passes_untouched_and_is_learned() {
    for v6 in [false, true] {
        let mut bed = TestBed::new(AcceleratorConfig::default());
        bed = if v6 { bed.v6() } else { bed };
        let options = bed.syn_options();
        let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
        bed.client_sends(syn.clone());
        assert_eq!((bed.taken_by_server(), bed.taken_by_client()), (vec![syn], vec![]));
        let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
        bed.server_sends(syn_ack.clone());
        assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![syn_ack], vec![]));
        let ack = bed.client_packet(1, Some(1), ACK, 0, |_| ());
        bed.client_sends(ack.clone());
        assert_eq!((bed.taken_by_server(), bed.taken_by_client()), (vec![ack], vec![]));
        // The early ACK and the client's segments show the learned timestamps, window scale and segment size.
        let data = bed.server_data(1, 3 * SEGMENT);
        bed.server_sends(data);
        bed.wait(15);
        let early = header(&bed.to_server[0]);
        assert!(early.options.timestamps.is_some());
        assert_eq!(bed.acked(), Some(1 + 3 * u64::from(SEGMENT)));
        assert!(u64::from(early.window) << bed.shift > 500_000, "the accelerator's own buffer, scaled");
        assert_eq!(bed.data(), [(1, SEGMENT), (1001, SEGMENT), (2001, SEGMENT)]);
    }
}

/// These connections pass.
// keeps: accelerator.mid-flow
#[test]
fn mid_flow_simultaneous_open_and_one_sided_pass() {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let data = bed.server_data(5001, SEGMENT);
    bed.server_sends(data.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![data], vec![]));
    assert_eq!(bed.stats().bypassed(BypassReason::MidFlow), 1);

    let mut bed = TestBed::new(AcceleratorConfig::default());
    let options = bed.syn_options();
    let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
    bed.client_sends(syn);
    let syn = bed.server_packet(0, SYN, 0, |tcp| tcp.options = options);
    bed.server_sends(syn);
    assert_eq!(bed.stats().bypassed(BypassReason::SimultaneousOpen), 1);
    let end = bed.send(1, 2);
    assert_eq!((bed.data().len(), bed.acked(), end), (2, Some(bed.offset(SeqNumber(0))), 2001));
    assert_eq!(bed.accelerator.flow_count(), 0);

    // The client's packets go another way: its SYN and ACK are never seen.
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
    bed.server_sends(syn_ack);
    bed.send(1, 2);
    assert!(bed.to_server.is_empty());
    assert_eq!(bed.stats().bypassed(BypassReason::OneSided), 1);
    // The server's packets go another way, as behind this machine's own address translation. It is counted
    // once, and nothing is changed.
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
    bed.client_sends(syn);
    bed.clear();
    for n in 0..3 {
        let request = bed.client_packet(1 + 10 * n, Some(1), ACK, 10, |_| ());
        bed.client_sends(request.clone());
        assert_eq!((bed.taken_by_server(), bed.taken_by_client()), (vec![request], vec![]));
    }
    assert_eq!(bed.stats().bypassed(BypassReason::OneSided), 1);
    // Only the ACK is never seen.
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
    bed.client_sends(syn);
    let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
    bed.server_sends(syn_ack);
    bed.clear();
    bed.send(1, 2);
    assert!(bed.to_server.is_empty() && bed.accelerator.flow_count() == 0);
}

/// These connections pass.
// keeps: accelerator.foreign-options
#[test]
fn signed_multipath_and_accurate_ecn_pass() {
    let cases = [
        (ForeignOptions::MPTCP, BypassReason::Mptcp),
        (ForeignOptions::AUTHENTICATION, BypassReason::Signed),
        (ForeignOptions::MD5, BypassReason::Signed),
        (ForeignOptions::UNKNOWN, BypassReason::UnknownOption),
    ];
    for (option, reason) in cases {
        for side in [Side::Mobile, Side::Server] {
            let mut bed = TestBed::new(AcceleratorConfig::default());
            let options = bed.syn_options();
            let mut syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
            let mut syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
            let marked = if side == Side::Mobile { &mut syn } else { &mut syn_ack };
            if let paceline_net::Transport::Tcp(tcp) = &mut marked.transport {
                tcp.options.other = option;
            }
            bed.client_sends(syn);
            bed.server_sends(syn_ack);
            bed.ack(1);
            bed.clear();
            let sent = bed.server_data(1, SEGMENT);
            bed.server_sends(sent.clone());
            assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![sent], vec![]));
            assert_eq!(bed.stats().bypassed(reason), 1, "{option:?}");
        }
    }
    // Accurate ECN, offered and accepted; offered and declined (classic ECN instead) is accelerated.
    for (answer, accelerated) in [(TcpFlags::CWR, false), (TcpFlags::ECE, true), (TcpFlags(0), true)] {
        let mut bed = TestBed::new(AcceleratorConfig::default());
        let options = bed.syn_options();
        let offer = SYN.with(TcpFlags::AE).with(TcpFlags::CWR).with(TcpFlags::ECE);
        let syn = bed.client_packet(0, None, offer, 0, |tcp| tcp.options = options);
        bed.client_sends(syn);
        let syn_ack = bed.server_packet(0, SYN.with(ACK).with(answer), 0, |tcp| tcp.options = options);
        bed.server_sends(syn_ack);
        bed.ack(1);
        bed.send(1, 1);
        assert_eq!(bed.accelerator.flow_count() == 1, accelerated, "{answer:?}");
    }
    // ESP is not TCP.
    let mut bed = TestBed::open();
    bed.clear();
    let esp = patched(&bed.server_data(1, SEGMENT), |raw| raw[9] = 50);
    bed.server_sends(esp.clone());
    assert_eq!(bed.taken_by_client(), [esp]);
}

/// Exposure is capped; flows with exposure 0 go on through the bypass unharmed; exposed flows
/// are reset on both ends from the journal.
// keeps: accelerator.crash, accelerator.exposure
#[test]
fn after_a_crash_exposed_connections_are_reset_and_others_continue() {
    let config = AcceleratorConfig { exposure: Bytes(8_000), ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config.clone(), |_| ());
    bed.clear();
    bed.send(1, 30);
    assert_eq!(bed.exposure(), 8_000, "capped");
    assert_eq!(bed.acked(), Some(8_001));
    let journal: Vec<_> = bed.accelerator.journal().collect();
    assert_eq!(journal.len(), 1);
    bed.clear();
    // The new process has only the journal.
    bed.accelerator = Accelerator::new(config.clone());
    bed.accelerator.recover(journal);
    bed.wait(1);
    let (to_client, to_server) = (bed.taken_by_client(), bed.taken_by_server());
    let (client, server) = (header(&to_client[0]), header(&to_server[0]));
    assert!(client.flags.contains(TcpFlags::RST) && server.flags.contains(TcpFlags::RST));
    assert_eq!(bed.offset(client.seq), 1, "exactly what the client expects (RFC 5961)");
    assert_eq!(server.seq, SeqNumber(bed.client_isn) + 1, "exactly what the server expects");

    let mut bed = TestBed::open_with(config.clone(), |_| ());
    let end = bed.send(1, 4);
    bed.ack(end);
    assert_eq!((bed.exposure(), bed.accelerator.journal().count()), (0, 0));
    bed.accelerator = Accelerator::new(config);
    bed.clear();
    let data = bed.server_data(end, SEGMENT);
    bed.server_sends(data.clone());
    bed.ack(end + u64::from(SEGMENT));
    assert_eq!(bed.taken_by_client(), [data]);
    assert_eq!(bed.acked(), Some(end + u64::from(SEGMENT)));
}

/// A connection is admitted after the handshake and first data; a full table means
/// bypass; acknowledged bytes are never dropped.
// keeps: accelerator.overload
#[test]
fn overload_and_flood_are_passed_and_acknowledged_bytes_stay() {
    let config = AcceleratorConfig { max_openings: 100, max_flows: 1, ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |_| ());
    let end = bed.send(1, 20);
    let own = bed.key;
    for n in 0..10_000u16 {
        bed.key.dst_port = 1000 + n;
        let options = bed.syn_options();
        let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
        bed.client_sends(syn);
    }
    assert!(bed.accelerator.opening_count() <= 100);
    assert_eq!((bed.accelerator.flow_count(), bed.stats().flows), (1, 1), "a SYN admits no connection");
    // Another connection finds the table full.
    bed.key.dst_port = 50_000;
    bed.client_next = 1;
    bed.handshake();
    bed.clear();
    let data = bed.server_data(1, SEGMENT);
    bed.server_sends(data.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![data], vec![]));
    assert_eq!(bed.stats().bypassed(BypassReason::TableFull), 1);
    // The first connection keeps all acknowledged bytes, none of which the client has.
    bed.key = own;
    bed.accelerator.set_overloaded(true);
    bed.wait(20);
    for off in [1001, 5001, 9001, 13_001, 17_001, end] {
        bed.ack(off);
        bed.wait(150);
    }
    assert_eq!(bed.stats().bytes_delivered, 20_000);

    // Full buffers: new data is refused, acknowledged data is kept.
    let config = AcceleratorConfig { device_buffer: Bytes(10_000), ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |_| ());
    bed.send(1, 40);
    assert!(bed.stats().refused > 0);
    let acked = bed.acked().unwrap();
    assert!(acked < 12_000 && bed.accelerator.held() < 13_000, "{acked}");
    bed.wait(300);
    let mut have = 1;
    for (off, len) in bed.data() {
        have = have.max(if off <= have { off + u64::from(len) } else { have });
    }
    assert!(have >= acked, "all acknowledged data is delivered");
}

#[test]
fn early_acknowledgments_stop_and_begin_with_the_device() {
    let mut bed = TestBed::open_with(AcceleratorConfig::default(), |bed| bed.early_acks = false);
    let end = bed.send(1, 4);
    bed.wait(15);
    assert_eq!((bed.exposure(), bed.stats().early_acks), (0, 0));
    bed.early_acks = true;
    let end = bed.send(end, 4);
    bed.wait(15);
    assert_eq!(bed.exposure(), end - 1);
    bed.early_acks = false;
    bed.send(end, 4);
    bed.wait(15);
    assert_eq!(bed.exposure(), end - 1, "what was acknowledged stays so");
    bed.ack(end);
    bed.wait(15);
    assert_eq!(bed.exposure(), 0);
}

/// A FIN is never acknowledged early; the last segment is held back; directions are
/// independent.
// keeps: accelerator.fin
#[test]
fn a_fin_is_never_acknowledged_early() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 4);
    bed.clear();
    let last = bed.server_packet(end, FIN, SEGMENT, |_| ());
    bed.server_sends(last);
    bed.wait(15);
    assert_eq!(bed.acked(), None, "neither the FIN nor the segment that carries it");
    assert!(bed.to_client.iter().any(|packet| header(packet).flags.contains(TcpFlags::FIN)));
    bed.wait(20);
    bed.ack(end);
    assert!(bed.acked().is_none_or(|acked| acked <= end), "{:?}", bed.acked());
    // The client still sends: half-closed.
    let request = bed.client_packet(1, Some(end), ACK, 300, |_| ());
    bed.client_sends(request);
    bed.client_next = 301;
    let passed = bed.to_server.iter().find(|packet| header(packet).payload_len == 300).expect("data passes");
    assert_eq!(body(passed), payload(1, 300));
    bed.ack(end + 1001);
    assert_eq!(bed.acked(), Some(end + 1001), "the client has acknowledged the FIN");
    assert_eq!(bed.exposure(), 0);
    // The client closes as well. The connection is removed once the server has acknowledged that.
    let fin = bed.client_packet(301, Some(end + 1001), FIN, 0, |_| ());
    bed.client_sends(fin);
    assert_eq!(bed.accelerator.flow_count(), 1);
    bed.client_next = 302;
    let ack = bed.server_packet(end + 1001, ACK, 0, |_| ());
    bed.server_sends(ack.clone());
    assert_eq!((bed.taken_by_client().last(), bed.accelerator.flow_count()), (Some(&ack), 0));

    // The client closes first and keeps reading.
    let mut bed = TestBed::open();
    let end = bed.send(1, 2);
    bed.clear();
    let fin = bed.client_packet(1, Some(1), FIN, 0, |_| ());
    bed.client_sends(fin);
    assert!(
        bed.to_server.iter().any(|packet| header(packet).flags.contains(TcpFlags::FIN)),
        "the FIN passes at once"
    );
    bed.client_next = 2;
    bed.send(end, 2);
    assert_eq!(bed.acked(), Some(end + 2000), "the other direction is still accelerated");
}

/// Buffered data are delivered for a bounded time, then the server's reset passes.
// keeps: accelerator.server-reset
#[test]
fn a_reset_of_the_server_waits_for_stored_data() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 12);
    bed.clear();
    let reset = bed.server_packet(end, RST, 0, |_| ());
    bed.server_sends(reset.clone());
    let resets =
        |bed: &TestBed| bed.to_client.iter().filter(|p| header(p).flags.contains(TcpFlags::RST)).count();
    assert_eq!(resets(&bed), 0);
    bed.wait(20);
    bed.ack(end);
    assert_eq!((resets(&bed), bed.accelerator.flow_count()), (1, 0));
    assert_eq!(header(bed.to_client.last().unwrap()).seq, header(&reset).seq);

    // An unresponsive client receives it after the grace period, with the number that it expects.
    let mut bed = TestBed::open();
    let end = bed.send(1, 12);
    bed.wait(15);
    bed.ack(3001);
    let reset = bed.server_packet(end, RST, 0, |_| ());
    bed.server_sends(reset);
    bed.wait(4_900);
    assert_eq!(resets(&bed), 0);
    bed.wait(200);
    assert_eq!(resets(&bed), 1);
    assert_eq!(bed.offset(header(bed.to_client.last().unwrap()).seq), 3001);
}

/// The client's reset is forwarded at once.
// keeps: accelerator.client-reset
#[test]
fn reset_of_the_client_passes_at_once() {
    let mut bed = TestBed::open();
    bed.send(1, 12);
    bed.clear();
    let reset = bed.client_packet(1, Some(1), RST, 0, |_| ());
    bed.client_sends(reset.clone());
    assert_eq!(bed.taken_by_server(), [reset]);
    assert_eq!((bed.accelerator.flow_count(), bed.accelerator.held()), (0, 0));
    bed.wait(2_000);
    assert!(bed.taken_by_client().is_empty(), "nothing more is sent to the client");
}

/// Data on SYNs pass; early ACKs begin after the handshake.
// keeps: accelerator.fast-open
#[test]
fn fast_open_data_is_not_acknowledged_before_the_client_answers() {
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let options = bed.syn_options();
    let cookie = |tcp: &mut TcpHeader| tcp.options = options;
    let mut syn = bed.client_packet(0, None, SYN, 100, cookie);
    if let paceline_net::Transport::Tcp(tcp) = &mut syn.transport {
        tcp.options.other = ForeignOptions::FAST_OPEN;
    }
    bed.client_sends(syn.clone());
    assert_eq!(bed.taken_by_server(), [syn]);
    bed.client_next = 101;
    let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, cookie);
    bed.server_sends(syn_ack);
    bed.clear();
    let end = bed.send(1, 3);
    bed.wait(20);
    assert_eq!((bed.data().len(), bed.acked()), (3, None), "forwarded, not acknowledged");
    bed.ack(1001);
    assert_eq!(bed.acked(), Some(end), "the client has answered");
}

/// A new ISN is a new connection.
// keeps: accelerator.reuse
#[test]
fn reused_addresses_and_ports_are_a_new_connection() {
    let mut bed = TestBed::open();
    bed.send(1, 6);
    let old = bed.server_isn;
    (bed.client_isn, bed.client_next) = (0x1234_0000, 1);
    let options = bed.syn_options();
    let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
    bed.clear();
    bed.client_sends(syn.clone());
    assert_eq!(bed.taken_by_server(), [syn], "a SYN alone changes nothing");
    assert_eq!(bed.accelerator.flow_count(), 1);
    bed.server_isn = old.wrapping_add(0x4000_0000);
    let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
    bed.server_sends(syn_ack.clone());
    assert_eq!((bed.taken_by_client().last(), bed.accelerator.flow_count()), (Some(&syn_ack), 1));
    bed.echo = [bed.clock; 2];
    bed.ack(1);
    assert_eq!(bed.accelerator.flow_count(), 0, "confirmed by the client");
    bed.clear();
    let end = bed.send(1, 3);
    bed.wait(20);
    assert_eq!((bed.acked(), bed.data().len()), (Some(end), 3));
    assert_eq!(bed.stats().flows, 2);
}

/// A forged pair of SYNs does not end a connection with exposed bytes.
// keeps: accelerator.injection, accelerator.reuse
#[test]
fn a_forged_pair_of_syns_replaces_nothing() {
    for ack in [1, 0x5000] {
        let mut bed = TestBed::open();
        let end = bed.send(1, 6);
        let (server_isn, client_isn, client_next) = (bed.server_isn, bed.client_isn, bed.client_next);
        (bed.client_isn, bed.client_next) = (0x1234_0000, ack);
        let options = bed.syn_options();
        let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
        bed.client_sends(syn);
        bed.server_isn = server_isn.wrapping_add(0x4000_0000);
        let syn_ack = bed.server_packet(0, SYN.with(ACK), 0, |tcp| tcp.options = options);
        bed.server_sends(syn_ack);
        (bed.server_isn, bed.client_isn, bed.client_next) = (server_isn, client_isn, client_next);
        assert_eq!(bed.accelerator.flow_count(), 1);
        bed.clear();
        bed.ack(1);
        bed.ack(end);
        let last = bed.send(end, 3);
        bed.wait(20);
        assert_eq!((bed.accelerator.flow_count(), bed.acked(), bed.data().len()), (1, Some(last), 3));
    }
}

/// Packets bypassed the accelerator while the driver was away: a client that acknowledges them is detached.
/// At any other time such an ACK is optimistic.
// keeps: accelerator.bypass
#[test]
fn after_an_absence_a_client_with_unseen_data_is_detached() {
    for away in [false, true] {
        let mut bed = TestBed::open();
        bed.clear();
        let end = bed.send(1, 4);
        bed.wait(20);
        assert_eq!((bed.acked(), bed.exposure()), (Some(end), end - 1), "acknowledged early");
        let ahead = end + 4 * u64::from(SEGMENT);
        if away {
            bed.accelerator.on_absence(bed.now);
        }
        bed.clear();
        bed.ack(ahead);
        if away {
            assert_eq!((bed.acked(), bed.accelerator.flow_count()), (Some(ahead), 0));
            assert_eq!(bed.stats().bypassed(BypassReason::Unseen), 1);
        } else {
            assert_eq!((bed.acked(), bed.accelerator.flow_count()), (None, 1));
            assert_eq!(bed.stats().optimistic_acks, 1);
        }
    }
    // An ACK beyond every window, such as an injected one, is never accepted.
    let mut bed = TestBed::open();
    bed.accelerator.on_absence(bed.now);
    let end = bed.send(1, 4);
    bed.ack(end + 900_000_000);
    assert_eq!((bed.stats().optimistic_acks, bed.accelerator.flow_count()), (1, 1));
    // Long after an absence the ACK is optimistic again.
    let mut bed = TestBed::open();
    bed.accelerator.on_absence(bed.now);
    bed.wait(31_000);
    let end = bed.send(1, 4);
    bed.ack(end + 1);
    assert_eq!((bed.stats().optimistic_acks, bed.accelerator.flow_count()), (1, 1));
}

/// More than a window bypassed the accelerator while the driver was away. The numbers of both ends together
/// are accepted, neither end's alone, and not one segment.
#[test]
fn a_connection_whose_ends_are_both_far_ahead_is_detached() {
    for (exposed, probe) in [(true, true), (true, false), (false, true), (false, false)] {
        for (server, client) in [(true, true), (true, false), (false, true)] {
            let mut bed = TestBed::open();
            let end = bed.send(1, 4);
            bed.wait(20);
            if !exposed {
                bed.ack(end);
            }
            // With a closed window of the client, or an open one.
            bed.window = if probe { 0 } else { bed.window };
            bed.ack(if exposed { 1 } else { end });
            bed.accelerator.on_absence(bed.now);
            bed.wait(40_000);
            bed.clear();
            let ahead = end + 10_000_000;
            for _ in 0..3 {
                if server {
                    let len = if probe { 0 } else { SEGMENT };
                    let packet = bed.server_packet(ahead - u64::from(probe), ACK, len, |_| ());
                    bed.server_sends(packet);
                    assert!(!bed.taken_by_client().is_empty(), "the client is probed");
                }
                if client {
                    bed.ack(ahead);
                }
                bed.wait(300);
            }
            let gone = bed.accelerator.flow_count() == 0;
            assert_eq!(gone, client && (server || !exposed), "{exposed} {probe}: {server} {client}");
            if gone {
                assert_eq!(bed.acked(), Some(ahead), "the ACK was forwarded");
            }
        }
    }
}
