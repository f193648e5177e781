//! The packet parser under arbitrary bytes: it never panics, what it says agrees with the length of the bytes, and
//! a TCP packet without anything special gives the same headers again when it is written and read.
#![no_main]

use paceline_net::{Payload, Transport, wire};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(packet) = wire::parse(bytes) else { return };
    // Behind the datagram there may be padding of the link.
    let len = packet.len as usize;
    assert!(len <= bytes.len(), "a datagram of {len} bytes in {}", bytes.len());
    assert!(packet.len >= packet.ip.plain_len());
    assert_eq!(packet.ip.src.is_ipv4(), packet.ip.dst.is_ipv4());
    if let Payload::Datagram(datagram) = &packet.payload {
        assert_eq!(datagram[..], bytes[..len], "the datagram's own bytes");
    }
    let Transport::Tcp(tcp) = &packet.transport else { return };
    let headers = packet.ip.plain_len() + 20;
    assert!(headers + tcp.payload_len <= packet.len, "payload and headers fit into the datagram");
    if packet.ip.special || tcp.options.other.any() {
        return;
    }
    assert!(packet.len - tcp.payload_len - headers <= 40, "what is left are options");

    // As a simulated packet it has the options in the usual layout, so its length may change.
    let len = headers + tcp.options.wire_len() + tcp.payload_len;
    if tcp.options.wire_len() > 40 {
        return; // packed without padding on the wire, which the usual layout has no room for
    }
    let mut simulated = packet.clone();
    (simulated.payload, simulated.len) = (Payload::Virtual(tcp.payload_len), len);
    let written = wire::emit(&simulated);
    assert_eq!(written.len(), len as usize);
    let read = wire::parse(&written).expect("what was written can be read");
    assert_eq!(read.ip, packet.ip);
    assert_eq!(read.transport, packet.transport);
    assert_eq!(read.len, len);
});
