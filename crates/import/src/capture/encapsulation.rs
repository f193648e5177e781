//! The innermost IP datagram of a captured packet: behind link header, VLAN tags, PPPoE and GTP-U.

use crate::capture::stream::Captured;
use paceline_net::tunnel;
use pcap_file::DataLink;

/// EtherTypes of VLAN tags (IEEE 802.1Q, IEEE 802.1ad, and that of QinQ before it).
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Most VLAN tags that are read. Chosen: QinQ has two.
const MAX_TAGS: usize = 4;
/// Most encapsulations that are read. Chosen: GTP-U inside PPPoE has two.
const MAX_TUNNELS: usize = 3;
/// EtherTypes of IPv4, IPv6 and PPPoE sessions (IANA).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE: u16 = 0x8864;

/// The bytes of the innermost IP datagram that were captured. Those of a short frame's padding may follow.
pub fn inner<'a>(captured: &Captured<'a>) -> Option<&'a [u8]> {
    let data = captured.data;
    let (mut ether_type, mut at) = match captured.link {
        DataLink::ETHERNET => (word(data, 12)?, 14),
        DataLink::LINUX_SLL => (word(data, 14)?, 16),
        DataLink::LINUX_SLL2 => (word(data, 0)?, 20),
        DataLink::NULL | DataLink::LOOP => (version(data, 4)?, 4),
        _ => (version(data, 0)?, 0),
    };
    for _ in 0..MAX_TAGS {
        if !VLAN_TAGS.contains(&ether_type) {
            break;
        }
        (ether_type, at) = (word(data, at + 2)?, at + 4);
    }
    let mut packet = data.get(at..)?;
    for _ in 0..MAX_TUNNELS {
        let Some(tunnel) = tunnel::peek(ether_type, packet) else { break };
        packet = packet.get(tunnel.header_len()..)?;
        ether_type = version(packet, 0)?;
    }
    (ether_type != PPPOE && version(packet, 0)? == ether_type).then_some(packet)
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The EtherType of the IP header at a place.
fn version(bytes: &[u8], at: usize) -> Option<u16> {
    match bytes.get(at)? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}
