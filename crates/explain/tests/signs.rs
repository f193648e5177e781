//! Signs of single mechanisms of the path.

use crate::common::{ACK, Download, SYN, Segment, explain, pcap};
use paceline_explain::report::ConnectionReport;

fn report(segments: &[Segment]) -> ConnectionReport {
    explain(&pcap(segments)).connections[0].clone()
}

#[test]
fn a_policer_is_a_rate_behind_a_burst() {
    // 5 Mb/s of segments with headers of 40 bytes, which the model does not police.
    let download =
        Download { segments: 8000, policer: Some((200_000, 625)), service_us: 20, ..Download::default() };
    let report = report(&download.segments());
    assert_eq!(report.cause, "policer", "{report:?}");
    let (rate, burst) =
        (report.to_client.policer_mbps.unwrap(), report.to_client.policer_burst_bytes.unwrap());
    assert!((rate - 5.0).abs() < 0.2 && (burst - 200e3).abs() < 40e3, "{rate} {burst}");
    assert!(
        report.verdict.contains("limited by a policer") && report.cause_shares.policer > 0.8,
        "{report:?}"
    );
}

#[test]
fn losses_at_random_are_no_policer() {
    let lost = (0..98).map(|loss| 40 + 30 * loss + loss * loss % 17).collect();
    let report = report(&Download { lost, ..Download::default() }.segments());
    assert_eq!((report.to_client.policer_mbps, report.cause_shares.policer), (None, 0.0), "{report:?}");
}

#[test]
fn a_split_connection_answers_early() {
    // Captured at the client: the SYN-ACK comes after 2 ms, data and ACKs come from 40 ms further on.
    let mut segments = vec![
        Segment { flags: SYN, window: 60_000, ..Segment::default() },
        Segment { flags: SYN | ACK, at_us: 2_000, from_server: true, window: 60_000, ..Segment::default() },
        Segment { flags: ACK, at_us: 2_010, window: 500, ..Segment::default() },
    ];
    for request in 0..30u32 {
        let at_us = 10_000 + 100_000 * u64::from(request);
        let own = Segment { flags: ACK, window: 500, ..Segment::default() };
        segments.push(Segment { at_us, seq: 100 * request, len: 100, ..own });
        let ack = 100 * (request + 1);
        segments.push(Segment { at_us: at_us + 42_000, from_server: true, ack, ttl: 50, ..own });
    }
    let found = report(&segments);
    assert_eq!(found.middlebox_signs, ["split_connection"], "{found:?}");
    assert!(found.notes.iter().any(|note| note.starts_with("the server answers the handshake")), "{found:?}");
    assert!(found.notes.iter().any(|note| note.contains("a TTL of 64, its data one of 50")), "{found:?}");
    // Only ACKs of the client's data are late by the delayed-ACK timer at times: no sign.
    segments.iter_mut().for_each(|segment| segment.ttl = 0);
    for (index, segment) in segments.iter_mut().enumerate().filter(|(_, s)| s.from_server && s.flags == ACK) {
        segment.at_us -= if index % 3 == 0 { 0 } else { 40_000 };
    }
    assert!(report(&segments).middlebox_signs.is_empty());
}

#[test]
fn changes_between_capture_points_are_named() {
    let segments = Download::default().segments();
    let mut nearer = segments.clone();
    for segment in &mut nearer {
        segment.at_us += if segment.from_server { 120_000 } else { 80_000 };
        // A firewall that gives the server's numbers a random offset.
        let shift = 1_000_000;
        if segment.from_server {
            segment.seq += shift;
        } else {
            segment.ack += shift;
        }
    }
    nearer.sort_by_key(|segment| segment.at_us);
    let mut explainer = paceline_explain::Explainer::new(paceline_explain::Taken::Unknown);
    for (name, file) in [("one", pcap(&segments)), ("two", pcap(&nearer))] {
        explainer.read(name, &file[..]).unwrap();
    }
    let report = &explainer.finish(None).connections[0];
    assert_eq!(
        (report.capture_points, &report.middlebox_signs[..]),
        (2, &["sequence_shift"][..]),
        "{report:?}"
    );
}

#[test]
fn delayed_acks_and_segments_per_ack_are_counted() {
    let mut segments =
        Download { segments: 100, writes: Some((1, 100_000)), ..Download::default() }.segments();
    for (number, segment) in segments.iter_mut().filter(|s| !s.from_server && s.flags == ACK).enumerate() {
        segment.at_us += if number > 10 { 40_000 } else { 0 };
    }
    segments.sort_by_key(|segment| segment.at_us);
    let report = report(&segments);
    assert!((85..=90).contains(&report.to_client.delayed_acks), "{report:?}");
    assert!((report.to_client.segments_per_ack - 1.0).abs() < 0.05, "{report:?}");
}
