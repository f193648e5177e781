//! Tools for the tests of this and the other crates; programs link none of it.
//!
//! [`segment`] builds TCP packets: name the fields that matter to the test, the others have plain defaults.
//! [`Reassembly`] reassembles a TCP byte stream independently of the endpoint under test.

use crate::packet::{Checksum, FlowKey, IpHeader, Packet, TcpFlags, TcpHeader, Timestamps, Transport};
use crate::rewrite::{self, Unparsed};
use crate::seq::SeqNumber;
use crate::wire;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The inputs of a fuzz target from a file in `fuzz/seeds`: one in each line, in hexadecimal digits.
pub fn inputs(lines: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).expect("the file is ASCII");
        u8::from_str_radix(digits, 16).expect("lines have pairs of hexadecimal digits")
    };
    lines.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect()
}

/// Client and server of a built segment that names no addresses; from the benchmarking range (RFC 2544).
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
/// See [`CLIENT`].
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));

/// A TCP segment from [`CLIENT`] port 1 to [`SERVER`] port 2 with the ACK flag alone: sequence number,
/// acknowledgment number, window and payload length are 0, and there are no options.
pub fn segment() -> SegmentBuilder {
    SegmentBuilder {
        ip: IpHeader { src: CLIENT, dst: SERVER, traffic_class: 0, hop_limit: 64, special: false },
        tcp: TcpHeader { src_port: 1, dst_port: 2, flags: TcpFlags::ACK, ..TcpHeader::default() },
    }
}

/// A TCP segment under construction; see [`segment`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SegmentBuilder {
    ip: IpHeader,
    tcp: TcpHeader,
}

impl SegmentBuilder {
    /// Source and destination address, both of one IP version.
    pub fn between(mut self, src: impl Into<IpAddr>, dst: impl Into<IpAddr>) -> Self {
        (self.ip.src, self.ip.dst) = (src.into(), dst.into());
        self
    }
    /// Source and destination port.
    pub fn ports(mut self, src: u16, dst: u16) -> Self {
        (self.tcp.src_port, self.tcp.dst_port) = (src, dst);
        self
    }
    /// Addresses and ports.
    pub fn flow(self, key: FlowKey) -> Self {
        self.between(key.src, key.dst).ports(key.src_port, key.dst_port)
    }
    /// Sequence number.
    pub fn seq(mut self, seq: u32) -> Self {
        self.tcp.seq = SeqNumber(seq);
        self
    }
    /// Acknowledgment number.
    pub fn ack(mut self, ack: u32) -> Self {
        self.tcp.ack = SeqNumber(ack);
        self
    }
    /// All control bits.
    pub fn flags(mut self, flags: TcpFlags) -> Self {
        self.tcp.flags = flags;
        self
    }
    /// The window field, before scaling.
    pub fn window(mut self, window: u16) -> Self {
        self.tcp.window = window;
        self
    }
    /// Payload length in bytes.
    pub fn payload_len(mut self, bytes: u32) -> Self {
        self.tcp.payload_len = bytes;
        self
    }
    /// The timestamps option: TSval and TSecr.
    pub fn timestamps(mut self, val: u32, ecr: u32) -> Self {
        self.tcp.options.timestamps = Some(Timestamps { val, ecr });
        self
    }
    /// One more SACK block, `[left, right)`.
    pub fn sack(mut self, left: u32, right: u32) -> Self {
        self.tcp.options.sack.push(SeqNumber(left), SeqNumber(right));
        self
    }
    /// The TOS or Traffic Class octet; its two low bits are the ECN codepoint.
    pub fn traffic_class(mut self, octet: u8) -> Self {
        self.ip.traffic_class = octet;
        self
    }
    /// TTL or Hop Limit.
    pub fn hop_limit(mut self, hops: u8) -> Self {
        self.ip.hop_limit = hops;
        self
    }
    /// Changes the TCP header in any other way.
    pub fn with(mut self, change: impl FnOnce(&mut TcpHeader)) -> Self {
        change(&mut self.tcp);
        self
    }
    /// The TCP header alone.
    #[must_use]
    pub fn header(self) -> TcpHeader {
        self.tcp
    }
    /// A simulated packet: its payload is a length.
    #[must_use]
    pub fn build(self) -> Packet {
        let mut packet = Packet::tcp(self.ip.src, self.ip.dst, self.tcp);
        (packet.ip.traffic_class, packet.ip.hop_limit) = (self.ip.traffic_class, self.ip.hop_limit);
        packet
    }
    /// A packet as a device delivers it, with these payload bytes and right checksums.
    #[must_use]
    pub fn datagram(self, payload: &[u8]) -> Packet {
        let tcp = TcpHeader { payload_len: payload.len() as u32, ..self.tcp };
        let parts = std::iter::once(payload);
        let mut packet = rewrite::segment(self.ip, tcp, Unparsed::default(), Checksum::Unverified, parts);
        packet.offload.unnumbered = false; // a device's datagram is as its sender has made it
        packet
    }
}

/// The TCP header of a packet, to be changed.
///
/// Panics if the packet is no TCP segment.
pub fn tcp_mut(packet: &mut Packet) -> &mut TcpHeader {
    match &mut packet.transport {
        Transport::Tcp(tcp) => tcp,
        other => panic!("{other:?} is no TCP segment"),
    }
}

/// A device's datagram with the IPv4 options `header`, or with an IPv6 extension header of the kind `number`
/// (RFC 8200), whose first byte is overwritten with the number of the header behind it. Checksums stay right.
pub fn extended(packet: &Packet, number: u8, header: &[u8]) -> Packet {
    let mut raw = wire::emit(packet);
    if raw[0] >> 4 == 6 {
        let len = u16::from_be_bytes([raw[4], raw[5]]) + header.len() as u16;
        raw[4..6].copy_from_slice(&len.to_be_bytes());
        let next = std::mem::replace(&mut raw[6], number);
        raw.splice(40..40, std::iter::once(next).chain(header[1..].iter().copied()));
    } else {
        raw.splice(20..20, header.iter().copied());
        raw[0] += (header.len() / 4) as u8;
        let (len, at) = (raw.len() as u16, 4 * usize::from(raw[0] & 15));
        raw[2..4].copy_from_slice(&len.to_be_bytes());
        raw[10..12].fill(0);
        let words = raw[..at].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        raw[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    let mut extended = wire::parse(&raw).expect("a datagram");
    extended.offload = packet.offload;
    extended
}

/// The byte stream that one side has received, reassembled from its segments (RFC 9293 §3.4). Shares no code
/// with the endpoints, so that tests can compare an endpoint's counters and acknowledgments with it. Offsets
/// count payload bytes from the first byte of the stream.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    first: Option<SeqNumber>,
    contiguous: u64,
    /// Ranges received above a gap: end by start.
    out_of_order: BTreeMap<u64, u64>,
    fin: Option<u64>,
}

impl Reassembly {
    /// Sets the sequence number of the stream's first byte; a second call changes nothing.
    pub fn begin(&mut self, first: SeqNumber) {
        self.first.get_or_insert(first);
    }
    /// Whether the sequence number of the first byte is known.
    pub fn has_begun(&self) -> bool {
        self.first.is_some()
    }
    /// Adds a segment that has arrived. A SYN adds nothing, nor does a segment before [`Self::begin`].
    ///
    /// Panics if the packet is no TCP segment.
    pub fn on_segment(&mut self, packet: &Packet) {
        let tcp = packet.tcp_header().expect("a TCP segment");
        if tcp.flags.contains(TcpFlags::SYN) {
            return;
        }
        let Some(next) = self.next() else { return };
        let start = self.contiguous as i64 + i64::from(tcp.seq.distance(next));
        let end = start + i64::from(tcp.payload_len);
        if tcp.flags.contains(TcpFlags::FIN) && end >= 0 {
            self.fin.get_or_insert(end as u64);
        }
        if end > self.contiguous as i64 {
            let slot = self.out_of_order.entry(start.max(0) as u64).or_default();
            *slot = (*slot).max(end as u64);
        }
        while let Some((&left, &right)) =
            self.out_of_order.first_key_value().filter(|(left, _)| **left <= self.contiguous)
        {
            self.contiguous = self.contiguous.max(right);
            self.out_of_order.remove(&left);
        }
    }
    /// Bytes received without a gap.
    pub fn contiguous(&self) -> u64 {
        self.contiguous
    }
    /// The acknowledgment number of everything received without a gap, a FIN at its end included; `None`
    /// before [`Self::begin`].
    pub fn ack(&self) -> Option<SeqNumber> {
        let fin = u32::from(self.fin == Some(self.contiguous));
        self.next().map(|next| next + fin)
    }
    /// An upper bound of the acknowledgment numbers that a receiver of these segments may send; `None` before
    /// [`Self::begin`]. Any FIN counts one, even above a gap.
    pub fn largest_ack(&self) -> Option<SeqNumber> {
        self.next().map(|next| next + u32::from(self.fin.is_some()))
    }
    fn next(&self) -> Option<SeqNumber> {
        self.first.map(|first| first + self.contiguous as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::checksum_is_right;

    #[test]
    fn a_built_segment_has_the_named_fields_and_plain_defaults() {
        let packet = segment().seq(7).ack(9).payload_len(100).timestamps(1, 2).traffic_class(2).build();
        let tcp = packet.tcp_header().unwrap();
        assert_eq!((tcp.seq, tcp.ack, tcp.payload_len), (SeqNumber(7), SeqNumber(9), 100));
        assert_eq!((packet.ip.src, packet.ip.dst, packet.ip.ecn(), packet.len), (CLIENT, SERVER, 2, 152));
        let datagram = segment().sack(3, 4).datagram(b"hello");
        assert!(checksum_is_right(&datagram));
        assert_eq!(datagram.tcp_header().unwrap().payload_len, 5);
    }

    #[test]
    fn a_stream_is_reassembled_across_gaps_and_ends_with_its_fin() {
        let mut stream = Reassembly::default();
        let data = |seq: u32| segment().seq(seq).payload_len(10);
        stream.on_segment(&data(5).build());
        assert!(!stream.has_begun() && stream.ack().is_none());
        stream.begin(SeqNumber(u32::MAX - 4));
        stream.on_segment(&data(5).flags(TcpFlags::ACK.with(TcpFlags::FIN)).build());
        assert_eq!((stream.contiguous(), stream.ack()), (0, Some(SeqNumber(u32::MAX - 4))));
        stream.on_segment(&data(u32::MAX - 4).build());
        assert_eq!((stream.contiguous(), stream.ack()), (20, Some(SeqNumber(16))));
    }
}
