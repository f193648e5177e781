//! Packets around accelerated connections pass the gateway byte for byte, in both directions and once each:
//! all messages of GTP, malformed and fragmented packets of tunnels, MPLS, and the other protocols of PPPoE.
//! They are sent and received by raw sockets, so the kernel needs no module for these protocols.

use super::packets::{CONTAINER, G_PDU, GTPU, Inner, Outer, datagram, fragments, g_pdu, gtp};
use crate::common::namespace::{Namespace, Program, wait_for};
use crate::common::testbed::{Testbed, counter};
use std::thread::sleep;
use std::time::Duration;

/// The addresses of the frames' ends: that of the device's side is the first.
const ADDRESSES: [[u8; 6]; 2] = [[2, 0, 0, 0, 0x77, 1], [2, 0, 0, 0, 0x77, 2]];
/// Polls of 100 ms for frames, a hang guard.
const POLLS: usize = 300;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// VLAN tags: none, one, and two, of both types.
const TAGS: [&[u8]; 4] =
    [&[], &[0x81, 0, 0x60, 7], &[0x81, 0, 0, 5, 0x81, 0, 0x20, 9], &[0x88, 0xa8, 0x10, 5, 0x81, 0, 0, 9]];

/// Type and packet of a frame.
type Content = (u16, Vec<u8>);

fn outer(outer: Outer, port: u16, payload: &[u8]) -> Content {
    (if outer.v6 { IPV6 } else { IPV4 }, outer.packet(port, payload))
}

/// Messages of GTP-U version 1 other than G-PDUs (TS 29.281, clauses 7.2 and 7.3), and unknown ones.
fn signalling() -> Vec<Vec<u8>> {
    let sequence = [0, 7, 0, 0];
    let data = [&[16, 0xde, 0xad, 0xbe, 0xef][..], &[133, 0, 4, 10, 9, 0, 1]].concat();
    let mut messages = vec![
        gtp(2, 1, 0, &sequence, &[]),
        gtp(2, 1, 0, &sequence, &[255, 0, 4, 0, 10, 1, 2]), // with a private extension
        gtp(2, 2, 0, &sequence, &[14, 0]),
        gtp(2, 26, 0, &[0; 4], &data),
        gtp(6, 26, 0, &[0, 0, 0, 0x40, 1, 0x08, 0x68, 0], &data), // with the UDP port
        gtp(2, 31, 0, &[0; 4], &[141, 2, 0x85, 0x40]),
        gtp(0, 254, 0xdead_beef, &[], &[]),
        gtp(4, 254, 0xdead_beef, &CONTAINER, &[]),
        gtp(1, 1, 0, &[0, 0, 3, 0], &[]),
    ];
    messages.extend([0, 3, 99, 128, 253].map(|kind| gtp(0, kind, 5, &[], b"unknown")));
    messages
}

/// G-PDUs with every combination of flags, with unusual contents, and with wrong lengths.
fn data() -> Vec<Vec<u8>> {
    let payload = [0x5a; 300];
    let mut messages = Vec::new();
    for flags in 0..8 {
        for v6 in [false, true] {
            for protocol in [Inner::Tcp(40_000 + u16::from(flags)), Inner::Udp, Inner::Echo] {
                messages.push(g_pdu(flags, &datagram(v6, protocol, &payload)));
            }
        }
    }
    let tcp = datagram(false, Inner::Tcp(41_000), &payload);
    let changed = |at: usize, value: u8| {
        let mut bytes = tcp.clone();
        bytes[at] = value;
        g_pdu(4, &bytes)
    };
    // A wrong TCP checksum; a TCP header longer than the datagram; a wrong total length; a wrong version.
    messages.extend([changed(36, 0), changed(32, 0xf0), changed(3, 1), changed(0, 0x75)]);
    messages.push(g_pdu(4, &[&[0xf0; 12], &[0x08, 0][..], &tcp].concat())); // an Ethernet PDU session
    messages.push(gtp(0, G_PDU, 1, &[], &[]));
    let headers = |count: u8| {
        let header = |n: u8| [1, 0x10, 9, if n + 1 < count { 0x85 } else { 0 }];
        [&[0, 0, 0, 0x85][..], &(0..count).flat_map(header).collect::<Vec<u8>>()].concat()
    };
    messages.extend([2, 4, 5, 30].map(|count| gtp(4, G_PDU, 1, &headers(count), &tcp)));
    messages.push(gtp(4, G_PDU, 1, &[0, 0, 0, 0x85, 0, 0, 0, 0], &tcp)); // an extension header of length 0
    for len in [0, 39, 1000] {
        let mut message = g_pdu(0, &tcp);
        message[2..4].copy_from_slice(&u16::to_be_bytes(len));
        messages.push(message);
    }
    messages
}

/// Other versions of GTP, and bytes that are none.
fn others() -> Vec<Vec<u8>> {
    let tcp = datagram(false, Inner::Tcp(41_000), &[3; 100]);
    let len = (tcp.len() as u16).to_be_bytes();
    let version_0 = |kind: u8| {
        [&[0x1e, kind, len[0], len[1], 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff], &[9; 8][..], &tcp].concat()
    };
    let prime = [&[0x2e, 255, len[0], len[1], 0, 1][..], &tcp].concat();
    let version_2 = vec![0x40, 1, 0, 4, 0, 0, 1, 0];
    let mut messages = vec![version_0(1), version_0(255), prime, version_2];
    messages.extend((0..40).map(|len| (0..len).map(|n| (n * 37 + len) as u8 ^ 0x30).collect()));
    messages
}

/// Packets of tunnels that the gateway does not take apart, or cannot.
fn malformed() -> Vec<Content> {
    let message = g_pdu(6, &datagram(false, Inner::Tcp(41_000), &[0x5a; 900]));
    let mut contents: Vec<Content> =
        Outer::EXTENDED.iter().map(|kind| outer(*kind, GTPU, &message)).collect();
    for kind in Outer::PLAIN {
        let (ethertype, packet) = outer(kind, GTPU, &message);
        let udp = if kind.v6 { 40 } else { 20 };
        // Wrong lengths and checksums of UDP.
        for (at, value) in [(udp + 4, 9), (udp + 5, 9), (udp + 6, 0x77)] {
            let mut bytes = packet.clone();
            bytes[at] ^= value;
            contents.push((ethertype, bytes));
        }
        let parts = fragments(&packet, 400);
        assert!(parts.len() == 3 || parts.len() == 2, "{}", parts.len());
        contents.extend(parts.iter().map(|part| (ethertype, part.clone())));
        contents.extend(parts.into_iter().rev().map(|part| (ethertype, part)));
    }
    contents
}

/// Packets with a wrong outer IPv4 checksum and packets that are cut short. Without VLAN tags, the bridge
/// itself drops them if the kernel has its netfilter hooks (`br_netfilter`).
fn corrupt() -> Vec<Content> {
    let message = g_pdu(6, &datagram(false, Inner::Tcp(41_000), &[0x5a; 900]));
    let cut = |kind: Outer| {
        let (ethertype, packet) = outer(kind, GTPU, &message);
        (ethertype, packet[..packet.len() - 100].to_vec())
    };
    let mut contents: Vec<Content> = Outer::PLAIN.map(cut).into();
    let (ethertype, mut packet) = outer(Outer::PLAIN[0], GTPU, &message);
    packet[10] ^= 0x77;
    contents.push((ethertype, packet));
    contents
}

/// MPLS with one and two labels (RFC 3032), and the protocols of PPPoE (RFC 2516) and PPP that are no data.
fn other_links() -> Vec<Content> {
    let tcp = datagram(false, Inner::Tcp(41_000), &[0x5a; 600]);
    let (_, tunnelled) = outer(Outer::PLAIN[0], GTPU, &g_pdu(4, &tcp));
    let mut contents = Vec::new();
    for ethertype in [0x8847, 0x8848] {
        for labels in [&[0, 1, 0x01, 64][..], &[0, 1, 0x00, 64, 0, 2, 0x01, 64]] {
            contents.extend([&tcp, &tunnelled].map(|packet| (ethertype, [labels, packet].concat())));
        }
    }
    // Discovery: PADI, PADO, PADR, PADS and PADT, with an empty service name.
    for (code, session) in [(0x09, 0), (0x07, 0), (0x19, 0), (0x65, 7), (0xa7, 7)] {
        contents.push((0x8863, vec![0x11, code, 0, session, 0, 4, 1, 1, 0, 0]));
    }
    let session = |protocol: [u8; 2], rest: &[u8]| {
        let len = (2 + rest.len() as u16).to_be_bytes();
        (0x8864, [&[0x11, 0, 0, 7], &len[..], &protocol, rest].concat())
    };
    // Link control (echo request and reply), authentication, network control, and CCP's compressed data.
    contents.push(session([0xc0, 0x21], &[9, 1, 0, 8, 1, 2, 3, 4]));
    contents.push(session([0xc0, 0x21], &[10, 1, 0, 8, 1, 2, 3, 4]));
    for protocol in [[0xc0, 0x23], [0xc2, 0x23], [0x80, 0x21], [0x80, 0x57], [0x00, 0xfd]] {
        contents.push(session(protocol, &[1, 1, 0, 4]));
    }
    // A segment of no connection, the wrong version of IP, a compressed protocol field, and wrong lengths.
    contents.extend([session([0, 0x21], &tcp), session([0, 0x57], &tcp), session([0x21, 0x45], &tcp[1..])]);
    for len in [0, 1, 2, 700] {
        let (ethertype, mut packet) = session([0, 0x21], &tcp);
        packet[4..6].copy_from_slice(&u16::to_be_bytes(len));
        contents.push((ethertype, packet));
    }
    contents
}

/// All frames in one direction.
fn frames(contents: &[Content], [from, to]: [[u8; 6]; 2]) -> Vec<String> {
    let frame = |tags: &[u8], (ethertype, packet): &Content| {
        let frame = [&to, &from, tags, &ethertype.to_be_bytes(), packet].concat();
        frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let tagged = corrupt();
    let with = |tags: &[u8], contents: &[Content]| -> Vec<String> {
        contents.iter().map(|content| frame(tags, content)).collect()
    };
    let all = TAGS.iter().flat_map(|tags| with(tags, contents));
    all.chain(TAGS[1..].iter().flat_map(|tags| with(tags, &tagged))).collect()
}

/// A program that prints the frames that arrive from an address.
fn receiver(testbed: &Testbed, (namespace, device): (&Namespace, &str), from: [u8; 6]) -> Program {
    let address: String = from.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!("python3 frames.py receive {device} {address}");
    let mut receiver = testbed.start(namespace, &format!("receiver-{device}"), &line);
    wait_for("a receiver", || receiver.output_so_far().stdout.contains("ready").then_some(()));
    receiver
}

#[test]
fn packets_that_are_no_connections_pass_unchanged() {
    let Some(testbed) = Testbed::new(&["python3"]) else { return };
    testbed.dir.write("frames.py", include_str!("frames.py"));
    let mut contents = Vec::new();
    for message in [signalling(), data(), others()].concat() {
        contents.extend(Outer::PLAIN.map(|kind| outer(kind, GTPU, &message)));
    }
    contents.extend(others().iter().map(|message| outer(Outer::PLAIN[0], 3386, message)));
    contents.extend([malformed(), other_links()].concat());
    let gateway = testbed.gateway(&testbed.config(""));
    let ends = [(&testbed.client, "cli0"), (&testbed.server, "srv0")];
    for (from, to) in [(0, 1), (1, 0)] {
        let mut sent = frames(&contents, [ADDRESSES[from], ADDRESSES[to]]);
        testbed.dir.write("sent", sent.join("\n"));
        let mut receiver = receiver(&testbed, ends[to], ADDRESSES[from]);
        let (namespace, device) = ends[from];
        testbed.shell(namespace, &format!("python3 frames.py send {device} sent"));
        let mut received = Vec::new();
        for _ in 0..POLLS {
            received = receiver.output_so_far().stdout.lines().skip(1).map(str::to_owned).collect();
            if received.len() >= sent.len() {
                break;
            }
            sleep(Duration::from_millis(100));
        }
        sent.sort();
        received.sort();
        let missing: Vec<&String> =
            sent.iter().filter(|frame| received.binary_search(frame).is_err()).collect();
        let strange: Vec<&String> =
            received.iter().filter(|frame| sent.binary_search(frame).is_err()).collect();
        let first = |frames: &[&String]| {
            frames
                .iter()
                .take(9)
                .map(|frame| format!("{} bytes: {}", frame.len() / 2, &frame[..frame.len().min(160)]))
                .collect::<Vec<_>>()
        };
        assert!(
            missing.is_empty() && strange.is_empty(),
            "{} frames are missing: {:#?}\n{} are new: {:#?}",
            missing.len(),
            first(&missing),
            strange.len(),
            first(&strange)
        );
        assert_eq!(sent.len(), received.len(), "frames were duplicated");
    }
    let counters = testbed.stop(gateway);
    assert!(counter(&counters, "frames-tunnelled") > 300, "{counters}");
    assert!(counter(&counters, "frames-unreadable") > 50, "{counters}");
    assert_eq!(counter(&counters, "flows"), 0, "{counters}");
}
