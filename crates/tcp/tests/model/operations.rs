//! Two endpoints and a network that delivers, loses, duplicates, delays and reorders packets as the bytes
//! say. After the end of the bytes it delivers everything, and both transfers must complete with every byte
//! in order, once.

use super::{Entropy, Reassembly, check, config, source};
use paceline_net::{Bytes, Duration, Event, Instant, Node, Output, Packet, Port, TcpFlags};
use paceline_tcp::{Endpoint, EndpointConfig, Source};
use std::collections::VecDeque;

/// Largest transfer in bytes.
const MAX_BYTES: u32 = 60_000;
/// One-way delay after the end of the bytes.
const DELAY: Duration = Duration::from_millis(5);
/// Largest number of packets in flight per direction; further ones are lost.
const ROOM: usize = 256;

struct Model {
    sides: [Endpoint; 2],
    configs: [EndpointConfig; 2],
    sizes: [u64; 2],
    completed: [u32; 2],
    now: Instant,
    /// Packets in flight from each side.
    wires: [VecDeque<Packet>; 2],
    /// The stream that each side received.
    received: [Reassembly; 2],
}

/// Runs the model.
pub fn run(bytes: &[u8]) {
    let entropy = &mut Entropy::new(bytes);
    let configs = [config(entropy, true), config(entropy, false)];
    // Small segments and windows make many segments.
    let smallest = configs.iter().map(|side| side.segment_size.min(side.receive_buffer.0 as u32)).min();
    let most = MAX_BYTES.min(1000 * smallest.unwrap_or(1));
    let sources = [Source::File(Bytes(u64::from(entropy.long() % (most + 1)))), source(entropy, most)];
    let sizes = sources.map(Source::total);
    let mut model = Model {
        sides: [
            Endpoint::connect(configs[0].clone(), sources[0]),
            Endpoint::listen(configs[1].clone(), sources[1]),
        ],
        configs,
        sizes,
        completed: [0; 2],
        now: Instant::ZERO,
        wires: [VecDeque::new(), VecDeque::new()],
        received: [Reassembly::default(), Reassembly::default()],
    };
    model.drain();
    while !entropy.is_empty() {
        model.step(entropy);
        model.drain();
    }
    model.finish(sources);
}

impl Model {
    fn step(&mut self, entropy: &mut Entropy<'_>) {
        let operation = entropy.byte();
        let side = usize::from(operation & 1);
        match (operation >> 1) % 16 {
            0 => drop(self.wires[side].pop_front()),
            1 => {
                if let Some(packet) = self.wires[side].front().cloned() {
                    self.wires[side].push_back(packet);
                }
            }
            2 => {
                let len = self.wires[side].len().max(1);
                self.wires[side].rotate_left(usize::from(entropy.byte()) % len);
            }
            3 => self.wires[side].clear(),
            4 => {
                let next = self.next_timer().unwrap_or(self.now);
                self.pass(next.since(self.now).min(Duration::from_secs(300)));
            }
            5 => self.pass(Duration::from_micros(u64::from(entropy.word()))),
            6 => {
                // A congestion mark on an ECN-capable packet.
                if let Some(packet) = self.wires[side].front_mut().filter(|packet| packet.ip.ecn() != 0) {
                    packet.ip.traffic_class |= 3;
                }
            }
            7..10 => self.pass(Duration::from_micros(50 * u64::from(entropy.byte()))),
            _ => self.deliver(side),
        }
    }
    fn next_timer(&self) -> Option<Instant> {
        self.sides.iter().filter_map(Node::poll_timeout).min()
    }
    /// Lets time pass, and handles the timers in it.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        let mut spins = 0;
        while let Some(next) = self.next_timer().filter(|next| *next <= end) {
            spins = if next == self.now { spins + 1 } else { 0 };
            assert!(spins < 100, "a timer at {next:?} again and again");
            self.now = next;
            self.sides.iter_mut().for_each(|side| side.handle_timeout(next));
            self.drain();
        }
        self.now = end;
    }
    /// The first packet from `side` arrives at the other.
    fn deliver(&mut self, side: usize) {
        let Some(packet) = self.wires[side].pop_front() else { return };
        let peer = 1 - side;
        let tcp = packet.tcp_header().expect("an endpoint sends TCP");
        if tcp.flags.contains(TcpFlags::SYN) {
            self.received[peer].begin(tcp.seq + 1);
        }
        self.received[peer].on_segment(&packet);
        self.sides[peer].handle_packet(self.now, Port(0), packet);
        self.drain();
    }
    fn drain(&mut self) {
        for side in 0..2 {
            while let Some(output) = self.sides[side].poll_output(self.now) {
                match output {
                    Output::Transmit(_, packet) => self.on_sent(side, packet),
                    Output::Event(event) => match *event {
                        Event::TransferComplete(_) => self.completed[side] += 1,
                        event => panic!("side {side}: {event:?}"),
                    },
                    Output::Drop(..) => panic!("an endpoint drops nothing"),
                }
            }
            check(&self.sides[side], self.now, &self.configs[side]);
            let got = self.sides[side].stats().bytes_received;
            assert!(got <= self.received[side].contiguous(), "side {side} received more than was delivered");
        }
    }
    fn on_sent(&mut self, side: usize, packet: Packet) {
        let tcp = packet.tcp_header().expect("an endpoint sends TCP");
        if tcp.flags.contains(TcpFlags::ACK)
            && let Some(most) = self.received[side].largest_ack()
        {
            assert!(tcp.ack <= most, "side {side} acknowledges more than was received: {tcp:?}");
        }
        if self.wires[side].len() < ROOM {
            self.wires[side].push_back(packet);
        }
    }
    /// Delivers everything until no packet and no timer is left, and checks the result.
    fn finish(&mut self, sources: [Source; 2]) {
        for round in 0.. {
            assert!(round < 50_000, "no end: {:?}", self.sides.each_ref().map(Endpoint::snapshot));
            if self.wires.iter().all(VecDeque::is_empty) {
                let Some(next) = self.next_timer() else { break };
                self.pass(next.since(self.now));
                continue;
            }
            self.pass(DELAY);
            for side in 0..2 {
                for _ in 0..self.wires[side].len() {
                    self.deliver(side);
                }
            }
        }
        for (side, source) in sources.iter().enumerate() {
            let (snapshot, stats) = (self.sides[side].snapshot(), self.sides[side].stats());
            let told =
                format!("side {side} at {:?}: {snapshot:?} {stats:?} {:?}", self.now, self.configs[side]);
            assert!(!snapshot.established && snapshot.in_flight == Bytes::ZERO, "it did not end: {told}");
            assert_eq!(stats.bytes_acked, self.sizes[side], "{told}");
            assert_eq!(stats.bytes_received, self.sizes[1 - side], "{told}");
            assert_eq!(self.received[side].contiguous(), self.sizes[1 - side], "{told}");
            assert_eq!(self.completed[side], u32::from(source.is_finite()), "{told}");
            assert!(matches!(snapshot.state, "time-wait" | "closed"), "{told}");
        }
    }
}
