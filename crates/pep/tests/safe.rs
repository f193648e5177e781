//! The safe scheme: one test for each rule of the ACK filter, by its number.

mod common;

use common::*;
use paceline_net::{Bytes, Duration, Instant, Packet, SduQueue, SeqNumber, TcpFlags, TcpHeader, Timestamps};
use paceline_pep::{AckFilter, AckFilterConfig, KeepReason, Scheme};

const STEP: u32 = 2 * 536;

/// A filter under a connection's ACKs, one each millisecond, with the numbers and the clock kept.
struct Bed {
    queue: AckFilter,
    now: Instant,
    next: u32,
}

impl Bed {
    /// A connection that was seen from its SYN, the round trip being 40 ms.
    fn opened_by(syn: impl FnOnce(&mut TcpHeader)) -> Self {
        let mut bed =
            Self { queue: filter("safe"), now: Instant::from_millis(1), next: u32::MAX - 90 * STEP };
        let syn = segment(0, 0, |tcp| {
            tcp.flags = TcpFlags::SYN;
            tcp.seq = SeqNumber(0);
            syn(tcp);
        });
        bed.queue.push(bed.now, syn);
        bed.queue.pop(bed.now);
        bed.wait(40);
        bed
    }
    fn open() -> Self {
        Self::opened_by(|_| ())
    }
    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
    fn ack(&mut self) -> Packet {
        self.next = self.next.wrapping_add(STEP);
        ack(0, self.next)
    }
    fn push(&mut self, packet: Packet) {
        self.queue.push(self.now, packet);
    }
    /// ACKs that leave at once.
    fn flowing(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.ack();
            self.push(ack);
            self.queue.pop(self.now);
            self.wait(1);
        }
        self
    }
    /// ACKs that stay: the queue stands from the 15th on.
    fn standing(mut self, acks: u32) -> Self {
        for _ in 0..acks {
            let ack = self.ack();
            self.push(ack);
            self.wait(1);
        }
        self
    }
    /// Past the first segments, with a standing queue and ACKs being discarded.
    fn ready() -> Self {
        let bed = Self::open().flowing(40).standing(30);
        assert!(bed.queue.stats().acks_discarded > 5);
        bed
    }
    fn kept(&self, reason: KeepReason) -> u64 {
        self.queue.stats().kept(reason)
    }
    /// Everything that is held, discarded ACKs thrown away.
    fn drain(&mut self) -> Vec<Packet> {
        while self.queue.pop_dropped().is_some() {}
        std::iter::from_fn(|| self.queue.pop(self.now)).collect()
    }
    /// Pushes a kept ACK, then `c` and `t` as changed, all at once; whether `c` got through, and `reason` counted.
    fn pair(
        mut self,
        c: impl FnOnce(&mut Packet),
        t: impl FnOnce(&mut Packet),
        reason: KeepReason,
    ) -> (bool, u64) {
        // A data segment separates, so that the next ACK has a fresh one ahead of it.
        let separator = segment(0, self.next, |tcp| tcp.flags = tcp.flags.with(TcpFlags::PSH));
        self.push(separator);
        let (mut old, mut new) = (self.ack(), self.ack());
        c(&mut old);
        t(&mut new);
        self.push(old.clone());
        self.push(new.clone());
        let before = self.kept(reason);
        let left = self.drain();
        assert!(left.contains(&new), "the later ACK gets through");
        (left.contains(&old), self.kept(reason) - before)
    }
}

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
        let (discarded, dropped) = (bed.queue.stats().acks_discarded, bed.queue.stats().queue_drops);
        let ack = bed.ack();
        bed.push(ack.clone());
        bed.wait(1);
        if bed.queue.stats().queue_drops > dropped {
            refused += 1;
            assert_eq!(bed.queue.stats().acks_discarded, discarded);
        } else {
            accepted += u32::from(bed.queue.stats().acks_discarded == discarded + 1);
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
    kept(|c| tcp(c).options.other = true, same, KeepReason::Options);
    kept(same, |t| tcp(t).options.other = true, KeepReason::Separated);
    kept(|c| tcp(c).options.mss = Some(1460), same, KeepReason::Options);
    let mut bed = Bed::opened_by(|syn| syn.options.other = true).flowing(40).standing(30);
    assert_eq!(bed.queue.stats().acks_discarded, 0);
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
        assert_eq!(bed.queue.stats().acks_discarded > 0, filtered, "{offer:?}");
    }
}

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
    assert_eq!(bed.queue.stats().acks_discarded, 0, "32 ACKs of two segments, after the handshake's");
    bed = bed.standing(5);
    assert!(bed.queue.stats().acks_discarded > 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::FirstSegments), 33);
}

#[test]
fn rule_16_off_when_closing() {
    for flag in [TcpFlags::FIN, TcpFlags::RST] {
        let mut bed = Bed::ready();
        bed.push(segment(0, bed.next, |tcp| tcp.flags = tcp.flags.with(flag)));
        let discarded = bed.queue.stats().acks_discarded;
        bed = bed.standing(20);
        assert_eq!(bed.queue.stats().acks_discarded, discarded);
        bed.drain();
        assert_eq!(bed.kept(KeepReason::Closing), 20);
    }
}

#[test]
fn rule_16_off_for_a_round_trip_after_a_duplicate() {
    let mut bed = Bed::ready();
    bed.push(ack(0, bed.next));
    let discarded = bed.queue.stats().acks_discarded;
    bed = bed.standing(100);
    assert_eq!(bed.queue.stats().acks_discarded, discarded, "off for 100 ms, the round trip being shorter");
    bed = bed.standing(10);
    assert!(bed.queue.stats().acks_discarded > discarded);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::Recovery), 99);
}

#[test]
fn rule_16_off_for_sparse_connections() {
    let mut bed = Bed::ready();
    bed.wait(101);
    let discarded = bed.queue.stats().acks_discarded;
    bed = bed.standing(16);
    assert_eq!(bed.queue.stats().acks_discarded, discarded);
    bed = bed.standing(10);
    assert!(bed.queue.stats().acks_discarded > discarded);
    bed.drain();
    assert!(bed.kept(KeepReason::Sparse) > 0);
}

#[test]
fn rule_16_off_for_connections_seen_in_mid_stream() {
    let bed = Bed { queue: filter("safe"), now: Instant::from_millis(1), next: 0 };
    let mut bed = bed.flowing(100).standing(100);
    assert_eq!(bed.queue.stats().acks_discarded, 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::MidStream), 200);
}

#[test]
fn rule_17_only_a_standing_queue_with_hysteresis() {
    let mut bed = Bed::open().flowing(40).standing(14);
    assert_eq!(bed.queue.stats().acks_discarded, 0, "the head has not waited long enough");
    bed = bed.standing(10);
    assert!(bed.queue.stats().acks_discarded > 0);
    // A wait between the two limits keeps it on; once emptied it is off.
    while bed.queue.packets() > 3 {
        bed.queue.pop(bed.now);
    }
    let discarded = bed.queue.stats().acks_discarded;
    bed = bed.standing(3);
    assert!(bed.queue.stats().acks_discarded > discarded);
    bed.drain();
    let discarded = bed.queue.stats().acks_discarded;
    bed = bed.standing(14);
    assert_eq!(bed.queue.stats().acks_discarded, discarded);
    bed.drain();
    assert!(bed.kept(KeepReason::NoStandingQueue) > 0);
}

#[test]
fn rule_18_discards_are_not_drops() {
    let mut bed = Bed::ready();
    let discarded = bed.queue.stats().acks_discarded;
    assert_eq!(common::discarded(&mut bed.queue).len() as u64, discarded);
    assert_eq!(bed.queue.stats().queue_drops, 0);
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
    assert_eq!(bed.queue.stats().acks_discarded, 0);
    bed.drain();
    assert_eq!(bed.kept(KeepReason::NoState), 200);
}

#[test]
fn rule_20_every_ack_is_counted_once() {
    let mut bed = Bed::ready();
    bed.push(ack(1, 7));
    bed.drain();
    let stats = bed.queue.stats();
    let kept: u64 = KeepReason::ALL.iter().map(|reason| stats.kept(*reason)).sum();
    assert_eq!(kept, stats.acks_out);
    assert_eq!(stats.acks_in, stats.acks_out + stats.acks_discarded);
    let counters = bed.queue.counters();
    assert!(counters.contains(&("kept-mid-stream", 1)));
    assert_eq!(counters.len(), 6 + KeepReason::ALL.len());
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
    assert_eq!(bed.queue.stats().acks_discarded, 0);
    bed.drain();
    assert!(bed.kept(KeepReason::ThinnedUpstream) > 20);
}
