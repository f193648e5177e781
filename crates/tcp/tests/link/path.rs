//! Two endpoints over a path that keeps the order of packets: a delay, a bottleneck for data segments, and
//! losses at regular intervals. Smaller and faster than [`World`](super::World), for long runs and for
//! measurements.
#![allow(dead_code)] // each test and example uses its part

use paceline_net::{Duration, Instant, Node, Output, Packet, Port};
use paceline_tcp::Endpoint;
use std::collections::VecDeque;

/// Client and server, and the packets in flight in the order of their arrival.
pub struct Path {
    pub sides: [Endpoint; 2],
    pub now: Instant,
    /// Data segments sent, lost ones included.
    pub sent: u64,
    in_flight: [VecDeque<(Instant, Packet)>; 2],
    free_at: [Instant; 2],
    delay: Duration,
    spacing: Duration,
    losses: Losses,
}

/// The data segments that are lost: those whose number, counted from 1, is `remainder` modulo `period`. A
/// period of 0 loses none.
#[derive(Clone, Copy)]
pub struct Losses {
    pub period: u64,
    pub remainder: u64,
}

impl Path {
    /// A path with the one-way `delay`, which passes a data segment each `spacing`.
    pub fn new(sides: [Endpoint; 2], delay: Duration, spacing: Duration, losses: Losses) -> Self {
        Self {
            sides,
            now: Instant::ZERO,
            sent: 0,
            in_flight: [VecDeque::new(), VecDeque::new()],
            free_at: [Instant::ZERO; 2],
            delay,
            spacing,
            losses,
        }
    }
    fn drain(&mut self, side: usize) {
        while let Some(output) = self.sides[side].poll_output(self.now) {
            let Output::Transmit(_, packet) = output else { continue };
            let data = packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0);
            self.sent += u64::from(data);
            let Losses { period, remainder } = self.losses;
            if data && period > 0 && self.sent % period == remainder {
                continue;
            }
            let spacing = if data { self.spacing } else { Duration::ZERO };
            self.free_at[side] = self.free_at[side].max(self.now) + spacing;
            self.in_flight[1 - side].push_back((self.free_at[side] + self.delay, packet));
        }
    }
    /// Handles the next timer or arrival. The first call sends the SYN.
    pub fn step(&mut self) {
        let arrivals = [0, 1].map(|side| self.in_flight[side].front().map_or(Instant::MAX, |front| front.0));
        let timeouts = [0, 1].map(|side| self.sides[side].poll_timeout().unwrap_or(Instant::MAX));
        let side = usize::from(arrivals[1] < arrivals[0]);
        let timed = usize::from(timeouts[1] < timeouts[0]);
        if timeouts[timed] < arrivals[side] {
            self.now = timeouts[timed];
            self.sides[timed].handle_timeout(self.now);
            self.drain(timed);
        } else if let Some((now, packet)) = self.in_flight[side].pop_front() {
            self.now = now;
            self.sides[side].handle_packet(now, Port(0), packet);
            self.drain(side);
        }
    }
    /// Runs until `sent` data segments have been sent since the start.
    pub fn run_to(&mut self, sent: u64) {
        while self.sent < sent {
            self.step();
        }
    }
    /// Discards the packets in flight.
    pub fn clear(&mut self) {
        self.in_flight = [VecDeque::new(), VecDeque::new()];
    }
}
