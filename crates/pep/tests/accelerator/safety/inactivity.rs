//! Safety on live traffic: unresponsive ends, expired timestamps, and clients with data that bypassed the
//! accelerator.

use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, Duration, TcpFlags};
use paceline_pep::accelerator::{AcceleratorConfig, BypassReason, Side};

const DAY: u64 = 24 * 3600 * 1000;

fn is_reset(packet: &paceline_net::Packet) -> bool {
    header(packet).flags.contains(TcpFlags::RST)
}

/// Flows with exposure 0 go on unharmed. The same holds after a long silence of the client: its
/// server decides how long to wait.
// keeps: accelerator.crash
#[test]
fn an_unresponsive_client_without_exposed_bytes_is_detached() {
    // No early ACKs; a response in one segment with its FIN; exposed bytes.
    for (no_early_acks, fin, reset) in [(true, false, false), (false, true, false), (false, false, true)] {
        let exposure = if no_early_acks { Bytes(0) } else { AcceleratorConfig::default().exposure };
        let config = AcceleratorConfig { exposure, ..AcceleratorConfig::default() };
        let mut bed = TestBed::open_with(config, |bed| {
            // The window keeps a part of the exposed bytes from being sent.
            (bed.shift, bed.window) = if reset { (0, 1_000) } else { (bed.shift, bed.window) };
        });
        if fin {
            let last = bed.server_packet(1, FIN, 900, |_| ());
            bed.server_sends(last);
        } else {
            bed.send(1, 2);
        }
        bed.wait(50);
        assert_eq!(bed.exposure() > 0, reset);
        bed.wait(1_000_000);
        let (down, up) = (bed.to_client.iter().any(is_reset), bed.to_server.iter().any(is_reset));
        assert_eq!((down, up, bed.accelerator.flow_count()), (reset, reset, 0));
        assert_eq!(bed.stats().flows_detached, u64::from(!reset));
        bed.clear();
        let again = bed.server_data(1, 900);
        bed.server_sends(again.clone());
        assert_eq!((bed.taken_by_client(), bed.taken_by_server()), (vec![again], vec![]), "end to end");
    }
}

/// Per-device caps. Connections whose ends have disappeared without a FIN give their
/// places to new ones.
// keeps: accelerator.hostile
#[test]
fn abandoned_connections_do_not_occupy_a_devices_places() {
    for places in [1, 40] {
        let config = AcceleratorConfig { max_flows_per_device: places, ..AcceleratorConfig::default() };
        let mut bed = TestBed::new(config);
        let connect = |bed: &mut TestBed| {
            bed.key.dst_port += 1;
            bed.client_next = 1;
            bed.handshake();
            let end = bed.send(1, 3);
            bed.wait(20);
            bed.ack(end);
            bed.accelerator.flow_count()
        };
        for _ in 0..places {
            connect(&mut bed);
        }
        bed.wait(30_000);
        assert_eq!((connect(&mut bed), bed.stats().bypassed(BypassReason::DeviceFull)), (places, 1));
        bed.wait(60_000);
        for _ in 0..places {
            connect(&mut bed);
        }
        let stats = bed.stats();
        assert_eq!((stats.bypassed(BypassReason::DeviceFull), stats.flows), (1, 2 * places as u64));
        assert_eq!((stats.flows_detached, stats.flows_reset), (places as u64, 0));
        assert_eq!(bed.accelerator.flow_count(), places);
        // Other devices have their own places.
        bed.wait(90_000);
        bed.key.dst = [198, 18, 0, 2].into();
        assert_eq!(connect(&mut bed), places + 1);
    }
}

/// Segments of the server bypassed the accelerator (fragments, IP options, another path). The client
/// acknowledges them in answer to every probe.
#[test]
fn a_client_that_repeats_acks_of_unseen_data_is_detached() {
    for (sack, timestamps, window) in
        [(true, true, WINDOW), (false, true, WINDOW), (true, false, WINDOW), (true, true, 0)]
    {
        let mut bed = TestBed::open_with(AcceleratorConfig::default(), |bed| {
            (bed.sack, bed.timestamps) = (sack, timestamps);
        });
        let mut off = bed.send(1, 4);
        bed.wait(20);
        if window == 0 {
            // Data stored behind a closed window bypassed the accelerator as well.
            bed.window = 0;
            bed.ack(off);
            bed.wait(100);
            off = bed.send(off, 1);
        }
        let theirs = off + 3000;
        let mut answers = 0;
        for _ in 0..100 {
            bed.clear();
            bed.wait(100);
            if bed.to_client.is_empty() {
                continue;
            }
            // The client answers each packet.
            bed.clear();
            let answer = bed.client_packet(bed.client_next, Some(theirs), ACK, 0, |_| ());
            bed.client_sends(answer.clone());
            answers += 1;
            if bed.accelerator.flow_count() == 0 {
                assert_eq!(bed.to_server, [answer], "the ACK is forwarded");
                break;
            }
        }
        assert_eq!(
            (bed.accelerator.flow_count(), bed.stats().flows_reset),
            (0, 0),
            "after {answers} answers"
        );
        assert_eq!((bed.stats().bypassed(BypassReason::Unseen), bed.exposure()), (1, 0));
        assert!(answers >= 2, "one answer is not accepted");
    }
}

/// Injected ACKs of unseen data release no data that the client lacks, as
/// long as the client itself acknowledges less.
// keeps: accelerator.injection
#[test]
fn injected_acks_of_unseen_data_release_nothing() {
    // Without a probe they count for nothing.
    let mut bed = TestBed::open();
    let end = bed.send(1, 4);
    bed.wait(20);
    (0..100).for_each(|_| bed.ack(end + 1000));
    assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    // All data is lost repeatedly; the client answers with its true acknowledgment.
    for _ in 0..30 {
        bed.clear();
        bed.wait(100);
        if !bed.data().is_empty() {
            bed.ack(end + 1000);
            bed.ack(1);
            bed.ack(end + 1000);
        }
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    }
    // Numbers beyond every window are never accepted.
    for _ in 0..30 {
        bed.clear();
        bed.wait(100);
        bed.ack(end + 900_000_000);
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (end - 1, 1));
    }
    // ACKs of stored data that was not sent.
    let mut bed = TestBed::open_with(AcceleratorConfig::default(), |bed| bed.window = 250);
    bed.send(1, 30);
    bed.wait(20);
    let sent = bed.data().iter().map(|(off, len)| off + u64::from(*len)).max().unwrap();
    assert!(sent < 20_000, "{sent}");
    for _ in 0..30 {
        bed.wait(100);
        bed.ack(sent + 1000);
        bed.ack(1);
        assert_eq!((bed.exposure(), bed.accelerator.flow_count()), (30_000, 1));
    }
}

/// Data that bypassed the accelerator arrives here again when the server retransmits it: delivery of the rest
/// continues.
#[test]
fn data_that_the_client_has_already_does_not_stop_the_transfer() {
    let mut bed = TestBed::open();
    let off = bed.send(1, 4);
    bed.wait(20);
    // Ten segments bypass the accelerator, and the client is silent; the server retransmits them here,
    // followed by more.
    let mut have = off + 10_000;
    bed.wait(700);
    let end = bed.send(off, 30);
    bed.clear();
    let since = bed.now;
    while have < end {
        assert!(bed.now.since(since) < Duration::from_secs(6), "at {have} of {end}");
        bed.wait(50);
        let sent = bed.data();
        bed.clear();
        for (off, len) in sent {
            have = if off <= have { have.max(off + u64::from(len)) } else { have };
            bed.ack(have);
        }
    }
    bed.ack(end);
    assert_eq!((bed.exposure(), bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 1, 0));
}

/// RFC 7323, sections 4.3 and 5.5: pure ACKs of the server update TS.Recent as well, or its timestamps would
/// wrap around.
// keeps: accelerator.timestamps
#[test]
fn a_server_that_only_sends_acks_for_a_month_passes_paws() {
    let mut bed = TestBed::open();
    let off = bed.send(1, 2);
    bed.wait(20);
    bed.ack(off);
    for day in 0..30 {
        bed.wait(DAY);
        bed.clear();
        let data = bed.client_packet(bed.client_next, Some(off), ACK, 10, |_| ());
        bed.client_sends(data);
        bed.client_next += 10;
        let ack = bed.server_packet(off, ACK, 0, |_| ());
        bed.server_sends(ack);
        bed.echo[0] = bed.clock;
        assert_eq!((bed.to_client.len(), bed.to_server.len()), (1, 1), "day {day}");
    }
    bed.clear();
    let end = bed.send(off, 1);
    bed.wait(10);
    assert_eq!((bed.data(), bed.acked(), bed.stats().invalid), (vec![(off, SEGMENT)], Some(end), 0));
    let old = bed.server_packet(end, ACK, SEGMENT, |tcp| {
        tcp.options.timestamps.as_mut().unwrap().val = bed.clock.wrapping_sub(1000);
    });
    bed.server_sends(old);
    assert_eq!(bed.stats().invalid, 1, "an old segment is rejected");
}

/// RFC 7323, section 5.5: after 24 days of silence no timestamp of either end is old. With clocks of
/// microseconds (Linux: `ip route ... features tcp_usec_ts`) this holds after half an hour.
// keeps: accelerator.timestamps
#[test]
fn segments_after_a_long_silence_pass_paws() {
    const MINUTE: u64 = 60 * 1000;
    let days = [24, 26, 40].map(|days| (days * DAY + DAY * 9 / 10, 1));
    let minutes = [20, 30, 36, 50, 71, 72, 107, 108, 600].map(|minutes| (minutes * MINUTE, 1000));
    let silences = days.into_iter().chain(minutes);
    for ((silence, ticks), first) in silences.flat_map(|s| [(s, Side::Server), (s, Side::Mobile)]) {
        let mut bed = TestBed::open();
        let off = bed.send(1, 2);
        bed.wait(20);
        bed.ack(off);
        bed.wait(silence);
        bed.clock = bed.clock.wrapping_add((silence * (ticks - 1)) as u32);
        bed.clear();
        bed.echo = [bed.echo[0], bed.clock];
        if first == Side::Mobile {
            let request = bed.client_packet(bed.client_next, Some(off), ACK, 10, |_| ());
            bed.client_sends(request);
            bed.client_next += 10;
        }
        let end = bed.send(off, 3);
        bed.echo = [bed.clock; 2];
        bed.wait(20);
        bed.ack(end);
        bed.wait(20);
        assert_eq!(
            (bed.data().len(), bed.acked(), bed.exposure()),
            (3, Some(end), 0),
            "{first:?}, {silence}"
        );
        // After the expiry, timestamps sent to either end are as new as the ends' own.
        let recent = |packets: &[paceline_net::Packet]| {
            let of = |packet| header(packet).options.timestamps.unwrap().val;
            packets.iter().map(of).all(|val| bed.clock.wrapping_sub(val) < 1000)
        };
        assert!(
            silence < 2_048_000 || recent(&bed.to_client) && recent(&bed.to_server),
            "{first:?}, {silence}"
        );
        assert_eq!((bed.stats().invalid, bed.stats().flows_reset), (0, 0));
    }
}
