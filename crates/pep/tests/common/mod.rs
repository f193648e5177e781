//! Packets for the tests.
#![allow(dead_code)] // each test file uses a part of it

pub mod bed;

use paceline_net::{
    Bytes, DropReason, Instant, Packet, SduQueue, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};
use std::net::IpAddr;

/// An ACK and what each packet costs in the tests: 52 bytes and 6.
pub const OVERHEAD: Bytes = Bytes(6);
pub const ACK_COST: u64 = 58;

pub fn filter(scheme: &str) -> AckFilter {
    let scheme: Scheme = scheme.parse().unwrap();
    AckFilter::new(AckFilterConfig { scheme, limit: Bytes(1 << 30), segment: Bytes(536), header: Bytes(58) })
}

/// A pure ACK of connection `flow` (odd ones are IPv6), 52 or 72 bytes.
pub fn ack(flow: u16, number: u32) -> Packet {
    segment(flow, number, |_| ())
}

/// An ACK with changes.
pub fn segment(flow: u16, number: u32, change: impl FnOnce(&mut TcpHeader)) -> Packet {
    let mut tcp = TcpHeader {
        src_port: 5000 + flow,
        dst_port: 80,
        seq: SeqNumber(1),
        ack: SeqNumber(number),
        flags: TcpFlags::ACK,
        window: 1000,
        options: TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..Default::default() },
        payload_len: 0,
    };
    change(&mut tcp);
    let (src, dst): (IpAddr, IpAddr) = if flow.is_multiple_of(2) {
        ("198.18.0.2".parse().unwrap(), "198.18.0.1".parse().unwrap())
    } else {
        ("2001:db8::2".parse().unwrap(), "2001:db8::1".parse().unwrap())
    };
    Packet::tcp(src, dst, tcp)
}

/// Data of `len` bytes in the ACKs' direction.
pub fn data(flow: u16, number: u32, len: u32) -> Packet {
    segment(flow, number, |tcp| tcp.payload_len = len)
}

pub fn number(packet: &Packet) -> u32 {
    packet.tcp_header().expect("a TCP segment").ack.0
}

/// Pushes all at time 0.
pub fn push_all(queue: &mut AckFilter, packets: impl IntoIterator<Item = Packet>) {
    for packet in packets {
        queue.push(Instant::ZERO, packet);
    }
}

/// The ACK numbers that remain, in order.
pub fn drain(queue: &mut AckFilter) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop(Instant::ZERO)).map(|packet| number(&packet)).collect()
}

/// The ACK numbers that were discarded, in order.
pub fn discarded(queue: &mut AckFilter) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop_dropped())
        .map(|(packet, reason)| {
            assert_eq!(reason, DropReason::AckFiltered);
            number(&packet)
        })
        .collect()
}
