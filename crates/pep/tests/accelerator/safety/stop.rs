//! Safety on live traffic: draining, aborting and reconfiguring the accelerator while connections are open.

use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, Duration, TcpFlags};
use paceline_pep::accelerator::AcceleratorConfig;

/// Stop early ACKs, deliver what is held, detach at exposure 0; after a
/// limit reset the rest.
// keeps: accelerator.stop
#[test]
fn stop_delivers_then_detaches_and_resets_only_after_the_limit() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.clear();
    bed.wait(15);
    bed.accelerator.drain(bed.now, Duration::from_secs(10));
    let later = bed.send(end, 2);
    assert_eq!(bed.acked(), None, "no early ACK, though {later} bytes have arrived");
    bed.wait(5);
    bed.ack(end);
    assert_eq!((bed.acked(), bed.exposure()), (None, 0), "the server has that ACK already");
    bed.wait(15);
    bed.ack(later);
    assert_eq!(bed.acked(), Some(later), "the client's ACK is forwarded");
    // The connection stays until its server's timeout is that of the path.
    assert_eq!(bed.accelerator.flow_count(), 1);
    let big = bed.client_packet(1, Some(later), ACK, 0, |tcp| tcp.window = u16::MAX);
    let before = bed.accelerator.flow_count();
    bed.client_sends(big);
    let mut off = later;
    for _ in 0..3000 {
        if bed.accelerator.flow_count() == 0 {
            break;
        }
        off = bed.send(off, 1);
        bed.wait(1);
        bed.window = u16::MAX;
        bed.ack(off);
    }
    assert_eq!((before, bed.accelerator.flow_count()), (1, 0), "detached at {off}");
    assert_eq!(bed.stats().flows_detached, 1);
    bed.clear();
    let data = bed.server_data(off, SEGMENT);
    bed.server_sends(data.clone());
    bed.ack(off + 1000);
    assert_eq!(bed.taken_by_client(), [data]);
    assert_eq!(bed.acked(), Some(off + 1000));

    let mut bed = TestBed::open();
    bed.send(1, 8);
    bed.clear();
    bed.accelerator.drain(bed.now, Duration::from_millis(500));
    bed.wait(600);
    assert_eq!(bed.accelerator.flow_count(), 0);
    assert!(bed.to_client.iter().any(|packet| header(packet).flags.contains(TcpFlags::RST)));
    assert!(bed.to_server.iter().any(|packet| header(packet).flags.contains(TcpFlags::RST)));
    assert_eq!(bed.stats().flows_reset, 1);
}

/// A transfer without pauses is detached soon after its exposure is 0, although its server has a larger
/// window and more of its data is stored.
// keeps: accelerator.stop
#[test]
fn a_running_transfer_is_detached_at_exposure_zero() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.wait(15);
    bed.accelerator.drain(bed.now, Duration::from_secs(30));
    let mut off = end;
    for _ in 0..2000 {
        if bed.accelerator.flow_count() == 0 {
            break;
        }
        // The server always has data in flight.
        let next = bed.send(off, 2);
        bed.wait(1);
        bed.ack(off);
        off = next;
    }
    assert_eq!(bed.accelerator.flow_count(), 0);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (1, 0));
}

/// End of the contiguous data that was sent to the client.
fn contiguous(bed: &TestBed) -> u64 {
    bed.data()
        .iter()
        .fold(1, |end, (off, len)| if *off <= end { end.max(off + u64::from(*len)) } else { end })
}

/// Stored data is sent at the rate of the radio before the connection is detached. Otherwise the server,
/// whose timeout has grown with the queue, would retransmit the end of a flight only after seconds.
// keeps: accelerator.bypass
#[test]
fn stored_data_is_sent_before_the_connection_is_detached() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.wait(15);
    bed.ack(end);
    bed.accelerator.drain(bed.now, Duration::from_secs(30));
    // The server uses the window that was advertised.
    let last = bed.send(end, 300);
    let (begun, mut acked) = (bed.now, end);
    while bed.accelerator.flow_count() > 0 && bed.now.since(begun) < Duration::from_secs(29) {
        // A slow radio, so that a second is not enough.
        bed.wait(20);
        acked = contiguous(&bed).min(acked + 2000);
        bed.ack(acked);
    }
    assert_eq!(
        (bed.accelerator.flow_count(), bed.stats().flows_detached, bed.stats().flows_reset),
        (0, 1, 0)
    );
    assert_eq!((contiguous(&bed), bed.stats().retransmissions), (last, 0));
}

/// While draining, the window does not let the server refill the store, however large the client's window is.
// keeps: accelerator.stop
#[test]
fn draining_opens_no_large_window() {
    let config = AcceleratorConfig { flow_buffer: Bytes(32 << 10), ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |bed| bed.window = 1000);
    let end = bed.send(1, 8);
    bed.wait(15);
    bed.accelerator.drain(bed.now, Duration::from_secs(30));
    bed.window = WINDOW;
    bed.ack(end);
    bed.clear();
    let mut off = end;
    for _ in 0..40 {
        let next = bed.send(off, 1);
        bed.wait(5);
        bed.ack(next);
        off = next;
    }
    let windows: Vec<u32> =
        bed.to_server.iter().map(|packet| u32::from(header(packet).window) << bed.shift).collect();
    assert!(windows.len() >= 40 && windows.iter().all(|window| *window <= 32 << 10), "{windows:?}");
    bed.wait(2000);
    assert_eq!(bed.accelerator.flow_count(), 0);
}

/// At the limit, or at once: a connection with exposure 0 is not reset although data of it is stored.
#[test]
fn an_abort_resets_exposed_connections_only() {
    let mut bed =
        TestBed::open_with(AcceleratorConfig { exposure: Bytes(0), ..AcceleratorConfig::default() }, |_| ());
    let end = bed.send(1, 50);
    assert!(bed.exposure() == 0 && bed.accelerator.held() > 50_000 && contiguous(&bed) < end);
    bed.accelerator.abort(bed.now);
    bed.wait(1);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (1, 0));
    assert_eq!(contiguous(&bed), end, "the server need not retransmit it");
    let mut bed = TestBed::open();
    bed.send(1, 8);
    assert!(bed.exposure() > 0);
    bed.accelerator.abort(bed.now);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (0, 1));
}

/// Advertised windows and ACKs are kept, new data follows the new
/// parameters.
// keeps: accelerator.stop
#[test]
fn new_parameters_apply_to_new_data_and_revoke_nothing() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 20);
    let exposure = bed.exposure();
    assert_eq!(exposure, 20_000);
    let small = AcceleratorConfig {
        flow_buffer: Bytes(16 << 10),
        exposure: Bytes(4_000),
        max_flows: 1,
        ..AcceleratorConfig::default()
    };
    bed.accelerator.set_config(small);
    bed.clear();
    let end = bed.send(end, 4);
    assert_eq!(bed.exposure(), exposure, "no further early ACK");
    let acked = bed.acked();
    assert!(acked.is_none_or(|ack| ack == 20_001), "no ACK is revoked: {acked:?}");
    let delivered = |bed: &mut TestBed, end: u64| {
        for off in (1..end).step_by(4000).chain([end]) {
            bed.wait(50);
            bed.ack(off);
        }
        assert_eq!(bed.exposure(), 0);
    };
    delivered(&mut bed, end);
    let end = bed.send(end, 8);
    assert_eq!(bed.exposure(), 4_000, "the new cap");
    delivered(&mut bed, end);
    bed.accelerator.set_config(AcceleratorConfig::default());
    bed.send(end, 20);
    assert_eq!(bed.exposure(), 20_000, "the old cap again");
    bed.accelerator.invariants();
}

/// Data beyond a gap that are in SACK blocks are kept: the server would send them again only after a timeout.
#[test]
fn data_that_was_sacked_is_sent_before_the_connection_is_detached() {
    for fills_gap in [true, false] {
        let mut bed = TestBed::open();
        let end = bed.send(1, 2);
        bed.wait(15);
        bed.ack(end);
        let beyond = end + u64::from(SEGMENT);
        let data = bed.server_data(beyond, SEGMENT);
        bed.clear();
        bed.server_sends(data);
        bed.wait(5);
        assert!(bed.to_server.iter().any(|packet| !header(packet).options.sack.is_empty()));
        bed.accelerator.drain(bed.now, Duration::from_secs(10));
        bed.wait(3000);
        assert_eq!(bed.accelerator.flow_count(), 1, "the server fills the gap in a round trip");
        bed.clear();
        if fills_gap {
            let data = bed.server_data(end, SEGMENT);
            bed.server_sends(data);
            bed.wait(15);
            bed.ack(beyond + u64::from(SEGMENT));
            bed.wait(3000);
            assert_eq!(bed.data(), [(end, SEGMENT), (beyond, SEGMENT)]);
        } else {
            bed.accelerator.abort(bed.now);
            bed.wait(1);
            assert_eq!(bed.data(), [(beyond, SEGMENT)]);
        }
        assert_eq!((bed.accelerator.flow_count(), bed.stats().flows_reset), (0, 0));
        assert_eq!(bed.stats().flows_detached, 1);
    }
}
