//! The safe scheme, safety rules 15 to 22: when ACKs are discarded, and how many. Tests are named by the
//! rule's number in docs/ack-filter.md.

use crate::common::connection::{STEP, TestConnection};
use crate::common::*;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Bytes, Checksum, Instant, Packet, Payload, SduQueue, SeqNumber, TcpFlags, TcpHeader, wire,
};
use paceline_pep::KeepReason;
use paceline_pep::ack_filter::Holdout;

// keeps: ack-filter.15
#[test]
fn rule_15_one_kept_ack_acknowledges_at_most_eight_segments() {
    let mut connection = TestConnection::filtered();
    let left = connection.drain();
    let steps: Vec<u32> =
        left.windows(2).map(|pair| number(&pair[1]).wrapping_sub(number(&pair[0]))).collect();
    assert!(steps.iter().all(|step| *step <= 8 * 536), "{steps:?}");
    assert!(steps.contains(&(8 * 536)), "{steps:?}");
    assert!(connection.kept(KeepReason::SegmentFloor) > 0);
}

// keeps: ack-filter.15
#[test]
fn rule_15_counts_from_the_last_ack_that_left() {
    // With every fourth ACK kept, one of these four stays at the head, and one is discarded.
    let outcomes = [0, 1, 2, 3].map(|more| {
        let mut connection = TestConnection::filtered().queue_acks(more);
        connection.wait_ms(3); // the newest ACK has waited long enough for a standing queue
        while connection.queue.packets() > 1 {
            connection.queue.pop(connection.now);
        }
        connection.queue_acks(1).queue.packets()
    });
    assert!(outcomes.contains(&1) && outcomes.contains(&2), "{outcomes:?}");
}

/// The data segments are no longer than the MSS option of the SYN.
// keeps: ack-filter.15
#[test]
fn rule_15_counts_segments_of_the_connections_mss() {
    let mut connection = TestConnection::opened_with(|syn| syn.options.mss = Some(268));
    // A retransmitted SYN may have fewer options.
    connection.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    connection.queue.pop(connection.now);
    let mut connection = connection.pass_acks(40).queue_acks(30);
    let left = connection.drain();
    let most = left.windows(2).map(|pair| number(&pair[1]).wrapping_sub(number(&pair[0]))).max();
    assert_eq!(most, Some(8 * 268));
}

/// The longest gap in milliseconds between two ACKs of which the first is discarded. The kept segment ahead
/// of them arrives 5 ms before the first, and the head of the queue has waited 35 ms by then.
fn longest_gap(open: impl Fn() -> TestConnection) -> u64 {
    let is_discarded = |gap_ms: &u64| {
        let mut connection = open().pass_acks(40).queue_acks(30);
        connection.push(segment(0, connection.acked, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
        let (c, t) = (connection.next_ack(), connection.next_ack());
        connection.wait_ms(5);
        connection.push(c.clone());
        connection.wait_ms(*gap_ms);
        connection.push(t);
        let kept = connection.drain().contains(&c);
        assert_eq!(connection.kept(KeepReason::TimeFloor) > 0, kept);
        !kept
    };
    (0..90).take_while(is_discarded).last().expect("ACKs that arrive together")
}

// keeps: ack-filter.15
#[test]
fn rule_15_kept_acks_are_at_most_a_quarter_of_the_present_round_trip_apart() {
    // 40 ms of the path, and the wait of the head: 5 + 18 is at most (40 + 35 + 18) / 4.
    assert_eq!(longest_gap(TestConnection::open), 18);
}

/// A SYN-ACK in this direction: the connection was opened from the other side.
// keeps: ack-filter.15
#[test]
fn rule_15_kept_acks_are_at_most_ten_milliseconds_apart_if_the_round_trip_is_unknown() {
    let answers = |syn: &mut TcpHeader| syn.flags = syn.flags.with(TcpFlags::ACK);
    assert_eq!(longest_gap(|| TestConnection::opened_with(answers)), 5);
}

/// The ACK may answer either SYN. The time from the last one is never longer than the round trip.
// keeps: ack-filter.15
#[test]
fn rule_15_the_round_trip_begins_when_the_last_syn_leaves() {
    let syn = || segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0)));
    let again = |queued_ms: u64, answered_ms: u64| {
        let mut connection = TestConnection::open();
        connection.push(syn());
        connection.wait_ms(queued_ms);
        connection.queue.pop(connection.now);
        connection.wait_ms(answered_ms);
        connection
    };
    assert_eq!(longest_gap(|| again(0, 4)), 6);
    assert_eq!(longest_gap(|| again(80, 4)), 6, "the wait in the queue is no part of the path's time");
    assert_eq!(longest_gap(|| again(80, 40)), 18);
}

// keeps: ack-filter.16
#[test]
fn rule_16_off_for_the_first_64_segments() {
    let mut connection = TestConnection::open().queue_acks(33);
    assert_eq!(connection.discarded(), 0, "32 ACKs of two segments, after the handshake's");
    connection = connection.queue_acks(5);
    assert!(connection.discarded() > 0);
    connection.drain();
    assert_eq!(connection.kept(KeepReason::FirstSegments), 33);
}

// keeps: ack-filter.16
#[test]
fn rule_16_off_after_fin_and_rst() {
    for flag in [TcpFlags::FIN, TcpFlags::RST] {
        let mut connection = TestConnection::filtered();
        connection.push(segment(0, connection.acked, |tcp| tcp.flags = tcp.flags.with(flag)));
        let discarded = connection.discarded();
        connection = connection.queue_acks(20);
        assert_eq!(connection.discarded(), discarded);
        connection.drain();
        assert_eq!(connection.kept(KeepReason::Closing), 20);
    }
}

// keeps: ack-filter.16
#[test]
fn rule_16_off_for_a_round_trip_after_a_duplicate() {
    let mut connection = TestConnection::filtered();
    connection.push(ack(0, connection.acked));
    let discarded = connection.discarded();
    connection = connection.queue_acks(100);
    assert_eq!(connection.discarded(), discarded, "off for 100 ms, since the round trip is shorter");
    connection = connection.queue_acks(10);
    assert!(connection.discarded() > discarded);
    connection.drain();
    assert_eq!(connection.kept(KeepReason::Recovery), 99);
}

// keeps: ack-filter.16
#[test]
fn rule_16_the_round_trip_after_a_duplicate_includes_the_wait_in_the_queue() {
    let mut connection = TestConnection::filtered().queue_acks(170);
    connection.push(ack(0, connection.acked));
    let discarded = connection.discarded();
    connection = connection.queue_acks(240);
    assert_eq!(connection.discarded(), discarded, "40 ms of the path, and the head has waited 200 ms");
    connection = connection.queue_acks(10);
    assert!(connection.discarded() > discarded);
    connection.drain();
    assert_eq!(connection.kept(KeepReason::Recovery), 239);
}

// keeps: ack-filter.16
#[test]
fn rule_16_off_for_sparse_connections() {
    let mut connection = TestConnection::filtered();
    connection.wait_ms(101);
    let discarded = connection.discarded();
    connection = connection.queue_acks(16);
    assert_eq!(connection.discarded(), discarded);
    connection = connection.queue_acks(10);
    assert!(connection.discarded() > discarded);
    connection.drain();
    assert!(connection.kept(KeepReason::Sparse) > 0);
}

// keeps: ack-filter.16
#[test]
fn rule_16_off_for_connections_seen_in_mid_stream() {
    let connection = TestConnection { queue: filter("safe"), now: Instant::from_millis(1), acked: 0 };
    let mut connection = connection.pass_acks(100).queue_acks(100);
    assert_eq!(connection.discarded(), 0);
    connection.drain();
    assert_eq!(connection.kept(KeepReason::MidStream), 200);
}

/// A retransmitted SYN with fewer offers may arrive after the first was answered.
// keeps: ack-filter.14
#[test]
fn rule_14_the_offers_of_the_first_syn_count() {
    let accurate = |syn: &mut TcpHeader| {
        syn.flags = syn.flags.with(TcpFlags::AE).with(TcpFlags::CWR).with(TcpFlags::ECE)
    };
    for offers in [false, true] {
        let mut connection = TestConnection::opened_with(|syn| {
            if offers {
                accurate(syn)
            }
        });
        connection.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
        connection.queue.pop(connection.now);
        let mut connection = connection.pass_acks(40).queue_acks(30);
        assert_eq!(connection.discarded() == 0, offers);
        connection.drain();
        assert_eq!(connection.kept(KeepReason::Handshake) == 70, offers);
    }
}

/// The receiver will drop the corrupt ACK.
// keeps: ack-filter.2
#[test]
fn rule_02_a_corrupt_ack_supersedes_nothing() {
    let datagram = |packet: &Packet| {
        let tcp = *packet.tcp_header().expect("a segment");
        rewrite::segment(packet.ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
    };
    for corrupt in [false, true] {
        let mut connection = TestConnection::filtered();
        connection.push(segment(0, connection.acked, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
        let [kept, old, new] = [(); 3].map(|()| connection.next_ack());
        let (old, new) = (datagram(&old), datagram(&new));
        let Payload::Datagram(bytes) = &new.payload else { panic!("a datagram") };
        let mut bytes = bytes.to_vec();
        bytes[20 + 15] ^= u8::from(corrupt); // the window field
        let new = wire::parse(&bytes).expect("a datagram");
        [kept, old.clone(), new].into_iter().for_each(|packet| connection.push(packet));
        assert_eq!(connection.drain().contains(&old), corrupt);
        assert_eq!(connection.kept(KeepReason::Corrupt) > 0, corrupt);
    }
}

// keeps: ack-filter.17
#[test]
fn rule_17_only_a_standing_queue_with_hysteresis() {
    let mut connection = TestConnection::open().pass_acks(40).queue_acks(14);
    assert_eq!(connection.discarded(), 0, "the head has not waited long enough");
    connection = connection.queue_acks(10);
    assert!(connection.discarded() > 0);
    // A head that has waited for a time between the two limits keeps the queue standing; an empty queue ends
    // it.
    while connection.queue.packets() > 3 {
        connection.queue.pop(connection.now);
    }
    let discarded = connection.discarded();
    connection = connection.queue_acks(3);
    assert!(connection.discarded() > discarded);
    connection.drain();
    let discarded = connection.discarded();
    connection = connection.queue_acks(14);
    assert_eq!(connection.discarded(), discarded);
    connection.drain();
    assert!(connection.kept(KeepReason::NoStandingQueue) > 0);
}

// keeps: ack-filter.18
#[test]
fn rule_18_discards_are_not_counted_as_drops() {
    let mut connection = TestConnection::filtered();
    let discarded = connection.discarded();
    assert_eq!(crate::common::discarded(&mut connection.queue).len() as u64, discarded);
    assert_eq!(connection.queue.counters().queue_drops, 0);
}

// keeps: ack-filter.19
#[test]
fn rule_19_a_connection_without_room_in_the_table_is_not_filtered() {
    let mut connection = TestConnection { queue: filter("safe"), now: Instant::ZERO, acked: 0 };
    for n in 0..20_000u32 {
        let mut syn = segment(0, 0, |tcp| tcp.flags = TcpFlags::SYN);
        syn.ip.src = std::net::Ipv4Addr::from(0x0a00_0000 + n).into();
        connection.push(syn);
    }
    connection.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    let mut connection = connection.queue_acks(200);
    assert_eq!(connection.discarded(), 0);
    connection.drain();
    assert_eq!(connection.kept(KeepReason::NoState), 200);
}

// keeps: ack-filter.20
#[test]
fn rule_20_every_kept_ack_is_counted_under_one_reason() {
    let mut connection = TestConnection::filtered();
    connection.push(ack(1, 7));
    connection.drain();
    let counters = connection.queue.counters();
    let kept: u64 = KeepReason::ALL.iter().map(|reason| connection.kept(*reason)).sum();
    assert_eq!(kept, counters.acks_out);
    assert_eq!(counters.acks_in, counters.acks_out + counters.acks_discarded);
    assert_eq!(connection.kept(KeepReason::MidStream), 1);
}

/// Its state is kept up to date meanwhile, so that filtering resumes at once.
// keeps: ack-filter.20
#[test]
fn rule_20_a_connection_that_is_held_out_is_not_filtered() {
    let mut connection = TestConnection::filtered();
    let discarded = connection.discarded();
    connection.queue.set_holdout(Holdout::ALL);
    let mut connection = connection.queue_acks(40);
    assert_eq!(connection.discarded(), discarded);
    connection.drain();
    assert!(connection.kept(KeepReason::HeldOut) >= 39);
    connection.queue.set_holdout(Holdout::default());
    let connection = connection.queue_acks(40);
    assert!(connection.discarded() > discarded + 10);
}

// keeps: ack-filter.21
#[test]
fn rule_21_grants_discard_nothing() {
    let mut connection = TestConnection::filtered();
    let held = connection.queue.packets();
    connection.queue.on_grant(connection.now, Bytes(60), OVERHEAD);
    assert_eq!(connection.queue.packets(), held);
}

// keeps: ack-filter.22
#[test]
fn rule_22_stands_down_behind_another_filter() {
    let mut connection = TestConnection::open();
    for _ in 0..60 {
        connection.acked = connection.acked.wrapping_add(2 * STEP); // six segments per ACK
        connection = connection.queue_acks(1);
    }
    assert_eq!(connection.discarded(), 0);
    connection.drain();
    assert!(connection.kept(KeepReason::ThinnedUpstream) > 20);
}
