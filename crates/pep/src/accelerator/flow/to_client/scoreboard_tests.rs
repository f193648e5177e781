use super::*;

const SEGMENT: u32 = 1000;
const RTT: (Duration, Duration) = (Duration::from_millis(40), Duration::from_millis(40));

const ANSWERS: Answers =
    Answers { least: RTT.0, shortest: Duration::ZERO, longest: Duration::MAX, usual: Duration::ZERO };

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
    answered(board, at, una, blocks, &ANSWERS)
}
fn answered(board: &mut Scoreboard, at: u64, una: u64, blocks: &[(u64, u64)], answers: &Answers) -> Delivery {
    let delivery = board.on_ack(ms(at), una, blocks.iter().copied(), answers);
    board.detect(ms(at), RTT, SEGMENT, None);
    delivery
}
fn lost(board: &mut Scoreboard, at: u64) -> Vec<u64> {
    std::iter::from_fn(|| {
        let repeat = board.next_lost()?;
        board.on_repeat(ms(at), repeat.len, false);
        Some(repeat.off)
    })
    .collect()
}

#[test]
fn holes_are_lost_once_three_segments_above_have_arrived() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 41, 2001, &[]).rtt, Some(Duration::from_millis(40)));
    ack(&mut board, 43, 2001, &[(3001, 5001)]);
    assert_eq!(lost(&mut board, 43), [0; 0], "within the reordering window");
    ack(&mut board, 44, 2001, &[(3001, 6001)]);
    assert_eq!(lost(&mut board, 44), [2001]);
    assert_eq!(board.in_flight(), 5000);
    ack(&mut board, 45, 2001, &[(3001, 7001)]);
    assert_eq!(lost(&mut board, 45), [0; 0], "once");
    board.check(2001, 10_001);
}

#[test]
fn what_lies_past_the_window_is_lost_with_the_first_hole() {
    let mut board = flight();
    ack(&mut board, 41, 2001, &[]);
    board.lose_from(7001);
    assert_eq!(lost(&mut board, 41), [0; 0], "nothing is missing");
    ack(&mut board, 45, 2001, &[(3001, 7001)]);
    board.lose_from(7001);
    assert_eq!(board.in_flight(), 0);
    assert_eq!(lost(&mut board, 45), [2001, 7001, 8001, 9001], "in order, behind what the client lacks");
    board.lose_from(7001);
    assert_eq!(lost(&mut board, 46), [0; 0], "what was sent after the first is in time");
    ack(&mut board, 90, 10_001, &[]);
    assert!(board.is_empty() && board.in_flight() == 0);
}

#[test]
fn a_lost_repetition_is_told_by_what_was_sent_after_it() {
    let mut board = flight();
    ack(&mut board, 45, 1, &[(1001, 6001)]);
    assert_eq!(lost(&mut board, 45), [1]);
    board.on_send(ms(46), 10_001, SEGMENT, false, false);
    ack(&mut board, 50, 1, &[(1001, 10_001)]);
    assert_eq!(lost(&mut board, 50), [0; 0], "what was sent before it tells nothing");
    ack(&mut board, 87, 1, &[(1001, 11_001)]);
    assert_eq!(lost(&mut board, 87), [1]);
    ack(&mut board, 130, 11_001, &[]);
    assert!(board.is_empty() && board.in_flight() == 0);
}

#[test]
fn after_a_timeout_the_rest_is_judged_by_the_first_answer() {
    let mut board = flight();
    board.lose_first(false);
    assert_eq!(lost(&mut board, 300), [1]);
    // The answer to the repetition alone: everything sent before it is gone.
    ack(&mut board, 345, 1001, &[]);
    assert_eq!(lost(&mut board, 345), (1..10).map(|n| 1 + 1000 * n).collect::<Vec<u64>>());
    // An outage only: the answer is to all.
    let mut board = flight();
    board.lose_first(false);
    assert_eq!(lost(&mut board, 300), [1]);
    ack(&mut board, 310, 10_001, &[]);
    assert!(board.is_empty());
}

#[test]
fn several_reports_in_one_ack_are_no_reordering() {
    let mut board = flight();
    ack(&mut board, 45, 1, &[(4001, 5001), (2001, 3001)]);
    assert!(!board.reordered);
    ack(&mut board, 46, 1, &[(1001, 3001)]);
    assert!(board.reordered, "the second segment came after the fifth was reported");
}

#[test]
fn partial_acknowledgments_and_smaller_segments_keep_the_books() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 41, 1501, &[]).bytes, 1500);
    board.check(1501, 10_001);
    board.lose_larger(400);
    let mut pieces = Vec::new();
    while let Some(repeat) = board.next_lost() {
        let len = repeat.len.min(400);
        board.on_repeat(ms(50), len, false);
        pieces.push((repeat.off, len));
    }
    assert_eq!(pieces[..3], [(1501, 400), (1901, 100), (2001, 400)]);
    assert_eq!(pieces.iter().map(|(_, len)| len).sum::<u32>(), 8500);
    board.check(1501, 10_001);
    assert_eq!(board.in_flight(), 8500);
}

#[test]
fn the_front_is_on_its_way_when_it_was_sent_after_what_has_arrived() {
    let mut board = flight();
    assert!(board.is_front_on_its_way());
    ack(&mut board, 43, 1, &[(1001, 2001)]);
    assert!(!board.is_front_on_its_way(), "the second has arrived, sent later");
    ack(&mut board, 44, 1, &[(1001, 4001)]);
    assert_eq!(lost(&mut board, 44), [1]);
    assert!(board.is_front_on_its_way(), "its repetition is ahead of what is sent now");
    ack(&mut board, 49, 1, &[(1001, 9001)]);
    assert!(board.is_front_on_its_way());
    board.on_send(ms(50), 10_001, SEGMENT, false, false);
    ack(&mut board, 92, 1, &[(1001, 11_001)]);
    assert!(!board.is_front_on_its_way(), "the repetition was overtaken");
}

/// A repetition on suspicion in a fade, 100 ms after the first transmission, and an answer 45 ms later: sooner than is likely, or
/// not too late for the first. It is that of the first, perhaps, and says nothing of what was sent between the two.
#[test]
fn an_answer_that_may_be_that_of_the_copy_before_condemns_nothing() {
    for (shortest, usual, condemned) in [(0, 0, 8), (50, 0, 0), (0, 145, 0), (0, 144, 8)] {
        let mut board = flight();
        board.lose_first(false);
        assert_eq!(lost(&mut board, 100), [1]);
        let (shortest, usual) = (Duration::from_millis(shortest), Duration::from_millis(usual));
        let delivery = answered(&mut board, 145, 1001, &[], &Answers { shortest, usual, ..ANSWERS });
        assert_eq!((delivery.bytes, delivery.in_vain), (1000, 0));
        assert_eq!(lost(&mut board, 145).len().min(8), condemned, "{shortest:?}, {usual:?}");
    }
}

#[test]
fn what_is_missing_before_the_newest_is_skipped() {
    let mut board = flight();
    assert_eq!(ack(&mut board, 40, 2001, &[]).skipped, Some(0));
    assert_eq!(ack(&mut board, 41, 2001, &[(5001, 6001)]).skipped, Some(3000));
    assert_eq!(ack(&mut board, 42, 2001, &[(5001, 7001)]).skipped, Some(0));
    assert_eq!(ack(&mut board, 43, 3001, &[(5001, 7001)]).skipped, None, "nothing newer");
    assert_eq!(ack(&mut board, 44, 8001, &[]).skipped, Some(0), "and all between");
}
