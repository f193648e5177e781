//! A server, a client and everything that can go wrong between them, driven by bytes: the property tests, the fuzz
//! target and the ten-million run use the same. What is asserted, beside the machine's own invariants:
//!
//! - the client's stream is a prefix of the server's, byte by byte;
//! - the server is never told that more was received than it sent, and its right edge never retreats;
//! - timestamps are the ends' own, and connections that are not accelerated pass untouched;
//! - empty or not, nothing but the server's bytes reaches the client, with right checksums;
//! - memory is bounded by the configuration;
//! - in the end, over links that lose nothing more, the client hears that the server has all that it sent, though its own
//!   reader may stand still; then it gets all that the server sent, though that reads nothing any more, and the connection
//!   is forgotten.

mod client;
mod promises;
mod server;
mod trouble;
mod upload;

use paceline_net::rewrite::{self, Unparsed, checksum_is_right};
use paceline_net::{
    Bytes, Checksum, Duration, FlowKey, Instant, IpHeader, Packet, Payload, SeqNumber, TcpFlags, TcpHeader,
    TcpOptions, Timestamps, Transport, wire,
};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, FlowRecord, Side, Transmission};
use promises::Promises;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

const SEGMENT: u32 = 500;
/// The same where the path to the client swallows what is longer than it takes, until links heal.
const LONG_SEGMENT: u32 = 1200;
const TAKEN: u32 = 600;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags(TcpFlags::FIN.0 | TcpFlags::ACK.0);
const RST: TcpFlags = TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0);

fn byte(off: u64) -> u8 {
    (off.wrapping_mul(0x9e37_79b9) >> 7) as u8
}

/// The bytes of the input as choices; zeros when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }
    fn left(&self) -> bool {
        !self.0.is_empty()
    }
}

struct Model {
    accelerator: Accelerator,
    /// What a driver would have written down, by slot.
    journal: BTreeMap<u32, FlowRecord>,
    now: Instant,
    key: FlowKey,
    isn: [u32; 2],
    timestamps: bool,
    sack: bool,
    shift: u8,
    /// Packets have bytes; else they are simulated lengths.
    real: bool,
    /// The client drops what ends beyond its right edge.
    strict: bool,
    /// Length of full segments, and of those that the path to the client takes.
    segment: u32,
    fits: u32,
    /// The client acknowledges what it has not got, or injected segments may end things: nothing is promised any
    /// more.
    hostile: bool,
    over: bool,
    operations: u64,
    /// Packets on their way to the client, and to the server.
    to_client: VecDeque<Packet>,
    to_server: VecDeque<Packet>,
    /// Packets on their way to the accelerator.
    from_server: VecDeque<Packet>,
    from_client: VecDeque<Packet>,
    /// The server: sent, acknowledged and allowed up to these offsets; where its FIN stands.
    sent: u64,
    acked: u64,
    edge: u64,
    fin: Option<u64>,
    /// Its window for what the client sends, as on the wire.
    server_window: u16,
    /// The client: received in order, beyond, right edge advertised, window, own data sent, acknowledged, and known to be.
    have: u64,
    beyond: Vec<(u64, u64)>,
    client_edge: u64,
    window: u64,
    client_sent: u32,
    client_acked: u32,
    client_heard: u32,
    client_fin: bool,
    echo: [u32; 2],
    /// Uploads go past the machine, and how often they began to.
    past: bool,
    rests: u64,
    promises: Promises,
}

/// What came of a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// Paths found to swallow full segments.
    pub black_holes: u64,
    /// Bytes that the client got in order.
    pub delivered: u64,
    /// Operations of both sides.
    pub operations: u64,
    /// Times that an upload went past.
    pub rests: u64,
}

/// Runs the operations that the bytes stand for, then lets the links heal.
pub fn run(bytes: &[u8]) -> Outcome {
    let mut choices = Choices(bytes);
    let mut model = Model::new(&mut choices);
    model.open();
    while choices.left() && !model.over {
        model.step(&mut choices);
        model.operations += 1;
        model.accelerator.invariants();
    }
    model.finish();
    Outcome {
        black_holes: model.accelerator.stats().black_holes,
        delivered: model.have,
        operations: model.operations,
        rests: model.rests,
    }
}

impl Model {
    fn new(choices: &mut Choices<'_>) -> Self {
        let (mode, limits) = (choices.byte(), choices.byte());
        let config = AcceleratorConfig {
            flow_buffer: Bytes([20_000, 60_000, 300_000, 2 << 20][usize::from(limits & 3)]),
            exposure: Bytes([5_000, 40_000, 1 << 20, 4 << 20][usize::from(limits >> 2 & 3)]),
            device_buffer: Bytes([40_000, 1 << 20][usize::from(limits >> 4 & 1)]),
            super_packet: Bytes([0, 8_000][usize::from(limits >> 5 & 1)]),
            overshoot: limits & 0x40 == 0,
            ..AcceleratorConfig::default()
        };
        let v6 = mode & 1 != 0;
        let (src, dst): (IpAddr, IpAddr) = if v6 {
            ([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1].into(), [0x2001, 0xdb8, 2, 0, 0, 0, 0, 1].into())
        } else {
            ([198, 19, 0, 1].into(), [198, 18, 0, 1].into())
        };
        let wrap = u32::from(choices.byte()) << 4;
        let swallows = mode & 128 != 0 && limits & 128 != 0;
        Self {
            accelerator: {
                let mut accelerator = Accelerator::new(config);
                accelerator.keep_journal();
                accelerator
            },
            journal: BTreeMap::new(),
            now: Instant::from_millis(1),
            key: FlowKey { src, dst, src_port: 80, dst_port: 40_000 },
            isn: [u32::MAX - wrap, 0x7fff_ffff - wrap],
            timestamps: mode & 2 != 0,
            sack: mode & 4 != 0,
            shift: if mode & 8 != 0 { 3 } else { 0 },
            real: mode & 16 != 0,
            strict: mode & 32 != 0,
            segment: if swallows { LONG_SEGMENT } else { SEGMENT },
            fits: if swallows { TAKEN } else { u32::MAX },
            hostile: mode & 64 != 0,
            over: false,
            operations: 0,
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            from_server: VecDeque::new(),
            from_client: VecDeque::new(),
            sent: 1,
            acked: 1,
            edge: 1,
            fin: None,
            server_window: 60_000,
            have: 1,
            beyond: Vec::new(),
            client_edge: 1,
            window: 30_000,
            client_sent: 1,
            client_acked: 1,
            client_heard: 1,
            client_fin: false,
            echo: [0; 2],
            past: false,
            rests: 0,
            promises: Promises::default(),
        }
    }
    fn clock(&self) -> u32 {
        (self.now.as_millis() as u32).wrapping_add(0xffff_ff00)
    }
    fn packet(&self, side: Side, tcp: TcpHeader, off: u64) -> Packet {
        let (src, dst) = match side {
            Side::Server => (self.key.src, self.key.dst),
            Side::Mobile => (self.key.dst, self.key.src),
        };
        if !self.real {
            return Packet::tcp(src, dst, tcp);
        }
        let bytes: Vec<u8> = (off..off + u64::from(tcp.payload_len)).map(byte).collect();
        let ip = IpHeader { src, dst, traffic_class: 0, hop_limit: 64, special: false };
        rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Unverified, std::iter::once(&bytes[..]))
    }
    fn header(&self, side: Side, seq: u32, ack: u32, flags: TcpFlags, len: u32) -> TcpHeader {
        let s = side as usize;
        let ports = [(80, 40_000), (40_000, 80)][s];
        let timestamps = Timestamps { val: self.clock(), ecr: self.echo[s] };
        TcpHeader {
            src_port: ports.0,
            dst_port: ports.1,
            seq: SeqNumber(self.isn[s]) + seq,
            ack: SeqNumber(self.isn[1 - s]) + ack,
            flags,
            window: if side == Side::Server { self.server_window } else { 60_000 },
            options: TcpOptions {
                timestamps: self.timestamps.then_some(timestamps),
                ..TcpOptions::default()
            },
            payload_len: len,
        }
    }
    fn open(&mut self) {
        let options = TcpOptions {
            mss: Some(self.segment as u16 + if self.timestamps { 12 } else { 0 }),
            window_scale: (self.shift > 0).then_some(self.shift),
            sack_permitted: self.sack,
            timestamps: self.timestamps.then_some(Timestamps { val: self.clock(), ecr: 0 }),
            ..TcpOptions::default()
        };
        let syn = TcpHeader { options, ..self.header(Side::Mobile, 0, 0, TcpFlags::SYN, 0) };
        self.input(Side::Mobile, self.packet(Side::Mobile, syn, 0));
        let syn_ack = TcpHeader { options, ..self.header(Side::Server, 0, 1, TcpFlags::SYN.with(ACK), 0) };
        self.input(Side::Server, self.packet(Side::Server, syn_ack, 0));
        self.now += Duration::from_millis(20);
        self.echo = [self.clock(); 2];
        self.client_ack(self.have, &[]);
        let ack = self.from_client.pop_front().expect("the handshake's last");
        self.input(Side::Mobile, ack);
        self.to_client.clear();
        while let Some(packet) = self.to_server.pop_front() {
            self.server_gets(&packet);
        }
    }

    fn collect(&mut self) {
        while let Some(sent) = self.accelerator.poll_transmit(self.now) {
            self.leave(sent);
        }
        assert!(self.accelerator.held() < (8 << 20) + (1 << 17), "memory is bounded");
        self.keep_journal();
    }
    fn leave(&mut self, sent: Transmission) {
        self.check(sent.side, &sent.packet);
        match sent.side {
            Side::Server => self.to_server.push_back(sent.packet),
            Side::Mobile if sent.segment > 0 => self.split(&sent.packet, sent.segment),
            Side::Mobile => self.to_client.push_back(sent.packet),
        }
    }
    /// Whatever a server was told ahead of the client is in the journal before it leaves; what was swept is the truth.
    fn keep_journal(&mut self) {
        let journal = &mut self.journal;
        let mut write = |slot, record: Option<FlowRecord>| match record {
            Some(record) => drop(journal.insert(slot, record)),
            None => drop(journal.remove(&slot)),
        };
        self.accelerator.journal_changes(&mut write);
        let swept = self.now.as_nanos().is_multiple_of(3);
        if swept {
            self.accelerator.journal_sweep(usize::MAX, &mut write);
        }
        let exposed: Vec<FlowRecord> = self.accelerator.journal().collect();
        for record in &exposed {
            let known = self.journal.values().find(|known| known.key == record.key);
            assert_eq!(
                known.map(|known| known.server_acked),
                Some(record.server_acked),
                "it is in the journal"
            );
        }
        if swept {
            assert_eq!(self.journal.values().copied().collect::<Vec<_>>(), exposed, "and nothing else");
        }
    }
    /// What a driver does with a super-packet.
    fn split(&mut self, packet: &Packet, segment: u32) {
        let tcp = *packet.tcp_header().expect("a segment");
        let off = self.offset(tcp.seq);
        for start in (0..tcp.payload_len).step_by(segment as usize) {
            let len = segment.min(tcp.payload_len - start);
            let last = start + len == tcp.payload_len;
            let flags = if last { tcp.flags } else { TcpFlags(tcp.flags.0 & !FIN.0 | ACK.0) };
            let part = TcpHeader { seq: tcp.seq + start, payload_len: len, flags, ..tcp };
            if self.real {
                let Payload::Datagram(bytes) = &packet.payload else { panic!("a datagram") };
                let at = rewrite::header_len(packet) + start as usize;
                let body = &bytes[at..at + len as usize];
                let made = rewrite::segment(
                    packet.ip,
                    part,
                    Unparsed::default(),
                    Checksum::Unverified,
                    std::iter::once(body),
                );
                self.to_client.push_back(made);
            } else {
                self.to_client.push_back(self.packet(Side::Server, part, off));
            }
        }
    }
    fn offset(&self, seq: SeqNumber) -> u64 {
        let near = self.have;
        near.wrapping_add_signed(i64::from(seq.distance(SeqNumber(self.isn[0]) + near as u32)))
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 24 {
            0..=3 => self.server_sends(choices),
            4 => self.server_repeats(choices),
            5 | 6 => self.relay(choices, Side::Server),
            7 | 8 => self.relay(choices, Side::Mobile),
            9..=11 => {
                let at = choices.below(self.to_client.len().min(4));
                if let Some(packet) = self.to_client.remove(at) {
                    self.client_gets(&packet);
                }
            }
            12 | 13 => {
                let at = choices.below(self.to_server.len().min(3));
                if let Some(packet) = self.to_server.remove(at) {
                    self.server_gets(&packet);
                }
            }
            14 | 15 => self.wait(Duration::from_micros(100 << choices.below(14))),
            16 => self.disturb(choices),
            17 => self.client_sends(choices),
            18 => self.window = [0, 500, 3_000, 17_000, 30_000, 60_000, 400_000, 1][choices.below(8)],
            19 => self.client_acks(choices),
            20 => self.inject(choices),
            21 => self.run_quietly(choices.below(20)),
            22 => match choices.byte() {
                241.. => self.close(choices),
                200.. => self.client_uploads(choices),
                180.. => self.go_past(),
                _ => self.run_quietly(2),
            },
            _ => self.run_quietly(2),
        }
    }
    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.accelerator.next_timer().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.accelerator.handle_timeout(self.now);
            self.collect();
        }
        self.now = end;
        self.collect();
    }
    fn relay(&mut self, choices: &mut Choices<'_>, side: Side) {
        let queue = if side == Side::Server { &mut self.from_server } else { &mut self.from_client };
        let at = choices.below(queue.len().min(3));
        if let Some(packet) = queue.remove(at) {
            self.arrive(side, packet);
        }
    }
    /// Everything on its way arrives, some times over.
    fn run_quietly(&mut self, rounds: usize) {
        for _ in 0..rounds {
            while let Some(packet) = self.from_server.pop_front() {
                self.arrive(Side::Server, packet);
            }
            while let Some(packet) = self.to_client.pop_front() {
                self.client_gets(&packet);
            }
            while let Some(packet) = self.from_client.pop_front() {
                self.arrive(Side::Mobile, packet);
            }
            while let Some(packet) = self.to_server.pop_front() {
                self.server_gets(&packet);
            }
            self.wait(Duration::from_millis(4));
        }
    }
    /// The links heal and the client reads: all that was sent must arrive, and the connection end.
    fn finish(&mut self) {
        self.accelerator.invariants();
        if self.hostile || self.over {
            return;
        }
        self.finish_upload();
        self.probe_server();
        (self.window, self.fits) = (60_000, u32::MAX);
        if self.fin.is_none() {
            self.fin = Some(self.sent);
        }
        let end = self.sent + 1;
        let mut longest = Duration::ZERO;
        for round in 0.. {
            // Sixteen seconds; more where round trips took many: a timeout is one and four times its deviation, which is
            // up to twice as long behind a round trip far above the others.
            longest = self.accelerator.flows().filter_map(|flow| flow.srtt).fold(longest, Duration::max);
            if self.have == end && self.acked == end || round >= (3 * longest.as_millis()).max(4000) {
                break;
            }
            if round % 60 == 0 {
                // The server's timeout; the client tells of its window.
                let mut off = self.acked.min(self.sent);
                for _ in 0..50 {
                    let len = (self.sent - off).min(u64::from(self.segment)) as u32;
                    let flags = if off + u64::from(len) == self.sent { FIN } else { ACK };
                    self.emit_server(off, len, flags);
                    off += u64::from(len);
                }
                self.client_ack(self.have, &[]);
            }
            self.run_quietly(1);
            self.accelerator.invariants();
        }
        let flows: Vec<_> = self.accelerator.flows().collect();
        let state = (self.client_edge, &flows, self.accelerator.stats());
        assert_eq!((self.have, self.acked), (end, end), "all arrives, and is acknowledged: {state:?}");
        assert_eq!(self.accelerator.exposure(), 0);
    }
}
