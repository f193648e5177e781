//! Safety on live traffic: the window that the server sees, and segments that reach its edge.

use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, TcpHeader};
use paceline_pep::accelerator::AcceleratorConfig;

/// The last answer to the server: acknowledged offset, and window in bytes.
fn answer(bed: &TestBed) -> (u64, u64) {
    let tcp: TcpHeader = header(bed.to_server.last().expect("an answer"));
    (bed.offset(tcp.ack), u64::from(tcp.window) << bed.shift)
}

/// A server probes a window of zero with its first byte (RFC 9293, section 3.8.6.1). The byte
/// is taken with the window that its answer opens: else the server loses one timeout.
// keeps: accelerator.window
#[test]
fn a_probe_of_the_clients_first_window_is_taken() {
    for timestamps in [true, false] {
        for shift in [0, 4] {
            let mut bed = TestBed::open_cleared(|bed| {
                (bed.window, bed.timestamps, bed.shift) = (0, timestamps, shift);
            });
            let probe = bed.server_data(1, 1);
            bed.server_sends(probe);
            let (acked, window) = answer(&bed);
            assert_eq!(acked, 2, "the byte is acknowledged");
            assert!(window > 65_535 - (1 << shift), "the accelerator's own window: {window}");
            assert!(bed.data().is_empty(), "nothing is sent into the client's closed window");
            let end = bed.send(2, 3);
            assert_eq!(bed.acked(), Some(end));
            bed.window = WINDOW;
            bed.ack(1);
            bed.wait(10);
            let sent: u64 = bed.data().iter().map(|(_, len)| u64::from(*len)).sum();
            assert_eq!(sent, end - 1, "the client receives the stream from its first byte");
        }
    }
}

/// The same for every segment that reaches past the edge, while the window may open.
// keeps: accelerator.window
#[test]
fn a_segment_across_the_edge_is_taken_as_far_as_the_window_may_open() {
    for window in [1, 500, 999] {
        let mut bed = TestBed::open_cleared(|bed| (bed.window, bed.shift) = (window, 0));
        bed.send(1, 1);
        assert_eq!(answer(&bed).0, 1001, "with a first window of {window} bytes");
    }
    // The store is full: the answer says so, and the byte is not taken.
    let config = AcceleratorConfig { flow_buffer: Bytes(40_000), ..AcceleratorConfig::default() };
    let mut bed = TestBed::open_with(config, |bed| (bed.shift, bed.window) = (0, 40_000));
    bed.window = 0;
    bed.ack(1);
    let edge = bed.send(1, 40);
    let advertised = |bed: &TestBed| answer(bed).0 + answer(bed).1;
    assert_eq!(advertised(&bed), edge);
    let probe = bed.server_data(edge, 1);
    bed.clear();
    bed.server_sends(probe.clone());
    assert_eq!(advertised(&bed), edge, "the byte is refused, and the window is as before");
    // The client reads: the window opens, and the probe is taken.
    bed.window = 40_000;
    bed.ack(1);
    bed.wait(20);
    bed.ack(20_001);
    bed.server_sends(probe);
    bed.wait(10);
    bed.ack(edge);
    bed.wait(200);
    assert_eq!(answer(&bed).0, edge + 1);
}
