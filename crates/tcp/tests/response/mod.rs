//! The response function of RFC 9438 §5 by simulation: the average window of one connection, in segments, when every
//! `1/p`-th data segment is lost and nothing else ever happens. Both ends are whole endpoints; the path is a constant
//! round-trip time and no queue, as in the RFC's model.
//!
//! What the model does not have is switched off by configuration: delayed ACKs, pacing, HyStart, fast convergence
//! (the RFC's own advice for a flow without company), limits by buffers.

#![allow(dead_code)] // the test and the example each use their part

use paceline_net::{Bytes, Duration, Instant, Node, Output, Packet, Port};
use paceline_tcp::{CwndUnit, DelayedAck, Endpoint, EndpointConfig, SlowStartExit, Source};
use std::collections::VecDeque;
use tables::Entry;

pub mod law;
pub mod tables;

const SEGMENT: u32 = 100;

struct Path {
    sides: [Endpoint; 2],
    flying: [VecDeque<(Instant, Packet)>; 2],
    delay: Duration,
    period: u64,
    sent: u64,
    now: Instant,
}

impl Path {
    fn drain(&mut self, side: usize) {
        while let Some(output) = self.sides[side].poll_output(self.now) {
            let Output::Transmit(_, packet) = output else { continue };
            if packet.tcp_header().is_some_and(|tcp| tcp.payload_len > 0) {
                self.sent += 1;
                if self.sent % self.period == 1 {
                    continue;
                }
            }
            self.flying[1 - side].push_back((self.now + self.delay, packet));
        }
    }
    fn step(&mut self) {
        let arrivals = [0, 1].map(|side| self.flying[side].front().map_or(Instant::MAX, |front| front.0));
        let side = usize::from(arrivals[1] < arrivals[0]);
        let timeouts = [0, 1].map(|side| self.sides[side].poll_timeout().unwrap_or(Instant::MAX));
        let timed = usize::from(timeouts[1] < timeouts[0]);
        let next = timeouts[timed].min(arrivals[side]);
        self.now = next;
        if timeouts[timed] < arrivals[side] {
            self.sides[timed].handle_timeout(next);
            self.drain(timed);
        } else if let Some((_, packet)) = self.flying[side].pop_front() {
            self.sides[side].handle_packet(next, Port(0), packet);
            self.drain(side);
        }
    }
    /// Runs until `periods` more losses have happened.
    fn run(&mut self, periods: u64) {
        let end = (self.sent / self.period + periods) * self.period + 1;
        while self.sent < end {
            self.step();
        }
    }
}

/// The average window of an entry's control in segments, that is what is delivered per round-trip time, when one of its `period`
/// segments is lost: over `periods` periods after as many to settle.
///
/// The first segment is the first to be lost, out of a window of `peak` segments, the top of the cycle. To start there
/// matters: around CUBIC's plateau the window hardly depends on the time, so that its cycle draws others in so slowly
/// (by the cube of the distance) that it takes thousands of losses.
pub fn response(entry: &Entry, unit: CwndUnit, peak: u64, periods: u64) -> f64 {
    let (variant, rtt, period) = (entry.variant, entry.rtt, entry.period);
    let addresses = ["198.18.0.1:5000", "198.18.0.2:80"].map(|text| text.parse().expect("an address"));
    let config = |local: usize| EndpointConfig {
        variant,
        cwnd_unit: unit,
        initial_window: peak as u32,
        segment_size: SEGMENT,
        receive_buffer: Bytes(1 << 30),
        send_buffer: Bytes(1 << 30),
        autotune: false,
        hystart: SlowStartExit::Off,
        fast_convergence: false,
        sack_compression: None,
        delayed_ack: DelayedAck { segments: 1, quick_acks: 0, adaptive: false, ..DelayedAck::default() },
        ..EndpointConfig::new(addresses[local], addresses[1 - local])
    };
    let mut path = Path {
        sides: [Endpoint::connect(config(0), Source::Bulk), Endpoint::listen(config(1), Source::Nothing)],
        flying: [VecDeque::new(), VecDeque::new()],
        delay: rtt / 2,
        period,
        sent: 0,
        now: Instant::ZERO,
    };
    path.drain(0);
    path.step();
    path.run(periods);
    let (started_at, acked) = (path.now, path.sides[0].stats().bytes_acked);
    path.run(periods);
    let span = path.now.since(started_at);
    let segments = (path.sides[0].stats().bytes_acked - acked) as f64 / f64::from(SEGMENT);
    assert_eq!(path.sides[0].stats().timeouts, 0, "losses are repaired without a timeout");
    segments * rtt.as_secs_f64() / span.as_secs_f64()
}
