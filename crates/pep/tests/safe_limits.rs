//! The safe scheme, rules 15 to 22: when and how far it acts. One test for each rule, by its number.

mod common;

use common::bed::{Bed, STEP};
use common::*;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Bytes, Checksum, Instant, Packet, Payload, SduQueue, SeqNumber, TcpFlags, TcpHeader, wire,
};
use paceline_pep::KeepReason;
use paceline_pep::ack_filter::Holdout;

#[test]
fn rule_15_one_kept_ack_acknowledges_at_most_eight_segments() {
    let mut bed = Bed::ready();
    let left = bed.drain();
    let steps: Vec<u32> =
        left.windows(2).map(|pair| number(&pair[1]).wrapping_sub(number(&pair[0]))).collect();
    assert!(steps.iter().all(|step| *step <= 8 * 536), "{steps:?}");
    assert!(steps.contains(&(8 * 536)), "{steps:?}");
    assert!(bed.kept(KeepReason::SegmentFloor) > 0);
}

#[test]
fn rule_15_counts_from_the_ack_that_has_left() {
    // Whatever the phase of the thinning, one of the ACKs that become the head goes, and one stays.
    let outcomes = [0, 1, 2, 3].map(|more| {
        let mut bed = Bed::ready().standing(more);
        bed.wait(3); // long enough for the newest to keep the queue a standing one
        while bed.queue.packets() > 1 {
            bed.queue.pop(bed.now);
        }
        bed.standing(1).queue.packets()
    });
    assert!(outcomes.contains(&1) && outcomes.contains(&2), "{outcomes:?}");
}

/// The other end's segments are no longer than the SYN allows.
#[test]
fn rule_15_counts_the_segments_of_the_connection() {
    let mut bed = Bed::opened_by(|syn| syn.options.mss = Some(268));
    // Sent again it may say less.
    bed.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    bed.queue.pop(bed.now);
    let mut bed = bed.flowing(40).standing(30);
    let left = bed.drain();
    let most = left.windows(2).map(|pair| number(&pair[1]).wrapping_sub(number(&pair[0]))).max();
    assert_eq!(most, Some(8 * 268));
}

#[test]
fn rule_15_kept_acks_are_at_most_ten_milliseconds_apart() {
    // Round trip of 40 ms: a quarter of it, and no more than that of an unknown one, is the limit.
    for (gap, through) in [(5, false), (6, true)] {
        let mut bed = Bed::ready();
        bed.push(segment(0, bed.next, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
        let (c, t) = (bed.ack(), bed.ack());
        bed.wait(5);
        bed.push(c.clone());
        bed.wait(gap);
        bed.push(t);
        assert_eq!(bed.drain().contains(&c), through);
        assert_eq!(bed.kept(KeepReason::TimeFloor) > 0, through);
    }
}

#[test]
fn rule_16_off_for_the_first_64_segments() {
    let mut bed = Bed::open().standing(33);
    assert_eq!(bed.queue.counters().acks_discarded, 0, "32 ACKs of two segments, after the handshake's");
    bed = bed.standing(5);
    assert!(bed.queue.counters().acks_discarded > 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::FirstSegments), 33);
}

#[test]
fn rule_16_off_when_closing() {
    for flag in [TcpFlags::FIN, TcpFlags::RST] {
        let mut bed = Bed::ready();
        bed.push(segment(0, bed.next, |tcp| tcp.flags = tcp.flags.with(flag)));
        let discarded = bed.queue.counters().acks_discarded;
        bed = bed.standing(20);
        assert_eq!(bed.queue.counters().acks_discarded, discarded);
        bed.drain();
        assert_eq!(bed.kept(KeepReason::Closing), 20);
    }
}

#[test]
fn rule_16_off_for_a_round_trip_after_a_duplicate() {
    let mut bed = Bed::ready();
    bed.push(ack(0, bed.next));
    let discarded = bed.queue.counters().acks_discarded;
    bed = bed.standing(100);
    assert_eq!(
        bed.queue.counters().acks_discarded,
        discarded,
        "off for 100 ms, the round trip being shorter"
    );
    bed = bed.standing(10);
    assert!(bed.queue.counters().acks_discarded > discarded);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::Recovery), 99);
}

#[test]
fn rule_16_off_for_sparse_connections() {
    let mut bed = Bed::ready();
    bed.wait(101);
    let discarded = bed.queue.counters().acks_discarded;
    bed = bed.standing(16);
    assert_eq!(bed.queue.counters().acks_discarded, discarded);
    bed = bed.standing(10);
    assert!(bed.queue.counters().acks_discarded > discarded);
    bed.drain();
    assert!(bed.kept(KeepReason::Sparse) > 0);
}

#[test]
fn rule_16_off_for_connections_seen_in_mid_stream() {
    let bed = Bed { queue: filter("safe"), now: Instant::from_millis(1), next: 0 };
    let mut bed = bed.flowing(100).standing(100);
    assert_eq!(bed.queue.counters().acks_discarded, 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::MidStream), 200);
}

/// A SYN that is sent again with less may come behind one that was answered.
#[test]
fn rule_14_what_the_first_syn_offered_counts() {
    let accurate = |syn: &mut TcpHeader| {
        syn.flags = syn.flags.with(TcpFlags::AE).with(TcpFlags::CWR).with(TcpFlags::ECE)
    };
    for offers in [false, true] {
        let mut bed = Bed::opened_by(|syn| {
            if offers {
                accurate(syn)
            }
        });
        bed.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
        bed.queue.pop(bed.now);
        let mut bed = bed.flowing(40).standing(30);
        assert_eq!(bed.queue.counters().acks_discarded == 0, offers);
        bed.drain();
        assert_eq!(bed.kept(KeepReason::Handshake) == 70, offers);
    }
}

/// A damaged ACK makes nothing superfluous: its receiver will drop it.
#[test]
fn rule_2_what_is_damaged_supersedes_nothing() {
    let datagram = |packet: &Packet| {
        let tcp = *packet.tcp_header().expect("a segment");
        rewrite::segment(packet.ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::empty())
    };
    for damaged in [false, true] {
        let mut bed = Bed::ready();
        bed.push(segment(0, bed.next, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH)));
        let (kept, old, new) = (bed.ack(), datagram(&bed.ack()), datagram(&bed.ack()));
        let Payload::Datagram(bytes) = &new.payload else { panic!("a datagram") };
        let mut bytes = bytes.to_vec();
        bytes[20 + 15] ^= u8::from(damaged); // its window
        [kept, old.clone(), wire::parse(&bytes).expect("a datagram")].into_iter().for_each(|p| bed.push(p));
        assert_eq!(bed.drain().contains(&old), damaged);
        assert_eq!(bed.kept(KeepReason::Corrupt) > 0, damaged);
    }
}

#[test]
fn rule_17_only_a_standing_queue_with_hysteresis() {
    let mut bed = Bed::open().flowing(40).standing(14);
    assert_eq!(bed.queue.counters().acks_discarded, 0, "the head has not waited long enough");
    bed = bed.standing(10);
    assert!(bed.queue.counters().acks_discarded > 0);
    // A wait between the two limits keeps it on; once emptied it is off.
    while bed.queue.packets() > 3 {
        bed.queue.pop(bed.now);
    }
    let discarded = bed.queue.counters().acks_discarded;
    bed = bed.standing(3);
    assert!(bed.queue.counters().acks_discarded > discarded);
    bed.drain();
    let discarded = bed.queue.counters().acks_discarded;
    bed = bed.standing(14);
    assert_eq!(bed.queue.counters().acks_discarded, discarded);
    bed.drain();
    assert!(bed.kept(KeepReason::NoStandingQueue) > 0);
}

#[test]
fn rule_18_discards_are_not_drops() {
    let mut bed = Bed::ready();
    let discarded = bed.queue.counters().acks_discarded;
    assert_eq!(common::discarded(&mut bed.queue).len() as u64, discarded);
    assert_eq!(bed.queue.counters().queue_drops, 0);
}

#[test]
fn rule_19_a_full_table_is_not_filtered() {
    let mut bed = Bed { queue: filter("safe"), now: Instant::ZERO, next: 0 };
    for n in 0..20_000u32 {
        let mut syn = segment(0, 0, |tcp| tcp.flags = TcpFlags::SYN);
        syn.ip.src = std::net::Ipv4Addr::from(0x0a00_0000 + n).into();
        bed.push(syn);
    }
    bed.push(segment(0, 0, |tcp| (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(0))));
    let mut bed = bed.standing(200);
    assert_eq!(bed.queue.counters().acks_discarded, 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::NoState), 200);
}

#[test]
fn rule_20_every_ack_is_counted_once() {
    let mut bed = Bed::ready();
    bed.push(ack(1, 7));
    bed.drain();
    let counters = bed.queue.counters();
    let kept: u64 = KeepReason::ALL.iter().map(|reason| bed.kept(*reason)).sum();
    assert_eq!(kept, counters.acks_out);
    assert_eq!(counters.acks_in, counters.acks_out + counters.acks_discarded);
    assert_eq!(bed.kept(KeepReason::MidStream), 1);
}

/// Of a connection that is held out nothing goes, and everything is known when it is no more.
#[test]
fn rule_20_some_connections_are_left_unfiltered_for_comparison() {
    let mut bed = Bed::ready();
    let discarded = bed.queue.counters().acks_discarded;
    bed.queue.set_holdout(Holdout::ALL);
    let mut bed = bed.standing(40);
    assert_eq!(bed.queue.counters().acks_discarded, discarded);
    bed.drain();
    assert!(bed.kept(KeepReason::HeldOut) >= 39);
    bed.queue.set_holdout(Holdout::default());
    let bed = bed.standing(40);
    assert!(bed.queue.counters().acks_discarded > discarded + 10);
}

#[test]
fn rule_21_grants_discard_nothing() {
    let mut bed = Bed::ready();
    let held = bed.queue.packets();
    bed.queue.on_grant(bed.now, Bytes(60), OVERHEAD);
    assert_eq!(bed.queue.packets(), held);
}

#[test]
fn rule_22_stands_down_behind_another_filter() {
    let mut bed = Bed::open();
    for _ in 0..60 {
        bed.next = bed.next.wrapping_add(2 * STEP); // with the ACK's own: six segments
        bed = bed.standing(1);
    }
    assert_eq!(bed.queue.counters().acks_discarded, 0);
    bed.drain();
    assert!(bed.kept(KeepReason::ThinnedUpstream) > 20);
}
