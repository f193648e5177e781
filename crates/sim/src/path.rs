//! The wired path between servers and eNB: hops in a row, each with a rate, a propagation delay and a drop-tail
//! queue, the same in both directions. Above a threshold, a queue marks ECN-capable packets (RFC 3168).
//!
//! Port 0 and port 1 are its ends. Packets enter at the ends alone and every hop is first in, first out: what
//! happens to a packet at all hops is known when it enters, so that it costs one event, not one per hop.

use crate::scenario::Hop;
use paceline_net::{Bytes, DropReason, Instant, Node, Output, Packet, Port};
use std::collections::VecDeque;

/// Hops between two nodes.
#[derive(Debug)]
pub struct Path {
    directions: [Direction; 2],
    output: VecDeque<Output>,
}

/// One direction: its lines in the order in which packets pass them.
#[derive(Debug)]
struct Direction {
    lines: Vec<Line>,
    /// Packets that will come out at the far end, and when.
    in_flight: VecDeque<(Instant, Packet)>,
}

/// One hop in one direction.
#[derive(Debug)]
struct Line {
    hop: Hop,
    /// When the line is free.
    free_at: Instant,
    /// Packets waiting for the line or on it: when they leave it, and their length.
    queued: VecDeque<(Instant, Bytes)>,
    queued_bytes: Bytes,
}

impl Path {
    /// These hops, in the order from port 0 to port 1.
    pub fn new(hops: &[Hop]) -> Self {
        let line = |hop: &Hop| Line {
            hop: hop.clone(),
            free_at: Instant::ZERO,
            queued: VecDeque::new(),
            queued_bytes: Bytes::ZERO,
        };
        let forward = hops.iter().map(line).collect();
        let backward = hops.iter().rev().map(line).collect();
        let direction = |lines| Direction { lines, in_flight: VecDeque::new() };
        Self { directions: [direction(forward), direction(backward)], output: VecDeque::new() }
    }
}

impl Line {
    /// When a packet that arrives at `now` comes out at the far end; none if the queue is full.
    fn pass(&mut self, now: Instant, packet: &mut Packet) -> Option<Instant> {
        let len = Bytes(u64::from(packet.len));
        while let Some((_, len)) = self.queued.pop_front_if(|(leaves_at, _)| *leaves_at <= now) {
            self.queued_bytes = self.queued_bytes - len;
        }
        if !self.queued.is_empty() && self.queued_bytes + len > self.hop.queue {
            return None;
        }
        if packet.ip.ecn() != 0 && self.hop.ecn_threshold.is_some_and(|most| self.queued_bytes + len > most) {
            packet.set_congestion_experienced();
        }
        let leaves_at = self.free_at.max(now) + self.hop.rate.time_to_send(len);
        self.free_at = leaves_at;
        self.queued.push_back((leaves_at, len));
        self.queued_bytes += len;
        Some(leaves_at + self.hop.delay)
    }
}

impl Node for Path {
    fn handle_packet(&mut self, now: Instant, from: Port, mut packet: Packet) {
        let direction = &mut self.directions[usize::from(from.0)];
        let arrival = direction.lines.iter_mut().try_fold(now, |at, line| line.pass(at, &mut packet));
        match arrival {
            Some(at) => direction.in_flight.push_back((at, packet)),
            None => self.output.push_back(Output::Drop(packet, DropReason::QueueFull)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (index, direction) in self.directions.iter_mut().enumerate() {
            while let Some((_, packet)) = direction.in_flight.pop_front_if(|(at, _)| *at <= now) {
                self.output.push_back(Output::Transmit(Port(1 - index as u16), packet));
            }
        }
    }

    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.directions.iter().filter_map(|direction| Some(direction.in_flight.front()?.0)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_net::{Duration, Rate, TcpFlags, TcpHeader};

    fn packet(payload_len: u32) -> Packet {
        let tcp =
            TcpHeader { src_port: 1, dst_port: 2, flags: TcpFlags::ACK, payload_len, ..TcpHeader::default() };
        Packet::tcp("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap(), tcp)
    }

    #[test]
    fn packets_take_their_send_time_and_the_delay_and_queue_up_to_the_limit() {
        let hop = Hop {
            rate: Rate(8_000_000),
            delay: Duration::from_millis(5),
            queue: Bytes(2_000),
            ecn_threshold: None,
        };
        let mut link = Path::new(&[hop]);
        for _ in 0..3 {
            link.handle_packet(Instant::ZERO, Port(0), packet(960));
        }
        // 1000 bytes at 8 Mb/s take 1 ms; the third finds 2000 bytes and is dropped.
        assert!(matches!(link.poll_output(Instant::ZERO), Some(Output::Drop(_, DropReason::QueueFull))));
        for ms in [6, 7] {
            assert_eq!(link.poll_timeout(), Some(Instant::from_millis(ms)));
            link.handle_timeout(Instant::from_millis(ms));
            assert!(matches!(link.poll_output(Instant::ZERO), Some(Output::Transmit(Port(1), _))));
        }
        assert_eq!(link.poll_timeout(), None);
    }

    #[test]
    fn a_narrow_hop_behind_a_wide_one_queues_and_drops() {
        let wide = Hop {
            rate: Rate(8_000_000_000),
            delay: Duration::from_millis(1),
            queue: Bytes(100_000),
            ecn_threshold: None,
        };
        let narrow = Hop {
            rate: Rate(8_000_000),
            delay: Duration::from_millis(5),
            queue: Bytes(3_000),
            ecn_threshold: None,
        };
        let mut path = Path::new(&[wide, narrow]);
        for _ in 0..4 {
            path.handle_packet(Instant::ZERO, Port(0), packet(960));
        }
        // They reach the narrow hop at 1.001 ms and 1 us apart; the fourth finds 3000 bytes there.
        assert!(matches!(path.poll_output(Instant::ZERO), Some(Output::Drop(_, DropReason::QueueFull))));
        for arrives_us in [7_001, 8_001, 9_001] {
            let at = Instant::from_nanos(arrives_us * 1000);
            assert_eq!(path.poll_timeout(), Some(at));
            path.handle_timeout(at);
            assert!(matches!(path.poll_output(at), Some(Output::Transmit(Port(1), _))));
        }
        // Backwards the narrow hop comes first.
        path.handle_packet(Instant::from_millis(20), Port(1), packet(960));
        assert_eq!(path.poll_timeout(), Some(Instant::from_nanos(27_001_000)));
    }

    #[test]
    fn a_queue_above_its_threshold_marks_what_is_ecn_capable() {
        let queue = Bytes(100_000);
        let hop =
            Hop { rate: Rate(8_000_000), delay: Duration::ZERO, queue, ecn_threshold: Some(Bytes(2_000)) };
        let mut path = Path::new(&[hop]);
        // Packets of 1000 bytes: the third and later find more than 2000 bytes, themselves included.
        for ecn in [2, 2, 2, 0, 1] {
            let mut packet = packet(960);
            packet.ip.traffic_class = 0x28 | ecn;
            path.handle_packet(Instant::ZERO, Port(0), packet);
        }
        path.handle_timeout(Instant::from_millis(10));
        let classes: Vec<u8> = std::iter::from_fn(|| path.poll_output(Instant::ZERO))
            .map(|output| match output {
                Output::Transmit(_, packet) => packet.ip.traffic_class,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(classes, [0x2a, 0x2a, 0x2b, 0x28, 0x2b]);
    }

    #[test]
    fn a_path_without_hops_passes_at_once() {
        let mut path = Path::new(&[]);
        path.handle_packet(Instant::from_millis(3), Port(0), packet(960));
        assert_eq!(path.poll_timeout(), Some(Instant::from_millis(3)));
    }
}
