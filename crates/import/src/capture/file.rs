//! Captures (pcap, pcapng): their packets with time and link type, and the IP datagrams in them.

pub use crate::capture::magic::is_capture;
use crate::capture::stream;
pub use crate::capture::stream::Captured;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket};
use pcap_file::DataLink;
use std::net::IpAddr;

/// A dissected IP datagram.
pub struct Datagram<'a> {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol number (IANA), in IPv6 that after the extension headers.
    pub protocol: u8,
    /// Bytes of the datagram on the link.
    pub bytes: u64,
    /// Bytes of its IP headers.
    pub header_bytes: u64,
    /// Its headers.
    pub packet: LaxSlicedPacket<'a>,
}

/// Gives each packet of a capture to `take`. Returns the names of the interfaces.
pub fn read(file: &[u8], take: impl FnMut(&Captured<'_>)) -> Result<Vec<String>, String> {
    let reading = stream::read(file, take)?;
    reading.damage.map_or(Ok(reading.names), Err)
}

/// The IP datagram of a packet.
pub fn datagram<'a>(captured: &Captured<'a>) -> Option<Datagram<'a>> {
    let data = captured.data;
    // The length of the link header, and the EtherType where a header states it.
    let ether_type = |at: usize| Some(EtherType(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?)));
    let (link_bytes, packet) = match captured.link {
        DataLink::ETHERNET => (14, LaxSlicedPacket::from_ethernet(data).ok()?),
        DataLink::LINUX_SLL => (16, LaxSlicedPacket::from_ether_type(ether_type(14)?, data.get(16..)?)),
        DataLink::LINUX_SLL2 => (20, LaxSlicedPacket::from_ether_type(ether_type(0)?, data.get(20..)?)),
        DataLink::NULL | DataLink::LOOP => (4, LaxSlicedPacket::from_ip(data.get(4..)?).ok()?),
        _ => (0, LaxSlicedPacket::from_ip(data).ok()?),
    };
    let whole = u64::from(captured.len).saturating_sub(link_bytes);
    let (src, dst, protocol, stated, header_bytes): (IpAddr, IpAddr, u8, u64, u64) =
        match packet.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
                let header_bytes = header.slice().len() as u64;
                (src, dst, header.protocol().0, u64::from(header.total_len()), header_bytes)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let (src, dst) = (header.source_addr().into(), header.destination_addr().into());
                // RFC 8200 section 3: the header of 40 bytes does not count.
                let stated = u64::from(header.payload_length()) + 40;
                let header_bytes = 40 + ip.extensions().slice().len() as u64;
                (src, dst, header.next_header().0, stated, header_bytes)
            }
            LaxNetSlice::Arp(_) => return None,
        };
    // A merged packet of more than 64 KiB states no length; padding of short frames does not count.
    let bytes = if stated <= 40 { whole } else { stated.min(whole) };
    Some(Datagram { src, dst, protocol, bytes, header_bytes, packet })
}
