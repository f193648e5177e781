//! What the accelerator costs: nanoseconds for each data segment with its acknowledgments (two packets in, two out,
//! their making included), and bytes for each connection: `cargo run --release -p paceline-pep --example
//! accelerator_cost`.
//!
//! From ten connections to a hundred thousand; simulated packets, and datagrams of 1500 bytes whose payload the driver
//! gathers, as the gateway does. The work is the same for any number of connections: what a segment takes more with many
//! is waiting for memory, first for the connection and the device, and with datagrams for their own making and freeing.

use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, Duration, Instant, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, Side, Transmission};
use std::net::{IpAddr, Ipv4Addr};

const SEGMENT: u32 = 1448;
/// Segments that a connection gets in a round, in one batch of packets.
const BATCH: u32 = 4;

struct Bench {
    accelerator: Accelerator,
    now: Instant,
    flows: u32,
    /// Connections of one device.
    per_device: u32,
    real: bool,
    /// Stream offset that all connections have reached.
    off: u32,
    /// Of each connection, what its client has.
    reached: Vec<u32>,
    body: Vec<u8>,
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
    /// What making the packets costs that come in.
    fn make(&self) {
        for flow in 0..self.flows {
            for n in 0..BATCH {
                let seq = self.off + n * SEGMENT;
                std::hint::black_box(self.packet(flow, Side::Server, (seq, 1), TcpFlags::ACK, SEGMENT));
            }
            std::hint::black_box(self.packet(flow, Side::Mobile, (1, self.off), TcpFlags::ACK, 0));
        }
    }
    fn poll(&mut self) -> u64 {
        let mut count = 0;
        while let Some(Transmission { side, packet, .. }) = self.accelerator.poll_transmit(self.now) {
            count += 1;
            let (Some(tcp), IpAddr::V4(client)) = (packet.tcp_header(), packet.ip.dst) else { continue };
            if side == Side::Mobile && tcp.payload_len > 0 {
                let device = client.to_bits() - 0x0a00_0000;
                let flow = device * self.per_device + u32::from(tcp.dst_port - 40_000);
                self.reached[flow as usize] = (tcp.seq + tcp.payload_len).0;
            }
        }
        count
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
            self.send(flow);
        }
        self.now += Duration::from_millis(20);
    }
    /// Each connection gets its batch, and its client acknowledges it 20 ms later.
    fn round(&mut self) {
        for flow in 0..self.flows {
            self.send(flow);
        }
        self.deliver();
    }
    fn send(&mut self, flow: u32) {
        for n in 0..BATCH {
            let data = self.packet(flow, Side::Server, (self.off + n * SEGMENT, 1), TcpFlags::ACK, SEGMENT);
            self.accelerator.input(self.now, Side::Server, data);
        }
        self.poll();
    }
    fn deliver(&mut self) {
        for _ in 0..20 {
            self.now += Duration::from_millis(1);
            if self.accelerator.next_timer().is_some_and(|at| at <= self.now) {
                self.accelerator.handle_timeout(self.now);
            }
            self.poll();
        }
        self.off += BATCH * SEGMENT;
        for flow in 0..self.flows {
            let reached = self.reached[flow as usize];
            let acked = self.packet(flow, Side::Mobile, (1, reached), TcpFlags::ACK, 0);
            self.accelerator.input(self.now, Side::Mobile, acked);
            self.poll();
        }
        self.now += Duration::from_millis(1);
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux accounts CPU time");
    text.split_whitespace().next().and_then(|field| field.parse().ok()).expect("its first field is the time")
}

/// What it takes by the median of several times.
fn median_ns(mut run: impl FnMut()) -> f64 {
    let mut all = [0; 7].map(|_: u64| {
        let start = cpu_ns();
        run();
        cpu_ns() - start
    });
    all.sort_unstable();
    all[all.len() / 2] as f64
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux accounts memory");
    4096 * text
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse::<u64>().ok())
        .expect("a number of pages")
}

fn bench(flows: u32, per_device: u32, real: bool) -> Bench {
    let config = AcceleratorConfig {
        max_flows: 200_000,
        max_openings: 200_000,
        verify_checksums: false, // as behind a device that has done it
        gather: real,
        ..AcceleratorConfig::default()
    };
    let accelerator = Accelerator::new(config);
    let body = vec![0x5a; SEGMENT as usize];
    let reached = vec![1; flows as usize];
    let now = Instant::from_millis(1);
    let mut bench = Bench { accelerator, now, flows, per_device, real, off: 1, reached, body };
    bench.open();
    bench.deliver();
    bench
}

fn main() {
    // A process of its own for each: memory that was freed and is used again would not be counted.
    if let Some(per_device) = std::env::args().nth(1) {
        let before = resident();
        let bench = bench(100_000, per_device.parse().expect("connections of one device"), false);
        let bytes = resident().saturating_sub(before) / 100_000;
        println!(
            "{bytes} bytes for each of {} idle flows, {per_device} a device",
            bench.accelerator.flow_count()
        );
        return;
    }
    for per_device in ["1", "100"] {
        let program = std::env::current_exe().expect("this program");
        std::process::Command::new(program).arg(per_device).status().expect("it runs");
    }
    println!("one device a flow, batches of {BATCH} segments");
    println!("{:>8} {:>10} {:>14} {:>28}", "flows", "packets", "ns / segment", "of that, making the input");
    for real in [false, true] {
        for flows in [10, 1_000, 100_000] {
            let mut bench = bench(flows, 1, real);
            // Memory is got in the first rounds.
            (0..3).for_each(|_| bench.round());
            let rounds = (400_000 / (flows * BATCH)).max(1);
            let per_segment = |ns| ns / f64::from(rounds * flows * BATCH);
            let all = per_segment(median_ns(|| (0..rounds).for_each(|_| bench.round())));
            let making = per_segment(median_ns(|| (0..rounds).for_each(|_| bench.make())));
            assert_eq!(bench.accelerator.flow_count() as u32, flows);
            assert_eq!(bench.accelerator.stats().retransmissions, 0);
            let kind = if real { "1500 bytes" } else { "simulated" };
            println!("{flows:>8} {kind:>10} {all:>14.0} {making:>28.0}");
        }
    }
}
