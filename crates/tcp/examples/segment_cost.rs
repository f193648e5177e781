//! Measures what one data segment costs both endpoints together, its acknowledgment included, over a path that
//! is a queue and nothing else: `cargo run --release -p paceline-tcp --example segment_cost`.
//!
//! Two windows, to show that the cost does not grow with the window, and one with loss; and what an endpoint takes of
//! memory.

#![allow(clippy::disallowed_types)] // a benchmark reads the wall clock

use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port};
use paceline_tcp::{Endpoint, EndpointConfig, SlowStartExit, Source};
use std::collections::VecDeque;
use std::time;

/// A segment leaves the bottleneck each time.
const SPACING: Duration = Duration::from_micros(10);

/// Client and server, and the packets on their way in the order of their arrival.
struct Path {
    sides: [Endpoint; 2],
    flying: [VecDeque<(Instant, Packet)>; 2],
    free_at: [Instant; 2],
    delay: Duration,
    lose_every: u64,
    sent: u64,
}

impl Path {
    fn new(delay: Duration, lose_every: u64) -> Self {
        let addresses = ["198.18.0.1:5000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
        let config = |local: usize| EndpointConfig {
            receive_buffer: Bytes(64 << 20),
            send_buffer: Bytes(64 << 20),
            autotune: false,
            hystart: SlowStartExit::Off,
            ..EndpointConfig::new(addresses[local], addresses[1 - local])
        };
        Self {
            sides: [Endpoint::connect(config(0), Source::Bulk), Endpoint::listen(config(1), Source::Nothing)],
            flying: [VecDeque::new(), VecDeque::new()],
            free_at: [Instant::ZERO; 2],
            delay,
            lose_every,
            sent: 0,
        }
    }
    fn drain(&mut self, side: usize, now: Instant) {
        while let Some(output) = self.sides[side].poll_output(now) {
            let Output::Transmit(_, packet) = output else { continue };
            let data = packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0);
            self.sent += u64::from(data);
            if data && self.lose_every > 0 && self.sent.is_multiple_of(self.lose_every) {
                continue;
            }
            self.free_at[side] = self.free_at[side].max(now) + if data { SPACING } else { Duration::ZERO };
            self.flying[1 - side].push_back((self.free_at[side] + self.delay, packet));
        }
    }
    fn step(&mut self) {
        let arrivals = [0, 1].map(|side| self.flying[side].front().map_or(Instant::MAX, |front| front.0));
        let timeouts = [0, 1].map(|side| self.sides[side].poll_timeout().unwrap_or(Instant::MAX));
        let side = usize::from(arrivals[1] < arrivals[0]);
        let timed = usize::from(timeouts[1] < timeouts[0]);
        if timeouts[timed] < arrivals[side] {
            self.sides[timed].handle_timeout(timeouts[timed]);
            self.drain(timed, timeouts[timed]);
        } else if let Some((now, packet)) = self.flying[side].pop_front() {
            self.sides[side].handle_packet(now, Port(0), packet);
            self.drain(side, now);
        }
    }
    fn run(&mut self, segments: u64) -> u64 {
        let end = self.sent + segments;
        let before = self.sent;
        while self.sent < end {
            self.step();
        }
        self.sent - before
    }
}

/// Bytes that an endpoint takes, its window of ten to twenty segments included: what the process grows by.
fn memory() -> f64 {
    const PAIRS: usize = 20_000;
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").expect("Linux tells of memory");
        let pages = text.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok());
        pages.expect("the second field is the resident set") * 4096.0
    };
    let mut held: Vec<Path> = Vec::with_capacity(PAIRS);
    let before = resident();
    for _ in 0..PAIRS {
        let mut path = Path::new(Duration::from_millis(10), 0);
        path.run(20);
        path.flying = [VecDeque::new(), VecDeque::new()]; // what is on its way is not the endpoints'
        held.push(path);
    }
    (resident() - before) / (2 * PAIRS) as f64
}

fn main() {
    println!("an endpoint takes {:.0} bytes, {} of them fixed", memory(), size_of::<Endpoint>());
    const SEGMENTS: u64 = 2_000_000;
    for (name, delay_ms, lose_every) in [
        ("short path", 1, 0),
        ("long path", 100, 0),
        ("short path, 1 % loss", 1, 100),
        ("long path, rare loss", 100, 50_000),
    ] {
        let mut path = Path::new(Duration::from_millis(delay_ms), lose_every);
        path.run(SEGMENTS / 4);
        let start = time::Instant::now();
        let sent = path.run(SEGMENTS);
        let ns = start.elapsed().as_nanos() as f64 / sent as f64;
        let window = path.sides[0].snapshot().cwnd.0 / 1448;
        println!("{name:22} {ns:6.0} ns per segment, window {window} segments");
    }
}
