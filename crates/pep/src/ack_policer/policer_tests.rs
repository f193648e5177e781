use super::*;
use crate::ack_policer::Limit;
use paceline_net::rng::Stream;
use paceline_net::{SeqNumber, TcpHeader, Timestamps};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SEGMENT: u32 = 1448;
/// Time in us after which a receiver acknowledges less than two segments (RFC 9293 3.8.6.3).
const DELAYED_ACK: u64 = 40_000;
/// Scale of the receiver's window.
const SHIFT: u8 = 7;

fn packet(to_server: bool, seq: u32, ack: u32, flags: TcpFlags, payload: u32) -> Packet {
    stamped(to_server, (seq, ack, flags), payload, 5_000, None)
}
/// The same with a window and timestamps.
fn stamped(
    to_server: bool,
    (seq, ack, flags): (u32, u32, TcpFlags),
    payload: u32,
    window: u16,
    timestamps: Option<Timestamps>,
) -> Packet {
    let (client, server) = ([10, 0, 0, 2].into(), [198, 18, 0, 1].into());
    let (src, dst) = if to_server { (client, server) } else { (server, client) };
    let (src_port, dst_port) = if to_server { (40_000, 80) } else { (80, 40_000) };
    let mut tcp = TcpHeader {
        src_port,
        dst_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window,
        payload_len: payload,
        ..TcpHeader::default()
    };
    tcp.options.timestamps = timestamps;
    tcp.options.window_scale = flags.contains(TcpFlags::SYN).then_some(SHIFT);
    Packet::tcp(src, dst, tcp)
}

fn config(mode: Mode, limit: Limit) -> PolicerConfig {
    PolicerConfig { policy: Policy { mode, limit, max_segments: Policy::MAX_SEGMENTS }, per_flow: true }
}

/// Where the sender sets PSH.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Push {
    Never,
    AtTheEnd,
    /// At the end of each write of so many bytes, and at the end.
    Writes(u32),
}

/// The receiver's window in bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reader {
    /// The program reads at once: the window stays.
    Reads(u32),
    /// The program stops behind so many bytes, for so many us; for ever if that is none.
    Stops(u32, u32, Option<u64>),
}

/// A window-limited sender, a receiver with delayed ACKs, and the policer between them.
struct Transfer {
    policer: Policer,
    /// Round trips in us between the policer and the sender, and between it and the receiver, during the
    /// handshake; later they are divided by `shrink`.
    sender_rtt: u64,
    receiver_rtt: u64,
    shrink: u64,
    /// Bytes in flight that the sender allows.
    window: u32,
    /// Time in us for one segment at the bottleneck ahead of the policer.
    spacing: u64,
    push: Push,
    reader: Reader,
    /// Ticks of the receiver's timestamps in us; none: no timestamps.
    tick: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// Number, right edge of the window, timestamp.
    AckAtSender(u32, u32, u32),
    /// Number, length, PSH, echoed timestamp.
    DataAtPolicer(u32, u32, bool, u32),
    DataAtReceiver(u32),
    DelayedAck(u32),
    Resume,
    AckAtPolicer(u32, u32, u32),
}

/// Both ends of a transfer.
struct Ends {
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    now: u64,
    /// The sender: next number, acknowledged, right edge, last timestamp of the receiver, and when the
    /// bottleneck is free.
    sent: u32,
    acked: u32,
    edge: u32,
    echo: u32,
    free_at: u64,
    /// The receiver: end of its data, last acknowledgment, right edge, and whether it reads again.
    received: u32,
    answered: u32,
    advertised: u32,
    resumed: bool,
}

impl Ends {
    fn after(&mut self, us: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + us, self.count, event)));
    }
}

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

impl Transfer {
    fn new(limit: Limit) -> Self {
        Self {
            policer: Policer::new(config(Mode::Safe, limit)),
            sender_rtt: 10_000,
            receiver_rtt: 200,
            shrink: 1,
            window: 400 * SEGMENT,
            spacing: 50,
            push: Push::Writes(131_072),
            reader: Reader::Reads(6 << 20),
            tick: Some(1000),
        }
    }
    fn stamp(&self, now: u64) -> u32 {
        self.tick.map_or(0, |tick| (now / tick) as u32)
    }
    fn stamps(&self, val: u32, ecr: u32) -> Option<Timestamps> {
        self.tick.map(|_| Timestamps { val, ecr })
    }

    /// Sends `total` bytes from number 1 on, without a timer. Returns the bytes sent and those that the
    /// sender sees acknowledged.
    fn run(&mut self, total: u32) -> (u32, u32) {
        let syn = TcpFlags::SYN;
        self.policer.on_policed_direction(at(1), &packet(true, 0, 0, syn, 0));
        let now = 1 + self.sender_rtt;
        self.policer.on_data_direction(at(now), &packet(false, 0, 1, syn.with(TcpFlags::ACK), 0));
        let now = now + self.receiver_rtt;
        let first = stamped(true, (1, 1, TcpFlags::ACK), 0, 5_000, self.stamps(self.stamp(now), 0));
        self.policer.on_policed_direction(at(now), &first);
        let edge = 1 + self.buffer();
        let mut ends = Ends {
            events: BinaryHeap::new(),
            count: 0,
            now,
            sent: 1,
            acked: 1,
            edge,
            echo: self.stamp(now),
            free_at: 0,
            received: 1,
            answered: 1,
            advertised: edge,
            resumed: false,
        };
        ends.after(self.sender_rtt / 2, Event::AckAtSender(1, edge, ends.echo));
        (self.sender_rtt, self.receiver_rtt) =
            (self.sender_rtt / self.shrink, self.receiver_rtt / self.shrink);
        while let Some(Reverse((time, _, event))) = ends.events.pop() {
            ends.now = time;
            self.step(&mut ends, 1 + total, event);
        }
        (ends.sent - 1, ends.acked - 1)
    }
    fn buffer(&self) -> u32 {
        match self.reader {
            Reader::Reads(bytes) | Reader::Stops(_, bytes, _) => bytes,
        }
    }

    fn step(&mut self, ends: &mut Ends, end: u32, event: Event) {
        match event {
            Event::AckAtSender(ack, edge, stamp) => {
                (ends.acked, ends.edge) = (ends.acked.max(ack), ends.edge.max(edge));
                ends.echo = stamp;
                self.send(ends, end);
            }
            Event::DataAtPolicer(seq, len, push, echo) => {
                let flags = TcpFlags::ACK.with(if push { TcpFlags::PSH } else { TcpFlags::ACK });
                let data = stamped(false, (seq, 1, flags), len, 5_000, self.stamps(1, echo));
                self.policer.on_data_direction(at(ends.now), &data);
                ends.after(self.receiver_rtt / 2, Event::DataAtReceiver(seq + len));
            }
            Event::DataAtReceiver(received) => {
                ends.received = received;
                if received - ends.answered >= 2 * SEGMENT {
                    self.answer(ends);
                } else {
                    ends.after(DELAYED_ACK, Event::DelayedAck(received));
                }
                if let Reader::Stops(behind, _, Some(pause)) = self.reader
                    && received >= behind
                    && !std::mem::replace(&mut ends.resumed, true)
                {
                    ends.after(pause, Event::Resume);
                }
            }
            Event::DelayedAck(received) if received == ends.received && ends.answered < received => {
                self.answer(ends);
            }
            Event::DelayedAck(_) => {}
            Event::Resume => {
                self.reader = Reader::Reads(self.buffer());
                self.answer(ends);
            }
            Event::AckAtPolicer(ack, edge, stamp) => {
                let window = ((edge - ack) >> SHIFT) as u16;
                let segment = stamped(true, (1, ack, TcpFlags::ACK), 0, window, self.stamps(stamp, 1));
                if self.policer.on_policed_direction(at(ends.now), &segment) != Reason::Dropped {
                    ends.after(self.sender_rtt / 2, Event::AckAtSender(ack, edge, stamp));
                }
            }
        }
    }

    /// A segment at a time; less only if nothing is outstanding (RFC 9293 3.8.6.2.1).
    fn send(&self, ends: &mut Ends, end: u32) {
        while ends.sent < end {
            let room = (ends.acked + self.window).min(ends.edge).saturating_sub(ends.sent);
            let full = SEGMENT.min(end - ends.sent);
            if room == 0 || (room < full && ends.sent > ends.acked) {
                return;
            }
            let len = full.min(room);
            let next = ends.sent + len;
            let push = match self.push {
                Push::Never => false,
                Push::AtTheEnd => next == end,
                Push::Writes(bytes) => next == end || (next - 1) / bytes != (ends.sent - 1) / bytes,
            };
            ends.free_at = ends.now.max(ends.free_at) + self.spacing;
            let wait = ends.free_at - ends.now + self.sender_rtt / 2;
            ends.after(wait, Event::DataAtPolicer(ends.sent, len, push, ends.echo));
            ends.sent = next;
        }
    }
    /// The receiver's ACK. Its window is a multiple of the scale and does not shrink.
    fn answer(&self, ends: &mut Ends) {
        ends.answered = ends.received;
        let read = match self.reader {
            Reader::Stops(behind, ..) => ends.received.min(1 + behind),
            Reader::Reads(_) => ends.received,
        };
        let edge = ends.advertised.max(read + self.buffer());
        let window = (edge - ends.received).next_multiple_of(1 << SHIFT);
        ends.advertised = ends.received + window;
        let ack = Event::AckAtPolicer(ends.received, ends.advertised, self.stamp(ends.now));
        ends.after(self.receiver_rtt / 2, ack);
    }
}

/// Limits, windows, round trips and programs of all kinds. The sender sees everything acknowledged that it
/// sent, and sends everything that the receiver's program reads.
#[test]
fn a_sender_without_timers_gets_every_transfer_acknowledged() {
    let seed = 7;
    let mut rng = Stream::new(seed, "transfers");
    let mut dropped = 0;
    for case in 0..600 {
        let limit = match rng.below(3) {
            0 => Limit::Share(65_536 * (50 + rng.below(51) as u32) / 100),
            1 => Limit::Rate { bytes_per_s: 1_000 + rng.below(50_000), burst: 5_000 },
            _ => Limit::PerRtt(1 + rng.below(8) as u32),
        };
        let segments = if rng.chance(0.4) { 12 } else { 400 };
        let total = 1 + rng.below(3_000 * u64::from(SEGMENT)) as u32;
        let total = if rng.chance(0.5) { total.next_multiple_of(SEGMENT) } else { total };
        let few = rng.chance(0.3);
        let buffer = SEGMENT + rng.below(if few { 20_000 } else { 4 << 20 }) as u32;
        let buffer = buffer.next_multiple_of(1 << SHIFT);
        let behind = rng.below(u64::from(total)) as u32;
        let distant = if rng.chance(0.5) { 80_000 } else { 1_000 };
        let mut transfer = Transfer {
            sender_rtt: 20 + rng.below(80_000),
            receiver_rtt: 20 + rng.below(distant),
            shrink: if rng.chance(0.5) { 1 + rng.below(20) } else { 1 },
            window: SEGMENT + rng.below(segments * u64::from(SEGMENT)) as u32,
            spacing: 12 + rng.below(300),
            push: match rng.below(3) {
                0 => Push::Never,
                1 => Push::AtTheEnd,
                _ => Push::Writes(4_096 << rng.below(8)),
            },
            reader: match rng.below(4) {
                0 => Reader::Stops(behind, buffer, None),
                1 => Reader::Stops(behind, buffer, Some(rng.below(300_000))),
                _ => Reader::Reads(buffer),
            },
            tick: [None, Some(1_000), Some(1_000), Some(10_000)][rng.below(4) as usize],
            ..Transfer::new(limit)
        };
        let reader = transfer.reader;
        let (sent, acked) = transfer.run(total);
        let place = format!(
            "seed {seed}, case {case}: {acked} of {sent} of {total} bytes; {limit:?}, window {}, {:?}, {reader:?}, \
             round trips {} + {} us after {} times, tick {:?}",
            transfer.window,
            transfer.push,
            transfer.sender_rtt,
            transfer.receiver_rtt,
            transfer.shrink,
            transfer.tick
        );
        assert_eq!(acked, sent, "{place}");
        let least = match reader {
            Reader::Stops(behind, buffer, None) => total.min((behind + buffer).saturating_sub(SEGMENT)),
            _ => total,
        };
        assert!(sent >= least, "{place}");
        dropped += transfer.policer.stats().dropped;
    }
    assert!(dropped > 20_000, "only {dropped} ACKs dropped");
}

/// Close to the receiver all ACKs come before the next data: timestamps show that more is on its way.
#[test]
fn four_of_five_acks_go_where_the_window_is_wide() {
    for (sender_rtt, receiver_rtt) in [(20_000, 200), (200, 20_000), (10_000, 10_000)] {
        let mut transfer = Transfer { sender_rtt, receiver_rtt, ..Transfer::new(Limit::Share(52_429)) };
        transfer.run(100_000 * SEGMENT);
        let stats = transfer.policer.stats();
        let share = stats.dropped as f64 / stats.acks as f64;
        let kept: Vec<_> = Reason::ALL.iter().map(|reason| (reason.name(), stats.kept(*reason))).collect();
        assert!(share > 0.75, "{share} at {sender_rtt} + {receiver_rtt} us: {kept:?}");
    }
}

/// A sender of which the end of its data is not known, behind a handshake of five round trips: the last ACK
/// is kept, and so is the one that leaves the sender less than a segment of the receiver's window.
#[test]
fn the_last_ack_stays_without_push_and_where_the_receivers_window_ends() {
    for extra in 0..40 {
        for (push, reader) in [
            (Push::Never, Reader::Reads(4 << 20)),
            (Push::Writes(65_536), Reader::Stops((12_000 + extra) * SEGMENT - 65_000, 65_536, None)),
        ] {
            let limit = Limit::Share(52_429);
            let mut transfer = Transfer {
                sender_rtt: 100_000,
                shrink: 5,
                window: 64 * SEGMENT,
                spacing: 300,
                receiver_rtt: 2_500,
                push,
                reader,
                ..Transfer::new(limit)
            };
            let (sent, acked) = transfer.run((12_000 + extra) * SEGMENT);
            assert_eq!(acked, sent, "{push:?}, {reader:?}, {extra}");
        }
    }
}

/// A drop after which no later ACK came ends the trust in data on its way. Here all ACKs come before the next
/// data, and a sender that has set PSH once stops behind data without.
#[test]
fn a_retransmission_of_data_whose_ack_was_dropped_ends_the_trust_in_coming_data() {
    const RTT: u64 = 20_000;
    let mut policer = Policer::new(config(Mode::Safe, Limit::Share(65_536)));
    let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
    policer.on_policed_direction(at(1), &packet(true, 0, 0, syn, 0));
    policer.on_data_direction(at(RTT), &packet(false, 0, 1, syn.with(ack), 0));
    policer.on_policed_direction(at(RTT + 100), &packet(true, 1, 1, ack, 0));
    let stamps = |now: u64| Some(Timestamps { val: (now / 1000) as u32, ecr: ((now - RTT) / 1000) as u32 });
    let (mut now, mut seq) = (2 * RTT, 1);
    // Two segments and their ACK, so many times. Returns the dropped ACKs, the time, and the next number.
    let mut exchange = |policer: &mut Policer, count: u32, flags: TcpFlags| {
        let before = policer.stats().dropped;
        for _ in 0..count {
            now += 100;
            for _ in 0..2 {
                let data = stamped(false, (seq, 1, flags), SEGMENT, 5_000, stamps(now));
                policer.on_data_direction(at(now), &data);
                seq += SEGMENT;
            }
            policer.on_policed_direction(at(now), &stamped(true, (1, seq, ack), 0, 50_000, stamps(now)));
        }
        (policer.stats().dropped - before, now, seq)
    };
    exchange(&mut policer, 1, ack.with(TcpFlags::PSH));
    assert!(exchange(&mut policer, 8_000, ack).0 > 1_000);
    let (now, seq) = loop {
        let (dropped, now, seq) = exchange(&mut policer, 1, ack);
        if dropped == 1 {
            break (now, seq);
        }
    };
    let again = stamped(false, (seq - SEGMENT, 1, ack), SEGMENT, 5_000, stamps(now));
    policer.on_data_direction(at(now + 2 * RTT), &again);
    assert_eq!(exchange(&mut policer, 20_000, ack).0, 0);
}

#[test]
fn the_published_policer_loses_the_last_ack() {
    let mut transfer = Transfer { window: 10 * SEGMENT, ..Transfer::new(Limit::Share(65_536 * 9 / 10)) };
    transfer.policer = Policer::new(config(Mode::Published, Limit::Share(65_536 * 9 / 10)));
    let (sent, acked) = transfer.run(1_000 * SEGMENT);
    assert!(acked < sent);
}

#[test]
fn accurate_ecn_and_unseen_handshakes_are_left_alone() {
    let mut policer = Policer::new(config(Mode::Safe, Limit::Share(65_536)));
    assert_eq!(policer.on_policed_direction(at(1), &packet(true, 1, 1, TcpFlags::ACK, 0)), Reason::MidStream);
    let accurate = TcpFlags::SYN.with(TcpFlags::AE).with(TcpFlags::CWR).with(TcpFlags::ECE);
    policer.on_policed_direction(at(2), &packet(true, 0, 0, accurate, 0));
    let answer = TcpFlags::SYN.with(TcpFlags::ACK).with(TcpFlags::CWR);
    policer.on_data_direction(at(3), &packet(false, 0, 1, answer, 0));
    assert_eq!(policer.on_policed_direction(at(4), &packet(true, 1, 1, TcpFlags::ACK, 0)), Reason::Handshake);
}
