use super::*;
use crate::ack_policer::Limit;
use paceline_net::rng::Stream;
use paceline_net::{SeqNumber, TcpHeader};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SEGMENT: u32 = 1448;

fn packet(to_server: bool, seq: u32, ack: u32, flags: TcpFlags, payload: u32) -> Packet {
    let (client, server) = ([10, 0, 0, 2].into(), [198, 18, 0, 1].into());
    let (src, dst) = if to_server { (client, server) } else { (server, client) };
    let (src_port, dst_port) = if to_server { (40_000, 80) } else { (80, 40_000) };
    let tcp = TcpHeader {
        src_port,
        dst_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 5_000,
        payload_len: payload,
        ..TcpHeader::default()
    };
    Packet::tcp(src, dst, tcp)
}

fn config(mode: Mode, limit: Limit) -> PolicerConfig {
    PolicerConfig { policy: Policy { mode, limit, max_segments: Policy::MAX_SEGMENTS }, per_flow: true }
}

/// A window-limited sender, a receiver with delayed ACKs, and the policer between them.
struct Transfer {
    policer: Policer,
    /// Round trips in us between the policer and the sender, and between it and the receiver.
    sender_rtt: u64,
    receiver_rtt: u64,
    /// Bytes in flight that the sender allows.
    window: u32,
    /// Time in us for one segment at the bottleneck ahead of the policer.
    spacing: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    AckAtSender(u32),
    DataAtPolicer(u32),
    DataAtReceiver(u32),
    AckAtPolicer(u32),
}

impl Transfer {
    /// Bytes that the sender sees acknowledged, if it sends `total` bytes and has no timer.
    fn run(&mut self, total: u32) -> u32 {
        let syn = TcpFlags::SYN;
        let at = |us: u64| Instant::from_nanos(us * 1000);
        self.policer.on_policed_direction(at(1), &packet(true, 0, 0, syn, 0));
        let now = 1 + self.sender_rtt;
        self.policer.on_data_direction(at(now), &packet(false, 0, 1, syn.with(TcpFlags::ACK), 0));
        let mut now = now + self.receiver_rtt;
        self.policer.on_policed_direction(at(now), &packet(true, 1, 1, TcpFlags::ACK, 0));
        let mut events = BinaryHeap::new();
        events.push(Reverse((now + self.sender_rtt / 2, Event::AckAtSender(1))));
        let (mut sent, mut acked, mut free_at, mut received) = (1, 1, 0, 1);
        while let Some(Reverse((time, event))) = events.pop() {
            now = time;
            match event {
                Event::AckAtSender(ack) => {
                    acked = acked.max(ack);
                    while sent < total && sent + SEGMENT - acked <= self.window {
                        free_at = now.max(free_at) + self.spacing;
                        events.push(Reverse((free_at + self.sender_rtt / 2, Event::DataAtPolicer(sent))));
                        sent += SEGMENT;
                    }
                }
                Event::DataAtPolicer(seq) => {
                    let last = if seq + SEGMENT >= total { TcpFlags::PSH } else { TcpFlags::ACK };
                    let data = packet(false, seq, 1, TcpFlags::ACK.with(last), SEGMENT);
                    self.policer.on_data_direction(at(now), &data);
                    events.push(Reverse((now + self.receiver_rtt / 2, Event::DataAtReceiver(seq + SEGMENT))));
                }
                Event::DataAtReceiver(end) => {
                    received += 1;
                    if received % 2 == 1 || end >= total {
                        events.push(Reverse((now + self.receiver_rtt / 2, Event::AckAtPolicer(end))));
                    }
                }
                Event::AckAtPolicer(ack) => {
                    let reason =
                        self.policer.on_policed_direction(at(now), &packet(true, 1, ack, TcpFlags::ACK, 0));
                    if reason != Reason::Dropped {
                        events.push(Reverse((now + self.sender_rtt / 2, Event::AckAtSender(ack))));
                    }
                }
            }
        }
        acked
    }
}

#[test]
fn a_sender_without_timers_gets_every_transfer_acknowledged() {
    let seed = 7;
    let mut rng = Stream::new(seed, "transfers");
    let mut dropped = 0;
    for case in 0..400 {
        let limit = match rng.below(3) {
            0 => Limit::Share(65_536 * (50 + rng.below(51) as u32) / 100),
            1 => Limit::Rate { bytes_per_s: 1_000 + rng.below(50_000), burst: 5_000 },
            _ => Limit::PerRtt(1 + rng.below(8) as u32),
        };
        let mut transfer = Transfer {
            policer: Policer::new(config(Mode::Safe, limit)),
            sender_rtt: 20 + rng.below(80_000),
            receiver_rtt: 20 + rng.below(80_000),
            window: SEGMENT * (2 + rng.below(400) as u32),
            spacing: 12 + rng.below(300),
        };
        let total = SEGMENT * (1 + rng.below(3_000) as u32);
        let acked = transfer.run(total);
        assert!(
            acked >= total,
            "seed {seed}, case {case}: {acked} of {total} bytes; {:?}, window {}, round trips {} + {} us",
            limit,
            transfer.window,
            transfer.sender_rtt,
            transfer.receiver_rtt
        );
        dropped += transfer.policer.stats().dropped;
    }
    assert!(dropped > 50_000, "only {dropped} ACKs dropped");
}

#[test]
fn four_of_five_acks_go_where_the_window_is_wide() {
    for (sender_rtt, receiver_rtt) in [(20_000, 200), (200, 20_000), (10_000, 10_000)] {
        let mut transfer = Transfer {
            policer: Policer::new(config(Mode::Safe, Limit::Share(52_429))),
            sender_rtt,
            receiver_rtt,
            window: 400 * SEGMENT,
            spacing: 50,
        };
        transfer.run(100_000 * SEGMENT);
        let stats = transfer.policer.stats();
        let share = stats.dropped as f64 / stats.acks as f64;
        let kept: Vec<_> = Reason::ALL.iter().map(|reason| (reason.name(), stats.kept(*reason))).collect();
        assert!(share > 0.75, "{share} at {sender_rtt} + {receiver_rtt} us: {kept:?}");
    }
}

#[test]
fn the_published_policer_loses_the_last_ack() {
    let mut transfer = Transfer {
        policer: Policer::new(config(Mode::Published, Limit::Share(65_536 * 9 / 10))),
        sender_rtt: 10_000,
        receiver_rtt: 200,
        window: 10 * SEGMENT,
        spacing: 50,
    };
    let total = 1_000 * SEGMENT;
    assert!(transfer.run(total) < total);
}

#[test]
fn accurate_ecn_and_unseen_handshakes_are_left_alone() {
    let at = |us: u64| Instant::from_nanos(us * 1000);
    let mut policer = Policer::new(config(Mode::Safe, Limit::Share(65_536)));
    assert_eq!(policer.on_policed_direction(at(1), &packet(true, 1, 1, TcpFlags::ACK, 0)), Reason::MidStream);
    let accurate = TcpFlags::SYN.with(TcpFlags::AE).with(TcpFlags::CWR).with(TcpFlags::ECE);
    policer.on_policed_direction(at(2), &packet(true, 0, 0, accurate, 0));
    let answer = TcpFlags::SYN.with(TcpFlags::ACK).with(TcpFlags::CWR);
    policer.on_data_direction(at(3), &packet(false, 0, 1, answer, 0));
    assert_eq!(policer.on_policed_direction(at(4), &packet(true, 1, 1, TcpFlags::ACK, 0)), Reason::Handshake);
}
