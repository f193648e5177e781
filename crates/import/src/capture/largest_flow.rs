//! Captures (pcap, pcapng) of a flow that saturated the link: its packets are the deliveries. The flow is the
//! direction of a connection with the most bytes.

use crate::capture::file::{self, Captured};
use crate::deliveries::Deliveries;
use crate::notes::Notes;
use etherparse::TransportSlice;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Bytes that mahimahi adds to each packet; an exported trace counts them too.
const PACKET_INFORMATION_BYTES: u64 = 4;

type Flow = (IpAddr, IpAddr, Option<(u16, u16)>, u8);
/// Time since 1970 in ns, and bytes.
type Arrival = (u64, u64);

/// Reads the largest flow of a capture.
pub fn read(file: &[u8], notes: &mut Notes) -> Result<Deliveries, String> {
    let mut flows: BTreeMap<Flow, Vec<Arrival>> = BTreeMap::new();
    let mut packets = 0u64;
    file::read(file, |packet| {
        packets += 1;
        if let Some((flow, bytes)) = flow_of(packet) {
            flows.entry(flow).or_default().push((packet.at_ns, bytes + PACKET_INFORMATION_BYTES));
        }
    })?;
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
    notes
        .push("arrivals become opportunities: they are the link's capacity only while the flow saturated it");
    // The capture begins with the first packet, which takes as long as the packets after it.
    let (first, last) = (arrivals[0].0, arrivals[arrivals.len() - 1].0);
    // Times of some programs begin at 0, and there is none before.
    let step = (last - first) / (arrivals.len() as u64 - 1).max(1);
    if step == 0 {
        return Err("the largest flow has packets at one time only: allowed: two times or more".into());
    }
    arrivals.iter_mut().for_each(|(at, _)| *at += step);
    let origin = first;
    Ok(Deliveries::At(arrivals.into_iter().map(|(at, bytes)| (at - origin, bytes)).collect()))
}

/// The flow of a packet and the bytes of its datagram.
fn flow_of(captured: &Captured<'_>) -> Option<(Flow, u64)> {
    let datagram = file::datagram(captured)?;
    let ports = match datagram.packet.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => Some((tcp.source_port(), tcp.destination_port())),
        Some(TransportSlice::Udp(udp)) => Some((udp.source_port(), udp.destination_port())),
        _ => None,
    };
    Some(((datagram.src, datagram.dst, ports, datagram.protocol), datagram.bytes))
}
