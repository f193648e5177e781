//! Peers that make work: what a packet costs does not grow with the connection's window.

use crate::test_bed::*;
use paceline_pep::accelerator::Side;

/// A client that SACKs its second segment and then acknowledges the first one: the SACKed segment is the
/// first of the queue, as if the client had discarded it. Nothing is sent again for that.
#[test]
fn sacked_segments_that_come_first_for_a_moment_are_not_sent_again() {
    let mut bed = TestBed::open_cleared(|bed| bed.shift = 7);
    let end = bed.send(1, 400);
    bed.wait(40);
    let segment = u64::from(SEGMENT);
    bed.ack(1);
    let first = bed.stats().retransmissions;
    for n in 0..15 {
        let una = 1 + 2 * n * segment;
        bed.sack(una, una + segment, una + 2 * segment);
        bed.ack(una + segment);
        bed.ack(una + 2 * segment);
    }
    assert!(bed.stats().retransmissions <= first + 1, "{:?}", bed.stats());
    // A client that has discarded the data gets it again, soon.
    let una = 1 + 30 * segment;
    bed.sack(una, una + segment, una + 2 * segment);
    bed.ack(una + segment);
    bed.clear();
    bed.wait(400);
    assert!(bed.data().contains(&(una + segment, SEGMENT)), "{:?}", bed.data());
    assert!(end > una);
}

/// Single bytes at every second offset are refused before they cost more memory than the window.
#[test]
fn single_bytes_beyond_gaps_are_bounded() {
    let mut bed = TestBed::open_cleared(|bed| bed.shift = 7);
    for n in 0..30_000 {
        let packet = bed.server_data(3 + 2 * n, 1);
        bed.accelerator.input(bed.now, Side::Server, packet);
        while bed.accelerator.poll_transmit(bed.now).is_some() {}
    }
    let held = bed.accelerator.held();
    assert!(held < 4 << 20, "{held} bytes");
    assert!(bed.stats().refused > 10_000, "{:?}", bed.stats());
    // Once the gaps are filled the stream goes on.
    for off in [1].into_iter().chain((2..1000).step_by(2)) {
        let packet = bed.server_data(off, 1);
        bed.server_sends(packet);
    }
    assert!(bed.acked() > Some(900), "{:?}", bed.acked());
}
