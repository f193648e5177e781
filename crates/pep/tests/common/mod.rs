//! Packets and queues for the tests of the ACK filter.
#![allow(dead_code)] // each test file uses a part of it

pub mod connection;
pub mod model;

use paceline_net::test_support;
use paceline_net::{Bytes, DropReason, Instant, Packet, SduQueue, TcpFlags, TcpHeader};
use paceline_pep::{AckFilter, AckFilterConfig, Scheme};
use std::net::IpAddr;

/// PDCP, RLC and MAC headers of a packet, and the bytes of a grant that an ACK of 52 bytes takes with them.
pub const OVERHEAD: Bytes = Bytes(6);
pub const ACK_COST: u64 = 58;

pub fn filter(scheme: &str) -> AckFilter {
    let scheme: Scheme = scheme.parse().unwrap();
    AckFilter::new(AckFilterConfig { scheme, limit: Bytes(1 << 30), segment: Bytes(536), header: Bytes(58) })
}

/// A pure ACK of connection `flow`: 52 bytes, or 72 for odd numbers, which are IPv6.
pub fn ack(flow: u16, number: u32) -> Packet {
    segment(flow, number, |_| ())
}

/// A pure ACK whose TCP header is changed.
pub fn segment(flow: u16, number: u32, change: impl FnOnce(&mut TcpHeader)) -> Packet {
    let (src, dst): (IpAddr, IpAddr) = if flow.is_multiple_of(2) {
        ("198.18.0.2".parse().unwrap(), "198.18.0.1".parse().unwrap())
    } else {
        ("2001:db8::2".parse().unwrap(), "2001:db8::1".parse().unwrap())
    };
    let segment = test_support::segment().between(src, dst).ports(5000 + flow, 80);
    segment.seq(1).ack(number).window(1000).timestamps(1, 2).with(change).build()
}

/// A data segment of `len` payload bytes in the direction of the ACKs.
pub fn data(flow: u16, number: u32, len: u32) -> Packet {
    segment(flow, number, |tcp| tcp.payload_len = len)
}

/// The acknowledgment number of a segment.
pub fn number(packet: &Packet) -> u32 {
    packet.tcp_header().expect("a TCP segment").ack.0
}

/// Pushes all packets at time 0.
pub fn push_all(queue: &mut AckFilter, packets: impl IntoIterator<Item = Packet>) {
    for packet in packets {
        queue.push(Instant::ZERO, packet);
    }
}

/// The acknowledgment numbers that remain, in order.
pub fn drain(queue: &mut AckFilter) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop(Instant::ZERO)).map(|packet| number(&packet)).collect()
}

/// The acknowledgment numbers that were discarded, in order.
pub fn discarded(queue: &mut AckFilter) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop_dropped())
        .map(|(packet, reason)| {
            assert_eq!(reason, DropReason::AckFiltered);
            number(&packet)
        })
        .collect()
}
