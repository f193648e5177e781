use super::ack_policy::Times;
use super::*;
use crate::config::{DelayedAck, EndpointConfig};
use paceline_net::{Bytes, Instant, SeqNumber};

const MS: fn(u64) -> Instant = Instant::from_millis;
const FULL: u32 = 1000;

fn receiver(policy: DelayedAck) -> Receiver {
    let address = "198.18.0.1:80".parse().unwrap();
    let mut config = EndpointConfig::new(address, address);
    (config.delayed_ack, config.autotune, config.receive_buffer) = (policy, false, Bytes(1 << 20));
    Receiver::new(&config, SeqNumber(u32::MAX), 7) // the first byte has sequence number 0
}
fn arrive(receiver: &mut Receiver, at: Instant, segment: u32) -> Option<u64> {
    let arrival = Arrival { seq: SeqNumber(segment * FULL), payload: FULL, fin: false };
    receiver.on_arrival(at, arrival, &Times::default())
}
fn blocks(receiver: &Receiver) -> Vec<(u32, u32)> {
    receiver.blocks(3).as_slice().iter().map(|(left, right)| (left.0 / FULL, right.0 / FULL)).collect()
}
fn no_quick() -> DelayedAck {
    DelayedAck { quick_acks: 0, ..DelayedAck::default() }
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_the_timeout() {
    let mut receiver = receiver(no_quick());
    assert_eq!(arrive(&mut receiver, MS(0), 0), Some(1000));
    assert!(!receiver.is_ack_due(MS(39)) && receiver.is_ack_due(MS(40)));
    arrive(&mut receiver, MS(10), 1);
    assert!(receiver.is_ack_due(MS(10)));
    receiver.on_ack_sent();
    assert_eq!(receiver.deadline(), None);
    arrive(&mut receiver, MS(20), 2);
    assert_eq!(receiver.deadline(), Some(MS(60)));
}

#[test]
fn the_first_segments_are_acknowledged_without_delay() {
    let mut receiver = receiver(DelayedAck { quick_acks: 3, ..DelayedAck::default() });
    for i in 0..3 {
        arrive(&mut receiver, MS(0), i);
        assert!(receiver.is_ack_due(MS(0)));
        receiver.on_ack_sent();
    }
    arrive(&mut receiver, MS(0), 3);
    assert!(!receiver.is_ack_due(MS(0)));
    receiver.on_ack_sent();
    arrive(&mut receiver, MS(5000), 4); // after an idle time
    assert!(receiver.is_ack_due(MS(5000)));
}

#[test]
fn out_of_order_segments_and_filled_holes_are_acknowledged_at_once() {
    let mut receiver = receiver(no_quick());
    assert_eq!(arrive(&mut receiver, MS(0), 1), Some(0));
    assert!(receiver.is_ack_due(MS(0)));
    receiver.on_ack_sent();
    assert_eq!(arrive(&mut receiver, MS(1), 0), Some(2000));
    assert!(receiver.is_ack_due(MS(1)));
    assert_eq!(receiver.seq_next(), SeqNumber(2000));
}

#[test]
fn blocks_come_newest_first_and_merge() {
    let mut receiver = receiver(no_quick());
    for segment in [2, 4, 6, 8] {
        arrive(&mut receiver, MS(0), segment);
    }
    assert_eq!(blocks(&receiver), [(8, 9), (6, 7), (4, 5)]);
    arrive(&mut receiver, MS(0), 3);
    assert_eq!(blocks(&receiver), [(2, 5), (8, 9), (6, 7)]);
    receiver.on_ack_sent();
    arrive(&mut receiver, MS(0), 7);
    assert_eq!(blocks(&receiver), [(6, 9), (2, 5)]);
    arrive(&mut receiver, MS(0), 0);
    arrive(&mut receiver, MS(0), 1);
    assert_eq!(blocks(&receiver), [(6, 9)]);
    assert_eq!(receiver.seq_next(), SeqNumber(5000));
}

#[test]
fn a_duplicate_is_reported_once_by_dsack() {
    let mut receiver = receiver(no_quick());
    arrive(&mut receiver, MS(0), 0);
    arrive(&mut receiver, MS(0), 3);
    receiver.on_ack_sent();
    assert_eq!(arrive(&mut receiver, MS(1), 0), None);
    assert_eq!(blocks(&receiver), [(0, 1), (3, 4)]);
    receiver.on_ack_sent();
    assert_eq!(arrive(&mut receiver, MS(1), 3), None);
    assert_eq!(blocks(&receiver), [(3, 4), (3, 4)]);
}

#[test]
fn data_beyond_the_window_is_dropped_and_acknowledged() {
    let mut receiver = receiver(no_quick());
    let beyond = Arrival { seq: SeqNumber(1 << 21), payload: FULL, fin: false };
    assert_eq!(receiver.on_arrival(MS(0), beyond, &Times::default()), None);
    assert!(receiver.is_ack_due(MS(0)) && !receiver.has_blocks());
}

#[test]
fn a_fin_takes_effect_when_all_data_before_it_has_arrived() {
    let mut receiver = receiver(no_quick());
    let last = Arrival { seq: SeqNumber(1000), payload: 500, fin: true };
    assert_eq!(receiver.on_arrival(MS(0), last, &Times::default()), Some(0));
    assert!(!receiver.closed());
    assert_eq!(arrive(&mut receiver, MS(1), 0), Some(1500));
    assert!(receiver.closed() && receiver.is_ack_due(MS(1)));
    assert_eq!(receiver.seq_next(), SeqNumber(1501));
    assert_eq!(receiver.on_arrival(MS(2), last, &Times::default()), None);
}

#[test]
fn the_echo_is_the_timestamp_of_the_first_segment_after_the_last_ack() {
    let mut receiver = receiver(no_quick());
    receiver.record_timestamp(SeqNumber(0), FULL, 10);
    arrive(&mut receiver, MS(0), 0);
    receiver.record_timestamp(SeqNumber(1000), FULL, 11); // above the last ACK: the delay counts as RTT
    assert_eq!(receiver.echo(), 10);
    arrive(&mut receiver, MS(0), 1);
    receiver.on_ack_sent();
    receiver.record_timestamp(SeqNumber(2000), FULL, 12);
    assert_eq!(receiver.echo(), 12);
    assert!(receiver.is_old_duplicate(9));
    receiver.record_timestamp(SeqNumber(0), FULL, 90); // a duplicate below the window
    assert_eq!(receiver.echo(), 12);
}

#[test]
fn the_part_of_a_segment_that_was_received_before_is_reported() {
    // Received before; the segment that arrives; the blocks of its acknowledgment.
    for (before, (seq, payload), blocks) in [
        (vec![(0, 1000)], (500, 1000), vec![(500, 1000)]),
        (vec![(1000, 1000)], (0, 1500), vec![(1000, 1500)]),
        (vec![(1000, 1000)], (0, 3000), vec![(1000, 2000)]),
        (vec![(2000, 1000)], (1500, 1000), vec![(2000, 2500), (1500, 3000)]),
        (vec![(2000, 1000)], (2500, 1000), vec![(2500, 3000), (2000, 3500)]),
        (vec![(2000, 1000), (4000, 1000)], (2000, 3000), vec![(2000, 3000), (2000, 5000)]),
        (vec![(2000, 1000)], (3000, 1000), vec![(2000, 4000)]),
        (vec![(1000, 1000)], (0, 1000), vec![]),
    ] {
        let mut receiver = receiver(no_quick());
        let mut arrive = |(seq, payload)| {
            let arrival = Arrival { seq: SeqNumber(seq), payload, fin: false };
            receiver.on_arrival(MS(0), arrival, &Times::default());
        };
        before.into_iter().for_each(&mut arrive);
        arrive((seq, payload));
        let got = receiver.blocks(4);
        let got: Vec<_> = got.as_slice().iter().map(|(left, right)| (left.0, right.0)).collect();
        assert_eq!(got, blocks, "{seq} {payload}");
    }
}
