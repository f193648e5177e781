use super::*;

const SEGMENT: u32 = 1000;
const RTT: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(40));

const BOUNDS: RttBounds =
    RttBounds { min: RTT.0, shortest: Duration::ZERO, longest: Duration::MAX, first_copy: Duration::ZERO };

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}
/// Ten segments from offset 1, one each millisecond.
fn flight() -> Scoreboard {
    let mut board = Scoreboard::default();
    (0..10).for_each(|n| board.on_send(ms(n), 1 + 1000 * n, SEGMENT, false, false));
    board
}
fn ack(board: &mut Scoreboard, at: u64, una: u64, blocks: &[(u64, u64)]) -> Delivery {
    ack_within(board, at, una, blocks, &BOUNDS)
}
fn ack_within(
    board: &mut Scoreboard,
    at: u64,
    una: u64,
    blocks: &[(u64, u64)],
    bounds: &RttBounds,
) -> Delivery {
    let delivery = board.on_ack(ms(at), una, blocks.iter().copied(), bounds);
    board.detect_losses(ms(at), RTT, SEGMENT, None);
    delivery
}
fn retransmit(board: &mut Scoreboard, at: u64) -> Vec<u64> {
    std::iter::from_fn(|| {
        let next = board.next_lost()?;
        board.on_retransmit(ms(at), next.len, false);
        Some(next.off)
    })
    .collect()
}

#[test]
fn a_hole_is_lost_after_three_segments_above_it_have_arrived() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 41, 2001, &[]).rtt, Some(Duration::from_millis(40)));
    ack(&mut board, 43, 2001, &[(3001, 5001)]);
    assert_eq!(retransmit(&mut board, 43), [0; 0], "within the reordering window");
    ack(&mut board, 44, 2001, &[(3001, 6001)]);
    assert_eq!(retransmit(&mut board, 44), [2001]);
    assert_eq!(board.in_flight(), 5000);
    ack(&mut board, 45, 2001, &[(3001, 7001)]);
    assert_eq!(retransmit(&mut board, 45), [0; 0], "once");
    board.check(2001, 10_001);
}

#[test]
fn segments_past_the_window_are_lost_with_the_first_hole() {
    let mut board = flight();
    ack(&mut board, 41, 2001, &[]);
    board.lose_from(7001);
    assert_eq!(retransmit(&mut board, 41), [0; 0], "nothing is missing");
    ack(&mut board, 45, 2001, &[(3001, 7001)]);
    board.lose_from(7001);
    assert_eq!(board.in_flight(), 0);
    assert_eq!(retransmit(&mut board, 45), [2001, 7001, 8001, 9001], "in order, after the hole");
    board.lose_from(7001);
    assert_eq!(retransmit(&mut board, 46), [0; 0], "segments sent after the first arrive in time");
    ack(&mut board, 90, 10_001, &[]);
    assert!(board.is_empty() && board.in_flight() == 0);
}

#[test]
fn a_lost_retransmission_is_detected_by_segments_sent_after_it() {
    let mut board = flight();
    ack(&mut board, 45, 1, &[(1001, 6001)]);
    assert_eq!(retransmit(&mut board, 45), [1]);
    board.on_send(ms(46), 10_001, SEGMENT, false, false);
    ack(&mut board, 50, 1, &[(1001, 10_001)]);
    assert_eq!(retransmit(&mut board, 50), [0; 0], "segments sent before it show nothing");
    ack(&mut board, 87, 1, &[(1001, 11_001)]);
    assert_eq!(retransmit(&mut board, 87), [1]);
    ack(&mut board, 130, 11_001, &[]);
    assert!(board.is_empty() && board.in_flight() == 0);
}

#[test]
fn after_a_timeout_the_first_ack_decides_about_the_rest() {
    let mut board = flight();
    board.lose_first(false);
    assert_eq!(retransmit(&mut board, 300), [1]);
    // The ACK covers the retransmission alone: everything sent before it is lost.
    ack(&mut board, 345, 1001, &[]);
    assert_eq!(retransmit(&mut board, 345), (1..10).map(|n| 1 + 1000 * n).collect::<Vec<u64>>());
    // An outage that lost nothing: the ACK covers everything.
    let mut board = flight();
    board.lose_first(false);
    assert_eq!(retransmit(&mut board, 300), [1]);
    ack(&mut board, 310, 10_001, &[]);
    assert!(board.is_empty());
}

#[test]
fn several_blocks_in_one_ack_are_no_reordering() {
    let mut board = flight();
    ack(&mut board, 45, 1, &[(4001, 5001), (2001, 3001)]);
    assert!(!board.reordered);
    ack(&mut board, 46, 1, &[(1001, 3001)]);
    assert!(board.reordered, "the second segment arrived after the fifth");
}

#[test]
fn partly_acknowledged_and_split_records_keep_the_byte_counts() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 41, 1501, &[]).bytes, 1500);
    board.check(1501, 10_001);
    board.lose_larger(400);
    let mut pieces = Vec::new();
    while let Some(next) = board.next_lost() {
        let len = next.len.min(400);
        board.on_retransmit(ms(50), len, false);
        pieces.push((next.off, len));
    }
    assert_eq!(pieces[..3], [(1501, 400), (1901, 100), (2001, 400)]);
    assert_eq!(pieces.iter().map(|(_, len)| len).sum::<u32>(), 8500);
    board.check(1501, 10_001);
    assert_eq!(board.in_flight(), 8500);
}

#[test]
fn the_front_is_in_flight_if_it_was_sent_after_the_delivered_segments() {
    let mut board = flight();
    assert!(board.is_front_in_flight());
    ack(&mut board, 43, 1, &[(1001, 2001)]);
    assert!(!board.is_front_in_flight(), "the second segment, sent later, has arrived");
    ack(&mut board, 44, 1, &[(1001, 4001)]);
    assert_eq!(retransmit(&mut board, 44), [1]);
    assert!(board.is_front_in_flight(), "the retransmission is ahead of new data");
    ack(&mut board, 49, 1, &[(1001, 9001)]);
    assert!(board.is_front_in_flight());
    board.on_send(ms(50), 10_001, SEGMENT, false, false);
    ack(&mut board, 92, 1, &[(1001, 11_001)]);
    assert!(!board.is_front_in_flight(), "the retransmission was overtaken");
}

/// A retransmission on suspicion 100 ms after the first transmission, and an ACK 45 ms later: sooner than is
/// likely for the retransmission, or not too late for the first copy. The ACK may answer the first copy, and
/// marks nothing lost.
#[test]
fn an_ack_that_may_answer_the_copy_before_marks_nothing_lost() {
    for (shortest, first_copy, lost) in [(0, 0, 8), (50, 0, 0), (0, 145, 0), (0, 144, 8)] {
        let mut board = flight();
        board.lose_first(false);
        assert_eq!(retransmit(&mut board, 100), [1]);
        let (shortest, first_copy) = (Duration::from_millis(shortest), Duration::from_millis(first_copy));
        let delivery = ack_within(&mut board, 145, 1001, &[], &RttBounds { shortest, first_copy, ..BOUNDS });
        assert_eq!((delivery.bytes, delivery.spurious), (1000, 0));
        assert_eq!(retransmit(&mut board, 145).len().min(8), lost, "{shortest:?}, {first_copy:?}");
    }
}

#[test]
fn bytes_missing_before_the_newest_segment_are_skipped() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 40, 2001, &[]).skipped, Some(0));
    assert_eq!(ack(&mut board, 41, 2001, &[(5001, 6001)]).skipped, Some(3000));
    assert_eq!(ack(&mut board, 42, 2001, &[(5001, 7001)]).skipped, Some(0));
    assert_eq!(ack(&mut board, 43, 3001, &[(5001, 7001)]).skipped, None, "nothing newer");
    assert_eq!(ack(&mut board, 44, 8001, &[]).skipped, Some(0), "and all between");
}
