//! Captures (pcap, pcapng): their packets with time and link type, and the IP datagrams in them.

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
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
/// Read buffer, bytes. Chosen: more than the longest packet, 262144 bytes in libpcap.
const BUFFER_BYTES: usize = 1 << 20;

/// A packet of a capture.
pub struct Captured<'a> {
    /// Number of the interface in a pcapng file; 0 in a pcap file.
    pub interface: u32,
    /// Type of the link header.
    pub link: DataLink,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// The packet, from its link header on.
    pub data: &'a [u8],
    /// Bytes on the link, of which `data` may be the first ones.
    pub len: u32,
}

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

/// Whether a file is a capture.
pub fn is_capture(file: &[u8]) -> bool {
    MAGICS.iter().any(|magic| file.starts_with(magic))
}

/// Gives each packet of a capture to `take`. Returns the names of the interfaces.
pub fn read(file: &[u8], mut take: impl FnMut(&Captured<'_>)) -> Result<Vec<String>, String> {
    let damaged = |error: &dyn std::fmt::Display| format!("damaged capture: {error}");
    let mut names = Vec::new();
    if file.starts_with(&PCAPNG) {
        let mut reader = PcapNgReader::with_capacity(file, BUFFER_BYTES).map_err(|error| damaged(&error))?;
        while let Some(block) = reader.next_block() {
            let (block, state) = block.map_err(|error| damaged(&error))?;
            if let Block::EnhancedPacket(packet) = block {
                let interfaces = state.interfaces();
                // A later section lists its interfaces anew.
                for interface in interfaces.get(names.len()..).unwrap_or_default() {
                    names.push(name_of(&interface.options).unwrap_or_default());
                }
                let at_ns = packet.timestamp.as_nanos() as u64;
                let (interface, len) = (packet.interface_id, packet.original_len);
                let link = interfaces[interface as usize].linktype;
                take(&Captured { interface, link, at_ns, data: &packet.data, len });
            }
        }
    } else {
        let mut reader = PcapReader::with_capacity(file, BUFFER_BYTES).map_err(|error| damaged(&error))?;
        let link = reader.header().datalink;
        names.push(String::new());
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|error| damaged(&error))?;
            let at_ns = packet.timestamp().as_nanos() as u64;
            take(&Captured { interface: 0, link, at_ns, data: packet.data(), len: packet.orig_len() });
        }
    }
    Ok(names)
}

fn name_of(options: &[InterfaceDescriptionOption<'_>]) -> Option<String> {
    options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
        _ => None,
    })
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
