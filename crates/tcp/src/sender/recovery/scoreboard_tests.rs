use super::*;
use crate::sender::recovery::RackContext;

const MSS: u32 = 100;
const MS: fn(u64) -> Instant = Instant::from_millis;

fn board(segments: u64) -> (Scoreboard, RateSampler) {
    let (mut board, mut rates) = (Scoreboard::default(), RateSampler::default());
    for i in 0..segments {
        let stamp = rates.on_send(i * 100, 100);
        board.push(i * 100, i * 100 + 100, false, MS(i), stamp);
    }
    (board, rates)
}
fn sack(board: &mut Scoreboard, rates: &mut RateSampler, range: (u64, u64), at: u64) -> ScoreboardUpdate {
    let mut update = ScoreboardUpdate::default();
    board.sack(range, &at_ms(at), rates, &mut update);
    board.detect_by_count(MSS, &mut update);
    update
}
fn at_ms(at: u64) -> AckContext {
    AckContext { now: MS(at), min_rtt: Some(Duration::from_millis(8)), ..AckContext::default() }
}
fn rack_context(at: u64) -> RackContext {
    let rtt = Some(Duration::from_millis(8));
    RackContext { now: MS(at), min_rtt: rtt, srtt: rtt, recovering: true }
}

#[test]
fn three_sacked_segments_above_indicate_a_loss_and_two_do_not() {
    let (mut board, mut rates) = board(10);
    assert_eq!(sack(&mut board, &mut rates, (100, 300), 50).lost, 0);
    let update = sack(&mut board, &mut rates, (100, 400), 51);
    assert_eq!((update.lost, update.bytes), (100, 100));
    assert_eq!(board.next_lost().map(|s| s.start), Some(0));
    assert_eq!(board.in_flight(), 1000 - 300 - 100);
    board.resend(MS(52), RateStamp::default());
    assert_eq!(board.in_flight(), 700);
    assert!(board.next_lost().is_none());
}

#[test]
fn three_separate_ranges_indicate_a_loss_whatever_their_size() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 110), 50);
    sack(&mut board, &mut rates, (300, 310), 51);
    assert_eq!(sack(&mut board, &mut rates, (500, 510), 52).lost, 100);
    // A segment sacked in pieces counts as sacked when they join.
    sack(&mut board, &mut rates, (110, 190), 53);
    assert_eq!(board.sacked_bytes, 0);
    assert_eq!(sack(&mut board, &mut rates, (190, 200), 54).bytes, 100);
}

#[test]
fn holes_between_sacked_ranges_are_lost_only_when_enough_lies_above() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 200), 50);
    sack(&mut board, &mut rates, (300, 400), 51);
    let update = sack(&mut board, &mut rates, (500, 700), 52);
    // Above segment 2: ranges 300 and 500 (300 bytes > 2 * 100). Above segment 4: 200 bytes, one range.
    assert_eq!(update.lost, 200);
    assert_eq!(sack(&mut board, &mut rates, (700, 800), 53).lost, 100);
}

#[test]
fn a_cumulative_ack_inside_a_segment_trims_it_and_keeps_the_counts() {
    let (mut board, mut rates) = board(4);
    sack(&mut board, &mut rates, (200, 300), 50);
    let mut update = ScoreboardUpdate::default();
    board.acknowledge(150, &at_ms(60), &mut rates, &mut update);
    assert_eq!((update.bytes, board.outstanding(), board.in_flight()), (150, 250, 150));
    assert_eq!(update.rtt(MS(60)), Some(Duration::from_millis(60)));
    assert_eq!(update.newest_rtt(MS(60)), Some(Duration::from_millis(59)));
    board.acknowledge(400, &at_ms(61), &mut rates, &mut update);
    assert_eq!((board.outstanding(), board.in_flight(), board.is_empty()), (0, 0, true));
    assert_eq!(rates.delivered(), 400);
}

#[test]
fn a_segment_sent_twice_gives_no_rtt() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (100, 400), 50);
    board.next_lost();
    board.resend(MS(60), RateStamp::default());
    let mut update = ScoreboardUpdate::default();
    board.acknowledge(500, &at_ms(70), &mut rates, &mut update);
    assert_eq!((update.rtt(MS(70)), update.newest_rtt(MS(70))), (None, None));
}

#[test]
fn a_timeout_marks_all_but_sacked_segments_and_undo_unmarks_them() {
    let (mut board, mut rates) = board(10);
    sack(&mut board, &mut rates, (300, 400), 50);
    board.mark_all_lost(None, &mut ScoreboardUpdate::default());
    assert_eq!(board.in_flight(), 0);
    assert_eq!(board.next_lost().map(|s| s.start), Some(0));
    board.resend(MS(60), RateStamp::default());
    assert_eq!(board.in_flight(), 100);
    board.unmark_lost();
    assert_eq!(board.in_flight(), 900);
    assert!(board.next_lost().is_none());
}

/// The counts recomputed from the segments.
fn check(board: &Scoreboard, probed: usize) {
    let sum = |which: fn(&SentSegment) -> bool| -> u64 {
        board.segments.iter().filter(|segment| which(segment)).map(SentSegment::len).sum()
    };
    assert_eq!(board.outstanding, sum(|_| true));
    assert_eq!(board.sacked_bytes, sum(|segment| segment.sacked));
    assert_eq!(
        board.sacked_segments as usize,
        board.segments.iter().filter(|segment| segment.sacked).count()
    );
    assert_eq!(board.lost_bytes, sum(|segment| segment.lost));
    assert_eq!(board.resent_bytes, sum(|segment| segment.resent));
    assert!(board.segments.iter().all(|segment| !(segment.sacked && segment.lost)), "sacked and lost");
    let probes = board.segments.iter().filter(|segment| segment.resent && !segment.lost).count();
    assert!(probes <= probed, "resent but not lost");
    let waiting = board.segments.iter().position(|segment| segment.lost && !segment.resent);
    assert!(
        waiting.is_none_or(|index| board.next_lost <= board.base + index as u64),
        "a lost segment is skipped"
    );
}

#[test]
fn the_counts_hold_under_random_events() {
    for seed in 0..100 {
        println!("seed {seed}");
        let mut stream = paceline_net::Stream::new(seed, "scoreboard");
        let (mut board, mut rates) = (Scoreboard::default(), RateSampler::default());
        let (mut una, mut nxt, mut delivered, mut probed) = (0, 0, 0, 0);
        let by_time = seed % 2 == 0;
        let detect = |board: &mut Scoreboard, step: u64, update: &mut ScoreboardUpdate| match by_time {
            true => drop(board.detect_by_time(&rack_context(step), update)),
            false => board.detect_by_count(MSS, update),
        };
        for step in 0..400 {
            let (now, mut update) = (MS(step), ScoreboardUpdate::default());
            match stream.below(20) {
                0..8 => {
                    let end = nxt + 1 + stream.below(100);
                    let stamp = rates.on_send(board.in_flight(), end - nxt);
                    board.push(nxt, end, false, now, stamp);
                    nxt = end;
                }
                8..13 if nxt > una => {
                    let left = una + stream.below(nxt - una);
                    let right = left + 1 + stream.below(nxt - left);
                    board.sack((left, right), &at_ms(step), &mut rates, &mut update);
                    detect(&mut board, step, &mut update);
                }
                13..16 if nxt > una => {
                    una += stream.below(nxt - una + 1).min(300);
                    board.acknowledge(una, &at_ms(step), &mut rates, &mut update);
                    detect(&mut board, step, &mut update);
                }
                16..19 if board.next_lost().is_some() => board.resend(now, rates.on_send(0, 1)),
                _ if stream.chance(0.2) => board.mark_all_lost(by_time.then_some(now), &mut update),
                _ if stream.chance(0.1) => board.unmark_lost(),
                _ if stream.chance(0.3) => {
                    probed += usize::from(board.resend_last(now, rates.on_send(0, 1)).is_some());
                }
                _ => {}
            }
            delivered += update.bytes;
            check(&board, probed);
        }
        assert_eq!(delivered, rates.delivered(), "seed {seed}");
    }
}

#[test]
fn bytes_that_duplicate_acks_have_shown_are_marked_when_they_are_acknowledged_after_a_timeout() {
    let (mut board, mut rates) = board(10);
    let mut update = ScoreboardUpdate::default();
    (0..3).for_each(|_| board.on_duplicate_ack(MSS, &mut update));
    board.mark_all_lost(None, &mut update);
    assert_eq!((update.bytes, board.in_flight()), (300, 0));
    for (una, again) in [(100, 100), (500, 200), (1000, 0)] {
        let mut update = ScoreboardUpdate::default();
        board.acknowledge(una, &at_ms(50), &mut rates, &mut update);
        assert_eq!(update.again, again, "{una}");
    }
}
