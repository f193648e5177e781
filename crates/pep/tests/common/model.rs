//! Runs operations decoded from bytes on an ACK filter and on a simple model of it, and compares the two. Any
//! bytes are a valid run, so that property tests and the fuzzer share it.

use paceline_net::test_support;
use paceline_net::{
    Bytes, DropReason, Duration, FlowKey, Instant, IpHeader, Packet, Payload, SduQueue, SeqNumber, TcpFlags,
    TcpHeader, Transport,
};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};
use std::collections::BTreeMap;
use std::net::IpAddr;

const SCHEMES: [&str; 8] =
    ["basic", "granted", "passive(0.6667)", "highest", "active(3)", "hybrid(2)", "hybrid-opt", "safe"];
/// Payload bytes of a segment; few, so that short runs get past the first 64 segments of a connection.
const SEGMENT: u32 = 4;
const FLOWS: u8 = 4;

/// A packet in the queue.
struct Queued {
    packet: Packet,
    key: Option<FlowKey>,
    /// A published scheme may discard it.
    candidate: bool,
    /// The packet was a candidate when it arrived, or is a duplicate.
    displaces: bool,
}

/// The end of a connection that sends ACKs.
#[derive(Clone, Copy)]
struct Sender {
    seq: SeqNumber,
    ack: SeqNumber,
    window: u16,
    clock: u32,
}

struct Model {
    filter: AckFilter,
    scheme: Scheme,
    limit: u64,
    now: Instant,
    queued: Vec<Queued>,
    /// Last acknowledgment number and window of each connection, as in the published schemes.
    last: BTreeMap<FlowKey, (SeqNumber, u16)>,
    /// Acknowledgment number of the last segment of each connection that left the queue.
    left: BTreeMap<FlowKey, SeqNumber>,
    senders: [Sender; FLOWS as usize],
    pushed: u64,
    popped: u64,
    dropped: u64,
}

/// Bytes as a source of numbers; zeros when they run out.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
}

/// Runs the operations; panics where the filter violates an invariant. Returns how many ACKs were discarded.
pub fn run(bytes: &[u8]) -> u64 {
    let mut source = Source(bytes);
    let scheme: Scheme = SCHEMES[usize::from(source.byte()) % SCHEMES.len()].parse().unwrap();
    let limit = match source.byte() {
        small @ 0..64 => u64::from(small) * 40,
        _ => 1 << 20,
    };
    let config =
        AckFilterConfig { scheme, limit: Bytes(limit), segment: Bytes(SEGMENT.into()), header: Bytes(58) };
    let sender = |n: u32| Sender { seq: SeqNumber(n), ack: SeqNumber(n << 30), window: 500, clock: n << 31 };
    let mut model = Model {
        filter: AckFilter::new(config),
        scheme,
        limit,
        now: Instant::ZERO,
        queued: Vec::new(),
        last: BTreeMap::new(),
        left: BTreeMap::new(),
        senders: [0, 1, 2, 3].map(sender),
        pushed: 0,
        popped: 0,
        dropped: 0,
    };
    while !source.0.is_empty() {
        model.step(&mut source);
    }
    while model.pop() {}
    assert_eq!(model.pushed, model.popped + model.dropped, "every packet leaves");
    model.filter.counters().acks_discarded
}

impl Model {
    fn step(&mut self, source: &mut Source) {
        let operation = source.byte();
        let flow = (operation >> 4) % FLOWS;
        match operation % 10 {
            0 | 1 => self.ack(flow, u32::from(source.byte() % 16)),
            2 => {
                for _ in 0..source.byte() % 32 {
                    self.ack(flow, 2 * SEGMENT);
                    self.now += Duration::from_millis(1);
                }
            }
            3 => self.unusual(flow, source),
            4 => {
                let len = u32::from(source.byte()) * 6;
                self.segment(flow, |tcp, _| tcp.payload_len = len);
            }
            5 => {
                let segment = self.senders[usize::from(flow)];
                self.segment(flow, |tcp, _| {
                    (tcp.flags, tcp.seq) = (TcpFlags::SYN, SeqNumber(segment.seq.0.wrapping_sub(1)));
                    tcp.options.window_scale = Some(3);
                });
            }
            6 => self.grant(u64::from(source.byte()) * 8),
            7 => {
                for _ in 0..source.byte() % 8 {
                    self.pop();
                }
            }
            8 => self.now += Duration::from_micros(u64::from(source.byte()) * 500),
            _ => self.filter.on_peer_block(Bytes(u64::from(source.byte()) * 60)),
        }
    }

    /// An ACK of `bytes` more; of 0 more it is a duplicate.
    fn ack(&mut self, flow: u8, bytes: u32) {
        self.senders[usize::from(flow)].ack += bytes;
        self.segment(flow, |_, _| ());
    }

    /// A segment with one or two unusual header fields.
    fn unusual(&mut self, flow: u8, source: &mut Source) {
        let (advance, count) = (u32::from(source.byte() % 8), 1 + source.byte() % 2);
        self.senders[usize::from(flow)].ack += advance;
        let changes: Vec<(u8, u8)> = (0..count).map(|_| (source.byte(), source.byte())).collect();
        self.segment(flow, |tcp, ip| {
            for (field, value) in changes {
                let wide = u32::from(value);
                match field % 10 {
                    0 => tcp.flags.0 ^= 1 << (value % 12),
                    1 => tcp.window = u16::from(value) * 8,
                    2 => tcp.options.sack.push(tcp.ack + wide * 2, tcp.ack + (wide * 3 + 1)),
                    3 => tcp.ack = SeqNumber(tcp.ack.0.wrapping_sub(wide)),
                    4 => tcp.ack = SeqNumber(wide << 24),
                    5 => tcp.seq = SeqNumber(tcp.seq.0.wrapping_sub(wide % 3)),
                    6 => tcp.options.other = true.into(),
                    7 => ip.traffic_class = value,
                    8 => ip.special = true,
                    _ => tcp.options.timestamps = None,
                }
            }
        });
    }

    /// Pushes a segment of a connection and checks which packets that discards or drops.
    fn segment(&mut self, flow: u8, change: impl FnOnce(&mut TcpHeader, &mut IpHeader)) {
        let sender = &mut self.senders[usize::from(flow)];
        sender.clock = sender.clock.wrapping_add(1);
        let (seq, ack, clock) = (sender.seq.0, sender.ack.0, sender.clock);
        let ports = (5000 + u16::from(flow / 2), 80);
        let header = test_support::segment().ports(ports.0, ports.1).seq(seq).ack(ack).window(sender.window);
        let mut tcp = header.timestamps(clock, clock).header();
        let (src, dst): (IpAddr, IpAddr) = match flow % 2 {
            0 => ([198, 18, 0, 2].into(), [198, 18, 0, 1].into()),
            _ => ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
        };
        let mut ip = IpHeader { src, dst, traffic_class: 0, hop_limit: 64, special: false };
        change(&mut tcp, &mut ip);
        sender.seq += tcp.payload_len;
        let mut packet = Packet::tcp(src, dst, tcp);
        packet.ip = ip;
        // The payload identifies the packet; the filter must neither read nor change it.
        packet.payload = Payload::Datagram(self.pushed.to_be_bytes().into());
        self.push(packet);
    }

    fn push(&mut self, packet: Packet) {
        let key = packet.flow_key().filter(|_| !packet.ip.special);
        let (candidate, duplicate) = self.classify(key, &packet);
        self.filter.push(self.now, packet.clone());
        self.pushed += 1;
        let before = self.bytes();
        self.queued.push(Queued { packet, key, candidate, displaces: candidate || duplicate });
        let arrived = self.queued.len() - 1;
        let mut accepted = true;
        let mut discarded = Vec::new();
        while let Some((packet, reason)) = self.filter.pop_dropped() {
            self.dropped += 1;
            let at = self
                .queued
                .iter()
                .position(|queued| queued.packet == packet)
                .expect("a dropped packet was in the queue");
            match reason {
                DropReason::QueueFull => {
                    assert_eq!(at, arrived, "only an arrival finds the buffer full");
                    assert!(arrived > 0 && before + u64::from(packet.len) > self.limit);
                    accepted = false;
                }
                DropReason::AckFiltered => discarded.push(at),
                other => panic!("{other:?}"),
            }
        }
        assert!(accepted || discarded.is_empty(), "a dropped arrival discards nothing");
        if !accepted {
            self.queued.pop();
        } else {
            for at in &discarded {
                self.check_discard(*at);
                assert_eq!(self.queued[*at].key, key, "an arrival supersedes its own connection only");
                if self.scheme == Scheme::Safe {
                    self.check_safe(*at, arrived, &discarded);
                }
            }
            self.record(key, arrived, duplicate);
            self.remove(discarded);
        }
        self.check_state();
        if let (Scheme::Active { threshold } | Scheme::Hybrid { threshold }, Some(_)) = (self.scheme, key) {
            let candidate = self.queued.iter().filter(|queued| queued.key == key && queued.candidate).count();
            assert!(candidate <= threshold as usize, "{candidate} ACKs stay");
        }
    }

    /// Whether a published scheme may discard the packet later, and whether it is a duplicate.
    fn classify(&self, key: Option<FlowKey>, packet: &Packet) -> (bool, bool) {
        let (Some(key), Some(tcp)) = (key, packet.tcp_header()) else { return (false, false) };
        let Some((ack, window)) = self.last.get(&key) else { return (packet.is_pure_ack(), false) };
        let same_window = tcp.window == *window || !tcp.options.sack.is_empty();
        let duplicate = packet.is_pure_ack() && tcp.ack == *ack && same_window;
        (packet.is_pure_ack() && tcp.ack >= *ack && !duplicate, duplicate)
    }

    fn record(&mut self, key: Option<FlowKey>, arrived: usize, duplicate: bool) {
        let Some(key) = key else { return };
        let tcp = *self.queued[arrived].packet.tcp_header().unwrap();
        let restarts = tcp.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST));
        let last = self.last.get(&key).copied();
        let advances = tcp.flags.contains(TcpFlags::ACK) && last.is_none_or(|(ack, _)| tcp.ack >= ack);
        let mut older: Vec<&mut Queued> = self.queued[..arrived]
            .iter_mut()
            .filter(|queued| queued.key == Some(key) && queued.candidate)
            .collect();
        let ack_of = |queued: &Queued| queued.packet.tcp_header().unwrap().ack;
        let beyond_window = |from: SeqNumber| !(0..=1 << 30).contains(&tcp.ack.distance(from));
        let oldest = older.first().map(|queued| ack_of(queued));
        let jumps = advances
            && (last.is_some_and(|(ack, _)| beyond_window(ack)) || oldest.is_some_and(beyond_window));
        if restarts || jumps {
            older.iter_mut().for_each(|queued| queued.candidate = false);
        } else if duplicate && let Some(newest) = older.last_mut() {
            newest.candidate = ack_of(newest) != tcp.ack;
        }
        if restarts {
            self.last.remove(&key);
        } else if advances {
            self.last.insert(key, (tcp.ack, tcp.window));
        }
    }

    /// Checks a discard by the invariants of all schemes.
    fn check_discard(&self, at: usize) {
        let Queued { packet, key, candidate, .. } = &self.queued[at];
        assert!(packet.is_pure_ack() && !packet.ip.special && key.is_some(), "{packet:?}");
        assert!(self.scheme != Scheme::Basic);
        let ack = packet.tcp_header().unwrap().ack;
        let superseded = self.queued[at + 1..].iter().any(|later| {
            later.key == *key
                && later.packet.is_pure_ack()
                && later.packet.tcp_header().is_some_and(|tcp| tcp.ack >= ack)
        });
        assert!(superseded, "the newest ACK is kept");
        assert!(*candidate || self.scheme == Scheme::Safe, "duplicates and old ACKs are kept");
    }

    /// Checks a discard by the invariants of the safe scheme.
    fn check_safe(&self, at: usize, arrived: usize, discarded: &[usize]) {
        let (old, new) = (&self.queued[at].packet, &self.queued[arrived].packet);
        let key = self.queued[at].key.unwrap();
        let (c, t) = (old.tcp_header().unwrap(), new.tcp_header().unwrap());
        assert!(new.is_pure_ack() && t.ack > c.ack && t.seq >= c.seq && t.flags == c.flags);
        assert!(c.options.sack.is_empty() && t.options.sack.is_empty());
        assert!(!c.options.other.any() && !t.options.other.any());
        assert!(old.ip.ecn() == 0 && new.ip.ecn() == 0);
        assert_eq!(c.options.timestamps.is_some(), t.options.timestamps.is_some());
        assert!(t.ack + u32::from(t.window) >= c.ack + u32::from(c.window), "the right edge");
        let kept = |n: &usize| self.queued[*n].key == Some(key) && !discarded.contains(n);
        let ahead = (0..at).rev().find(kept).map(|n| self.queued[n].packet.tcp_header().unwrap().ack);
        let ahead = ahead.or(self.left.get(&key).copied()).expect("there was an ACK before");
        let newly_acked = t.ack.distance(ahead);
        assert!((0..=8 * SEGMENT as i32).contains(&newly_acked), "{newly_acked} bytes by one ACK");
    }

    fn remove(&mut self, mut discarded: Vec<usize>) {
        discarded.sort_unstable();
        for at in discarded.into_iter().rev() {
            self.queued.remove(at);
        }
    }

    /// Packets from the head that fit whole, and the last ACK among them.
    fn carried(queued: &[&Queued], room: u64) -> Option<u64> {
        let mut used = 0;
        let fits = queued.iter().take_while(|queued| {
            used += u64::from(queued.packet.len) + 6;
            used <= room
        });
        let last = fits.filter(|queued| queued.displaces).last()?;
        let Payload::Datagram(tag) = &last.packet.payload else { unreachable!() };
        Some(u64::from_be_bytes(tag[..].try_into().unwrap()))
    }

    fn grant(&mut self, room: u64) {
        let all: Vec<&Queued> = self.queued.iter().collect();
        let without = Self::carried(&all, room);
        self.filter.on_grant(self.now, Bytes(room), Bytes(6));
        let mut discarded = Vec::new();
        while let Some((packet, reason)) = self.filter.pop_dropped() {
            assert_eq!(reason, DropReason::AckFiltered);
            self.dropped += 1;
            let at = self
                .queued
                .iter()
                .position(|queued| queued.packet == packet)
                .expect("a dropped packet was in the queue");
            self.check_discard(at);
            discarded.push(at);
        }
        let grants_act =
            matches!(self.scheme, Scheme::Passive { .. } | Scheme::Hybrid { .. } | Scheme::HybridOpt);
        assert!(grants_act || discarded.is_empty());
        assert!(discarded.is_sorted(), "the oldest are discarded first");
        self.remove(discarded);
        let all: Vec<&Queued> = self.queued.iter().collect();
        let lone = all.iter().all(|queued| queued.key == all[0].key);
        assert!(!lone || Self::carried(&all, room) >= without, "a grant carries no older ACK than without");
        self.check_state();
    }

    fn pop(&mut self) -> bool {
        let popped = self.filter.pop(self.now);
        if self.queued.is_empty() {
            assert_eq!(popped, None);
            return false;
        }
        let Queued { packet, key, .. } = self.queued.remove(0);
        if let (Some(key), Some(tcp)) = (key, packet.tcp_header()) {
            self.left.insert(key, tcp.ack);
        }
        assert_eq!(popped, Some(packet), "in order and unchanged");
        self.popped += 1;
        self.check_state();
        true
    }

    fn bytes(&self) -> u64 {
        self.queued.iter().map(|queued| u64::from(queued.packet.len)).sum()
    }

    fn check_state(&self) {
        let (filter, counters) = (&self.filter, self.filter.counters());
        assert_eq!(filter.packets(), self.queued.len());
        assert_eq!(filter.bytes(), Bytes(self.bytes()));
        assert_eq!(filter.head_len(), self.queued.first().map(|queued| Bytes(queued.packet.len.into())));
        assert!(self.queued.len() == 1 || self.bytes() <= self.limit);
        assert_eq!((counters.packets_in, counters.packets_out), (self.pushed, self.popped));
        assert_eq!(counters.acks_discarded + counters.queue_drops, self.dropped);
        assert!(self.queued.iter().all(|queued| matches!(queued.packet.transport, Transport::Tcp(_))));
    }
}
