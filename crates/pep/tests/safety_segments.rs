//! The rules for live traffic, second part: what happens to single segments. One test for each row of the table of hazards
//! of an accelerator; the row stands in the test's documentation.

mod bed;

use bed::*;
use paceline_net::rewrite::{Unparsed, checksum_is_right};
use paceline_net::{Bytes, Packet, SeqNumber, TcpFlags, TcpHeader, wire};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};

fn open(change: impl FnOnce(&mut Bed)) -> Bed {
    let mut bed = Bed::open_with(AcceleratorConfig::default(), change);
    bed.clear();
    bed
}

fn older(tcp: &mut TcpHeader, by: u32) {
    let timestamps = tcp.options.timestamps.as_mut().unwrap();
    timestamps.val = timestamps.val.wrapping_sub(by);
}

/// Row "blind injection (RFC 5961)": validated like an endpoint before any state change.
#[test]
fn injected_segments_change_nothing() {
    let mut bed = open(|_| ());
    let end = bed.send(1, 6);
    bed.wait(15);
    bed.ack(1001);
    bed.clear();
    let before: Vec<_> = bed.accelerator.flows().collect();
    let strange = [
        // Resets in the window, not at its edge; resets of the client likewise.
        (Side::Server, bed.server_packet(end + 500, RST, 0, |_| ())),
        (Side::Mobile, bed.client_packet(700, Some(1001), RST, 0, |_| ())),
        // Data with an acknowledgment of what the client never sent, or far below.
        (Side::Server, bed.server_packet(end, ACK, SEGMENT, |tcp| tcp.ack += 5_000)),
        (
            Side::Server,
            bed.server_packet(end, ACK, SEGMENT, |tcp| tcp.ack = tcp.ack + 0u32.wrapping_sub(1 << 29)),
        ),
        // Data far outside the window, and an old timestamp.
        (Side::Server, bed.server_packet(end + (1 << 28), ACK, SEGMENT, |_| ())),
        (
            Side::Server,
            bed.server_packet(end, ACK, SEGMENT, |tcp| {
                older(tcp, 100_000);
            }),
        ),
        // Acknowledgments of what was never sent, or with numbers of no client.
        (Side::Mobile, bed.client_packet(1, Some(end + 9_000), ACK, 0, |_| ())),
        (Side::Mobile, bed.client_packet(1 << 28, Some(3001), ACK, 0, |_| ())),
        (
            Side::Mobile,
            bed.client_packet(1, Some(3001), ACK, 0, |tcp| {
                older(tcp, 1_000_000);
            }),
        ),
    ];
    for (side, packet) in strange {
        bed.input(side, packet.clone());
        let now: Vec<_> = bed.accelerator.flows().collect();
        assert_eq!(now, before, "{packet:?}");
    }
    assert!(bed.to_client.iter().all(|packet| header(packet).payload_len == 0));
    assert!(bed.acked().is_none_or(|acked| acked <= end));
    assert!(bed.stats().invalid + bed.stats().optimistic_acks >= 8);
    // The connection goes on.
    bed.wait(15);
    bed.ack(end);
    assert_eq!(bed.exposure(), 0);
}

/// Row "client data or FIN with an old ACK number": ACK, window, SACK and TSecr are rewritten to what the server has seen
/// from us; only empty ACKs are dropped.
#[test]
fn client_segments_carry_what_the_server_has_seen() {
    let mut bed = open(|_| ());
    let end = bed.send(1, 5);
    let seen = header(bed.to_server.last().unwrap());
    bed.clear();
    let isn = SeqNumber(bed.server_isn);
    for (flags, len) in [(ACK, 700), (FIN, 0)] {
        let packet = bed.client_packet(bed.client_next, Some(1), flags, len, |tcp| {
            tcp.options.sack.push(isn + 2001, isn + 3001);
        });
        bed.from_client(packet.clone());
        let passed = bed.to_server.pop().expect("it passes");
        let tcp = header(&passed);
        assert_eq!((bed.offset(tcp.ack), tcp.window), (end, seen.window));
        assert_eq!((tcp.seq, tcp.payload_len, tcp.flags), (header(&packet).seq, len, flags));
        assert!(tcp.options.sack.is_empty(), "nothing is missing here");
        assert_eq!(tcp.options.timestamps.unwrap().ecr, seen.options.timestamps.unwrap().ecr);
        assert_eq!(tcp.options.timestamps.unwrap().val, bed.clock);
        assert_eq!(body(&passed), body(&packet));
        assert!(checksum_is_right(&passed));
        bed.client_next += len;
    }
    let empty = bed.client_packet(bed.client_next + 1, Some(1), ACK, 0, |_| ());
    bed.from_client(empty);
    assert!(bed.to_server.is_empty());
}

/// Row "SACK towards the server": only for what *we* lack.
#[test]
fn the_server_hears_of_our_gaps_only() {
    let mut bed = open(|_| ());
    let end = bed.send(1, 4);
    bed.wait(15);
    bed.clear();
    bed.sack(1, 1001, 3001);
    assert!(bed.to_server.is_empty(), "the client's gap is ours to repair");
    let later = bed.server_data(end + 2000, SEGMENT);
    bed.from_server(later);
    let tcp = header(bed.to_server.last().expect("a duplicate acknowledgment at once"));
    let isn = SeqNumber(bed.server_isn);
    assert_eq!(bed.offset(tcp.ack), end);
    let blocks = tcp.options.sack;
    assert_eq!(blocks.as_slice(), [(isn + (end + 2000) as u32, isn + (end + 3000) as u32)]);
    bed.send(end, 2);
    let tcp = header(bed.to_server.last().unwrap());
    assert_eq!((bed.offset(tcp.ack), tcp.options.sack.is_empty()), (end + 3000, true));
}

/// Row "client's duplicate ACKs": suppressed only if the segment is in our buffer and is sent again from there.
#[test]
fn duplicates_are_suppressed_and_the_loss_repaired_here() {
    for sack in [true, false] {
        let mut bed = open(|bed| bed.sack = sack);
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
        assert!(bed.data().contains(&(1, SEGMENT)), "sent again, SACK {sack}");
        assert!(bed.to_server.is_empty(), "the server hears nothing");
        assert!(bed.stats().duplicates_suppressed > 0 || sack);
    }
    // A connection that is not in our buffer: they pass.
    let mut bed = Bed::new(AcceleratorConfig::default());
    let duplicate = bed.client_packet(1, Some(5001), ACK, 0, |_| ());
    for _ in 0..3 {
        bed.from_client(duplicate.clone());
    }
    assert_eq!(bed.taken_by_server(), vec![duplicate; 3]);
}

/// Row "window": the right edge towards the server never retreats; the client's window is honoured unless overshoot is on;
/// own zero-window probes; the server's are answered.
#[test]
fn windows_are_kept_honoured_and_probed() {
    let config =
        AcceleratorConfig { overshoot: false, flow_buffer: Bytes(40_000), ..AcceleratorConfig::default() };
    let mut bed = Bed::open_with(config, |bed| (bed.shift, bed.window) = (0, 8_000));
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
    assert!(probes.iter().all(|tcp| bed.offset(tcp.seq) == 8_000), "just below what the client expects");
    // The server fills our buffer, and probes.
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
    bed.from_server(probe);
    let answer = header(bed.to_server.last().expect("an answer"));
    assert_eq!((bed.offset(answer.ack), answer.window), (edge, 0));
    // The client reads on: so may the server send.
    bed.clear();
    bed.window = 8_000;
    bed.ack(8_001);
    bed.wait(40);
    assert_eq!(bed.data().first().map(|first| first.0), Some(8_001));
    bed.ack(16_001);
    assert!(bed.to_server.iter().map(header).any(|tcp| tcp.window > 0), "the window opens");
}

/// Row "window scale, timestamps": only from a seen SYN pair; TSval = the client's last real value; TSecr of the acknowledged
/// segment; a retransmission carries a valid TSval.
#[test]
fn scale_and_timestamps_are_those_of_the_ends() {
    let mut bed = open(|_| ());
    let sent_at = bed.clock;
    let real = bed.clock;
    let data = bed.server_data(1, SEGMENT);
    bed.clock = bed.clock.wrapping_add(5);
    bed.from_server(data);
    let early = header(bed.to_server.last().unwrap()).options.timestamps.unwrap();
    assert_eq!((early.val, early.ecr), (real, sent_at), "the client's last, and the segment's");
    let data = bed.server_data(1001, SEGMENT);
    let newest = bed.clock;
    bed.from_server(data);
    assert_eq!(header(bed.to_server.last().unwrap()).options.timestamps.unwrap().ecr, newest);
    // A gap: TSecr stays that of the segment that the acknowledgment waits behind.
    bed.clock = bed.clock.wrapping_add(5);
    let beyond = bed.server_data(5001, SEGMENT);
    bed.from_server(beyond);
    assert_eq!(header(bed.to_server.last().unwrap()).options.timestamps.unwrap().ecr, newest);
    bed.clear();
    bed.wait(2_000);
    let again: Vec<TcpHeader> =
        bed.to_client.iter().map(header).filter(|tcp| bed.offset(tcp.seq) == 1).collect();
    assert!(!again.is_empty(), "sent again");
    let highest = newest.wrapping_add(5);
    for tcp in again {
        let val = tcp.options.timestamps.unwrap().val;
        assert!(val.wrapping_sub(sent_at) as i32 >= 0 && highest.wrapping_sub(val) as i32 >= 0);
    }
    // Neither was agreed on: neither is used.
    let mut bed = open(|bed| (bed.timestamps, bed.shift) = (false, 0));
    bed.send(1, 4);
    bed.wait(10);
    let out: Vec<TcpHeader> = bed.to_server.iter().chain(&bed.to_client).map(header).collect();
    assert!(out.iter().all(|tcp| tcp.options.timestamps.is_none()));
    assert_eq!(
        bed.to_server.last().map(|packet| header(packet).window),
        Some(u16::MAX),
        "no scale: 64 KB at most"
    );
}

/// Row "sequence wrap": serial compare, 64-bit offsets inside.
#[test]
fn numbers_wrap_without_a_trace() {
    for isn in [u32::MAX - 2_500, 0x7fff_ff00, u32::MAX] {
        let mut bed = open(|bed| (bed.server_isn, bed.client_isn) = (isn, isn.wrapping_sub(50)));
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

/// Row "server retransmits": acknowledged again; conflicting bytes: the first are kept, and counted.
#[test]
fn repeated_bytes_are_acknowledged_again_and_the_first_kept() {
    let mut bed = open(|_| ());
    bed.send(1, 3);
    bed.clear();
    let again = bed.server_data(1001, SEGMENT);
    bed.from_server(again.clone());
    assert_eq!(bed.acked(), Some(3001));
    assert_eq!((bed.stats().server_retransmissions, bed.stats().conflicts), (1, 0));
    let other = repaired(&again, |raw| *raw.last_mut().unwrap() ^= 1);
    bed.from_server(other);
    assert_eq!(bed.stats().conflicts, 1);
    bed.wait(2_000);
    assert!(bed.data().len() >= 3, "the bytes are the first ones, as `data` verifies");
}

/// Row "classic ECN": CE from the server side is echoed by us; ECE from the client is consumed and answered with CWR.
#[test]
fn congestion_marks_are_answered_on_their_own_segment() {
    let mut bed = open(|bed| bed.ecn = true);
    let ce = repaired(&bed.server_data(1, SEGMENT), |raw| raw[1] |= 3);
    bed.from_server(ce);
    let echoes =
        |bed: &Bed| bed.to_server.iter().map(header).filter(|t| t.flags.contains(TcpFlags::ECE)).count();
    assert_eq!(echoes(&bed), 1);
    assert_eq!(bed.to_client.last().map(|packet| packet.ip.ecn()), Some(2), "as it was sent");
    bed.send(1001, 1);
    assert_eq!(echoes(&bed), 2, "until the server answers");
    let answer = bed.server_packet(2001, ACK.with(TcpFlags::CWR), SEGMENT, |_| ());
    bed.from_server(answer);
    bed.send(3001, 1);
    assert_eq!(echoes(&bed), 2);
    bed.wait(20);
    bed.clear();
    for off in [1001, 2001] {
        let echo = bed.client_packet(1, Some(off), ACK.with(TcpFlags::ECE), 100, |_| ());
        bed.from_client(echo);
        assert_eq!(echoes(&bed), 0, "consumed, though the data goes on");
        bed.client_next = 101;
    }
    bed.send(4001, 4);
    bed.wait(20);
    let answers = bed.to_client.iter().map(header).filter(|tcp| tcp.flags.contains(TcpFlags::CWR)).count();
    assert_eq!(answers, 1, "once a flight");
}

/// Row "keepalive": end to end; with a silent client early ACKs stop.
#[test]
fn keepalives_pass_and_silence_stops_early_acknowledgments() {
    let mut bed = open(|_| ());
    let end = bed.send(1, 2);
    bed.wait(5);
    bed.ack(end);
    bed.clear();
    let keepalive = bed.server_packet(end - 1, ACK, 0, |_| ());
    bed.from_server(keepalive.clone());
    assert_eq!((bed.taken_by_client(), bed.to_server.len()), (vec![keepalive], 0));
    bed.ack(end);
    assert_eq!(bed.acked(), Some(end), "the client's answer is the server's");
    bed.clear();
    let probe = bed.client_packet(0, Some(end), ACK, 0, |_| ());
    bed.from_client(probe);
    assert_eq!(bed.to_server.len(), 1, "the client's own passes as well");
    bed.clear();
    let off = bed.send(end, 4);
    assert_eq!(bed.acked(), Some(off));
    bed.wait(3_500);
    bed.clear();
    bed.send(off, 2);
    assert_eq!(bed.acked(), None);
    bed.ack(off);
    assert_eq!(bed.acked(), Some(off + 2000), "it is heard again");
}

/// Row "URG": preserved; no early ACK across it.
#[test]
fn urgent_data_keeps_its_pointer_and_waits_for_the_client() {
    let mut bed = open(|_| ());
    let end = bed.send(1, 2);
    let tcp = header(&bed.server_packet(end, ACK.with(TcpFlags::URG), 500, |_| ()));
    let urgent = datagram(bed.key, tcp, Unparsed { urgent: 7, flow_label: 0 }, &payload(end, 500));
    bed.from_server(urgent);
    bed.send(end + 500, 2);
    bed.wait(20);
    assert_eq!(bed.acked(), Some(end), "nothing of it, nor behind it");
    let sent =
        bed.to_client.iter().find(|packet| header(packet).flags.contains(TcpFlags::URG)).expect("it passes");
    assert_eq!((bed.offset(header(sent).seq), Unparsed::of(sent).urgent), (end, 7));
    bed.ack(end + 500);
    assert_eq!(bed.acked(), Some(end + 2500));
}

/// Row "PMTU, ICMP": packet-too-big is validated, what is held is cut anew, the message is forwarded.
#[test]
fn packet_too_big_is_validated_obeyed_and_forwarded() {
    let icmp = |bed: &Bed, off: u64, mtu: u16| {
        let quoted = bytes(&bed.server_data(off, SEGMENT));
        let mut raw = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 198, 18, 0, 9, 198, 19, 0, 1];
        raw.extend_from_slice(&[3, 4, 0, 0, 0, 0, (mtu >> 8) as u8, mtu as u8]);
        raw.extend_from_slice(&quoted[..28]);
        wire::parse(&raw).expect("a datagram")
    };
    let mut bed = open(|_| ());
    let end = bed.send(1, 3);
    bed.wait(20);
    bed.clear();
    let forged = icmp(&bed, end + 100_000, 600);
    bed.from_client(forged.clone());
    bed.wait(3);
    assert_eq!(
        (bed.taken_by_server(), bed.taken_by_client()),
        (vec![forged], vec![]),
        "not ours: only forwarded"
    );
    let message = icmp(&bed, 1, 600);
    bed.from_client(message.clone());
    bed.wait(20);
    assert_eq!(bed.taken_by_server(), [message]);
    let data = bed.data();
    assert!(data.iter().all(|(_, len)| *len <= 600 - 52), "{data:?}");
    assert_eq!(data.iter().map(|(_, len)| u64::from(*len)).sum::<u64>(), end - 1, "all of it again");
}

/// Row "fragments, extension headers": bypass.
#[test]
fn fragments_and_extension_headers_pass() {
    let mut bed = open(|_| ());
    let fragment = patched(&bed.server_data(1, SEGMENT), |raw| raw[6] |= 0x20);
    bed.from_server(fragment.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![fragment], vec![]));
    // What the client got around us, it acknowledges: the connection is left alone from there.
    let ack = bed.client_packet(1, Some(1001), ACK, 0, |_| ());
    bed.send(1, 1);
    bed.wait(5);
    bed.ack(1001);
    let beyond = bed.client_packet(1, Some(2001), ACK, 0, |_| ());
    bed.clear();
    bed.from_client(beyond.clone());
    assert_eq!((bed.taken_by_server(), bed.accelerator.flow_count()), (vec![beyond], 0), "{ack:?}");
    // An IPv6 extension header in the handshake.
    let mut bed = Bed::new(AcceleratorConfig::default()).v6();
    let options = bed.syn_options();
    let syn = bed.client_packet(0, None, SYN, 0, |tcp| tcp.options = options);
    let extended = patched(&syn, |raw| {
        raw[6] = 60;
        raw.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
        let len = raw.len() as u16 - 40;
        raw[4..6].copy_from_slice(&len.to_be_bytes());
    });
    assert!(extended.ip.special);
    bed.from_client(extended);
    assert_eq!(bed.stats().bypassed(BypassReason::SpecialIp), 1);
}

/// Row "DSCP, TTL, flow label": from the original.
#[test]
fn header_fields_are_those_of_the_original() {
    let mut bed = open(|_| ());
    let marked = repaired(&bed.server_data(1, SEGMENT), |raw| (raw[1], raw[8]) = (0xb8, 33));
    bed.from_server(marked);
    let sent = &bed.to_client[0];
    assert_eq!((sent.ip.traffic_class, sent.ip.hop_limit), (0xb8, 33));
    let request =
        repaired(&bed.client_packet(1, Some(1), ACK, 10, |_| ()), |raw| (raw[1], raw[8]) = (0x28, 44));
    bed.from_client(request);
    bed.clear();
    bed.send(1001, 1);
    let ack = bed.to_server.last().unwrap();
    assert_eq!((ack.ip.traffic_class, ack.ip.hop_limit), (0x28, 44), "our ACK is as the client's");

    let mut bed = Bed::new(AcceleratorConfig::default()).v6();
    bed.handshake();
    bed.clear();
    let tcp = header(&bed.server_data(1, SEGMENT));
    let label = Unparsed { urgent: 0, flow_label: 0x54321 };
    let labelled = datagram(bed.key, tcp, label, &payload(1, SEGMENT));
    bed.from_server(labelled);
    assert_eq!(Unparsed::of(&bed.to_client[0]), label);
}

/// Row "checksums, GRO": a corrupt segment is never acknowledged; what exceeds the MTU is cut anew.
#[test]
fn corrupt_segments_are_not_believed_and_super_packets_are_cut() {
    let mut bed = open(|_| ());
    let corrupt = patched(&bed.server_data(1, SEGMENT), |raw| raw[100] ^= 4);
    bed.from_server(corrupt.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![corrupt], vec![]));
    assert_eq!(bed.stats().flows, 0, "nor is a connection taken in for it");
    // (The opening was given up with it; a new connection shows the rest.)
    let mut bed = open(|_| ());
    bed.send(1, 1);
    bed.clear();
    let corrupt = patched(&bed.server_data(1001, SEGMENT), |raw| raw[100] ^= 4);
    bed.from_server(corrupt.clone());
    assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![corrupt], vec![]));
    assert_eq!(bed.stats().corrupt, 1);
    let acked = patched(&bed.client_packet(1, Some(1001), ACK, 0, |_| ()), |raw| raw[30] ^= 1);
    bed.from_client(acked.clone());
    assert_eq!((bed.taken_by_server(), bed.exposure()), (vec![acked], 1000), "a corrupt ACK is no ACK");
    let aggregate = bed.server_data(1001, 10_500);
    bed.from_server(aggregate);
    bed.wait(30);
    assert_eq!(bed.acked(), Some(11_501), "one ACK for all");
    let data = bed.data();
    assert_eq!(data.iter().map(|(_, len)| *len).max(), Some(SEGMENT));
    assert_eq!(data.iter().map(|(_, len)| u64::from(*len)).sum::<u64>(), 10_500);
}

/// Row "GTP-U (N3, S1-U)": the recommended place is N6 or SGi; tunnelled packets, echo and end markers pass.
#[test]
fn tunnelled_packets_pass() {
    let mut bed = open(|_| ());
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
        bed.from_server(packet.clone());
        bed.from_client(packet.clone());
        assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![packet.clone()], vec![packet]));
    }
}

/// Row "hostile packets": bounded parsers, per-device caps.
#[test]
fn hostile_packets_do_no_harm_and_devices_have_caps() {
    let config = AcceleratorConfig { max_flows_per_device: 2, ..AcceleratorConfig::default() };
    let mut bed = Bed::open_with(config, |_| ());
    bed.send(1, 3);
    for port in [41_000, 41_001, 41_002] {
        bed.key.dst_port = port;
        bed.handshake();
        bed.send(1, 1);
    }
    assert_eq!((bed.accelerator.flow_count(), bed.stats().bypassed(BypassReason::DeviceFull)), (2, 2));
    bed.key.dst_port = 40_000;
    // Every bit of a segment's headers turned, with the checksum made right.
    let data = bed.server_data(3001, 60);
    let ack = bed.client_packet(1, Some(1001), ACK, 0, |_| ());
    for (side, packet) in [(Side::Server, data), (Side::Mobile, ack)] {
        for bit in 0..8 * (bytes(&packet).len().min(52) as u32) {
            let mut raw = bytes(&packet);
            raw[bit as usize / 8] ^= 1 << (bit % 8);
            if let Ok(strange) = wire::parse(&raw) {
                let strange = if strange.tcp_header().is_some() && !strange.ip.special {
                    repaired(&packet, |raw| raw[bit as usize / 8] ^= 1 << (bit % 8))
                } else {
                    strange
                };
                bed.input(side, strange);
            }
        }
    }
    assert!(bed.accelerator.held() < 100_000);
}
