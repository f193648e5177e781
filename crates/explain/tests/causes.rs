//! Each cause by a capture of a download that it limits.

use crate::common::{Download, FULL, explain, pcap};
use paceline_explain::report::{ConnectionReport, Position};

fn connection(download: &Download) -> ConnectionReport {
    let explanation = explain(&download.pcap());
    assert_eq!(explanation.connections.len(), 1, "{:?}", explanation.notes);
    let connection = explanation.connections[0].clone();
    let sum: f64 = connection.cause_shares.values().iter().sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert_eq!(connection.to_client.bytes, download.segments * u64::from(FULL));
    assert_eq!(connection.position, Position::NearServer);
    connection
}

#[test]
fn a_congestion_window() {
    let report = connection(&Download::default());
    assert_eq!(report.cause, "congestion_window", "{report:?}");
    assert!(
        (report.rtt_median_ms.unwrap() - 50.0).abs() < 2.0 && report.cause_shares.queue < 0.05,
        "{report:?}"
    );
    assert!((report.handshake_rtt_ms.unwrap() - 50.0).abs() < 0.1, "{report:?}");
}

#[test]
fn a_receive_window() {
    let report = connection(&Download { window: 1000, advertised: 20_480, ..Download::default() });
    assert_eq!(report.cause, "receive_window", "{report:?}");
    assert!(report.cause_shares.receive_window > 0.9 && report.verdict.contains("kB at 50 ms"), "{report:?}");
}

#[test]
fn an_application() {
    let report = connection(&Download { segments: 100, writes: Some((5, 400_000)), ..Download::default() });
    assert_eq!(report.cause, "application", "{report:?}");
    assert!(report.cause_shares.application > 0.8, "{report:?}");
}

#[test]
fn an_application_that_writes_whole_segments_without_psh() {
    let mut segments =
        Download { segments: 100, writes: Some((5, 80_000)), ..Download::default() }.segments();
    segments.iter_mut().for_each(|segment| segment.flags &= !crate::common::PSH);
    let report = &explain(&pcap(&segments)).connections[0];
    assert!(report.cause_shares.application > 0.9, "{report:?}");
}

#[test]
fn a_queue() {
    let report = connection(&Download { window: 200, service_us: 1000, ..Download::default() });
    assert_eq!(report.cause, "queue", "{report:?}");
    assert!(report.rtt_median_ms.unwrap() > 150.0 && report.rtt_inflation.unwrap() > 3.0, "{report:?}");
    assert!(report.verdict.starts_with("limited by the path to the client, where 100%"), "{report:?}");
}

#[test]
fn losses_that_are_repaired_at_once() {
    let lost = (0..98).map(|loss| 40 + 30 * loss).collect();
    let report = connection(&Download { lost, ..Download::default() });
    let losses = report.to_client.losses;
    assert_eq!((losses.retransmissions, losses.fast, losses.lost_behind), (98, 98, 98), "{report:?}");
    assert!(report.cause_shares.recovery > 0.3 && report.cause_shares.timeout < 0.01, "{report:?}");
}

#[test]
fn losses_that_need_the_timer() {
    // A window of two segments has no three duplicate ACKs.
    let lost = (0..10).map(|loss| 20 + 10 * loss).collect();
    let report = connection(&Download { segments: 120, window: 2, lost, ..Download::default() });
    assert_eq!(report.cause, "timeout", "{report:?}");
    assert_eq!((report.to_client.losses.timeouts, report.to_client.losses.fast), (10, 0), "{report:?}");
}

#[test]
fn a_pause_of_the_path() {
    let pause_us = Some((500_000, 740_000));
    let report = connection(&Download { segments: 300, pause_us, ..Download::default() });
    let share = report.cause_shares.pause;
    assert!((0.2..0.45).contains(&share) && report.to_client.pauses == 1, "{report:?}");
    assert!((report.to_client.longest_pause_ms - 240.0).abs() < 60.0, "{report:?}");
}

#[test]
fn a_loss_before_the_capture_point_is_a_hole() {
    let download = Download { lost: vec![100, 200], ..Download::default() };
    let mut segments = download.segments();
    // The first copies are lost before the capture point.
    for lost in &download.lost {
        let is_first =
            |s: &crate::common::Segment| s.from_server && s.len > 0 && s.seq == *lost as u32 * FULL;
        let first = segments.iter().position(is_first).unwrap();
        segments.remove(first);
    }
    let report = &explain(&pcap(&segments)).connections[0];
    let losses = report.to_client.losses;
    assert_eq!((losses.lost_before, losses.lost_behind, losses.fast), (2, 0, 2), "{report:?}");
    assert!(report.cause_shares.recovery > 0.005, "{report:?}");
}

#[test]
fn overtaken_segments_and_mirrored_copies_are_no_losses() {
    let mut segments = Download { segments: 300, ..Download::default() }.segments();
    let data: Vec<usize> = (0..segments.len()).filter(|index| segments[*index].len > 0).collect();
    let (one, other) = (data[100], data[101]);
    let (first, second) = (segments[one].at_us, segments[other].at_us);
    segments.swap(one, other);
    (segments[one].at_us, segments[other].at_us) = (first, second);
    let file = pcap(&segments);
    let report = &explain(&file).connections[0];
    assert_eq!((report.to_client.losses.out_of_order, report.to_client.losses.retransmissions), (1, 0));

    // Each frame twice, as by a port mirror of both directions.
    let mut twice = crate::common::heading(1);
    let (mut at, mut copies) = (twice.len(), 0);
    while at < file.len() {
        let len = 16 + u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        twice.extend([&file[at..at + len], &file[at..at + len]].concat());
        (at, copies) = (at + len, copies + 1);
    }
    let explanation = explain(&twice);
    let report = &explanation.connections[0];
    assert_eq!(report.to_client.losses.retransmissions, 0, "{report:?}");
    assert_eq!(explanation.notes, [format!("{copies} copies of mirrored packets: left out")]);
}
