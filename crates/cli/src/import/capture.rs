//! Captures (pcap, pcapng) of a flow that saturated the link: its packets are the deliveries. The flow is the
//! direction of a connection with the most bytes.

use super::deliveries::Deliveries;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// First bytes of captures: pcap in both orders of bytes, with microseconds and nanoseconds, and pcapng
/// (libpcap, pcap-savefile(5); draft-ietf-opsawg-pcapng).
const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    PCAPNG,
];
/// The first block of pcapng (draft-ietf-opsawg-pcapng).
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Bytes that mahimahi adds to each packet; an exported trace counts them too.
const PACKET_INFORMATION_BYTES: u64 = 4;
/// Read buffer, bytes. Chosen: more than the longest packet, 262144 bytes in libpcap.
const BUFFER_BYTES: usize = 1 << 20;

type Flow = (IpAddr, IpAddr, Option<(u16, u16)>, u8);
/// Time since 1970 in ns, and bytes.
type Arrival = (u64, u64);

/// Whether a file is a capture.
pub fn is_capture(file: &[u8]) -> bool {
    MAGICS.iter().any(|magic| file.starts_with(magic))
}

/// Reads the largest flow of a capture.
pub fn read(file: &[u8], notes: &mut Vec<String>) -> Result<Deliveries, String> {
    let mut flows: BTreeMap<Flow, Vec<Arrival>> = BTreeMap::new();
    let mut packets = 0u64;
    let mut take = |link: DataLink, at: std::time::Duration, data: &[u8], len: u32| {
        packets += 1;
        if let Some((flow, bytes)) = flow_of(link, data, len) {
            let bytes = bytes + PACKET_INFORMATION_BYTES;
            flows.entry(flow).or_default().push((at.as_nanos() as u64, bytes));
        }
    };
    let damaged = |error: &dyn std::fmt::Display| format!("damaged capture: {error}");
    if file.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::with_capacity(file, BUFFER_BYTES).map_err(|error| damaged(&error))?;
        while let Some(block) = reader.next_block() {
            let (block, state) = block.map_err(|error| damaged(&error))?;
            if let Block::EnhancedPacket(packet) = block {
                let link = state.interfaces()[packet.interface_id as usize].linktype;
                take(link, packet.timestamp, &packet.data, packet.original_len);
            }
        }
    } else {
        let mut reader = PcapReader::with_capacity(file, BUFFER_BYTES).map_err(|error| damaged(&error))?;
        let link = reader.header().datalink;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|error| damaged(&error))?;
            take(link, packet.timestamp(), packet.data(), packet.orig_len());
        }
    }
    let bytes = |arrivals: &[Arrival]| arrivals.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let largest = flows.into_iter().max_by_key(|(_, arrivals)| bytes(arrivals));
    let ((src, dst, ports, protocol), mut arrivals) =
        largest.ok_or("a capture without IP packets (Ethernet, raw IP or Linux cooked)")?;
    arrivals.sort_unstable();
    let (from, to) = match ports {
        Some((from, to)) => (format!("{src} port {from}"), format!("{dst} port {to}")),
        None => (src.to_string(), dst.to_string()),
    };
    notes.push(format!(
        "capture of {packets} packets: the largest flow, from {from} to {to} (protocol {protocol}), has {} packets, \
         {:.3} MB",
        arrivals.len(),
        bytes(&arrivals) as f64 / 1e6
    ));
    notes.push(
        "arrivals become opportunities: they are the link's capacity only while the flow saturated it".into(),
    );
    // The capture begins with the first packet, which takes as long as the packets after it.
    let (first, last) = (arrivals[0].0, arrivals[arrivals.len() - 1].0);
    let origin = first - (last - first) / (arrivals.len() as u64 - 1).max(1);
    Ok(Deliveries::At(arrivals.into_iter().map(|(at, bytes)| (at - origin, bytes)).collect()))
}

/// The flow of a packet and the bytes of its datagram.
fn flow_of(link: DataLink, data: &[u8], len: u32) -> Option<(Flow, u64)> {
    // The length of the link header, and the EtherType where a header states it.
    let ether_type = |at: usize| Some(EtherType(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?)));
    let (header, packet) = match link {
        DataLink::ETHERNET => (14, LaxSlicedPacket::from_ethernet(data).ok()?),
        DataLink::LINUX_SLL => (16, LaxSlicedPacket::from_ether_type(ether_type(14)?, data.get(16..)?)),
        DataLink::LINUX_SLL2 => (20, LaxSlicedPacket::from_ether_type(ether_type(0)?, data.get(20..)?)),
        DataLink::NULL | DataLink::LOOP => (4, LaxSlicedPacket::from_ip(data.get(4..)?).ok()?),
        _ => (0, LaxSlicedPacket::from_ip(data).ok()?),
    };
    let whole = u64::from(len).saturating_sub(header);
    let (src, dst, protocol, stated): (IpAddr, IpAddr, u8, u64) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
            (src, dst, header.protocol().0, u64::from(header.total_len()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
            // RFC 8200 section 3: the header of 40 bytes does not count.
            (src, dst, header.next_header().0, u64::from(header.payload_length()) + 40)
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let ports = match packet.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => Some((tcp.source_port(), tcp.destination_port())),
        Some(TransportSlice::Udp(udp)) => Some((udp.source_port(), udp.destination_port())),
        _ => None,
    };
    // A merged packet of more than 64 KiB states no length; padding of short frames does not count.
    let bytes = if stated <= 40 { whole } else { stated.min(whole) };
    Some(((src, dst, ports, protocol), bytes))
}
