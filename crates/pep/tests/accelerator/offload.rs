//! Offload of uploads: when a connection may be offloaded, and how the offload ends.

use crate::accelerator::test_bed::*;
use paceline_net::{Duration, Timestamps};
use paceline_pep::accelerator::AcceleratorConfig;

/// The client uploads `bytes`, which its server acknowledges.
fn upload(bed: &mut TestBed, off: u64, bytes: u32) {
    for _ in 0..bytes / SEGMENT {
        let data = bed.client_packet(bed.client_next, Some(off), ACK, SEGMENT, |_| ());
        bed.client_sends(data);
        bed.client_next = bed.client_next.wrapping_add(SEGMENT);
        let ack = bed.server_packet(off, ACK, 0, |_| ());
        bed.server_sends(ack);
    }
}

/// An offloaded connection; with `answered`, its server has sent data before.
fn offloaded(answered: bool) -> (TestBed, u64) {
    offloaded_with(answered, |_| ())
}

fn offloaded_with(answered: bool, change: impl FnOnce(&mut TestBed)) -> (TestBed, u64) {
    let mut bed = TestBed::open_with(AcceleratorConfig::default(), change);
    let mut off = 1;
    if answered {
        off = bed.send(off, 3);
        bed.wait(20);
        bed.ack(off);
        bed.wait(20);
    }
    let key = bed.key;
    upload(&mut bed, off, 200_000);
    assert!(!bed.accelerator.offload(&key), "a request may be as long");
    upload(&mut bed, off, 100_000);
    assert!(!bed.accelerator.is_offloaded(&key));
    assert!(bed.accelerator.offload(&key) && bed.accelerator.is_offloaded(&key));
    assert!(!bed.accelerator.may_offload(&key), "it is offloaded already");
    bed.clear();
    (bed, off)
}

#[test]
fn data_of_the_server_ends_an_offload_and_is_accelerated() {
    for answered in [false, true] {
        let (mut bed, mut off) = offloaded(answered);
        for _ in 0..3 {
            off = end_offload(&mut bed, off);
            upload(&mut bed, off, 300_000);
            assert!(bed.accelerator.offload(&bed.key));
            bed.clear();
        }
        assert_eq!(bed.stats().flows_detached, 0);
    }
}

#[test]
fn acks_of_the_server_end_no_offload() {
    for answered in [false, true] {
        let (mut bed, off) = offloaded(answered);
        let known = bed.server_packet(off, ACK, 0, |_| ());
        bed.client_next += 5_000;
        let unknown = bed.server_packet(off, ACK, 0, |_| ());
        for ack in [known, unknown] {
            bed.server_sends(ack.clone());
            assert_eq!(bed.taken_by_client(), [ack]);
        }
        assert!(bed.accelerator.is_offloaded(&bed.key) && bed.to_server.is_empty());
        let _ = end_offload(&mut bed, off);
    }
}

/// The server sends after an offload of days; returns the end of its stream.
fn end_offload(bed: &mut TestBed, off: u64) -> u64 {
    // Gigabytes have bypassed the accelerator.
    bed.wait(100_000_000);
    bed.client_next = bed.client_next.wrapping_add(3_100_000_000);
    bed.echo = [bed.echo[0], bed.clock];
    let end = bed.send(off, 2);
    bed.wait(1);
    assert!(!bed.accelerator.is_offloaded(&bed.key) && bed.accelerator.knows(&bed.key));
    assert_eq!(bed.data(), [(off, SEGMENT), (off + 1000, SEGMENT)]);
    assert!(bed.to_server.is_empty(), "no segment in the name of a client that has not confirmed its state");
    bed.clear();
    // The server acknowledges more bytes that have bypassed the accelerator.
    bed.client_next = bed.client_next.wrapping_add(40_000);
    let ack = bed.server_packet(end, ACK, 0, |_| ());
    bed.server_sends(ack.clone());
    assert_eq!(bed.taken_by_client().len(), 1);
    // The client's first segment is forwarded with the acknowledgment that was sent here.
    bed.client_next = bed.client_next.wrapping_add(10_000);
    bed.ack(off);
    let forwarded = bed.taken_by_server();
    assert_eq!(forwarded.len(), 1);
    assert_eq!((header(&forwarded[0]).seq, bed.offset(header(&forwarded[0]).ack)), (ack_seq(bed), end));
    // From now on the connection is accelerated as before the offload.
    let before = bed.stats().invalid;
    let end = bed.send(end, 4);
    bed.wait(1);
    assert_eq!(bed.acked(), Some(end));
    assert_eq!(header(bed.to_server.last().unwrap()).seq, ack_seq(bed));
    let data = bed.data();
    bed.wait(10);
    bed.ack(end);
    bed.wait(10);
    assert_eq!((data.len(), bed.exposure(), bed.stats().invalid), (4, 0, before));
    end
}

fn ack_seq(bed: &TestBed) -> paceline_net::SeqNumber {
    paceline_net::SeqNumber(bed.client_isn) + bed.client_next
}

#[test]
fn only_an_upload_with_nothing_outstanding_is_offloaded() {
    let mut bed = TestBed::open();
    let key = bed.key;
    let off = bed.send(1, 3);
    upload(&mut bed, 1, 300_000);
    assert!(!bed.accelerator.offload(&key), "exposed bytes");
    bed.ack(off);
    assert!(bed.accelerator.offload(&key));

    // Data of the server in between: not a mere upload.
    let mut bed = TestBed::open();
    upload(&mut bed, 1, 200_000);
    let off = bed.send(1, 1);
    bed.wait(20);
    bed.ack(off);
    upload(&mut bed, off, 200_000);
    assert!(!bed.accelerator.offload(&key));

    // A connection that is closing.
    let mut bed = TestBed::open();
    upload(&mut bed, 1, 300_000);
    let fin = bed.client_packet(bed.client_next, Some(1), FIN, 0, |_| ());
    bed.client_sends(fin);
    assert!(!bed.accelerator.offload(&key));

    let mut bed = TestBed::open();
    upload(&mut bed, 1, 300_000);
    bed.accelerator.drain(bed.now, Duration::from_secs(1));
    assert!(!bed.accelerator.offload(&key));
    assert!(!TestBed::new(AcceleratorConfig::default()).accelerator.offload(&key), "an unknown connection");
}

#[test]
fn unexpected_segments_detach_an_offloaded_connection() {
    // A gap in the server's stream: the ends repair it.
    let (mut bed, off) = offloaded(true);
    let ahead: Vec<_> = (1..5).map(|n| bed.server_data(off + n * 1_000, SEGMENT)).collect();
    for packet in &ahead[..3] {
        bed.server_sends(packet.clone());
        assert!(bed.taken_by_client().is_empty() && bed.accelerator.is_offloaded(&bed.key));
    }
    assert!(bed.accelerator.held() >= 3_000);
    bed.server_sends(ahead[3].clone());
    assert_eq!((bed.taken_by_client(), bed.accelerator.flow_count()), (ahead, 0));
    assert!(bed.taken_by_server().is_empty());
    assert_eq!(bed.accelerator.held(), 0);

    // Data beyond the window, and data that overlaps the client's.
    for (at, len) in [(10_000_000, SEGMENT), (-500, SEGMENT)] {
        let (mut bed, off) = offloaded(true);
        let unexpected = bed.server_data(off.wrapping_add_signed(at), len);
        bed.server_sends(unexpected.clone());
        assert_eq!((bed.taken_by_client(), bed.accelerator.flow_count()), (vec![unexpected], 0));
    }

    // A data segment of the client, far ahead of the last one seen here.
    let (mut bed, off) = offloaded(true);
    bed.client_next += 500_000_000;
    let data = bed.client_packet(bed.client_next, Some(off), ACK, SEGMENT, |_| ());
    bed.client_sends(data.clone());
    assert_eq!((bed.taken_by_server(), bed.accelerator.flow_count()), (vec![data], 0));
}

#[test]
fn segments_ahead_of_the_one_that_ends_the_offload_are_held_back() {
    for answered in [false, true] {
        let (mut bed, off) = offloaded(answered);
        let packets: Vec<_> = (0..4).map(|n| bed.server_data(off + n * 1_000, SEGMENT)).collect();
        for n in [2, 3, 1, 0] {
            bed.server_sends(packets[n].clone());
        }
        bed.wait(1);
        let expected: Vec<_> = (0..4).map(|n| (off + n * 1_000, SEGMENT)).collect();
        assert_eq!(bed.data(), expected);
        assert!(!bed.accelerator.is_offloaded(&bed.key) && bed.taken_by_server().is_empty());
        bed.wait(10);
        bed.ack(off + 4_000);
        bed.wait(1);
        assert_eq!((bed.acked(), bed.exposure()), (Some(off + 4_000), 0));
        assert_eq!((bed.stats().flows_detached, bed.stats().invalid), (0, 0));
    }
}

/// Probes of the server's window, retransmissions of the server, old segments.
#[test]
fn probes_and_old_segments_pass_and_end_no_offload() {
    for answered in [false, true] {
        let (mut bed, off) = offloaded(answered);
        bed.client_next = bed.client_next.wrapping_add(500_000_000);
        let probe = bed.client_packet(bed.client_next - 1, Some(off), ACK, 0, |_| ());
        bed.client_sends(probe.clone());
        assert_eq!(bed.taken_by_server(), [probe]);
        let old = bed.server_packet(off, ACK, SEGMENT, |tcp| {
            tcp.options.timestamps =
                tcp.options.timestamps.map(|own| Timestamps { val: own.val.wrapping_sub(1 << 20), ..own });
        });
        let mut between = vec![old];
        if answered {
            between.push(bed.server_data(off - 2_000, SEGMENT));
        }
        for packet in between {
            bed.server_sends(packet.clone());
            assert_eq!(bed.taken_by_client(), [packet]);
        }
        assert!(bed.accelerator.is_offloaded(&bed.key) && bed.to_server.is_empty());
        let _ = end_offload(&mut bed, off);

        // An ACK of data that bypassed the accelerator.
        let (mut bed, off) = offloaded(answered);
        bed.client_next = bed.client_next.wrapping_add(500_000_000);
        let ahead = bed.client_packet(bed.client_next, Some(off + 5_000), ACK, 0, |_| ());
        bed.client_sends(ahead.clone());
        assert_eq!((bed.taken_by_server(), bed.accelerator.flow_count()), (vec![ahead], 0));
    }
}

#[test]
fn the_response_after_the_end_of_an_offloaded_upload_is_accelerated() {
    for answered in [false, true] {
        let (mut bed, off) = offloaded(answered);
        bed.client_next = bed.client_next.wrapping_add(500_000_000);
        let fin = bed.client_packet(bed.client_next, Some(off), FIN, 0, |_| ());
        bed.client_sends(fin.clone());
        assert_eq!(bed.taken_by_server(), [fin]);
        bed.client_next += 1;
        let end = bed.send(off, 5);
        let last = bed.server_packet(end, FIN, 0, |_| ());
        bed.server_sends(last);
        bed.wait(1);
        assert_eq!(bed.data().len(), 5);
        bed.ack(off);
        assert_eq!(bed.acked(), Some(end - 1000), "all but the packet before the FIN");
        bed.wait(10);
        bed.ack(end + 1);
        bed.wait(1);
        assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_ended), (0, 1));
        assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (0, 0));
    }
}

// keeps: accelerator.injection
#[test]
fn forged_acks_of_the_server_advance_the_upload_by_a_window_at_most() {
    let (mut bed, off) = offloaded(true);
    let _ = bed.send(off, 1);
    bed.clear();
    let seq = bed.client_next;
    bed.client_next = seq.wrapping_add(1 << 30);
    let forged = bed.server_packet(off + 1000, ACK, 0, |_| ());
    bed.server_sends(forged);
    assert!(bed.taken_by_client().is_empty(), "the ACK is beyond the window");
    // The client's own segment is accepted.
    bed.client_next = seq;
    bed.ack(off + 1000);
    bed.wait(1);
    assert_eq!((bed.exposure(), bed.stats().flows_detached), (0, 0));
    assert_eq!(header(bed.to_server.last().unwrap()).seq, ack_seq(&bed));
}

/// More than 64 KiB in flight between here and the server before the server's first data, within its scaled
/// window.
#[test]
fn an_upload_over_a_long_path_is_tracked_from_the_start() {
    let mut bed = TestBed::open();
    for _ in 0..5 {
        let mut ends = Vec::new();
        for _ in 0..100 {
            let data = bed.client_packet(bed.client_next, Some(1), ACK, SEGMENT, |_| ());
            bed.client_sends(data);
            bed.client_next += SEGMENT;
            ends.push(bed.client_next);
        }
        let all = bed.client_next;
        for end in ends {
            bed.client_next = end;
            let ack = bed.server_packet(1, ACK, 0, |_| ());
            bed.server_sends(ack);
        }
        bed.client_next = all;
    }
    assert!(bed.accelerator.may_offload(&bed.key), "500 kB");
    bed.clear();
    let end = bed.send(1, 4);
    bed.wait(5);
    assert_eq!((bed.acked(), bed.accelerator.flow_count()), (Some(end), 1), "the response is accelerated");
    assert_eq!(bed.stats().flows_detached, 0);
}

/// The reset's number is unknown here, since data bypassed the accelerator. The reset ends a transparent
/// connection.
// keeps: accelerator.client-reset
#[test]
fn a_reset_of_an_offloaded_client_removes_the_connection() {
    for (answered, resumed) in [(false, false), (true, false), (true, true)] {
        let (mut bed, off) = offloaded(answered);
        let mut have = off;
        if resumed {
            have = bed.send(off, 1);
            bed.wait(20);
        }
        let flows = bed.accelerator.flow_count();
        bed.client_next = bed.client_next.wrapping_add(500_000_000);
        let reset = bed.client_packet(bed.client_next, Some(have), RST, 0, |_| ());
        bed.clear();
        bed.client_sends(reset.clone());
        assert_eq!(bed.taken_by_server(), [reset]);
        if resumed {
            assert_eq!(bed.accelerator.flow_count(), flows, "the client may lack data");
        } else {
            assert_eq!((bed.accelerator.flow_count(), bed.accelerator.opening_count()), (0, 0));
        }
    }
    // Without an offload the number has to be exact (RFC 5961, section 3.2).
    let mut bed = TestBed::open();
    let off = bed.send(1, 1);
    bed.wait(20);
    bed.ack(off);
    let reset = bed.client_packet(bed.client_next + 5, Some(off), RST, 0, |_| ());
    bed.client_sends(reset);
    assert_eq!(bed.accelerator.flow_count(), 1);
}

/// RFC 7323, section 5.5: after months no timestamp is old, whether or not the client has uploaded meanwhile.
#[test]
fn an_offload_may_last_for_months() {
    for (answered, idle) in [(false, false), (true, false), (false, true), (true, true)] {
        for days in [25, 40, 90] {
            let (mut bed, off) = offloaded(answered);
            bed.wait(days * 24 * 3600 * 1000);
            bed.echo[1] = if idle { bed.echo[1] } else { bed.clock };
            let end = bed.send(off, 2);
            bed.echo[0] = bed.clock;
            bed.wait(20);
            bed.ack(end);
            let end = bed.send(end, 2);
            bed.wait(20);
            assert_eq!((bed.data().len(), bed.acked(), bed.stats().invalid), (4, Some(end), 0), "{days}");
            bed.ack(end);
            assert_eq!((bed.exposure(), bed.stats().flows_detached), (0, 0));
        }
    }
}

/// The server's data was delayed here while more than a window of the upload bypassed the accelerator. Its
/// ACK is too old for the client (RFC 5961, section 5.2), and the numbers of both ends are beyond every
/// window known here.
#[test]
fn data_overtaken_by_more_than_a_window_of_upload_is_delivered() {
    for shift in [0, 4] {
        for bypassed in [30_000, 49_000, 60_000, 400_000, 790_000, 810_000, 1_700_000, 40_000_000] {
            for (answered, uploads) in [(false, false), (false, true), (true, false), (true, true)] {
                overtaken(shift, bypassed, answered, uploads);
            }
        }
    }
}

fn overtaken(shift: u8, bypassed: u32, answered: bool, uploads: bool) {
    let largest = 50_000 << shift;
    let (mut bed, off) = offloaded_with(answered, |bed| bed.shift = shift);
    let (end, mut have, mut acked) = (off + u64::from(SEGMENT), off, None);
    bed.server_sends(bed.server_data(off, SEGMENT));
    bed.client_next = bed.client_next.wrapping_add(bypassed);
    bed.echo[1] = bed.clock;
    for round in 0..20 {
        acked = acked.max(bed.acked());
        let (down, up) = (bed.taken_by_client(), bed.taken_by_server());
        // The client accepts segments whose ACK is not too old, and acknowledges.
        for tcp in down.iter().map(header).filter(|tcp| tcp.payload_len > 0) {
            let behind = ack_seq(&bed).distance(tcp.ack);
            assert!(behind >= 0, "the ACK covers data that the client has not sent");
            have = if behind <= largest { end } else { have };
            bed.ack(have);
        }
        if acked == Some(end) && have == end {
            return;
        }
        // The server acknowledges the upload, and retransmits data without an ACK.
        if up.iter().any(|packet| header(packet).payload_len > 0) {
            bed.server_sends(bed.server_packet(end, ACK, 0, |_| ()));
        }
        bed.wait(100);
        if round % 2 == 1 && acked != Some(end) {
            bed.server_sends(bed.server_data(off, SEGMENT));
        }
        if uploads {
            let data = bed.client_packet(bed.client_next - SEGMENT, Some(have), ACK, SEGMENT, |_| ());
            bed.client_sends(data);
        }
    }
    panic!(
        "{bypassed} bytes bypassed, shift {shift}, answered {answered}, uploads {uploads}: {have} of {end}"
    );
}
