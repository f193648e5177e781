use super::super::rack::Rack;
use super::*;
use crate::sender::path::rate::{RateSampler, RateStamp};
use crate::sender::recovery::AckContext;

const MSS: u32 = 100;
const MS: fn(u64) -> Instant = Instant::from_millis;
const SPAN: fn(u64) -> Duration = Duration::from_millis;

/// Segments of 100 bytes, one each millisecond.
fn board(segments: u64) -> (Scoreboard, RateSampler) {
    let mut board = Scoreboard::default();
    for i in 0..segments {
        board.push(i * 100, i * 100 + 100, false, MS(i), RateStamp::default());
    }
    (board, RateSampler::default())
}
fn context(at: u64, highest: u64) -> AckContext {
    AckContext { now: MS(at), min_rtt: Some(SPAN(40)), highest, ..AckContext::default() }
}
fn rack_context(at: u64) -> RackContext {
    RackContext { now: MS(at), min_rtt: Some(SPAN(40)), srtt: Some(SPAN(40)), recovering: false }
}
/// A SACK arrives; returns the bytes marked as lost and the wait.
fn sack(
    board: &mut Scoreboard,
    rates: &mut RateSampler,
    range: (u64, u64),
    at: u64,
) -> (u64, Option<Duration>) {
    let mut update = ScoreboardUpdate::default();
    let context = context(at, board.highest_sacked(0));
    board.sack(range, &context, rates, &mut update);
    board.record_reordering(&context, MSS, &update);
    let wait = board.detect_by_time(&rack_context(at), &mut update);
    (update.lost, wait)
}

#[test]
fn a_hole_is_lost_a_quarter_rtt_after_a_later_segment_arrived() {
    let (mut board, mut rates) = board(10);
    // Segment 1, sent at 1 ms, arrives at 41 ms: RTT 40 ms, window 10 ms; segment 0 was sent at 0 ms: 9 ms
    // are left.
    assert_eq!(sack(&mut board, &mut rates, (100, 200), 41), (0, Some(SPAN(9))));
    let mut update = ScoreboardUpdate::default();
    assert_eq!(board.detect_by_time(&rack_context(49), &mut update), Some(SPAN(1)));
    assert_eq!(board.detect_by_time(&rack_context(50), &mut update), None);
    assert_eq!((update.lost, board.next_lost().map(|sent| sent.start)), (100, Some(0)));
}

#[test]
fn three_sacked_segments_indicate_a_loss_at_once_until_reordering_was_seen() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 200), 41);
    sack(&mut board, &mut rates, (200, 300), 42);
    assert_eq!(sack(&mut board, &mut rates, (300, 400), 43), (100, None));
    // Segment 4 arrives after segment 6: reordering. From now on three sacked segments are not enough.
    sack(&mut board, &mut rates, (600, 700), 46);
    sack(&mut board, &mut rates, (400, 500), 47);
    // Segment 7 was sent at 7 ms; segment 8 arrives after 40 ms: 7 + 40 + 10 - 48.
    assert_eq!(sack(&mut board, &mut rates, (800, 900), 48), (0, Some(SPAN(9))));
}

#[test]
fn the_wait_lasts_until_the_last_hole_is_lost() {
    let (mut board, mut rates) = board(10);
    board.rack.on_reordering(100, MSS);
    // Holes 0, 1 and 3; the last was sent at 3 ms: 3 + 40 + 10 - 44.
    sack(&mut board, &mut rates, (200, 300), 42);
    assert_eq!(sack(&mut board, &mut rates, (400, 500), 44), (0, Some(SPAN(9))));
}

#[test]
fn dsacks_widen_the_window_once_per_round_trip_for_sixteen_recoveries() {
    let mut rack = Rack::default();
    let wnd = |rack: &Rack| rack.reordering_window(&rack_context(0), 0);
    rack.on_dsack(); // without reordering it has no effect
    rack.update_window(0, 1000);
    assert_eq!(wnd(&rack), SPAN(10));
    rack.on_reordering(100, MSS);
    rack.on_dsack();
    rack.update_window(0, 1000);
    assert_eq!(wnd(&rack), SPAN(20));
    rack.on_dsack();
    rack.update_window(500, 1500); // sent before the window was widened
    assert_eq!(wnd(&rack), SPAN(20));
    for _ in 0..8 {
        rack.on_dsack();
        rack.update_window(2000, 2000);
    }
    assert_eq!(wnd(&rack), SPAN(40)); // never above SRTT
    for _ in 0..16 {
        rack.update_window(9000, 9000);
        assert_eq!(wnd(&rack), SPAN(40));
        rack.on_recovery_end();
    }
    rack.update_window(9000, 9000);
    assert_eq!(wnd(&rack), SPAN(10));
}

#[test]
fn a_retransmission_is_lost_when_later_segments_arrive() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 400), 43);
    board.next_lost();
    board.resend(MS(45), RateStamp::default());
    board.push(1000, 1100, false, MS(46), RateStamp::default());
    assert_eq!(sack(&mut board, &mut rates, (400, 1000), 50).0, 0);
    // A segment sent a millisecond after the retransmission arrives first.
    assert_eq!(sack(&mut board, &mut rates, (1000, 1100), 86).0, 100);
    assert_eq!(board.next_lost().map(|sent| sent.start), Some(0));
}

#[test]
fn an_ack_that_comes_too_early_or_has_an_old_echo_is_not_of_the_retransmission() {
    for (at, echo) in [(60, None), (90, Some(20))] {
        let (mut board, mut rates) = board(3);
        board.mark_all_lost(None, &mut ScoreboardUpdate::default());
        board.next_lost();
        board.resend(MS(45), RateStamp::default());
        board.rack.take_advanced();
        let context = AckContext { echo, ..context(at, 0) };
        board.acknowledge(100, &context, &mut rates, &mut ScoreboardUpdate::default());
        assert!(!board.rack.take_advanced(), "{at} {echo:?}");
    }
}

#[test]
fn a_timeout_excepts_segments_sent_within_the_last_round_trip() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (900, 1000), 49); // RTT 40 ms
    board.push(1000, 1100, false, MS(100), RateStamp::default());
    board.mark_all_lost(Some(MS(120)), &mut ScoreboardUpdate::default());
    // All but the sacked and the recent segment are lost.
    assert_eq!((board.lost_bytes(), board.in_flight()), (900, 100));
    board.mark_all_lost(Some(MS(140)), &mut ScoreboardUpdate::default());
    assert_eq!((board.lost_bytes(), board.in_flight()), (1000, 0));
}

#[test]
fn a_segment_whose_loss_was_undone_can_be_lost_again() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 400), 43);
    board.next_lost();
    board.resend(MS(45), RateStamp::default());
    board.unmark_lost();
    board.push(1000, 1100, false, MS(46), RateStamp::default());
    assert_eq!(sack(&mut board, &mut rates, (400, 1100), 87).0, 100);
    assert_eq!(board.next_lost().map(|sent| sent.start), Some(0));
}
