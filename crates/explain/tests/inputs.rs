//! Encapsulations, and input that is damaged, cut short or lacks a part.

use crate::common::{ACK, Download, SYN, Segment, datagram, explain, heading, pcap, record};
use paceline_explain::{Explainer, Taken};
use proptest::prelude::*;

/// A capture of a short download, with another link header and encapsulation in front of each datagram.
fn encapsulated(link: u32, wrap: impl Fn(&[u8], usize) -> Vec<u8>) -> Vec<u8> {
    let mut file = heading(link);
    for (index, segment) in (Download { segments: 50, ..Download::default() }).segments().iter().enumerate() {
        let inner = datagram(segment, index as u16 + 1);
        let frame = wrap(&inner, inner.len() + segment.len as usize);
        let len = frame.len() + segment.len as usize;
        file.extend(record(segment.at_us, &frame, len));
    }
    file
}

fn ethernet(ether_types: &[[u8; 2]], rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for (index, ether_type) in ether_types.iter().enumerate() {
        frame.extend(ether_type);
        if index + 1 < ether_types.len() {
            frame.extend([0, 5]);
        }
    }
    frame.extend(rest);
    frame
}

/// GTP-U with a PDU session container, in UDP and IPv4.
fn gtp(inner: &[u8], len: usize) -> Vec<u8> {
    let gtp_len = (len + 8) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + 8 + 8 + gtp_len).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend([0x08, 0x68, 0x08, 0x68]);
    packet.extend((8 + 8 + gtp_len).to_be_bytes());
    packet.extend([0, 0, 0x34, 0xff]);
    packet.extend(gtp_len.to_be_bytes());
    packet.extend([0, 0, 0, 9, 0, 0, 0, 0x85, 1, 0, 9, 0]);
    packet.extend(inner);
    packet
}

#[test]
fn datagrams_in_every_encapsulation_are_found() {
    let pppoe = |inner: &[u8], len: usize| {
        let mut session = vec![0x11, 0, 0, 7];
        session.extend((len as u16 + 2).to_be_bytes());
        session.extend([0, 0x21]);
        session.extend(inner);
        ethernet(&[[0x88, 0x64]], &session)
    };
    // The same segments over IPv6, with destination options.
    let ipv6 = |inner: &[u8], len: usize| {
        let address = |last: u8| [&[0xfd; 15][..], &[last]].concat();
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((len as u16 - 20 + 8).to_be_bytes());
        packet.extend([60, 64]);
        packet.extend([address(inner[15]), address(inner[19])].concat());
        packet.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend(&inner[20..]);
        packet
    };
    let over_ipv6 = explain(&encapsulated(229, ipv6));
    let report = &over_ipv6.connections[0];
    assert_eq!((report.to_client.bytes, report.to_client.missing_bytes), (50_000, 0), "{report:?}");
    assert!(report.client.starts_with("[fdfd:") && report.client.ends_with("]:40000"), "{report:?}");
    let files = [
        encapsulated(1, |inner, _| ethernet(&[[8, 0]], inner)),
        encapsulated(1, |inner, _| ethernet(&[[0x81, 0], [8, 0]], inner)),
        encapsulated(1, |inner, _| ethernet(&[[0x88, 0xa8], [0x81, 0], [8, 0]], inner)),
        encapsulated(1, pppoe),
        encapsulated(101, |inner, _| inner.to_vec()),
        encapsulated(101, gtp),
        encapsulated(1, |inner, len| ethernet(&[[0x81, 0], [8, 0]], &gtp(inner, len))),
        encapsulated(113, |inner, _| [&[0; 14][..], &[8, 0], inner].concat()),
        encapsulated(276, |inner, _| [&[8, 0][..], &[0; 18], inner].concat()),
        encapsulated(0, |inner, _| [&[2, 0, 0, 0][..], inner].concat()),
    ];
    for (index, file) in files.iter().enumerate() {
        let explanation = explain(file);
        assert_eq!(explanation.connections.len(), 1, "file {index}: {:?}", explanation.notes);
        let report = &explanation.connections[0];
        assert_eq!((report.to_client.bytes, report.to_client.missing_bytes), (50_000, 0), "file {index}");
        assert_eq!((report.client.as_str(), report.server.as_str()), ("10.0.0.1:40000", "10.0.0.2:80"));
    }
}

#[test]
fn a_truncated_file_is_explained_up_to_its_end() {
    let file = Download::default().pcap();
    let explanation = explain(&file[..file.len() - 7]);
    assert_eq!(explanation.connections[0].cause, "congestion_window");
    assert!(explanation.notes[0].starts_with("test: damaged capture: "), "{:?}", explanation.notes);
}

#[test]
fn files_without_packets_of_a_capture_are_refused() {
    for (file, part) in [(&b"text"[..], "is no capture"), (b"", "is no capture"), (b"BZh91AY", "bzip2")] {
        let error = Explainer::new(Taken::Unknown).read("x", file).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(explain(&heading(1)).segments, 0);
}

#[test]
fn one_direction_alone_has_no_causes() {
    let segments = Download::default().segments();
    let data: Vec<Segment> = segments.iter().copied().filter(|segment| segment.from_server).collect();
    let report = &explain(&pcap(&data)).connections[0];
    assert_eq!(report.to_client.bytes, 3_000_000);
    assert!(
        report.cause == "unknown" && report.notes.iter().any(|note| note.contains("client")),
        "{report:?}"
    );
    let acks: Vec<Segment> = segments.iter().copied().filter(|segment| !segment.from_server).collect();
    let report = &explain(&pcap(&acks)).connections[0];
    assert!(
        report.cause == "unknown" && report.notes.iter().any(|note| note.contains("server")),
        "{report:?}"
    );
}

#[test]
fn headers_that_are_cut_off_are_counted() {
    let mut file = heading(101);
    for (index, segment) in Download::default().segments().iter().take(10).enumerate() {
        let packet = datagram(segment, index as u16);
        file.extend(record(segment.at_us, &packet[..if index < 6 { 30 } else { 40 }], packet.len()));
    }
    let explanation = explain(&file);
    assert!(explanation.notes[0].starts_with("6 TCP headers not captured whole"), "{:?}", explanation.notes);
    assert_eq!(explanation.segments, 4);
}

#[test]
fn clocks_that_go_back_do_no_harm() {
    let mut segments = Download::default().segments();
    let half = segments.len() / 2;
    segments[half..].iter_mut().for_each(|segment| segment.at_us += 5_000_000);
    segments[..half].iter_mut().for_each(|segment| segment.at_us += 10_000_000);
    let explanation = explain(&pcap(&segments));
    assert!(explanation.notes.iter().any(|note| note.starts_with("1 steps back")), "{:?}", explanation.notes);
    assert_eq!(explanation.connections[0].cause, "congestion_window");
    segments.swap(half, half + 1);
    let explanation = explain(&pcap(&segments));
    assert!(!explanation.connections.is_empty());
}

#[test]
fn files_are_parts_of_a_capture_or_other_points() {
    let segments = Download::default().segments();
    let half = segments.len() / 2;
    let parts = [pcap(&segments[..half]), pcap(&segments[half..])];
    let explained = |files: &[&[u8]]| {
        let mut explainer = Explainer::new(Taken::Unknown);
        let names = ["one", "two"];
        names.iter().zip(files).for_each(|(name, file)| explainer.read(name, *file).unwrap());
        explainer.finish(None)
    };
    let (whole, joined) = (explain(&pcap(&segments)), explained(&[&parts[0], &parts[1]]));
    let bytes =
        |explanation: &paceline_explain::report::Explanation| explanation.connections[0].to_client.bytes;
    assert_eq!((joined.connections.len(), bytes(&joined)), (1, bytes(&whole)));
    assert_eq!(joined.connections[0].cause_shares, whole.connections[0].cause_shares);

    // The same connection 20 ms nearer the client.
    let mut nearer = segments.clone();
    for segment in &mut nearer {
        segment.at_us += if segment.from_server { 120_000 } else { 80_000 };
    }
    nearer.sort_by_key(|segment| segment.at_us);
    let both = explained(&[&pcap(&segments), &pcap(&nearer)]);
    let report = &both.connections[0];
    assert_eq!((both.connections.len(), report.capture_points, report.interface.as_str()), (1, 2, "one"));
    let between = explain(&pcap(&nearer));
    assert_eq!(between.network.position, paceline_explain::report::Position::Between, "{between:?}");
}

#[test]
fn a_new_syn_is_a_new_connection() {
    let mut segments = Download { segments: 20, ..Download::default() }.segments();
    let end = segments.last().unwrap().at_us;
    // The same ports again, with numbers far beyond those before.
    let again = segments.clone();
    segments.extend(again.iter().map(|segment| Segment {
        at_us: segment.at_us + end + 1000,
        seq: segment.seq.wrapping_add(if segment.flags & SYN != 0 || !segment.from_server {
            1 << 30
        } else {
            0
        }),
        ..*segment
    }));
    assert_eq!(explain(&pcap(&segments)).connections.len(), 2);
}

#[test]
fn a_capture_that_starts_in_mid_stream_says_so() {
    let segments = Download { window: 200, service_us: 1000, ..Download::default() }.segments();
    let report = &explain(&pcap(&segments[500..])).connections[0];
    assert!(report.mid_stream && report.notes[0].contains("no handshake"), "{report:?}");
    assert_eq!((report.client.as_str(), report.data_from), ("10.0.0.1:40000", "server"));
    assert_eq!(report.to_client.missing_bytes, 0, "{report:?}");
    let limited = Download { window: 1000, advertised: 20_480, ..Download::default() }.segments();
    let file = pcap(&limited[500..]);
    assert_eq!(explain(&file).connections[0].cause, "unknown", "the place of the capture is not known");
    let mut explainer = Explainer::new(Taken::Server);
    explainer.read("test", &file[..]).unwrap();
    let report = &explainer.finish(None).connections[0];
    assert!(report.verdict.contains("or a receive window of unknown scale"), "{report:?}");
    let keepalive = Segment { flags: ACK, ..Segment::default() };
    assert_eq!(explain(&pcap(&[keepalive])).connections.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn mutated_captures_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        end in any::<prop::sample::Index>(),
        link in prop::sample::select(vec![0u8, 1, 101, 113]),
    ) {
        let lost = vec![5, 6, 30];
        let mut file = Download { segments: 60, lost, ..Download::default() }.pcap();
        file[20] = link;
        for (at, value) in changes {
            // Lengths of packets stay, so that the reader comes to the end.
            let at = 24 + at.index(file.len() - 24);
            file[at] = value;
        }
        file.truncate(24 + end.index(file.len() - 24));
        let mut explainer = Explainer::new(Taken::Unknown);
        if explainer.read("test", &file[..]).is_ok() {
            for report in explainer.finish(None).connections {
                let sum: f64 = report.cause_shares.values().iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn mutated_headers_never_panic(
        changes in prop::collection::vec((0usize..600, 34usize..74, any::<u8>()), 1..200),
    ) {
        let segments = Download { segments: 300, ..Download::default() }.segments();
        let mut file = heading(1);
        for (index, segment) in segments.iter().enumerate() {
            let mut frame = ethernet(&[[8, 0]], &datagram(segment, index as u16));
            for (_, at, value) in changes.iter().filter(|(packet, ..)| *packet == index) {
                if let Some(byte) = frame.get_mut(*at) {
                    *byte = *value;
                }
            }
            let len = frame.len() + segment.len as usize;
            file.extend(record(segment.at_us, &frame, len));
        }
        prop_assert!(!explain(&file).connections.is_empty());
    }
}
