//! The safe scheme, rules 1 to 14: which ACK supersedes which. One test for each rule, by its number.

mod common;

use common::bed::{Bed, STEP};
use common::*;
use paceline_net::{Bytes, Packet, SduQueue, SeqNumber, TcpFlags, TcpHeader, Timestamps};
use paceline_pep::{AckFilter, AckFilterConfig, KeepReason, Scheme};

fn tcp(packet: &mut Packet) -> &mut TcpHeader {
    match &mut packet.transport {
        paceline_net::Transport::Tcp(tcp) => tcp,
        other => panic!("{other:?}"),
    }
}
fn same(_: &mut Packet) {}

/// Asserts that `c` stays because of `reason` when the pair is so changed.
#[track_caller]
fn kept(c: impl FnOnce(&mut Packet), t: impl FnOnce(&mut Packet), reason: KeepReason) {
    let (through, counted) = Bed::ready().pair(c, t, reason);
    assert!(through, "the older ACK must stay");
    assert!(counted >= 1, "{} does not count it", reason.name());
}

/// Asserts that `c` goes when the pair is so changed.
#[track_caller]
fn goes(c: impl FnOnce(&mut Packet), t: impl FnOnce(&mut Packet)) {
    assert!(!Bed::ready().pair(c, t, KeepReason::Newest).0, "the older ACK should go");
}

#[test]
fn a_plain_pair_is_thinned() {
    goes(same, same);
}

#[test]
fn rule_01_only_the_same_connection_supersedes() {
    kept(same, |t| tcp(t).src_port += 2, KeepReason::Newest);
    kept(same, |t| tcp(t).dst_port += 2, KeepReason::Newest);
    kept(same, |t| t.ip.src = "198.18.0.9".parse().unwrap(), KeepReason::Newest);
    kept(same, |t| t.ip.dst = "198.18.0.9".parse().unwrap(), KeepReason::Newest);
    kept(same, |t| t.ip.traffic_class = 0x20, KeepReason::Separated);
}

#[test]
fn rule_02_nothing_goes_for_an_ack_that_is_not_accepted() {
    let mut bed = Bed::open();
    bed.queue = AckFilter::new(AckFilterConfig {
        scheme: Scheme::Safe,
        limit: Bytes(40 * 52),
        segment: Bytes(536),
        header: Bytes(58),
    });
    bed.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    bed.queue.pop(bed.now);
    bed.wait(40);
    bed = bed.flowing(40).standing(30);
    while bed.queue.bytes() < Bytes(40 * 52) {
        bed = bed.standing(1);
    }
    // Full: an ACK that makes its own room is accepted, one that does not is dropped and makes none.
    let (mut refused, mut accepted) = (0, 0);
    for n in 0..20 {
        if n % 10 < 2 {
            bed.queue.pop(bed.now);
        }
        let (discarded, dropped) = (bed.queue.counters().acks_discarded, bed.queue.counters().queue_drops);
        let ack = bed.ack();
        bed.push(ack.clone());
        bed.wait(1);
        if bed.queue.counters().queue_drops > dropped {
            refused += 1;
            assert_eq!(bed.queue.counters().acks_discarded, discarded);
        } else {
            accepted += u32::from(bed.queue.counters().acks_discarded == discarded + 1);
        }
    }
    assert!(refused > 0 && accepted > 0, "{refused} {accepted}");
    assert!(bed.queue.bytes() <= Bytes(40 * 52));
}

#[test]
fn rule_03_nothing_is_held_back() {
    let mut bed = Bed::open();
    let ack = bed.ack();
    bed.push(ack.clone());
    assert_eq!(bed.queue.pop(bed.now), Some(ack));
}

#[test]
fn rule_04_order_stays_and_nothing_is_edited() {
    let mut bed = Bed::ready();
    let left = bed.drain();
    assert!(left.windows(2).all(|pair| {
        let [a, b] = pair else { unreachable!() };
        b.tcp_header().unwrap().ack > a.tcp_header().unwrap().ack
    }));
    assert!(left.iter().all(|packet| *packet == ack(0, number(packet))));
    // Nothing is discarded across a segment of another kind.
    let mut bed = Bed::ready();
    let (c, t) = (bed.ack(), bed.ack());
    bed.push(c.clone());
    bed.push(data(0, number(&c), 10));
    bed.push(t);
    assert!(bed.drain().contains(&c));
    assert!(bed.kept(KeepReason::Separated) > 0);
}

#[test]
fn rule_05_only_whole_plain_datagrams() {
    kept(|c| c.ip.special = true, same, KeepReason::NotPlainIp);
    kept(same, |t| t.ip.special = true, KeepReason::Newest);
    kept(|c| c.len = 45, same, KeepReason::NotPlainIp);
    kept(|c| c.len = 81, same, KeepReason::NotPlainIp);
}

#[test]
fn rule_06_payload_stays() {
    let (through, _) = Bed::ready().pair(|c| tcp(c).payload_len = 1, same, KeepReason::Newest);
    assert!(through);
}

#[test]
fn rule_07_only_the_ack_flag() {
    for flag in [TcpFlags::PSH, TcpFlags::URG, TcpFlags::FIN, TcpFlags::RST, TcpFlags::AE, TcpFlags(0x200)] {
        let (through, _) =
            Bed::ready().pair(|c| tcp(c).flags = TcpFlags::ACK.with(flag), same, KeepReason::Newest);
        assert!(through, "{flag:?}");
    }
}

#[test]
fn rule_08_unknown_options_stay() {
    kept(|c| tcp(c).options.other = true.into(), same, KeepReason::Options);
    kept(same, |t| tcp(t).options.other = true.into(), KeepReason::Separated);
    kept(|c| tcp(c).options.mss = Some(1460), same, KeepReason::Options);
    let mut bed = Bed::opened_by(|syn| syn.options.other = true.into()).flowing(40).standing(30);
    assert_eq!(bed.queue.counters().acks_discarded, 0);
    bed.drain();
    assert!(bed.kept(KeepReason::Handshake) > 0);
}

#[test]
fn rule_09_old_acks_neither_go_nor_supersede() {
    kept(|c| tcp(c).ack = SeqNumber(tcp(c).ack.0.wrapping_sub(20 * STEP)), same, KeepReason::OldAck);
    kept(same, |t| tcp(t).ack = SeqNumber(tcp(t).ack.0.wrapping_sub(20 * STEP)), KeepReason::Separated);
    kept(same, |t| tcp(t).ack = SeqNumber(tcp(t).ack.0.wrapping_sub(STEP)), KeepReason::Separated);
}

#[test]
fn rule_10_probes_stay() {
    kept(|c| tcp(c).seq = SeqNumber(0), same, KeepReason::Probe);
    kept(same, |t| tcp(t).seq = SeqNumber(0), KeepReason::Separated);
}

#[test]
fn rule_11_timestamps_run_forward_in_both() {
    let stamps = |val, ecr| move |p: &mut Packet| tcp(p).options.timestamps = Some(Timestamps { val, ecr });
    goes(stamps(u32::MAX, u32::MAX), stamps(3, 3));
    kept(stamps(10, 5), stamps(9, 5), KeepReason::Timestamps);
    kept(stamps(10, 5), stamps(10, 4), KeepReason::Timestamps);
    kept(|c| tcp(c).options.timestamps = None, same, KeepReason::Timestamps);
    kept(same, |t| tcp(t).options.timestamps = None, KeepReason::Timestamps);
}

#[test]
fn rule_12_sack_stays_and_so_does_the_first_advance() {
    let hole = |p: &mut Packet| {
        let (left, right) = (tcp(p).ack + 2000, tcp(p).ack + 3000);
        tcp(p).options.sack.push(left, right);
        p.len += 12;
    };
    kept(hole, same, KeepReason::Sack);
    kept(same, hole, KeepReason::Separated);
    // A duplicate SACK reports below the acknowledgment.
    kept(
        |c| {
            let ack = tcp(c).ack;
            tcp(c).options.sack.push(SeqNumber(ack.0.wrapping_sub(500)), ack);
            c.len += 12;
        },
        same,
        KeepReason::Sack,
    );
    // The loss is long over, yet the first ACK that advances is kept.
    let mut bed = Bed::ready();
    bed.push(ack(0, bed.next));
    for _ in 0..6 {
        bed.wait(50);
        // Keeps the connection from being sparse.
        bed.push(segment(0, bed.next, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
    }
    let (c, t) = (bed.ack(), bed.ack());
    bed.push(c.clone());
    bed.push(t);
    assert!(bed.drain().contains(&c));
    assert_eq!(bed.kept(KeepReason::FirstAdvance), 1);
}

#[test]
fn rule_13_duplicates_and_window_changes_stay() {
    let repeat = |p: &mut Packet| tcp(p).ack = SeqNumber(tcp(p).ack.0.wrapping_sub(STEP));
    kept(repeat, same, KeepReason::Duplicate);
    kept(same, repeat, KeepReason::Separated);
    let update = |p: &mut Packet| {
        repeat(p);
        tcp(p).window += 1;
    };
    kept(update, same, KeepReason::Window);
    kept(|c| tcp(c).window = 0, same, KeepReason::Window);
    kept(same, |t| tcp(t).window = 0, KeepReason::Separated);
    kept(|c| tcp(c).window = 1000 + STEP as u16 + 1, same, KeepReason::Window);
    goes(|c| tcp(c).window = 1000 + STEP as u16, same);
}

#[test]
fn rule_13_the_right_edge_is_scaled() {
    let with_scale = |shift, window| {
        let bed = Bed::opened_by(|syn| syn.options.window_scale = Some(shift)).flowing(40).standing(30);
        bed.pair(|c| tcp(c).window = window, same, KeepReason::Window).0
    };
    assert!(!with_scale(7, 1008), "8 * 128 = 1024 bytes beyond, 1072 acknowledged");
    assert!(with_scale(7, 1009));
}

#[test]
fn rule_13_the_ack_that_reopens_the_window_stays() {
    let mut bed = Bed::ready();
    let mut closed = bed.ack();
    tcp(&mut closed).window = 0;
    bed.push(closed);
    let (open, later) = (bed.ack(), bed.ack());
    bed.push(open.clone());
    bed.push(later);
    assert!(bed.drain().contains(&open));
    assert_eq!(bed.kept(KeepReason::Window), 2);
}

#[test]
fn rule_14_ecn_stays() {
    kept(|c| c.ip.traffic_class = 3, same, KeepReason::IpEcn);
    kept(same, |t| t.ip.traffic_class = 1, KeepReason::Separated);
    let echo = |p: &mut Packet| tcp(p).flags = TcpFlags::ACK.with(TcpFlags::ECE);
    kept(echo, same, KeepReason::EcnEcho);
    kept(same, echo, KeepReason::EcnEcho);
    kept(echo, echo, KeepReason::EcnEcho); // differs from the kept one ahead
    let ecn = TcpFlags::ECE.with(TcpFlags::CWR);
    for (offer, filtered) in [(ecn, true), (ecn.with(TcpFlags::AE), false), (TcpFlags::AE, false)] {
        let bed = Bed::opened_by(|syn| syn.flags = TcpFlags::SYN.with(offer)).flowing(40).standing(30);
        assert_eq!(bed.queue.counters().acks_discarded > 0, filtered, "{offer:?}");
    }
}
