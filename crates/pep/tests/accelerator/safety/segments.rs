//! Safety on live traffic: single segments, their numbers and windows. Each test names its row of the
//! accelerator's table of hazards.

use crate::accelerator::test_bed::*;
use paceline_net::rewrite::checksum_is_right;
use paceline_net::{Bytes, Duration, SeqNumber, TcpHeader};
use paceline_pep::accelerator::{AcceleratorConfig, Side};

fn older(tcp: &mut TcpHeader, by: u32) {
    let timestamps = tcp.options.timestamps.as_mut().unwrap();
    timestamps.val = timestamps.val.wrapping_sub(by);
}

/// Validate like an endpoint before any state change.
// keeps: accelerator.injection
#[test]
fn injected_segments_change_nothing() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 6);
    bed.wait(15);
    bed.ack(1001);
    bed.clear();
    let before: Vec<_> = bed.accelerator.flows().collect();
    let injected = [
        // Resets inside the window, without the exact number.
        (Side::Server, bed.server_packet(end + 500, RST, 0, |_| ())),
        (Side::Mobile, bed.client_packet(700, Some(1001), RST, 0, |_| ())),
        // Data that acknowledges bytes which the client never sent, or far below.
        (Side::Server, bed.server_packet(end, ACK, SEGMENT, |tcp| tcp.ack += 5_000)),
        (Side::Server, bed.server_packet(end, ACK, SEGMENT, |tcp| tcp.ack += 0u32.wrapping_sub(1 << 29))),
        // Data far outside the window, and an old timestamp.
        (Side::Server, bed.server_packet(end + (1 << 28), ACK, SEGMENT, |_| ())),
        (
            Side::Server,
            bed.server_packet(end, ACK, SEGMENT, |tcp| {
                older(tcp, 100_000);
            }),
        ),
        // ACKs of data that was never sent, or with implausible sequence numbers.
        (Side::Mobile, bed.client_packet(1, Some(end + 9_000), ACK, 0, |_| ())),
        (Side::Mobile, bed.client_packet(1 << 28, Some(3001), ACK, 0, |_| ())),
        (
            Side::Mobile,
            bed.client_packet(1, Some(3001), ACK, 0, |tcp| {
                older(tcp, 1_000_000);
            }),
        ),
    ];
    for (side, packet) in injected {
        bed.input(side, packet.clone());
        let now: Vec<_> = bed.accelerator.flows().collect();
        assert_eq!(now, before, "{packet:?}");
    }
    assert!(bed.to_client.iter().all(|packet| header(packet).payload_len == 0));
    assert!(bed.acked().is_none_or(|acked| acked <= end));
    assert!(bed.stats().invalid + bed.stats().optimistic_acks >= 8);
    // The connection continues.
    bed.wait(15);
    bed.ack(end);
    assert_eq!(bed.exposure(), 0);
}

/// RFC 5961, section 5.2: data and FIN with an unacceptable acknowledgment reach the
/// server unchanged. With a rewritten acknowledgment the server would accept them.
// keeps: accelerator.injection
#[test]
fn injected_data_is_not_made_acceptable() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 6);
    bed.clear();
    for ack in [end as u32 + 900_000_000, 0u32.wrapping_sub(900_000_000)] {
        for (flags, len) in [(ACK, 700), (FIN, 0)] {
            let packet = bed.client_packet(bed.client_next + 3001, Some(1), flags, len, |tcp| tcp.ack += ack);
            bed.client_sends(packet.clone());
            assert_eq!(bed.to_server.pop().map(|passed| bytes(&passed)), Some(bytes(&packet)));
        }
    }
    bed.ack(end);
    assert_eq!(bed.exposure(), 0);
}

/// Rewrite ACK, window, SACK and, without data, TSecr to the
/// values that were sent to the server; drop only empty ACKs.
// keeps: accelerator.old-ack
#[test]
fn client_segments_carry_the_acknowledgment_that_the_server_has() {
    let mut bed = TestBed::open_cleared(|_| ());
    bed.wait(5);
    let end = bed.send(1, 5);
    let seen = header(bed.to_server.last().unwrap());
    bed.clear();
    let isn = SeqNumber(bed.server_isn);
    for (flags, len) in [(ACK, 700), (FIN, 0)] {
        let packet = bed.client_packet(bed.client_next, Some(1), flags, len, |tcp| {
            tcp.options.sack.push(isn + 2001, isn + 3001);
        });
        bed.client_sends(packet.clone());
        let passed = bed.to_server.pop().expect("the segment passes");
        let tcp = header(&passed);
        assert_eq!((bed.offset(tcp.ack), tcp.window), (end, seen.window));
        assert_eq!((tcp.seq, tcp.payload_len, tcp.flags), (header(&packet).seq, len, flags));
        assert!(tcp.options.sack.is_empty(), "nothing is missing here");
        let echo = if len > 0 { bed.echo[0] } else { seen.options.timestamps.unwrap().ecr };
        assert_eq!(tcp.options.timestamps.unwrap().ecr, echo);
        assert_eq!(tcp.options.timestamps.unwrap().val, bed.clock);
        assert_eq!(body(&passed), body(&packet));
        assert!(checksum_is_right(&passed));
        bed.client_next += len;
    }
    let empty = bed.client_packet(bed.client_next + 1, Some(1), ACK, 0, |_| ());
    bed.client_sends(empty);
    assert!(bed.to_server.is_empty());
}

/// SACK blocks to the server are only for data that the accelerator lacks.
// keeps: accelerator.server-sack
#[test]
fn sack_blocks_to_the_server_report_gaps_of_the_store_only() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 4);
    bed.wait(15);
    bed.clear();
    bed.sack(1, 1001, 3001);
    assert!(bed.to_server.is_empty(), "the client's gap is repaired here");
    let later = bed.server_data(end + 2000, SEGMENT);
    bed.server_sends(later);
    let tcp = header(bed.to_server.last().expect("an immediate duplicate ACK"));
    let isn = SeqNumber(bed.server_isn);
    assert_eq!(bed.offset(tcp.ack), end);
    let blocks = tcp.options.sack;
    assert_eq!(blocks.as_slice(), [(isn + (end + 2000) as u32, isn + (end + 3000) as u32)]);
    bed.send(end, 2);
    let tcp = header(bed.to_server.last().unwrap());
    assert_eq!((bed.offset(tcp.ack), tcp.options.sack.is_empty()), (end + 3000, true));
}

/// Duplicate ACKs are suppressed only if the segment is stored and being retransmitted.
// keeps: accelerator.duplicates
#[test]
fn duplicate_acks_are_suppressed_and_the_loss_repaired_here() {
    for sack in [true, false] {
        let mut bed = TestBed::open_cleared(|bed| bed.sack = sack);
        bed.send(1, 8);
        bed.wait(20);
        bed.clear();
        for n in 0..4 {
            if sack {
                bed.sack(1, 1001, 2001 + n * 1000);
            } else {
                bed.ack(1);
            }
        }
        bed.wait(12);
        assert!(bed.data().contains(&(1, SEGMENT)), "retransmitted, SACK {sack}");
        assert!(bed.to_server.is_empty(), "no ACK reaches the server");
        assert!(bed.stats().duplicates_suppressed > 0 || sack);
    }
    // They pass on a connection that is not accelerated.
    let mut bed = TestBed::new(AcceleratorConfig::default());
    let duplicate = bed.client_packet(1, Some(5001), ACK, 0, |_| ());
    for _ in 0..3 {
        bed.client_sends(duplicate.clone());
    }
    assert_eq!(bed.taken_by_server(), vec![duplicate; 3]);
}

/// RFC 2018, section 8: a client may discard SACKed data, as Linux does when its buffer is full. An
/// acknowledgment that stops at SACKed data shows it, and the data is retransmitted without a timeout.
#[test]
fn reneged_data_is_retransmitted_without_a_timeout() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 8);
    bed.wait(20);
    bed.sack(1, 1001, 6001);
    bed.wait(20);
    bed.clear();
    bed.ack(1001);
    bed.wait(12);
    let again: Vec<(u64, u32)> = (1..6).map(|n| (1001 + 1000 * n - 1000, SEGMENT)).collect();
    assert!(again.iter().all(|segment| bed.data().contains(segment)), "{:?}", bed.data());
    assert_eq!(bed.stats().timeouts, 0);
    bed.ack(end);
    let flow = bed.accelerator.flows().next().unwrap();
    assert_eq!((flow.in_flight, bed.exposure()), (0, 0));
}

/// A SACK block that begins at the acknowledgment contradicts it and is ignored: it causes no retransmission.
#[test]
fn sack_blocks_that_contradict_the_acknowledgment_cause_no_retransmission() {
    let mut bed = TestBed::open_cleared(|_| ());
    let end = bed.send(1, 8);
    bed.wait(20);
    bed.clear();
    for off in [1001, 1002, 1003] {
        bed.sack(off, off, end);
        bed.wait(5);
    }
    assert_eq!((bed.data(), bed.stats().retransmissions), (vec![], 0));
}

/// A whole flight is lost, and the path is shorter than ever afterwards: each ACK of a retransmission seems
/// to answer the first transmission. At the second timeout the whole flight is marked lost, rather than one
/// segment each timeout.
#[test]
fn a_lost_flight_is_retransmitted_after_the_path_has_become_shorter() {
    for sack in [false, true] {
        let mut bed = TestBed::open_cleared(|bed| bed.sack = sack);
        let (start, end) = (bed.now, bed.send(1, 20));
        bed.clear();
        let mut has = 1;
        while has < end {
            assert!(bed.now.since(start) < Duration::from_secs(3), "SACK {sack}: at {has} of {end}");
            bed.wait(1);
            let sent = bed.data();
            bed.clear();
            // All others are lost until the first segment has arrived.
            let lost = |off: u64| off > 1 && has == 1;
            for (off, len) in sent.into_iter().filter(|(off, _)| !lost(*off)).collect::<Vec<_>>() {
                has = if off == has { has + u64::from(len) } else { has };
                bed.ack(has);
            }
        }
    }
}

/// Without SACK all data sent after a loss counts as in flight, possibly more than the window: this must not
/// block the retransmission.
#[test]
fn a_fast_retransmit_is_sent_with_more_than_a_window_in_flight() {
    let mut bed = TestBed::open_cleared(|bed| bed.sack = false);
    bed.send(1, 200);
    // A radio with a capacity of one segment in 50 ms.
    for n in 1..=10 {
        bed.wait(50);
        bed.ack(1 + n * u64::from(SEGMENT));
    }
    let flow = bed.accelerator.flows().next().unwrap();
    assert!(flow.in_flight > flow.control.window + 2 * u64::from(SEGMENT), "{flow:?}");
    bed.clear();
    (0..3).for_each(|_| bed.ack(10_001));
    bed.wait(1);
    assert_eq!(bed.data(), [(10_001, SEGMENT)]);
}

/// The right edge towards the server never retreats; client's window honoured unless overshoot
/// is on; own zero-window probes; answer the server's.
// keeps: accelerator.window, accelerator.right-edge
#[test]
fn windows_are_kept_honoured_and_probed() {
    // All that the buffer holds is stored, however long the client takes for it.
    let most_stored = Some(Duration::from_secs(60));
    let config =
        AcceleratorConfig { overshoot: false, flow_buffer: Bytes(40_000), most_stored, ..Default::default() };
    let mut bed = TestBed::open_with(config, |bed| (bed.shift, bed.window) = (0, 8_000));
    bed.clear();
    let end = bed.send(1, 30);
    bed.wait(20);
    assert!(bed.data().iter().all(|(off, len)| off + u64::from(*len) <= 8_001), "{:?}", bed.data());
    // The client's buffer fills up.
    bed.window = 0;
    bed.ack(8_001);
    bed.clear();
    bed.wait(3_000);
    assert!(bed.data().is_empty());
    let probes: Vec<TcpHeader> = bed.to_client.iter().map(header).collect();
    assert!(!probes.is_empty() && bed.stats().window_probes == probes.len() as u64);
    assert!(probes.iter().all(|tcp| bed.offset(tcp.seq) == 8_000), "one below the client's next number");
    // The server fills the store, and probes.
    let mut edge = 0;
    let mut off = end;
    for _ in 0..40 {
        off = bed.send(off, 1);
        for tcp in bed.taken_by_server().iter().map(header) {
            let now = bed.offset(tcp.ack) + u64::from(tcp.window);
            assert!(now >= edge, "{now} after {edge}");
            edge = now;
        }
    }
    assert_eq!(edge, 48_001);
    let probe = bed.server_packet(edge - 1, ACK, 0, |_| ());
    bed.server_sends(probe);
    let answer = header(bed.to_server.last().expect("an answer"));
    assert_eq!((bed.offset(answer.ack), answer.window), (edge, 0));
    // The client reads again, and the server's window opens.
    bed.clear();
    bed.window = 8_000;
    bed.ack(8_001);
    bed.wait(40);
    assert_eq!(bed.data().first().map(|first| first.0), Some(8_001));
    bed.ack(16_001);
    assert!(bed.to_server.iter().map(header).any(|tcp| tcp.window > 0), "the window opens");
}

/// Only from a seen SYN pair; TSval = the client's last real value; TSecr of
/// the acknowledged segment; a retransmission carries a valid TSval.
// keeps: accelerator.timestamps, accelerator.tsval
#[test]
fn scale_and_timestamps_are_those_of_the_ends() {
    let mut bed = TestBed::open_cleared(|_| ());
    let sent_at = bed.clock;
    let real = bed.clock;
    let data = bed.server_data(1, SEGMENT);
    bed.clock = bed.clock.wrapping_add(5);
    bed.server_sends(data);
    let early = header(bed.to_server.last().unwrap()).options.timestamps.unwrap();
    assert_eq!(
        (early.val, early.ecr),
        (real, sent_at),
        "the client's last TSval, and the segment's as TSecr"
    );
    let data = bed.server_data(1001, SEGMENT);
    let newest = bed.clock;
    bed.server_sends(data);
    assert_eq!(header(bed.to_server.last().unwrap()).options.timestamps.unwrap().ecr, newest);
    // A gap: TSecr remains that of the last segment in order.
    bed.clock = bed.clock.wrapping_add(5);
    let beyond = bed.server_data(5001, SEGMENT);
    bed.server_sends(beyond);
    assert_eq!(header(bed.to_server.last().unwrap()).options.timestamps.unwrap().ecr, newest);
    bed.clear();
    bed.wait(2_000);
    let again: Vec<TcpHeader> =
        bed.to_client.iter().map(header).filter(|tcp| bed.offset(tcp.seq) == 1).collect();
    assert!(!again.is_empty(), "retransmitted");
    let highest = newest.wrapping_add(5);
    for tcp in again {
        let val = tcp.options.timestamps.unwrap().val;
        assert!(val.wrapping_sub(sent_at) as i32 >= 0 && highest.wrapping_sub(val) as i32 >= 0);
    }
    // Not negotiated: not used.
    let mut bed = TestBed::open_cleared(|bed| (bed.timestamps, bed.shift) = (false, 0));
    bed.send(1, 4);
    bed.wait(10);
    let out: Vec<TcpHeader> = bed.to_server.iter().chain(&bed.to_client).map(header).collect();
    assert!(out.iter().all(|tcp| tcp.options.timestamps.is_none()));
    assert_eq!(
        bed.to_server.last().map(|packet| header(packet).window),
        Some(u16::MAX),
        "64 KB at most without scaling"
    );
}

/// Numbers are compared in serial arithmetic, with 64-bit offsets inside.
// keeps: accelerator.wrap
#[test]
fn sequence_numbers_wrap_around() {
    for isn in [u32::MAX - 2_500, 0x7fff_ff00, u32::MAX] {
        let mut bed =
            TestBed::open_cleared(|bed| (bed.server_isn, bed.client_isn) = (isn, isn.wrapping_sub(50)));
        let mut off = 1;
        for _ in 0..20 {
            off = bed.send(off, 4);
            bed.wait(12);
            bed.ack(off);
        }
        assert_eq!(bed.stats().bytes_delivered, 80_000);
        assert_eq!(bed.data().len(), 80);
        assert_eq!((bed.acked(), bed.exposure()), (Some(off), 0));
    }
}
