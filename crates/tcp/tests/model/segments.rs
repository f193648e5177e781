//! One endpoint in any state under arbitrary segments of a peer, valid or not.

use super::{Entropy, ISNS, Reassembly, check, config, source};
use paceline_net::{
    Bytes, Instant, Node, Output, Packet, Port, SackBlocks, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
    Timestamps,
};
use paceline_tcp::{Endpoint, EndpointConfig, Source};

/// Send buffer in full segments: it bounds the output, since a peer that acknowledges everything opens any
/// window.
const BUFFERED: u64 = 200;
/// The smallest segment that a peer can force on an endpoint.
const SMALLEST: u64 = 52;
/// Timers at one time after which the model fails.
const SPIN: u32 = 100;

struct Model {
    endpoint: Endpoint,
    config: EndpointConfig,
    now: Instant,
    /// End of the data sent, as an offset from the first byte.
    sent_end: u64,
    /// Number of the last acknowledgment that the endpoint sent.
    acked: SeqNumber,
    received: Reassembly,
    /// Latest TSval of the endpoint.
    clock: u32,
    /// Smallest segment of this source in bytes.
    smallest: u64,
}

/// Runs the model.
pub fn run(bytes: &[u8]) {
    let entropy = &mut Entropy::new(bytes);
    let mut config = config(entropy, true);
    config.send_buffer = config.send_buffer.min(Bytes(BUFFERED * u64::from(config.segment_size)));
    let source = if entropy.flag() { Source::Bulk } else { source(entropy, 1 << 20) };
    let endpoint = match entropy.flag() {
        true => Endpoint::listen(config.clone(), source),
        false => Endpoint::connect(config.clone(), source),
    };
    let segment_size = u64::from(config.segment_size);
    let mut model = Model {
        endpoint,
        config,
        now: Instant::ZERO,
        sent_end: 0,
        acked: SeqNumber(entropy.pick(&ISNS)),
        received: Reassembly::default(),
        clock: 0,
        smallest: smallest(source).min(segment_size),
    };
    model.drain();
    while !entropy.is_empty() {
        model.step(entropy);
        model.drain();
    }
}

impl Model {
    fn step(&mut self, entropy: &mut Entropy<'_>) {
        match entropy.byte() % 8 {
            0 => self.wait(u64::from(entropy.word()) * 1000),
            1 => {
                let next = self.endpoint.poll_timeout().unwrap_or(self.now);
                // At most a day, so that times stay in range.
                self.now = next.min(Instant::from_millis(self.now.as_millis() + 86_400_000)).max(self.now);
                self.endpoint.handle_timeout(self.now);
            }
            2 => self.wait(u64::from(entropy.byte()) * 10_000_000),
            _ => {
                let packet = self.segment(entropy);
                self.received.on_segment(&packet);
                self.endpoint.handle_packet(self.now, Port(0), packet);
            }
        }
    }
    /// Lets time pass, and handles the timers in it.
    fn wait(&mut self, ns: u64) {
        let end = Instant::from_nanos(self.now.as_nanos() + ns);
        let mut spins = 0;
        while let Some(next) = self.endpoint.poll_timeout().filter(|next| *next <= end) {
            spins = if next == self.now { spins + 1 } else { 0 };
            assert!(spins < SPIN, "a timer at {next:?} again and again");
            self.now = next;
            self.endpoint.handle_timeout(next);
            self.drain();
        }
        self.now = end;
        self.endpoint.handle_timeout(end);
    }
    fn segment(&mut self, entropy: &mut Entropy<'_>) -> Packet {
        let shape = entropy.byte();
        let flags = match shape & 7 {
            0 => TcpFlags(entropy.word() & 0xfff),
            1 => TcpFlags::SYN,
            2 => TcpFlags::SYN.with(TcpFlags::ACK),
            3 => TcpFlags::FIN.with(TcpFlags::ACK),
            _ => TcpFlags::ACK,
        };
        let seq = near(entropy, self.acked);
        let edge = self.config.isn + 1 + self.sent_end as u32;
        let una = self.config.isn + 1 + self.endpoint.stats().bytes_acked as u32;
        let base = if entropy.flag() { edge } else { una };
        let ack = near(entropy, base);
        let mut sack = SackBlocks::default();
        if shape & 8 != 0 {
            for _ in 0..entropy.byte() % 5 {
                let base = una + u32::from(entropy.byte()) * self.config.segment_size;
                let left = if entropy.byte() < 200 { base } else { near(entropy, base) };
                let len = u32::from(entropy.byte() % 8) * self.config.segment_size;
                let right = if entropy.byte() < 200 { left + len } else { near(entropy, left) };
                sack.push(left, right);
            }
        }
        let timestamps = (shape & 16 != 0).then(|| Timestamps {
            val: self.now.as_millis() as u32 + u32::from(entropy.byte()),
            ecr: if entropy.flag() { self.clock } else { near(entropy, SeqNumber(self.clock)).0 },
        });
        let syn = flags.contains(TcpFlags::SYN) || shape & 32 != 0;
        let tcp = TcpHeader {
            src_port: self.config.remote.port(),
            dst_port: self.config.local.port(),
            seq,
            ack,
            flags,
            window: if shape & 64 != 0 { entropy.word() } else { 65_535 },
            options: TcpOptions {
                mss: (syn && entropy.flag()).then(|| entropy.word()),
                window_scale: (syn && entropy.flag()).then(|| entropy.byte()),
                sack_permitted: syn && entropy.flag(),
                timestamps,
                sack,
                other: (entropy.byte() == 255).into(),
            },
            payload_len: if shape & 128 != 0 { u32::from(entropy.word()) } else { 0 },
        };
        let mut packet = Packet::tcp(self.config.remote.ip(), self.config.local.ip(), tcp);
        packet.ip.traffic_class = entropy.byte() & 3;
        packet
    }
    fn drain(&mut self) {
        // The whole buffer, lost and new segments, and acknowledgments.
        let buffer = self.config.send_buffer.0.max(u64::from(self.config.segment_size)); // at least a segment
        let most = 100 + 2 * buffer / self.smallest;
        let mut count = 0;
        while let Some(output) = self.endpoint.poll_output(self.now) {
            count += 1;
            assert!(
                count < most,
                "output without end: {:?} {:?}",
                self.endpoint.snapshot(),
                self.endpoint.stats()
            );
            match output {
                Output::Transmit(_, packet) => self.on_sent(&packet),
                Output::Drop(..) => panic!("an endpoint drops nothing"),
                Output::Event(_) => {}
            }
        }
        check(&self.endpoint, self.now, &self.config);
        let (snapshot, stats) = (self.endpoint.snapshot(), self.endpoint.stats());
        // A tail loss probe is in flight beside the segment that it repeats, which may have a FIN.
        let probe = u64::from(stats.tail_loss_probes > 0) * (u64::from(self.config.segment_size) + 1);
        let outstanding = self.sent_end - stats.bytes_acked + probe;
        assert!(snapshot.in_flight.0 <= outstanding, "{outstanding} {snapshot:?} {stats:?}");
        assert!(stats.bytes_received <= self.received.contiguous(), "more received than sent: {stats:?}");
    }
    fn on_sent(&mut self, packet: &Packet) {
        let tcp = packet.tcp_header().expect("an endpoint sends TCP");
        let (key, own) = (packet.flow_key(), self.endpoint.flow_key());
        assert_eq!(key, Some(own), "its own addresses");
        assert!(tcp.payload_len <= self.config.segment_size, "{tcp:?}");
        assert!(tcp.options.wire_len() <= 40, "options fit into the header: {tcp:?}");
        if let Some(timestamps) = tcp.options.timestamps {
            self.clock = timestamps.val;
        }
        if tcp.flags.contains(TcpFlags::RST) {
            assert_eq!((tcp.payload_len, tcp.flags.contains(TcpFlags::SYN)), (0, false), "{tcp:?}");
            return; // its numbers are those of a segment of the peer (RFC 9293 §3.5.2)
        }
        let syn = tcp.flags.contains(TcpFlags::SYN);
        if tcp.flags.contains(TcpFlags::ACK) {
            assert!(
                !self.received.has_begun() || tcp.ack >= self.acked,
                "an acknowledgment went back: {tcp:?}"
            );
            self.received.begin(tcp.ack);
            let most = self.received.largest_ack().expect("it began");
            assert!(tcp.ack <= most, "{tcp:?} acknowledges more than {most:?}");
            self.acked = tcp.ack;
        }
        if syn {
            assert_eq!((tcp.seq, tcp.payload_len), (self.config.isn, 0));
            return;
        }
        let len = tcp.payload_len + u32::from(tcp.flags.contains(TcpFlags::FIN));
        let next = self.config.isn + 1 + self.sent_end as u32;
        let start = i64::from(tcp.seq.distance(next));
        assert!(start <= 0, "a gap of {start} bytes in what is sent: {tcp:?}");
        let new = (start + i64::from(len)).max(0);
        assert!(new == 0 || start == 0, "new data in the same segment as old: {tcp:?}");
        self.sent_end += new as u64;
    }
}

/// The smallest segment of a source: small pieces may leave one by one, and are retransmitted unchanged.
fn smallest(source: Source) -> u64 {
    match source {
        Source::Chunks { size, .. } => size.0.clamp(1, SMALLEST),
        _ => SMALLEST,
    }
}

/// A number at `base`, near it, or anywhere.
fn near(entropy: &mut Entropy<'_>, base: SeqNumber) -> SeqNumber {
    match entropy.byte() {
        0..=127 => base,
        128..=159 => base + u32::from(entropy.byte()),
        160..=191 => SeqNumber(base.0.wrapping_sub(u32::from(entropy.byte()))),
        192..=215 => base + u32::from(entropy.word()),
        216..=239 => SeqNumber(base.0.wrapping_sub(u32::from(entropy.word()))),
        _ => SeqNumber(entropy.long()),
    }
}
