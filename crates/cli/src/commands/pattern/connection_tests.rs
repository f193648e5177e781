//! Round-trip times of segments and ACKs, by the periods that they show.

use super::*;

fn data(at_ns: u64, seq: u32, len: u32) -> Segment {
    Segment { at_ns, seq, len, ack: None, sack: Vec::new(), opens: false }
}

/// Times of the segments without an ACK.
fn unacknowledged(direction: &Direction) -> Vec<u64> {
    direction.in_flight.iter().map(|(.., at_ns)| *at_ns).collect()
}

#[test]
fn acknowledged_and_repeated_segments_give_one_round_trip_time_at_most() {
    let (mut connection, mut all) = (Connection::default(), Findings::default());
    let start = u32::MAX - 150;
    for number in 0..4_u32 {
        connection.on_segment(0, &data(u64::from(number), start.wrapping_add(100 * number), 100), &mut all);
    }
    let ack = |at_ns, ack: u32, sack| Segment { ack: Some(ack), sack, ..data(at_ns, 0, 0) };
    // Across the wrap of sequence numbers; then a SACK of the last segment.
    connection.on_segment(1, &ack(10, start.wrapping_add(100), vec![]), &mut all);
    assert_eq!(unacknowledged(&connection.directions[0]), [1, 2, 3]);
    let sack = vec![(start.wrapping_add(300), start.wrapping_add(400))];
    connection.on_segment(1, &ack(11, start.wrapping_add(100), sack), &mut all);
    assert_eq!(unacknowledged(&connection.directions[0]), [1, 2]);
    // The repeated segment is not timed.
    connection.on_segment(0, &data(12, start.wrapping_add(100), 100), &mut all);
    assert_eq!(unacknowledged(&connection.directions[0]), [2]);
    // An ACK within a segment leaves it.
    connection.on_segment(1, &ack(13, start.wrapping_add(250), vec![]), &mut all);
    assert_eq!(unacknowledged(&connection.directions[0]), [2]);
    connection.on_segment(1, &ack(14, start.wrapping_add(400), vec![]), &mut all);
    assert!(unacknowledged(&connection.directions[0]).is_empty());
    assert_eq!(connection.finding().1, 500);
}

#[test]
fn a_new_connection_at_the_same_ports_begins_anew() {
    let (mut connection, mut all) = (Connection::default(), Findings::default());
    connection.on_segment(0, &data(1, 5000, 100), &mut all);
    connection.on_segment(0, &Segment { opens: true, ..data(2, 0, 0) }, &mut all);
    connection.on_segment(0, &data(3, 1, 100), &mut all);
    assert_eq!(unacknowledged(&connection.directions[0]), [3]);
}

/// ACKs that arrive at the ends of periods of 2.5 ms, for data that left evenly.
#[test]
fn bunches_of_acks_show_their_period_and_phase() {
    let (mut connection, mut all) = (Connection::default(), Findings::default());
    let period = 2_500_000;
    let mut seq = 0_u32;
    let mut events: Vec<(u64, usize, Segment)> = Vec::new();
    for number in 0..20_000_u64 {
        let sent = number * 100_000;
        let arrives = (sent + 5_000_000).div_ceil(period) * period;
        events.push((sent, 0, data(sent, seq, 1448)));
        seq += 1448;
        events.push((arrives, 1, Segment { ack: Some(seq), ..data(arrives, 0, 0) }));
    }
    events.sort_by_key(|(at, ..)| *at);
    for (_, from, segment) in &events {
        connection.on_segment(*from, segment, &mut all);
    }
    for finding in [connection.finding().2, all.best()] {
        let json = serde_json::to_value(finding.expect("a period is found")).unwrap();
        assert!(json["period_ms"] == 2.5 && json["seen_in"] == "ACKs", "{json}");
        assert!(json["phase_error_ms"].as_f64().unwrap() < 0.1, "{json}");
    }
}
