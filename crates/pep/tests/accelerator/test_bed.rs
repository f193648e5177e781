//! Test bed: one connection through an accelerator. The test makes the segments of both ends, and reads the
//! packets that the accelerator sends to each.
#![allow(dead_code)] // each test file uses its part

pub use crate::accelerator::model::packets::*;
use paceline_net::rewrite::checksum_is_right;
use paceline_net::test_support::segment;
use paceline_net::{
    Duration, FlowKey, Instant, Packet, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps, wire,
};
use paceline_pep::accelerator::{Accelerator, AcceleratorConfig, AcceleratorStats, Side};
use std::net::IpAddr;

/// Payload bytes of a full segment.
pub const SEGMENT: u32 = 1000;
/// The client's window field: 64,000 bytes without scaling, 16 times as much with the shift of 4.
pub const WINDOW: u16 = 64_000;

/// The state of both ends.
pub struct TestBed {
    pub accelerator: Accelerator,
    pub now: Instant,
    pub key: FlowKey,
    pub server_isn: u32,
    pub client_isn: u32,
    pub timestamps: bool,
    pub shift: u8,
    /// Bytes by which the client's MSS exceeds the server's.
    pub client_mss_excess: u16,
    pub sack: bool,
    pub ecn: bool,
    /// Clock of both ends, in TSval.
    pub clock: u32,
    /// The client's next sequence number, as a distance from its SYN.
    pub client_next: u32,
    /// The last TSval of the server at the client, and of the client at the server.
    pub echo: [u32; 2],
    pub window: u16,
    /// Whether the device's data may be acknowledged early.
    pub early_acks: bool,
    /// Packets that the accelerator has sent.
    pub to_client: Vec<Packet>,
    pub to_server: Vec<Packet>,
}

impl TestBed {
    pub fn new(config: AcceleratorConfig) -> Self {
        let (server, client): (IpAddr, IpAddr) = ([198, 19, 0, 1].into(), [198, 18, 0, 1].into());
        Self {
            accelerator: Accelerator::new(config),
            now: Instant::from_millis(1),
            key: FlowKey { src: server, dst: client, src_port: 80, dst_port: 40_000 },
            server_isn: 0xffff_f000,
            client_isn: 0xffff_ff00,
            timestamps: true,
            shift: 4,
            client_mss_excess: 0,
            sack: true,
            ecn: false,
            clock: 0xffff_fff0,
            client_next: 1,
            echo: [0; 2],
            window: WINDOW,
            early_acks: true,
            to_client: Vec::new(),
            to_server: Vec::new(),
        }
    }
    pub fn v6(mut self) -> Self {
        self.key.src = "2001:db8:1::1".parse().unwrap();
        self.key.dst = "2001:db8:2::1".parse().unwrap();
        self
    }
    /// A connection after its handshake.
    pub fn open() -> Self {
        Self::open_with(AcceleratorConfig::default(), |_| ())
    }
    pub fn open_with(config: AcceleratorConfig, change: impl FnOnce(&mut Self)) -> Self {
        let mut bed = Self::new(config);
        change(&mut bed);
        bed.handshake();
        bed
    }
    /// The same, without the packets of the handshake.
    pub fn open_cleared(change: impl FnOnce(&mut Self)) -> Self {
        let mut bed = Self::open_with(AcceleratorConfig::default(), change);
        bed.clear();
        bed
    }
    pub fn handshake(&mut self) {
        let mut syn = self.syn_options();
        syn.mss = syn.mss.map(|mss| mss + self.client_mss_excess);
        let ecn = if self.ecn { TcpFlags::ECE.with(TcpFlags::CWR) } else { TcpFlags(0) };
        let syn = self.client_packet(0, None, SYN.with(ecn), 0, |tcp| tcp.options = syn);
        self.client_sends(syn);
        self.wait(1);
        let options = self.syn_options();
        let ece = if self.ecn { TcpFlags::ECE } else { TcpFlags(0) };
        let syn_ack = self.server_packet(0, SYN.with(ACK).with(ece), 0, |tcp| tcp.options = options);
        self.server_sends(syn_ack);
        self.wait(10);
        self.echo = [self.clock, self.clock];
        self.ack(1);
    }
    pub fn syn_options(&self) -> TcpOptions {
        TcpOptions {
            mss: Some(SEGMENT as u16 + if self.timestamps { 12 } else { 0 }),
            window_scale: (self.shift > 0).then_some(self.shift),
            sack_permitted: self.sack,
            timestamps: self.own_timestamps(0),
            ..TcpOptions::default()
        }
    }
    fn own_timestamps(&self, echo: usize) -> Option<Timestamps> {
        self.timestamps.then_some(Timestamps { val: self.clock, ecr: self.echo[echo] })
    }
    /// Time passes; the accelerator's timers run.
    pub fn wait(&mut self, ms: u64) {
        self.run_until(self.now + Duration::from_millis(ms));
        self.clock = self.clock.wrapping_add(ms as u32);
    }
    fn run_until(&mut self, end: Instant) {
        while let Some(at) = self.accelerator.next_timer().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.accelerator.handle_timeout(self.now);
            self.collect();
        }
        self.now = end;
        self.collect();
    }
    fn collect(&mut self) {
        while let Some(sent) = self.accelerator.poll_transmit(self.now) {
            match sent.side {
                Side::Server => self.to_server.push(sent.packet),
                Side::Mobile => self.to_client.push(sent.packet),
            }
        }
        self.accelerator.invariants();
    }
    pub fn input(&mut self, side: Side, packet: Packet) {
        self.accelerator.input_of(self.now, side, packet, self.early_acks);
        self.collect();
    }
    pub fn server_sends(&mut self, packet: Packet) {
        self.input(Side::Server, packet);
    }
    pub fn client_sends(&mut self, packet: Packet) {
        self.input(Side::Mobile, packet);
    }
    pub fn stats(&self) -> &AcceleratorStats {
        self.accelerator.stats()
    }

    /// A segment of the server at stream offset `off`; 1 is the first byte.
    pub fn server_packet(
        &self,
        off: u64,
        flags: TcpFlags,
        len: u32,
        change: impl FnOnce(&mut TcpHeader),
    ) -> Packet {
        let (seq, ack) =
            (self.server_isn.wrapping_add(off as u32), self.client_isn.wrapping_add(self.client_next));
        let segment = segment().flow(self.key).seq(seq).ack(ack).flags(flags).window(50_000).with(|tcp| {
            tcp.options.timestamps = self.own_timestamps(1);
            tcp.payload_len = len;
        });
        segment.with(change).datagram(&payload(off, len))
    }
    pub fn server_data(&self, off: u64, len: u32) -> Packet {
        self.server_packet(off, ACK, len, |_| ())
    }
    /// The server sends `count` full segments from offset `off`; returns their end.
    pub fn send(&mut self, off: u64, count: u64) -> u64 {
        for n in 0..count {
            let packet = self.server_data(off + n * u64::from(SEGMENT), SEGMENT);
            self.server_sends(packet);
        }
        off + count * u64::from(SEGMENT)
    }
    /// A segment of the client at `seq` that acknowledges the stream up to `ack`.
    pub fn client_packet(
        &self,
        seq: u32,
        ack: Option<u64>,
        flags: TcpFlags,
        len: u32,
        change: impl FnOnce(&mut TcpHeader),
    ) -> Packet {
        let ack = ack.map_or(0, |ack| self.server_isn.wrapping_add(ack as u32));
        let own = segment().flow(self.key.reversed()).seq(self.client_isn.wrapping_add(seq)).ack(ack);
        let own = own.flags(flags).window(self.window).with(|tcp| {
            tcp.options.timestamps = self.own_timestamps(0);
            tcp.payload_len = len;
        });
        own.with(change).datagram(&payload(u64::from(seq), len))
    }
    /// The client acknowledges the stream up to `off`.
    pub fn ack(&mut self, off: u64) {
        let packet = self.client_packet(self.client_next, Some(off), ACK, 0, |_| ());
        self.client_sends(packet);
    }
    /// The client acknowledges the stream up to `off`, and selectively a range.
    pub fn sack(&mut self, off: u64, left: u64, right: u64) {
        let isn = SeqNumber(self.server_isn);
        let packet = self.client_packet(self.client_next, Some(off), ACK, 0, |tcp| {
            tcp.options.sack.push(isn + left as u32, isn + right as u32);
        });
        self.client_sends(packet);
    }

    /// Takes the packets that were sent to the client.
    pub fn taken_by_client(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.to_client)
    }
    /// Takes the packets that were sent to the server.
    pub fn taken_by_server(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.to_server)
    }
    pub fn clear(&mut self) {
        self.to_client.clear();
        self.to_server.clear();
    }
    /// Offset of a sequence number of the server, near the start of its stream.
    pub fn offset(&self, seq: SeqNumber) -> u64 {
        u64::from(seq.0.wrapping_sub(self.server_isn))
    }
    /// The highest acknowledgment that was sent to the server, as an offset.
    pub fn acked(&self) -> Option<u64> {
        self.to_server.iter().filter_map(|packet| packet.tcp_header()).map(|tcp| self.offset(tcp.ack)).max()
    }
    /// Offset and length of the data segments that were sent to the client. Verifies their bytes and
    /// checksums.
    pub fn data(&self) -> Vec<(u64, u32)> {
        let with_payload = |packet: &&Packet| header(packet).payload_len > 0;
        let check = |packet: &Packet| {
            let tcp = header(packet);
            let off = self.offset(tcp.seq);
            assert!(checksum_is_right(packet));
            assert_eq!(body(packet), payload(off, tcp.payload_len), "the server's bytes at {off}");
            (off, tcp.payload_len)
        };
        self.to_client.iter().filter(with_payload).map(check).collect()
    }
    pub fn exposure(&self) -> u64 {
        self.accelerator.exposure()
    }
}

/// The datagram with its bytes changed and its checksums unchanged.
pub fn patched(packet: &Packet, change: impl FnOnce(&mut Vec<u8>)) -> Packet {
    let mut raw = bytes(packet);
    change(&mut raw);
    wire::parse(&raw).expect("still a datagram")
}
/// The datagram with its bytes changed and valid TCP and IPv4 header checksums.
pub fn patched_valid(packet: &Packet, change: impl FnOnce(&mut Vec<u8>)) -> Packet {
    let changed = patched(packet, change);
    let mut raw = bytes(&changed);
    let at = if raw[0] >> 4 == 4 { usize::from(raw[0] & 15) * 4 } else { 40 };
    if raw[0] >> 4 == 4 {
        raw[10..12].fill(0);
        let sum = sum(&raw[..at], 0);
        raw[10..12].copy_from_slice(&(!sum).to_be_bytes());
    }
    let addresses: Vec<u8> = if raw[0] >> 4 == 4 { raw[12..20].to_vec() } else { raw[8..40].to_vec() };
    raw[at + 16..at + 18].fill(0);
    let l4_len = (raw.len() - at) as u32;
    let pseudo = [&addresses[..], &[0, 6], &l4_len.to_be_bytes()].concat();
    let total = sum(&raw[at..], u32::from(sum(&pseudo, 0)));
    raw[at + 16..at + 18].copy_from_slice(&(!total).to_be_bytes());
    let valid = wire::parse(&raw).expect("still a datagram");
    assert!(valid.tcp_header().is_none() || valid.ip.special || checksum_is_right(&valid));
    valid
}
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
