//! A wired hop: a rate, a propagation delay and a drop-tail queue, the same in both directions.
//!
//! Port 0 and port 1 are its ends. First in, first out, so that a packet's departure is known when it arrives.

use crate::scenario::Hop;
use paceline_net::{Bytes, DropReason, Instant, Node, Output, Packet, Port};
use std::collections::VecDeque;

/// A hop between two nodes.
#[derive(Debug)]
pub struct Link {
    hop: Hop,
    directions: [Direction; 2],
    output: VecDeque<Output>,
}

#[derive(Debug, Default)]
struct Direction {
    /// When the line is free.
    free_at: Instant,
    /// Packets waiting for the line or on it: when they leave it, and their length.
    queued: VecDeque<(Instant, Bytes)>,
    queued_bytes: Bytes,
    /// Packets that will come out at the far end, and when.
    in_flight: VecDeque<(Instant, Packet)>,
}

impl Link {
    /// A hop with these properties.
    pub fn new(hop: Hop) -> Self {
        Self { hop, directions: Default::default(), output: VecDeque::new() }
    }
}

impl Node for Link {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let direction = &mut self.directions[usize::from(from.0)];
        while let Some((_, len)) = direction.queued.pop_front_if(|(leaves_at, _)| *leaves_at <= now) {
            direction.queued_bytes = direction.queued_bytes - len;
        }
        let len = Bytes(u64::from(packet.len));
        if !direction.queued.is_empty() && direction.queued_bytes + len > self.hop.queue {
            self.output.push_back(Output::Drop(packet, DropReason::QueueFull));
            return;
        }
        let leaves_at = direction.free_at.max(now) + self.hop.rate.time_to_send(len);
        direction.free_at = leaves_at;
        direction.queued.push_back((leaves_at, len));
        direction.queued_bytes += len;
        direction.in_flight.push_back((leaves_at + self.hop.delay, packet));
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
    use paceline_net::{Duration, Rate, SeqNumber, TcpFlags, TcpHeader, TcpOptions};

    fn packet(payload_len: u32) -> Packet {
        let tcp = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: SeqNumber(0),
            ack: SeqNumber(0),
            flags: TcpFlags::ACK,
            window: 0,
            options: TcpOptions::default(),
            payload_len,
        };
        Packet::tcp("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap(), tcp)
    }

    #[test]
    fn packets_take_their_send_time_and_the_delay_and_queue_up_to_the_limit() {
        let hop = Hop { rate: Rate(8_000_000), delay: Duration::from_millis(5), queue: Bytes(2_000) };
        let mut link = Link::new(hop);
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
}
