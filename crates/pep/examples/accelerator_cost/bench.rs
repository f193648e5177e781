//! An accelerator with its servers and clients, and a clock that runs while the accelerator works.

use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, Duration, Instant, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, Side, Transmission};
use std::net::{IpAddr, Ipv4Addr};

/// Payload bytes of a segment.
const SEGMENT: u32 = 1448;
#[allow(clippy::disallowed_types)] // measures CPU time; the accelerator's own time is simulated
type Clock = std::time::Instant;

/// Consecutive segments of a connection in a round.
pub const TRAIN: u32 = 4;
/// Packets of a driver's batch.
pub const BATCH: u32 = 64;

pub struct Bench {
    pub accelerator: Accelerator,
    now: Instant,
    flows: u32,
    /// Connections of one device.
    per_device: u32,
    real: bool,
    /// Sequence number of the next segment, the same for all connections.
    off: u32,
    /// Next sequence number that each client expects.
    expected: Vec<u32>,
    body: Vec<u8>,
    sent: Vec<Transmission>,
    /// Time spent in the accelerator.
    pub spent: std::time::Duration,
}

impl Bench {
    fn packet(&self, flow: u32, side: Side, (seq, ack): (u32, u32), flags: TcpFlags, len: u32) -> Packet {
        let server: IpAddr = Ipv4Addr::new(198, 19, 0, 1).into();
        let client: IpAddr = Ipv4Addr::from(0x0a00_0000 + flow / self.per_device).into();
        let port = 40_000 + (flow % self.per_device) as u16;
        let (src, dst, src_port, dst_port) =
            if side == Side::Server { (server, client, 80, port) } else { (client, server, port, 80) };
        let clock = self.now.as_millis() as u32;
        let syn = flags.contains(TcpFlags::SYN);
        let tcp = TcpHeader {
            src_port,
            dst_port,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: 60_000,
            options: TcpOptions {
                mss: syn.then_some(1460),
                window_scale: syn.then_some(7),
                sack_permitted: syn,
                timestamps: Some(Timestamps { val: clock, ecr: clock }),
                ..TcpOptions::default()
            },
            payload_len: len,
        };
        if self.real {
            let ip = IpHeader { src, dst, traffic_class: 0, hop_limit: 64, special: false };
            rewrite::segment(
                ip,
                tcp,
                Unparsed::default(),
                Checksum::Unverified,
                std::iter::once(&self.body[..len as usize]),
            )
        } else {
            Packet::tcp(src, dst, tcp)
        }
    }
    /// Hands a batch of packets to the accelerator and takes its transmissions; only this is timed.
    fn pass(&mut self, packets: &mut Vec<(Side, Packet)>) {
        let start = Clock::now();
        if let Some(side) = packets.first().map(|(side, _)| *side) {
            self.accelerator.prefetch(side, packets.iter().map(|(_, packet)| packet));
        }
        for (side, packet) in packets.drain(..) {
            self.accelerator.input(self.now, side, packet);
        }
        while let Some(sent) = self.accelerator.poll_transmit(self.now) {
            self.sent.push(sent);
        }
        self.spent += start.elapsed();
        for Transmission { side, packet, .. } in self.sent.drain(..) {
            let (Some(tcp), IpAddr::V4(client)) = (packet.tcp_header(), packet.ip.dst) else { continue };
            if side == Side::Mobile && tcp.payload_len > 0 {
                let device = client.to_bits() - 0x0a00_0000;
                let flow = device * self.per_device + u32::from(tcp.dst_port - 40_000);
                let expected = &mut self.expected[flow as usize];
                *expected = (*expected).max((tcp.seq + tcp.payload_len).0);
            }
        }
    }
    fn open(&mut self) {
        let ack = TcpFlags::ACK;
        for flow in 0..self.flows {
            let syn = self.packet(flow, Side::Mobile, (0, 0), TcpFlags::SYN, 0);
            self.accelerator.input(self.now, Side::Mobile, syn);
            let answer = self.packet(flow, Side::Server, (0, 1), TcpFlags::SYN.with(ack), 0);
            self.accelerator.input(self.now, Side::Server, answer);
            self.accelerator.input(
                self.now + Duration::from_millis(10),
                Side::Mobile,
                self.packet(flow, Side::Mobile, (1, 1), ack, 0),
            );
            self.pass(&mut (0..TRAIN).map(|n| (Side::Server, self.data(flow, n))).collect());
        }
        self.now += Duration::from_millis(20);
    }
    /// Sends segments on each connection, and acknowledges them 20 ms later.
    pub fn round(&mut self) {
        let mut batch = Vec::with_capacity(BATCH as usize);
        for first in (0..self.flows).step_by((BATCH / TRAIN) as usize) {
            for flow in first..self.flows.min(first + BATCH / TRAIN) {
                batch.extend((0..TRAIN).map(|n| (Side::Server, self.data(flow, n))));
            }
            self.pass(&mut batch);
        }
        self.deliver();
    }
    fn data(&self, flow: u32, n: u32) -> Packet {
        self.packet(flow, Side::Server, (self.off + n * SEGMENT, 1), TcpFlags::ACK, SEGMENT)
    }
    /// Lets the accelerator send for 20 ms, then acknowledges all segments.
    pub fn deliver(&mut self) {
        for _ in 0..20 {
            self.now += Duration::from_millis(1);
            let start = Clock::now();
            if self.accelerator.next_timer().is_some_and(|at| at <= self.now) {
                self.accelerator.handle_timeout(self.now);
            }
            self.spent += start.elapsed();
            self.pass(&mut Vec::new());
        }
        self.off += TRAIN * SEGMENT;
        let mut batch = Vec::with_capacity(BATCH as usize);
        for first in (0..self.flows).step_by(BATCH as usize) {
            for flow in first..self.flows.min(first + BATCH) {
                let expected = self.expected[flow as usize];
                batch.push((Side::Mobile, self.packet(flow, Side::Mobile, (1, expected), TcpFlags::ACK, 0)));
            }
            self.pass(&mut batch);
        }
        self.now += Duration::from_millis(1);
    }
}

/// An accelerator with connections that have each received a train of segments.
pub fn bench(flows: u32, per_device: u32, real: bool) -> Bench {
    let config = AcceleratorConfig {
        max_flows: 200_000,
        max_openings: 200_000,
        verify_checksums: false, // as behind a device that has verified them
        gather: real,
        ..AcceleratorConfig::default()
    };
    let accelerator = Accelerator::new(config);
    let body = vec![0x5a; SEGMENT as usize];
    let expected = vec![1; flows as usize];
    let now = Instant::from_millis(1);
    let mut bench = Bench {
        accelerator,
        now,
        flows,
        per_device,
        real,
        off: 1,
        expected,
        body,
        sent: Vec::new(),
        spent: std::time::Duration::ZERO,
    };
    bench.open();
    bench.deliver();
    bench
}
