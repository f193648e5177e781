//! The safe scheme, safety rules 1 to 14: which ACK supersedes which. Tests are named by the rule's number in
//! docs/ack-filter.md. `c` is the older ACK of a pair, `t` the later one.

use crate::common::connection::{STEP, TestConnection};
use crate::common::*;
use paceline_net::test_support::tcp_mut;
use paceline_net::{Bytes, Packet, SduQueue, SeqNumber, TcpFlags, Timestamps};
use paceline_pep::{AckFilter, AckFilterConfig, KeepReason, Scheme};

fn unchanged(_: &mut Packet) {}

/// Asserts that `c` is kept for `reason` when the pair is changed.
#[track_caller]
fn kept(c: impl FnOnce(&mut Packet), t: impl FnOnce(&mut Packet), reason: KeepReason) {
    let (was_kept, counted) = TestConnection::filtered().push_pair(c, t, reason);
    assert!(was_kept, "the older ACK is discarded");
    assert!(counted >= 1, "{} does not count it", reason.name());
}

/// Asserts that `c` is discarded when the pair is changed.
#[track_caller]
fn superseded(c: impl FnOnce(&mut Packet), t: impl FnOnce(&mut Packet)) {
    assert!(!TestConnection::filtered().push_pair(c, t, KeepReason::Newest).0, "the older ACK is kept");
}

#[test]
fn a_plain_ack_supersedes_a_plain_ack() {
    superseded(unchanged, unchanged);
}

// keeps: ack-filter.1
#[test]
fn rule_01_only_the_same_connection_supersedes() {
    kept(unchanged, |t| tcp_mut(t).src_port += 2, KeepReason::Newest);
    kept(unchanged, |t| tcp_mut(t).dst_port += 2, KeepReason::Newest);
    kept(unchanged, |t| t.ip.src = "198.18.0.9".parse().unwrap(), KeepReason::Newest);
    kept(unchanged, |t| t.ip.dst = "198.18.0.9".parse().unwrap(), KeepReason::Newest);
    kept(unchanged, |t| t.ip.traffic_class = 0x20, KeepReason::Separated);
}

// keeps: ack-filter.2
#[test]
fn rule_02_a_dropped_ack_supersedes_nothing() {
    let mut connection = TestConnection::open();
    connection.queue = AckFilter::new(AckFilterConfig {
        scheme: Scheme::Safe,
        limit: Bytes(40 * 52),
        segment: Bytes(536),
        header: Bytes(58),
    });
    connection.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    connection.queue.pop(connection.now);
    connection.wait_ms(40);
    connection = connection.pass_acks(40).queue_acks(30);
    while connection.queue.bytes() < Bytes(40 * 52) {
        connection = connection.queue_acks(1);
    }
    // In a full buffer, an ACK that supersedes another takes its room; any other is dropped and discards
    // nothing.
    let (mut refused, mut accepted) = (0, 0);
    for n in 0..20 {
        if n % 10 < 2 {
            connection.queue.pop(connection.now);
        }
        let (discarded, dropped) = (connection.discarded(), connection.queue.counters().queue_drops);
        let ack = connection.next_ack();
        connection.push(ack.clone());
        connection.wait_ms(1);
        if connection.queue.counters().queue_drops > dropped {
            refused += 1;
            assert_eq!(connection.discarded(), discarded);
        } else {
            accepted += u32::from(connection.discarded() == discarded + 1);
        }
    }
    assert!(refused > 0 && accepted > 0, "{refused} {accepted}");
    assert!(connection.queue.bytes() <= Bytes(40 * 52));
}

// keeps: ack-filter.3
#[test]
fn rule_03_no_ack_is_delayed() {
    let mut connection = TestConnection::open();
    let ack = connection.next_ack();
    connection.push(ack.clone());
    assert_eq!(connection.queue.pop(connection.now), Some(ack));
}

// keeps: ack-filter.4
#[test]
fn rule_04_acks_leave_in_order_and_unchanged() {
    let mut connection = TestConnection::filtered();
    let left = connection.drain();
    assert!(left.windows(2).all(|pair| {
        let [a, b] = pair else { unreachable!() };
        b.tcp_header().unwrap().ack > a.tcp_header().unwrap().ack
    }));
    assert!(left.iter().all(|packet| *packet == ack(0, number(packet))));
    // No ACK is discarded across a data segment.
    let mut connection = TestConnection::filtered();
    let (c, t) = (connection.next_ack(), connection.next_ack());
    connection.push(c.clone());
    connection.push(data(0, number(&c), 10));
    connection.push(t);
    assert!(connection.drain().contains(&c));
    assert!(connection.kept(KeepReason::Separated) > 0);
}

// keeps: ack-filter.5
#[test]
fn rule_05_only_whole_plain_datagrams_are_discarded() {
    kept(|c| c.ip.special = true, unchanged, KeepReason::NotPlainIp);
    kept(unchanged, |t| t.ip.special = true, KeepReason::Newest);
    kept(|c| c.len = 45, unchanged, KeepReason::NotPlainIp);
    kept(|c| c.len = 81, unchanged, KeepReason::NotPlainIp);
}

// keeps: ack-filter.6
#[test]
fn rule_06_segments_with_payload_are_kept() {
    let (was_kept, _) =
        TestConnection::filtered().push_pair(|c| tcp_mut(c).payload_len = 1, unchanged, KeepReason::Newest);
    assert!(was_kept);
}

// keeps: ack-filter.7
#[test]
fn rule_07_segments_with_other_flags_are_kept() {
    for flag in [TcpFlags::PSH, TcpFlags::URG, TcpFlags::FIN, TcpFlags::RST, TcpFlags::AE, TcpFlags(0x200)] {
        let (was_kept, _) = TestConnection::filtered().push_pair(
            |c| tcp_mut(c).flags = TcpFlags::ACK.with(flag),
            unchanged,
            KeepReason::Newest,
        );
        assert!(was_kept, "{flag:?}");
    }
}

// keeps: ack-filter.8
#[test]
fn rule_08_acks_with_unknown_options_are_kept() {
    kept(|c| tcp_mut(c).options.other = true.into(), unchanged, KeepReason::Options);
    kept(unchanged, |t| tcp_mut(t).options.other = true.into(), KeepReason::Separated);
    kept(|c| tcp_mut(c).options.mss = Some(1460), unchanged, KeepReason::Options);
    let mut connection =
        TestConnection::opened_with(|syn| syn.options.other = true.into()).pass_acks(40).queue_acks(30);
    assert_eq!(connection.discarded(), 0);
    connection.drain();
    assert!(connection.kept(KeepReason::Handshake) > 0);
}

// keeps: ack-filter.9
#[test]
fn rule_09_old_acks_are_kept_and_supersede_nothing() {
    kept(
        |c| tcp_mut(c).ack = SeqNumber(tcp_mut(c).ack.0.wrapping_sub(20 * STEP)),
        unchanged,
        KeepReason::OldAck,
    );
    kept(
        unchanged,
        |t| tcp_mut(t).ack = SeqNumber(tcp_mut(t).ack.0.wrapping_sub(20 * STEP)),
        KeepReason::Separated,
    );
    kept(
        unchanged,
        |t| tcp_mut(t).ack = SeqNumber(tcp_mut(t).ack.0.wrapping_sub(STEP)),
        KeepReason::Separated,
    );
}

// keeps: ack-filter.10
#[test]
fn rule_10_probes_are_kept() {
    kept(|c| tcp_mut(c).seq = SeqNumber(0), unchanged, KeepReason::Probe);
    kept(unchanged, |t| tcp_mut(t).seq = SeqNumber(0), KeepReason::Separated);
}

// keeps: ack-filter.11
#[test]
fn rule_11_timestamps_must_not_run_backwards() {
    let stamps =
        |val, ecr| move |p: &mut Packet| tcp_mut(p).options.timestamps = Some(Timestamps { val, ecr });
    superseded(stamps(u32::MAX, u32::MAX), stamps(3, 3));
    kept(stamps(10, 5), stamps(9, 5), KeepReason::Timestamps);
    kept(stamps(10, 5), stamps(10, 4), KeepReason::Timestamps);
    kept(|c| tcp_mut(c).options.timestamps = None, unchanged, KeepReason::Timestamps);
    kept(unchanged, |t| tcp_mut(t).options.timestamps = None, KeepReason::Timestamps);
}

// keeps: ack-filter.12
#[test]
fn rule_12_sack_and_the_first_advance_are_kept() {
    let hole = |p: &mut Packet| {
        let (left, right) = (tcp_mut(p).ack + 2000, tcp_mut(p).ack + 3000);
        tcp_mut(p).options.sack.push(left, right);
        p.len += 12;
    };
    kept(hole, unchanged, KeepReason::Sack);
    kept(unchanged, hole, KeepReason::Separated);
    // A duplicate SACK (RFC 2883) lies below the acknowledgment number.
    kept(
        |c| {
            let ack = tcp_mut(c).ack;
            tcp_mut(c).options.sack.push(SeqNumber(ack.0.wrapping_sub(500)), ack);
            c.len += 12;
        },
        unchanged,
        KeepReason::Sack,
    );
    // The first ACK that advances after a duplicate, long after the loss.
    let mut connection = TestConnection::filtered();
    connection.push(ack(0, connection.acked));
    for _ in 0..6 {
        connection.wait_ms(50);
        // Segments that keep the connection from being sparse.
        connection.push(segment(0, connection.acked, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
    }
    let (c, t) = (connection.next_ack(), connection.next_ack());
    connection.push(c.clone());
    connection.push(t);
    assert!(connection.drain().contains(&c));
    assert_eq!(connection.kept(KeepReason::FirstAdvance), 1);
}

// keeps: ack-filter.13
#[test]
fn rule_13_duplicates_and_window_changes_are_kept() {
    let repeat = |p: &mut Packet| tcp_mut(p).ack = SeqNumber(tcp_mut(p).ack.0.wrapping_sub(STEP));
    kept(repeat, unchanged, KeepReason::Duplicate);
    kept(unchanged, repeat, KeepReason::Separated);
    let update = |p: &mut Packet| {
        repeat(p);
        tcp_mut(p).window += 1;
    };
    kept(update, unchanged, KeepReason::Window);
    kept(|c| tcp_mut(c).window = 0, unchanged, KeepReason::Window);
    kept(unchanged, |t| tcp_mut(t).window = 0, KeepReason::Separated);
    kept(|c| tcp_mut(c).window = 1000 + STEP as u16 + 1, unchanged, KeepReason::Window);
    superseded(|c| tcp_mut(c).window = 1000 + STEP as u16, unchanged);
}

// keeps: ack-filter.13
#[test]
fn rule_13_the_right_edge_is_scaled() {
    let with_scale = |shift, window| {
        let connection = TestConnection::opened_with(|syn| syn.options.window_scale = Some(shift))
            .pass_acks(40)
            .queue_acks(30);
        connection.push_pair(|c| tcp_mut(c).window = window, unchanged, KeepReason::Window).0
    };
    assert!(!with_scale(7, 1008), "8 * 128 = 1024 bytes beyond, 1072 acknowledged");
    assert!(with_scale(7, 1009));
}

// keeps: ack-filter.13
#[test]
fn rule_13_the_ack_that_reopens_the_window_is_kept() {
    let mut connection = TestConnection::filtered();
    let mut closed = connection.next_ack();
    tcp_mut(&mut closed).window = 0;
    connection.push(closed);
    let (open, later) = (connection.next_ack(), connection.next_ack());
    connection.push(open.clone());
    connection.push(later);
    assert!(connection.drain().contains(&open));
    assert_eq!(connection.kept(KeepReason::Window), 2);
}

// keeps: ack-filter.14
#[test]
fn rule_14_ecn_is_kept() {
    kept(|c| c.ip.traffic_class = 3, unchanged, KeepReason::IpEcn);
    kept(unchanged, |t| t.ip.traffic_class = 1, KeepReason::Separated);
    let echo = |p: &mut Packet| tcp_mut(p).flags = TcpFlags::ACK.with(TcpFlags::ECE);
    kept(echo, unchanged, KeepReason::EcnEcho);
    kept(unchanged, echo, KeepReason::EcnEcho);
    kept(echo, echo, KeepReason::EcnEcho); // differs from the kept segment ahead
    let ecn = TcpFlags::ECE.with(TcpFlags::CWR);
    for (offer, filtered) in [(ecn, true), (ecn.with(TcpFlags::AE), false), (TcpFlags::AE, false)] {
        let connection = TestConnection::opened_with(|syn| syn.flags = TcpFlags::SYN.with(offer))
            .pass_acks(40)
            .queue_acks(30);
        assert_eq!(connection.discarded() > 0, filtered, "{offer:?}");
    }
}
