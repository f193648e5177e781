//! A server, a client and faulty links around the accelerator, driven by bytes. The swarm test, the fuzz
//! target and the example `accelerator_operations` run it. Asserted beside the accelerator's own invariants:
//!
//! - the client's stream is a prefix of the server's, byte by byte, with valid checksums;
//! - ACKs to the server cover only data that it has sent, and its right edge never retreats;
//! - timestamps are the ends' own, and connections that are not accelerated pass untouched;
//! - memory is bounded by the configuration;
//! - at the end, without further faults, the client's upload is acknowledged although the client reads
//!   nothing, then the client receives everything although the server reads nothing, and the connection is
//!   removed.

mod client;
mod faults;
pub mod packets;
mod rules;
mod server;
mod upload;

use paceline_net::fragments::is_fragment;
use paceline_net::rewrite::{self, Unparsed, checksum_is_right};
use paceline_net::test_support::segment;
use paceline_net::{
    Bytes, Checksum, Duration, FlowKey, Instant, Packet, Payload, SeqNumber, TcpFlags, TcpHeader, TcpOptions,
    Timestamps, Transport, wire,
};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, FlowRecord, Side, Transmission};
use packets::{ACK, FIN, RST, byte, fragmented, payload, with_option};
use rules::Rules;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Payload bytes of a full segment.
const SEGMENT: u32 = 500;
/// Payload bytes of a full segment on a path with an MTU black hole.
const LONG_SEGMENT: u32 = 1200;
/// Payload bytes of the longest segment that such a path delivers.
const DELIVERED_SEGMENT: u32 = 600;
const SERVER_PORT: u16 = 80;
const CLIENT_PORT: u16 = 40_000;

/// The bytes of the input as choices; zeros after its end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound.max(1)
    }
    fn is_left(&self) -> bool {
        !self.0.is_empty()
    }
}

struct Model {
    accelerator: Accelerator,
    /// The journal of a driver, by slot.
    journal: BTreeMap<u32, FlowRecord>,
    now: Instant,
    key: FlowKey,
    isn: [u32; 2],
    timestamps: bool,
    sack: bool,
    shift: u8,
    /// Packets have bytes; else they are simulated lengths.
    real: bool,
    /// Some packets have IP options, extension headers, or arrive in fragments.
    special: bool,
    /// Packets that have arrived at the accelerator.
    inputs: u16,
    /// The client drops segments that end past its window.
    strict: bool,
    /// Length of full segments, and of the longest ones that the path delivers to the client.
    segment: u32,
    longest_delivered: u32,
    /// The client acknowledges data that it has not received, or valid segments are injected: delivery is not
    /// asserted.
    hostile: bool,
    ended: bool,
    operations: u64,
    /// Packets from the accelerator to the client and to the server.
    to_client: VecDeque<Packet>,
    to_server: VecDeque<Packet>,
    /// Packets to the accelerator.
    from_server: VecDeque<Packet>,
    from_client: VecDeque<Packet>,
    /// The server: ends of the sent and of the acknowledged data, right edge of the window, offset of its
    /// FIN.
    sent: u64,
    acked: u64,
    edge: u64,
    fin: Option<u64>,
    /// The server's window field.
    server_window: u16,
    /// The client: end of the contiguous data, ranges beyond it, advertised right edge, window; end of its
    /// own data that was sent, that the server has, and that the client knows to be acknowledged.
    received: u64,
    out_of_order: Vec<(u64, u64)>,
    client_edge: u64,
    window: u64,
    client_sent: u32,
    client_acked: u32,
    client_una: u32,
    client_fin: bool,
    echo: [u32; 2],
    /// The upload bypasses the machine; number of offloads.
    offloaded: bool,
    offloads: u64,
    rules: Rules,
}

/// The result of a run.
#[allow(dead_code)] // the fuzz target reads no field
#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// MTU black holes detected.
    pub black_holes: u64,
    /// Bytes that the client received in order.
    pub delivered: u64,
    /// Operations of both sides.
    pub operations: u64,
    /// Uploads offloaded.
    pub offloads: u64,
}

/// Runs the operations that the bytes encode, then a phase without faults.
pub fn run(bytes: &[u8]) -> Outcome {
    let mut choices = Choices(bytes);
    let mut model = Model::new(&mut choices);
    model.open();
    while choices.is_left() && !model.ended {
        model.step(&mut choices);
        model.operations += 1;
        model.accelerator.invariants();
    }
    model.finish();
    Outcome {
        black_holes: model.accelerator.stats().black_holes,
        delivered: model.received,
        operations: model.operations,
        offloads: model.offloads,
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
        let start = choices.byte();
        let wrap = u32::from(start) << 4;
        let black_hole = mode & 128 != 0 && limits & 128 != 0;
        Self {
            accelerator: {
                let mut accelerator = Accelerator::new(config);
                accelerator.keep_journal();
                accelerator
            },
            journal: BTreeMap::new(),
            now: Instant::from_millis(1),
            key: FlowKey { src, dst, src_port: SERVER_PORT, dst_port: CLIENT_PORT },
            isn: [u32::MAX - wrap, 0x7fff_ffff - wrap],
            timestamps: mode & 2 != 0,
            sack: mode & 4 != 0,
            shift: if mode & 8 != 0 { 3 } else { 0 },
            real: mode & 16 != 0,
            special: start & 3 == 3,
            inputs: 0,
            strict: mode & 32 != 0,
            segment: if black_hole { LONG_SEGMENT } else { SEGMENT },
            longest_delivered: if black_hole { DELIVERED_SEGMENT } else { u32::MAX },
            hostile: mode & 64 != 0,
            ended: false,
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
            received: 1,
            out_of_order: Vec::new(),
            client_edge: 1,
            window: 30_000,
            client_sent: 1,
            client_acked: 1,
            client_una: 1,
            client_fin: false,
            echo: [0; 2],
            offloaded: false,
            offloads: 0,
            rules: Rules::default(),
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
        let segment = segment().between(src, dst).with(|own| *own = tcp);
        if self.real { segment.datagram(&payload(off, tcp.payload_len)) } else { segment.build() }
    }
    fn header(&self, side: Side, seq: u32, ack: u32, flags: TcpFlags, len: u32) -> TcpHeader {
        let s = side as usize;
        let (src, dst) = [(SERVER_PORT, CLIENT_PORT), (CLIENT_PORT, SERVER_PORT)][s];
        let window = if side == Side::Server { self.server_window } else { 60_000 };
        let (seq, ack) = (self.isn[s].wrapping_add(seq), self.isn[1 - s].wrapping_add(ack));
        let timestamps = Timestamps { val: self.clock(), ecr: self.echo[s] };
        let header = segment().ports(src, dst).seq(seq).ack(ack).flags(flags).window(window).payload_len(len);
        header.with(|tcp| tcp.options.timestamps = self.timestamps.then_some(timestamps)).header()
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
        self.client_ack(self.received, &[]);
        let ack = self.from_client.pop_front().expect("the last ACK of the handshake");
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
    /// Asserts that early ACKs are in the journal before they are sent, and that a sweep leaves the exact
    /// records.
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
                "the record is in the journal"
            );
        }
        if swept {
            assert_eq!(
                self.journal.values().copied().collect::<Vec<_>>(),
                exposed,
                "the journal has no other record"
            );
        }
    }
    /// Cuts a super-packet, as a driver does.
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
        let near = self.received;
        near.wrapping_add_signed(i64::from(seq.distance(SeqNumber(self.isn[0]) + near as u32)))
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 24 {
            0..=3 => self.server_sends(choices),
            4 => self.server_retransmits(choices),
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
            16 => self.apply_fault(choices),
            17 => self.client_sends(choices),
            18 => self.window = [0, 500, 3_000, 17_000, 30_000, 60_000, 400_000, 1][choices.below(8)],
            19 => self.client_acks(choices),
            20 => self.inject(choices),
            21 => self.run_without_faults(choices.below(20)),
            22 => match choices.byte() {
                241.. => self.close(choices),
                200.. => self.client_uploads(choices),
                180.. => self.bypass_machine(),
                _ => self.run_without_faults(2),
            },
            _ => self.run_without_faults(2),
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
    /// Delivers all packets, for `rounds` of 4 ms.
    fn run_without_faults(&mut self, rounds: usize) {
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
    /// Without further faults, and with a reading client, everything must be delivered and the connection
    /// end.
    fn finish(&mut self) {
        self.accelerator.invariants();
        if self.hostile || self.ended {
            return;
        }
        self.finish_upload();
        self.probe_server();
        (self.window, self.longest_delivered) = (60_000, u32::MAX);
        if self.fin.is_none() {
            self.fin = Some(self.sent);
        }
        let end = self.sent + 1;
        let mut longest = Duration::ZERO;
        for round in 0.. {
            // At least 16 s; after long round trips three of them, which a timeout takes at most: the
            // smoothed round-trip time and four times its deviation.
            longest = self.accelerator.flows().filter_map(|flow| flow.srtt).fold(longest, Duration::max);
            if self.received == end && self.acked == end || round >= (3 * longest.as_millis()).max(4000) {
                break;
            }
            if round % 60 == 0 {
                // A timeout of the server, and a window update of the client.
                let mut off = self.acked.min(self.sent);
                for _ in 0..50 {
                    let len = (self.sent - off).min(u64::from(self.segment)) as u32;
                    let flags = if off + u64::from(len) == self.sent { FIN } else { ACK };
                    self.emit_server(off, len, flags);
                    off += u64::from(len);
                }
                self.client_ack(self.received, &[]);
            }
            self.run_without_faults(1);
            self.accelerator.invariants();
        }
        let flows: Vec<_> = self.accelerator.flows().collect();
        let state = (self.client_edge, &flows, self.accelerator.stats());
        assert_eq!(
            (self.received, self.acked),
            (end, end),
            "everything is delivered and acknowledged: {state:?}"
        );
        assert_eq!(self.accelerator.exposure(), 0);
    }
}
