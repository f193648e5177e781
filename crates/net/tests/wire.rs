//! The packet parser under arbitrary bytes: it never panics, the parsed lengths agree with the length of the
//! bytes, and a plain TCP packet gives the same headers when it is written and parsed again. Cut as a
//! super-packet, its segments have its payload.

use paceline_net::split::split;
use paceline_net::{Checksum, Packet, Payload, Transport, wire};

pub fn run(bytes: &[u8]) {
    let Ok(packet) = wire::parse(bytes) else { return };
    // The link may have padded the datagram.
    let len = packet.len as usize;
    assert!(len <= bytes.len(), "a datagram of {len} bytes in {}", bytes.len());
    assert!(packet.len >= packet.ip.plain_len());
    assert_eq!(packet.ip.src.is_ipv4(), packet.ip.dst.is_ipv4());
    if let Payload::Datagram(datagram) = &packet.payload {
        assert_eq!(datagram[..], bytes[..len], "the datagram's own bytes");
    }
    check_split(&packet);
    let Transport::Tcp(tcp) = &packet.transport else { return };
    let headers = packet.ip.plain_len() + 20;
    assert!(headers + tcp.payload_len <= packet.len, "payload and headers fit into the datagram");
    if packet.ip.special || tcp.options.other.any() {
        return;
    }
    assert!(packet.len - tcp.payload_len - headers <= 40, "more than 40 bytes of options");

    // A simulated packet is written with the usual layout of options, so that its length may change.
    let len = headers + tcp.options.wire_len() + tcp.payload_len;
    if tcp.options.wire_len() > 40 {
        return; // options without padding, which do not fit in the usual layout
    }
    let mut simulated = packet.clone();
    (simulated.payload, simulated.len) = (Payload::Virtual(tcp.payload_len), len);
    let written = wire::emit(&simulated);
    assert_eq!(written.len(), len as usize);
    let read = wire::parse(&written).expect("an emitted packet can be parsed");
    assert_eq!(read.ip, packet.ip);
    assert_eq!(read.transport, packet.transport);
    assert_eq!(read.len, len);
}

fn check_split(packet: &Packet) {
    let mut super_packet = packet.clone();
    super_packet.offload.checksum = Checksum::Partial;
    super_packet.offload.segment = 1 + packet.len as u16 % 97;
    let payload = |packet: &Packet| match (&packet.transport, &packet.payload) {
        (Transport::Tcp(tcp), Payload::Datagram(bytes)) => {
            bytes[bytes.len() - tcp.payload_len as usize..].to_vec()
        }
        _ => Vec::new(),
    };
    let expected = payload(&super_packet);
    let parts = split(super_packet);
    for part in parts.iter().filter(|_| parts.len() > 1) {
        let Payload::Datagram(bytes) = &part.payload else { continue };
        let read = wire::parse(bytes).expect("a segment can be parsed");
        assert_eq!((read.ip, &read.transport, read.len), (part.ip, &part.transport, part.len));
    }
    assert_eq!(parts.iter().flat_map(payload).collect::<Vec<_>>(), expected);
}
