//! One side of UDP flows of constant rate or with Poisson arrivals, with which a path is probed for loss,
//! one-way delay and round-trip time, and of pings, whose answers are as long as the requests.
//!
//! Each datagram carries its send time, which no other of its flow has. The receiver answers it by a short
//! datagram that carries the same time. A copy that the network made counts nothing and has no answer. Port
//! 0 is the network interface.

use crate::engine::NEVER;
use paceline_net::{
    Bytes, DropReason, Duration, Instant, IpHeader, Node, Offload, Output, Packet, Parsed, Payload, Port,
    Rate, Stream, Transport,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Payload of an answer. Chosen: an IPv4 datagram of 40 bytes, as long as a TCP ACK without options.
const ANSWER_BYTES: u32 = 12;
/// Send times that a receiver remembers of a flow, to know copies. Chosen: more datagrams than a path lets
/// overtake one; one that is older still is taken for a copy, as by RFC 4303 §3.4.3.
const REMEMBERED: usize = 16_384;
/// UDP header (RFC 768).
const HEADER_BYTES: u32 = 8;

/// Times between the datagrams of a flow.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// The time to send the datagram before at the flow's rate.
    Constant,
    /// Exponentially distributed with this time as the mean, so that arrivals are a Poisson process.
    Poisson(Stream),
}

/// A flow of one sender.
#[derive(Clone, Debug)]
pub struct UdpFlow {
    /// Own address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Bit rate with IP and UDP headers.
    pub rate: Rate,
    /// Mean time between datagrams, in place of the rate.
    pub interval: Option<Duration>,
    /// Payload of each datagram but the last.
    pub payload: Bytes,
    /// Times between datagrams.
    pub arrivals: Arrivals,
    /// Time of the first datagram.
    pub start: Instant,
    /// Payload of all datagrams; none for a flow without end.
    pub file: Option<Bytes>,
}

/// Counters of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpStats {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received from the peer's flows.
    pub received: u64,
    /// Payload bytes of these datagrams.
    pub received_bytes: u64,
    /// Sum of the one-way delays of these datagrams, ns.
    pub delay_ns: u64,
    /// Answers received.
    pub answers: u64,
    /// Sum of the round-trip times of answered datagrams, ns.
    pub rtt_ns: u64,
}

/// A datagram that has arrived, or an answer.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    ports: (u16, u16),
    /// Time at which the request was made.
    pub made_at: Instant,
    /// Time since then.
    pub took_ns: u64,
    /// Whether it is an answer.
    pub answer: bool,
}

impl Logged {
    /// The higher port, which is that of the station.
    pub fn port(&self) -> u16 {
        self.ports.0.max(self.ports.1)
    }
}

/// One side: the sender of its own flows and the receiver of the peer's.
#[derive(Debug, Default)]
pub struct Udp {
    /// Own flows with the time of the next datagram and the payload bytes left to send.
    flows: Vec<(UdpFlow, Instant, u64)>,
    stats: UdpStats,
    /// The datagrams received, by source and destination.
    received: Vec<((SocketAddr, SocketAddr), Received)>,
    /// Arrivals, where the datagrams are pings.
    log: Option<Vec<Logged>>,
    output: VecDeque<Output>,
}

/// The datagrams received of a flow.
#[derive(Debug, Default)]
struct Received {
    /// Send times in ascending order, at most [`REMEMBERED`].
    made_at: VecDeque<Instant>,
    /// Latest send time that is not remembered any more.
    forgotten: Option<Instant>,
}

impl Received {
    /// Remembers a datagram; whether it is the first one of its send time.
    fn is_first(&mut self, made_at: Instant) -> bool {
        if self.forgotten.is_some_and(|forgotten| made_at <= forgotten) {
            return false;
        }
        // Most datagrams arrive in order.
        let place = match self.made_at.back() {
            Some(last) if *last >= made_at => self.made_at.partition_point(|other| *other < made_at),
            _ => self.made_at.len(),
        };
        if self.made_at.get(place) == Some(&made_at) {
            return false;
        }
        self.made_at.insert(place, made_at);
        if self.made_at.len() > REMEMBERED {
            self.forgotten = self.made_at.pop_front();
        }
        true
    }
}

impl Udp {
    /// A side that sends these flows.
    pub fn new(flows: Vec<UdpFlow>) -> Self {
        let flow = |flow: UdpFlow| {
            let (start, left) = (flow.start, flow.file.map_or(u64::MAX, |file| file.0));
            (flow, start, left)
        };
        Self { flows: flows.into_iter().map(flow).collect(), ..Self::default() }
    }
    /// A side that sends these pings, and answers those of its peer at full length.
    pub fn pings(flows: Vec<UdpFlow>) -> Self {
        Self { log: Some(Vec::new()), ..Self::new(flows) }
    }
    /// The pings and answers that have arrived; none where the datagrams are no pings.
    pub fn log(&self) -> Option<&[Logged]> {
        self.log.as_deref()
    }
    /// Counters of this side.
    pub fn stats(&self) -> &UdpStats {
        &self.stats
    }
    fn is_first(&mut self, flow: (SocketAddr, SocketAddr), made_at: Instant) -> bool {
        let known = self.received.iter().position(|(other, _)| *other == flow);
        let place = known.unwrap_or_else(|| {
            self.received.push((flow, Received::default()));
            self.received.len() - 1
        });
        self.received[place].1.is_first(made_at)
    }
    fn send(&mut self, now: Instant) {
        for (flow, at, left) in &mut self.flows {
            while *at <= now && *left > 0 {
                let payload = flow.payload.0.min(*left);
                if *left != u64::MAX {
                    *left -= payload;
                }
                let packet = datagram(flow.local, flow.remote, payload as u32, *at);
                let of_rate = || flow.rate.time_to_send(Bytes(u64::from(packet.len)));
                let mean = flow.interval.unwrap_or_else(of_rate);
                let apart = match &mut flow.arrivals {
                    Arrivals::Constant => mean,
                    Arrivals::Poisson(stream) => {
                        Duration::from_secs_f64(stream.exponential(mean.as_secs_f64()))
                    }
                };
                *at += apart.max(Duration::from_nanos(1));
                self.stats.sent += 1;
                self.output.push_back(Output::Transmit(Port(0), packet));
            }
        }
    }
}

impl Node for Udp {
    fn handle_packet(&mut self, now: Instant, _from: Port, packet: Packet) {
        let (Transport::Udp { src_port, dst_port, made_at: Some(at) }, Payload::Virtual(len)) =
            (&packet.transport, &packet.payload)
        else {
            self.output.push_back(Output::Drop(packet, DropReason::NoRoute));
            return;
        };
        let took = now.since(*at).as_nanos();
        let (from, to) =
            (SocketAddr::new(packet.ip.src, *src_port), SocketAddr::new(packet.ip.dst, *dst_port));
        if !self.is_first((from, to), *at) {
            return;
        }
        let answer = self.flows.iter().any(|(flow, ..)| flow.remote == from && flow.local == to);
        if let Some(log) = &mut self.log {
            let ports = (*src_port, *dst_port);
            log.push(Logged { ports, made_at: *at, took_ns: took, answer });
        }
        if answer {
            self.stats.answers += 1;
            self.stats.rtt_ns += took;
        } else {
            self.stats.received += 1;
            self.stats.received_bytes += u64::from(*len);
            self.stats.delay_ns += took;
            let len = if self.log.is_some() { *len } else { ANSWER_BYTES };
            self.output.push_back(Output::Transmit(Port(0), datagram(to, from, len, *at)));
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.send(now);
    }
    fn poll_output(&mut self, _now: Instant) -> Option<Output> {
        self.output.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.flows.iter().filter(|(_, _, left)| *left > 0).map(|(_, at, _)| *at);
        due.min().filter(|at| *at != NEVER)
    }
}

fn datagram(from: SocketAddr, to: SocketAddr, payload: u32, at: Instant) -> Packet {
    let ip = IpHeader { src: from.ip(), dst: to.ip(), traffic_class: 0, hop_limit: 64, special: false };
    let transport = Transport::Udp { src_port: from.port(), dst_port: to.port(), made_at: Some(at) };
    let len = ip.plain_len() + HEADER_BYTES + payload;
    let (payload, offload) = (Payload::Virtual(payload), Offload::default());
    Parsed { ip, transport, payload, len, offload }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_at_the_flows_rate_and_answers_carry_their_send_time() {
        let (local, remote) = ("198.18.64.1:5001".parse().unwrap(), "198.18.128.1:40000".parse().unwrap());
        let start = Instant::from_millis(5);
        // 1000 bytes with headers at 1 Mb/s take 8 ms; the last datagram has the remaining 56 bytes of
        // payload.
        let (rate, payload, file) = (Rate(1_000_000), Bytes(972), Some(Bytes(2000)));
        let arrivals = Arrivals::Constant;
        let flow = UdpFlow { local, remote, rate, interval: None, payload, arrivals, start, file };
        let (mut server, mut station) = (Udp::new(vec![flow]), Udp::default());
        for (at, len) in [(5, 1000), (13, 1000), (21, 84)] {
            let at = Instant::from_millis(at);
            assert_eq!(server.poll_timeout(), Some(at));
            server.handle_timeout(at);
            let Some(Output::Transmit(_, packet)) = server.poll_output(at) else { panic!("a datagram") };
            assert_eq!(packet.len, len);
            let later = at + Duration::from_millis(30);
            station.handle_packet(later, Port(0), packet);
            let Some(Output::Transmit(_, answer)) = station.poll_output(later) else { panic!("an answer") };
            assert_eq!((answer.len, answer.ip.dst), (40, local.ip()));
            server.handle_packet(later + Duration::from_millis(12), Port(0), answer);
        }
        assert_eq!(server.poll_timeout(), None);
        let (sent, seen) = (server.stats(), station.stats());
        assert_eq!((sent.sent, sent.answers, sent.rtt_ns), (3, 3, 3 * 42_000_000));
        assert_eq!((seen.received, seen.received_bytes, seen.delay_ns), (3, 2000, 90_000_000));
    }

    #[test]
    fn copies_count_nothing_in_any_order() {
        let (local, remote): (SocketAddr, SocketAddr) =
            ("198.18.64.1:5001".parse().unwrap(), "198.18.128.1:40000".parse().unwrap());
        let mut station = Udp::default();
        let at = |ms| Instant::from_millis(ms);
        for made_at in [1, 2, 2, 5, 3, 5, 3, 1, 4, 4] {
            station.handle_packet(at(10), Port(0), datagram(local, remote, 100, at(made_at)));
        }
        let other = datagram("198.18.64.2:5001".parse().unwrap(), remote, 100, at(2));
        station.handle_packet(at(10), Port(0), other);
        assert_eq!((station.stats().received, station.stats().received_bytes), (6, 600));
        let answers = std::iter::from_fn(|| station.poll_output(at(10))).count();
        assert_eq!(answers, 6, "a copy has no answer");
        let mut received = Received::default();
        let count = 3 * REMEMBERED as u64;
        assert!((0..count).all(|ms| received.is_first(at(ms)) && !received.is_first(at(ms))));
        assert!(!received.is_first(at(0)) && received.made_at.len() == REMEMBERED);
    }
}
