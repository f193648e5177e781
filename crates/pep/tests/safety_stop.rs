//! The rules for live traffic: how the machine stops, and how it changes while connections live.

mod test_bed;

use paceline_net::{Bytes, Duration, TcpFlags};
use paceline_pep::accelerator::AcceleratorConfig;
use test_bed::*;

/// Row "stop, upgrade, config change": early ACKs stop, what is held is delivered, detach at exposure 0; after a
/// limit the rest is reset.
#[test]
fn stop_delivers_then_detaches_and_resets_only_after_the_limit() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.clear();
    bed.wait(15);
    bed.accelerator.drain(bed.now, Duration::from_secs(10));
    let later = bed.send(end, 2);
    assert_eq!(bed.acked(), None, "no early acknowledgment, though {later} has come");
    bed.wait(5);
    bed.ack(end);
    assert_eq!((bed.acked(), bed.exposure()), (None, 0), "the server knows that already");
    bed.wait(15);
    bed.ack(later);
    assert_eq!(bed.acked(), Some(later), "what the client acknowledges goes on");
    // Its server's timer becomes the path's first.
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

/// A stop of a transfer that never pauses: soon after its device is owed nothing, it goes on end to end, though its server
/// was promised a wider window and more of it is held.
#[test]
fn a_running_transfer_is_let_go_when_nothing_is_owed() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.wait(15);
    bed.accelerator.drain(bed.now, Duration::from_secs(30));
    let mut off = end;
    for _ in 0..2000 {
        if bed.accelerator.flow_count() == 0 {
            break;
        }
        // The server is always ahead of the client.
        let next = bed.send(off, 2);
        bed.wait(1);
        bed.ack(off);
        off = next;
    }
    assert_eq!(bed.accelerator.flow_count(), 0);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (1, 0));
}

/// How far the client has the stream without a hole.
fn got(bed: &TestBed) -> u64 {
    bed.data()
        .iter()
        .fold(1, |got, (off, len)| if *off <= got { got.max(off + u64::from(*len)) } else { got })
}

/// A connection goes on end to end when what waits here has left at the rate of the radio: its server, which has seen the
/// round trips of that, would wait for seconds before it repeats the end of a flight.
#[test]
fn what_waits_leaves_before_the_connection() {
    let mut bed = TestBed::open();
    let end = bed.send(1, 8);
    bed.wait(15);
    bed.ack(end);
    bed.accelerator.drain(bed.now, Duration::from_secs(30));
    // The window that was promised is used.
    let last = bed.send(end, 300);
    let (begun, mut acked) = (bed.now, end);
    while bed.accelerator.flow_count() > 0 && bed.now.since(begun) < Duration::from_secs(29) {
        // A slow radio, so that a second is not enough.
        bed.wait(20);
        acked = got(&bed).min(acked + 2000);
        bed.ack(acked);
    }
    assert_eq!(
        (bed.accelerator.flow_count(), bed.stats().flows_detached, bed.stats().flows_reset),
        (0, 1, 0)
    );
    assert_eq!((got(&bed), bed.stats().retransmissions), (last, 0));
}

/// Who is let go soon is not let on to fill what has to run empty, whatever window the client offers.
#[test]
fn a_stop_opens_no_wide_window() {
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
    let told: Vec<u32> =
        bed.to_server.iter().map(|packet| u32::from(header(packet).window) << bed.shift).collect();
    assert!(told.len() >= 40 && told.iter().all(|window| *window <= 32 << 10), "{told:?}");
    bed.wait(2000);
    assert_eq!(bed.accelerator.flow_count(), 0);
}

/// At the limit, or at once: a connection that is owed nothing is not reset because some of it is held.
#[test]
fn an_abort_resets_what_is_exposed_alone() {
    let mut bed =
        TestBed::open_with(AcceleratorConfig { exposure: Bytes(0), ..AcceleratorConfig::default() }, |_| ());
    let end = bed.send(1, 50);
    assert!(bed.exposure() == 0 && bed.accelerator.held() > 50_000 && got(&bed) < end);
    bed.accelerator.abort(bed.now);
    bed.wait(1);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (1, 0));
    assert_eq!(got(&bed), end, "its server need not repeat it");
    let mut bed = TestBed::open();
    bed.send(1, 8);
    assert!(bed.exposure() > 0);
    bed.accelerator.abort(bed.now);
    assert_eq!((bed.stats().flows_detached, bed.stats().flows_reset), (0, 1));
}

/// Row "stop, upgrade, config change": what was promised is kept, what comes follows the new parameters.
#[test]
fn other_parameters_hold_from_now_on_and_break_no_promise() {
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
    assert_eq!(bed.exposure(), exposure, "no more is acknowledged early than was");
    let told = bed.to_server.iter().map(|packet| bed.offset(header(packet).ack)).max();
    assert!(told.is_none_or(|ack| ack == 20_001), "nor taken back: {told:?}");
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
    assert_eq!(bed.exposure(), 20_000, "and back");
    bed.accelerator.invariants();
}
