//! A corpus of damaged captures: the notes name each damage, and the undamaged part is explained.

use crate::common::{Download, Segment, datagram, explain, heading, pcap, record};
use paceline_explain::report::Explanation;

fn download() -> Download {
    Download { segments: 400, lost: vec![40, 90], ..Download::default() }
}

/// The download with raw IP, of which each packet is changed.
fn changed(change: impl Fn(usize, &Segment, &mut Vec<u8>, &mut usize)) -> Vec<u8> {
    let mut file = heading(101);
    for (index, segment) in download().segments().iter().enumerate() {
        let mut packet = datagram(segment, index as u16 + 1);
        let mut len = packet.len() + segment.len as usize;
        change(index, segment, &mut packet, &mut len);
        file.extend(record(segment.at_us, &packet, len));
    }
    file
}

fn notes(explanation: &Explanation) -> String {
    let own = explanation.connections.iter().flat_map(|connection| &connection.notes);
    explanation.notes.iter().chain(own).cloned().collect::<Vec<_>>().join("\n")
}

#[test]
fn each_damage_is_said() {
    let whole = download().pcap();
    let segments = download().segments();
    let half = segments.len() / 2;
    let with = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // The place of the record in the middle of the file.
    let middle = {
        let mut at = 24;
        while at < whole.len() / 2 {
            at += 16 + u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        }
        at
    };
    let mut disordered = segments.clone();
    for index in [20, 60, 100] {
        let next = disordered[index + 1].at_us;
        disordered[index].at_us = next + 40;
    }
    let mut stepped = segments.clone();
    stepped[half..].iter_mut().for_each(|segment| segment.at_us += 1);
    stepped[..half].iter_mut().for_each(|segment| segment.at_us += 3_600_000_000);
    let twice = {
        let mut file = heading(1);
        let mut at = 24;
        while at < whole.len() {
            let end = at + 16 + u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
            file.extend([&whole[at..end], &whole[at..end]].concat());
            at = end;
        }
        file
    };
    let of_one_end = |from_server: bool| {
        pcap(&segments.iter().copied().filter(|s| s.from_server == from_server).collect::<Vec<_>>())
    };
    let cases: [(&str, Vec<u8>, &str); 13] = [
        ("truncated in a packet", whole[..middle + 30].to_vec(), "damaged capture"),
        ("truncated in the head of a packet", whole[..middle + 7].to_vec(), "damaged capture"),
        ("absurd length of a packet", with(middle + 8, &u32::MAX.to_le_bytes()), "damaged capture"),
        ("out of order", pcap(&disordered), "with a time before that of the packet in front"),
        ("clock set back by an hour", pcap(&stepped), "1 steps back of the clock"),
        ("each packet twice", twice, "copies of mirrored packets: left out"),
        ("no client", of_one_end(true), "no segments of the client"),
        ("no server", of_one_end(false), "no segments of the server"),
        ("mid-stream", pcap(&segments[half..]), "no handshake in the capture"),
        ("30 bytes of a packet", changed(|_, _, p, _| p.truncate(30)), "TCP headers not captured whole"),
        (
            "40 bytes of a packet",
            changed(|_, _, packet, _| packet.truncate(40)),
            "TCP options not captured whole",
        ),
        (
            "merged packets without a length",
            changed(|_, segment, packet, len| {
                if segment.len > 0 {
                    packet[2..4].fill(0);
                    *len += 3000;
                }
            }),
            "segments longer than the announced size",
        ),
        (
            "a hole in the capture",
            pcap(&[&segments[..half], &segments[half + 40..]].concat()),
            "acknowledged bytes are not in the capture",
        ),
    ];
    for (name, file, note) in &cases {
        let explanation = explain(file);
        assert!(notes(&explanation).contains(note), "{name}: {}", notes(&explanation));
        let is_explained = *name == "30 bytes of a packet" || !explanation.connections.is_empty();
        assert!(is_explained, "{name}: {}", notes(&explanation));
    }
    assert_eq!(notes(&explain(&whole)), "", "nothing is wrong with the whole capture");
}

#[test]
fn what_does_no_harm_changes_nothing() {
    let whole = explain(&changed(|_, _, _, _| {}));
    // A limit in the file's heading that packets exceed, as some writers have it; lengths on the link below
    // the captured ones; bytes behind the datagram, as of a short frame.
    let mut small_limit = changed(|_, _, _, _| {});
    small_limit[16..20].copy_from_slice(&32u32.to_le_bytes());
    let files = [
        small_limit,
        changed(|_, _, _, len| *len = 20),
        changed(|_, segment, packet, _| {
            if segment.len == 0 {
                packet.extend([0xff; 6]);
            }
        }),
    ];
    for (index, file) in files.iter().enumerate() {
        let explanation = explain(file);
        assert_eq!(explanation.connections.len(), 1, "file {index}: {}", notes(&explanation));
        let (one, other) = (&whole.connections[0], &explanation.connections[0]);
        assert_eq!(one.to_client, other.to_client, "file {index}");
        assert_eq!(one.cause_shares, other.cause_shares, "file {index}");
    }
}
