//! Ends of transfers: the server's last packets wait for the radio, and cause no timeout of the server.

use crate::accelerator::network::*;
use crate::accelerator::test_bed::*;
use paceline_net::{Bytes, Duration};
use paceline_pep::AcceleratorConfig;
use paceline_tcp::Source;

/// Segments that the server of one transfer retransmits, and the time in milliseconds until the client has
/// its `bytes`. The mobile segment has this rate; both segments have these delays of one way.
fn transfer(
    source: Source,
    bytes: u64,
    accelerator: Option<AcceleratorConfig>,
    (wired_ms, mobile_ms): (u64, u64),
    rate: &str,
) -> (u64, f64) {
    let mobile = [Link::rate(rate, mobile_ms, 10_000_000), Link::rate("50 Mb/s", mobile_ms, 1_000_000)];
    let mut network = Network::download(source, accelerator, wired_ms, mobile);
    network.run_ms(60_000);
    assert_eq!(network.received(), bytes);
    let took = network.delivered.iter().find(|(_, read)| *read == bytes).expect("it was read").0;
    (network.servers[0].stats().retransmitted_segments, took.as_secs_f64() * 1e3)
}

/// While the FIN and the packet before it wait for the client, the server's timers do
/// not expire, as they do not without the accelerator.
// keeps: accelerator.fin
#[test]
fn the_end_of_a_transfer_causes_no_retransmission_of_the_server() {
    for file in [30_000, 300_000, 2_000_000, 5_000_000] {
        for delays in [(1, 20), (5, 5), (10, 10), (5, 20), (10, 40), (20, 20), (40, 10)] {
            for rate in ["3 Mb/s", "10 Mb/s", "40 Mb/s", "100 Mb/s"] {
                let run = |accelerator| transfer(Source::File(Bytes(file)), file, accelerator, delays, rate);
                let ((plain, slow), (accelerated, fast)) = (run(None), run(adaptive()));
                let what = format!("{file} bytes, {delays:?} ms, {rate}");
                assert_eq!((plain, accelerated), (0, 0), "{what}");
                assert!(fast <= slow * 1.015 + 5.0, "{what}: {fast:.0} ms against {slow:.0} ms");
            }
        }
    }
}

/// A connection that stays open between two responses: the data of a backlog is acknowledged in time as well.
// keeps: accelerator.fin
#[test]
fn pauses_of_a_server_cause_no_retransmission_either() {
    for (wired_ms, mobile_ms) in [(1, 20), (5, 20), (10, 40), (40, 10)] {
        for rate in ["3 Mb/s", "10 Mb/s", "40 Mb/s"] {
            let (size, interval) = (Bytes(2_000_000), Duration::from_secs(25));
            let source = Source::Chunks { size, interval, count: u64::MAX };
            let (again, _) = transfer(source, 6_000_000, adaptive(), (wired_ms, mobile_ms), rate);
            assert_eq!(again, 0, "{wired_ms} + {mobile_ms} ms, {rate}");
        }
    }
}

/// Neither the FIN nor the packet before it is acknowledged ahead of the client.
/// Earlier packets of a backlog are, one by one.
// keeps: accelerator.fin
#[test]
fn the_packets_before_the_last_are_acknowledged_one_by_one() {
    for fin in [true, false] {
        let mut bed = TestBed::open_cleared(|_| ());
        let end = bed.send(1, 200);
        let last = bed.server_packet(end, if fin { FIN } else { ACK }, SEGMENT, |_| ());
        bed.server_sends(last);
        let first = bed.acked().expect("early ACKs");
        assert!(first < end - 20_000, "{first} of {end}: packets are held back");
        let mut before = first;
        let mut advances = 0;
        for _ in 0..2_500 {
            bed.clear();
            bed.wait(1);
            let Some(acked) = bed.acked().filter(|acked| *acked > before) else { continue };
            assert!(acked - before <= u64::from(SEGMENT), "{before} to {acked}");
            (before, advances) = (acked, advances + 1);
        }
        assert!(advances > 10, "{advances} ACKs");
        assert!(before <= if fin { end } else { end + 1000 }, "{before} of {end}");
    }
}
