//! The schemes of Ohta et al. (IEEE CSCN 2018): the paper's worked example, and cases on which the paper is
//! silent.

use crate::common::*;
use paceline_net::{Bytes, DropReason, Instant, Payload, QueueCounters, SduQueue, SeqNumber, TcpFlags};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};

fn grant(queue: &mut AckFilter, room: u64) {
    queue.on_grant(Instant::ZERO, Bytes(room), OVERHEAD);
}

/// The ACKs that remain of 100 to 104 after a grant of `room` bytes.
fn remaining_of_five(scheme: &str, room: u64) -> Vec<u32> {
    let mut queue = filter(scheme);
    push_all(&mut queue, (100..105).map(|n| ack(0, n)));
    grant(&mut queue, room);
    let discarded = discarded(&mut queue);
    let left = drain(&mut queue);
    assert_eq!([discarded, left.clone()].concat(), [100, 101, 102, 103, 104], "the oldest are discarded");
    left
}

#[test]
fn passive_worked_example_two_of_five_fit() {
    assert_eq!(remaining_of_five("passive(1)", 2 * ACK_COST), [103, 104]);
    assert_eq!(remaining_of_five("passive(0.6666666666666666)", 2 * ACK_COST), [102, 103, 104]);
    assert_eq!(remaining_of_five("passive(0)", 2 * ACK_COST), [100, 101, 102, 103, 104]);
    assert_eq!(remaining_of_five("basic", 2 * ACK_COST), [100, 101, 102, 103, 104]);
}

#[test]
fn passive_counts_an_ack_that_fits_in_part_as_not_fitting() {
    assert_eq!(remaining_of_five("granted", 3 * ACK_COST - 1), [103, 104]);
    assert_eq!(remaining_of_five("granted", 3 * ACK_COST), [102, 103, 104]);
    assert_eq!(remaining_of_five("granted", 5 * ACK_COST), [100, 101, 102, 103, 104]);
}

#[test]
fn passive_share_is_not_rounded_down_by_floating_point() {
    // 0.29 * 100 is 28.999999999999996 in floating point.
    let mut queue = filter("passive(0.29)");
    push_all(&mut queue, (0..101).map(|n| ack(0, n)));
    grant(&mut queue, ACK_COST);
    assert_eq!(queue.counters().acks_discarded, 29);
}

#[test]
fn passive_keeps_one_for_a_grant_smaller_than_an_ack() {
    assert_eq!(remaining_of_five("granted", ACK_COST - 1), [104]);
    assert_eq!(remaining_of_five("granted", 0), [104]);
    assert_eq!(remaining_of_five("passive(0.5)", 10), [102, 103, 104], "half of four that do not fit");
}

#[test]
fn passive_never_discards_all_of_a_connection() {
    let mut queue = filter("granted");
    push_all(&mut queue, [ack(0, 10), ack(1, 20), ack(0, 11), ack(1, 21), ack(2, 30)]);
    grant(&mut queue, 72 + OVERHEAD.0);
    assert_eq!(drain(&mut queue), [11, 21, 30]);
}

#[test]
fn passive_data_takes_room_and_is_not_discarded() {
    // The grant has room for the data and two ACKs.
    let mut queue = filter("granted");
    push_all(&mut queue, [ack(0, 1), ack(0, 2), data(0, 2, 100), ack(0, 3), ack(0, 4)]);
    grant(&mut queue, 158 + 2 * ACK_COST);
    assert_eq!(discarded(&mut queue), [1, 2]);
    assert_eq!(drain(&mut queue), [2, 3, 4]);
}

#[test]
fn passive_no_ack_is_discarded_for_data_that_does_not_fit() {
    // The data ends the range that the grant carries, whose newest two ACKs leave now.
    let mut queue = filter("granted");
    push_all(
        &mut queue,
        (1..6).map(|n| ack(0, n)).chain([data(2, 9, 1400)]).chain((6..11).map(|n| ack(0, n))),
    );
    grant(&mut queue, 2 * ACK_COST);
    assert_eq!(discarded(&mut queue), [1, 2, 3, 6, 7, 8, 9]);
    assert_eq!(drain(&mut queue), [4, 5, 9, 10]);
}

#[test]
fn passive_with_data_at_the_head_the_newest_ack_stays() {
    let mut queue = filter("granted");
    push_all(&mut queue, [data(0, 1, 1400)].into_iter().chain((2..8).map(|n| ack(0, n))));
    grant(&mut queue, 100);
    assert_eq!(drain(&mut queue), [1, 7]);
}

#[test]
fn active_keeps_the_newest_of_each_connection() {
    let mut queue = filter("active(3)");
    push_all(&mut queue, (0..10).flat_map(|n| [ack(0, 100 + n), ack(1, 200 + n)]));
    assert_eq!(queue.threshold(), Some(3));
    assert_eq!(drain(&mut queue), [107, 207, 108, 208, 109, 209]);

    let mut queue = filter("highest");
    push_all(&mut queue, (0..10).map(|n| ack(0, n)));
    assert_eq!(drain(&mut queue), [9]);
}

#[test]
fn active_compares_across_the_sequence_wrap() {
    let mut queue = filter("highest");
    push_all(&mut queue, [u32::MAX - 1, 5, 10].map(|n| ack(0, n)));
    assert_eq!(drain(&mut queue), [10]);
}

#[test]
fn hybrid_discards_at_arrival_and_grant() {
    let mut queue = filter("hybrid(4)");
    push_all(&mut queue, (0..10).map(|n| ack(0, n)));
    assert_eq!(queue.packets(), 4);
    grant(&mut queue, 3 * ACK_COST);
    assert_eq!(drain(&mut queue), [7, 8, 9]);
}

#[test]
fn hybrid_opt_follows_the_mean_transport_block() {
    let mut queue = filter("hybrid-opt");
    assert_eq!(queue.threshold(), None);
    push_all(&mut queue, (0..10).map(|n| ack(0, n)));
    assert_eq!(queue.packets(), 10, "no arrival discard before the first block");
    queue.on_peer_block(Bytes::ZERO);
    assert_eq!(queue.threshold(), None, "an empty block does not count");
    queue.on_peer_block(Bytes(1188)); // 2 * (536 + 58): one ACK
    assert_eq!(queue.threshold(), Some(1));
    queue.on_peer_block(Bytes(1188 * 9));
    assert_eq!(queue.threshold(), Some(5), "the arithmetic mean at first");
    push_all(&mut queue, [ack(0, 10)]);
    assert_eq!(drain(&mut queue), [6, 7, 8, 9, 10]);
    for _ in 0..20_000 {
        queue.on_peer_block(Bytes(100));
    }
    assert_eq!(queue.threshold(), Some(1), "the mean adapts, and the threshold is at least 1");
}

#[test]
fn duplicates_and_the_ack_that_they_repeat_are_kept() {
    for scheme in ["highest", "granted", "hybrid(1)"] {
        let mut queue = filter(scheme);
        push_all(&mut queue, [1, 2, 2, 2, 2, 3, 4].map(|n| ack(0, n)));
        grant(&mut queue, ACK_COST);
        let left = drain(&mut queue);
        assert!(left.ends_with(&[2, 2, 2, 2, 4]), "{scheme}: {left:?}");
    }
}

#[test]
fn a_duplicate_with_sack_and_another_window_is_kept() {
    let mut queue = filter("highest");
    let sack = |window| {
        segment(0, 1, move |tcp| {
            tcp.window = window;
            tcp.options.sack.push(SeqNumber(100), SeqNumber(200));
        })
    };
    push_all(&mut queue, [ack(0, 1), sack(990), sack(980), ack(0, 2)]);
    assert_eq!(drain(&mut queue), [1, 1, 1, 2]);
}

#[test]
fn a_window_update_supersedes_an_ack() {
    let mut queue = filter("highest");
    push_all(&mut queue, [ack(0, 1), segment(0, 1, |tcp| tcp.window = 2000)]);
    let left = queue.pop(Instant::ZERO).unwrap();
    assert_eq!(left.tcp_header().unwrap().window, 2000);
    assert_eq!(queue.packets(), 0);
}

#[test]
fn an_old_ack_is_kept_and_supersedes_nothing() {
    let mut queue = filter("highest");
    push_all(&mut queue, [ack(0, 10), ack(0, 5), ack(0, 20)]);
    assert_eq!(drain(&mut queue), [5, 20]);
}

#[test]
fn only_pure_acks_are_discarded() {
    let flags = |flag: TcpFlags| move |tcp: &mut paceline_net::TcpHeader| tcp.flags = tcp.flags.with(flag);
    let mut special = ack(0, 9);
    special.ip.special = true;
    let mut queue = filter("highest");
    push_all(
        &mut queue,
        [
            segment(0, 1, flags(TcpFlags::PSH)),
            segment(0, 2, flags(TcpFlags::URG)),
            segment(0, 3, flags(TcpFlags::FIN)),
            segment(0, 4, flags(TcpFlags::SYN)),
            segment(0, 5, flags(TcpFlags::RST)),
            data(0, 6, 1),
            special,
            ack(0, 10),
            ack(0, 11),
        ],
    );
    assert_eq!(drain(&mut queue), [1, 2, 3, 4, 5, 6, 9, 11]);
}

#[test]
fn acks_ahead_of_a_syn_are_kept() {
    let mut queue = filter("highest");
    let syn = segment(0, 0, |tcp| tcp.flags = TcpFlags::SYN);
    push_all(&mut queue, [ack(0, 10), syn, ack(0, 5), ack(0, 6)]);
    assert_eq!(drain(&mut queue), [10, 0, 6]);
}

#[test]
fn a_full_buffer_drops_an_arrival_unless_it_supersedes_enough() {
    let config =
        |scheme| AckFilterConfig { scheme, limit: Bytes(2 * 52), segment: Bytes(536), header: Bytes(58) };
    let mut queue = AckFilter::new(config(Scheme::Active { threshold: 2 }));
    push_all(&mut queue, [1, 2, 3].map(|n| ack(0, n)));
    assert_eq!(queue.pop_dropped().unwrap().1, DropReason::AckFiltered);
    queue.push(Instant::ZERO, ack(2, 7));
    assert_eq!(queue.pop_dropped().unwrap().1, DropReason::QueueFull);
    assert_eq!(queue.counters().queue_drops, 1);
    assert_eq!(drain(&mut queue), [2, 3]);

    let mut queue = AckFilter::new(config(Scheme::Basic));
    queue.push(Instant::ZERO, data(0, 1, 5000));
    assert_eq!(queue.packets(), 1, "an empty buffer accepts any packet");
}

// keeps: ack-filter.4
#[test]
fn real_packets_pass_unchanged() {
    let real = |n: u32| {
        let mut packet = ack(0, n);
        packet.payload = Payload::Datagram(vec![n as u8; 52].into());
        packet
    };
    let mut queue = filter("active(2)");
    push_all(&mut queue, (0..5).map(real));
    assert_eq!(queue.pop_dropped(), Some((real(0), DropReason::AckFiltered)));
    assert_eq!(queue.pop(Instant::ZERO), Some(real(3)));
    assert_eq!(queue.pop(Instant::ZERO), Some(real(4)));
}

// keeps: ack-filter.18
#[test]
fn counters_add_up() {
    let mut queue = filter("active(2)");
    push_all(&mut queue, (0..5).map(|n| ack(0, n)).chain([data(0, 5, 10)]));
    drain(&mut queue);
    let expected = QueueCounters {
        packets_in: 6,
        packets_out: 3,
        acks_in: 5,
        acks_out: 2,
        acks_discarded: 3,
        queue_drops: 0,
        expired: 0,
    };
    assert_eq!(queue.counters(), expected);
}

#[test]
fn packets_older_than_the_discard_timer_are_dropped_from_the_head() {
    for scheme in ["basic", "highest", "safe"] {
        let mut queue = filter(scheme);
        let at = Instant::from_millis;
        queue.push(at(0), data(2, 1, 100));
        queue.push(at(10), ack(4, 1));
        queue.push(at(20), ack(6, 1));
        let lifetime = paceline_net::Duration::from_millis(50);
        queue.expire(Instant::from_nanos(49_999_999), lifetime);
        assert_eq!(queue.packets(), 3);
        queue.expire(at(60), lifetime);
        assert_eq!((queue.packets(), queue.bytes()), (1, Bytes(52)), "{scheme}");
        let reasons: Vec<DropReason> =
            std::iter::from_fn(|| queue.pop_dropped()).map(|(_, why)| why).collect();
        assert_eq!(reasons, [DropReason::PdcpDiscard; 2]);
        assert_eq!((queue.counters().expired, queue.counters().acks_discarded), (2, 0));
        assert!(queue.pop(at(60)).is_some() && queue.pop(at(60)).is_none());
    }
}
