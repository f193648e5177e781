//! The parser of encapsulations under arbitrary bytes: it never panics, `peek` sees no other encapsulation
//! than `parse`, a packet that is taken apart and put together is the same, and packets that the gateway
//! makes for the tunnel are parsed again with the same ends. The first byte chooses the EtherType, and
//! whether lengths and the checksum of IPv4 are made consistent, which chance does not.

use etherparse::checksum::Sum16BitWords;
use paceline_net::tunnel::{MAX_LEN, Parsed, Tunnel, parse, peek};

pub fn run(bytes: &[u8]) {
    let Some((choice, packet)) = bytes.split_first() else { return };
    let ethertype = [0x0800, 0x86dd, 0x8864, 0x8847][usize::from(choice & 3)];
    let mut packet = packet.to_vec();
    if choice & 4 != 0 {
        repair(ethertype, &mut packet);
    }
    for verify in [false, true] {
        let Parsed::Inside(tunnel, end) = parse(ethertype, &packet, verify) else { continue };
        let inner = packet.get(tunnel.header_len()..end).expect("the datagram is inside the packet");
        assert!(tunnel.header_len() <= MAX_LEN && peek(ethertype, &packet).as_ref() == Some(&tunnel));
        let restored = Tunnel::restore(ethertype, tunnel.as_bytes(), tunnel.has_checksum());
        assert_eq!(restored.as_ref(), Some(&tunnel));
        let header = tunnel.emit(inner, None).expect("it was as long before");
        if verify && packet[10..12] != [0xff; 2] {
            assert_eq!([&header, inner].concat(), packet[..end]);
        }
        let made = [tunnel.emit(inner, Some(1)).expect("it is not longer"), inner.to_vec()].concat();
        let Parsed::Inside(again, end) = parse(ethertype, &made, true) else { panic!("{made:02x?}") };
        assert_eq!((end, again.endpoint()), (made.len(), tunnel.endpoint()));
    }
}

/// Makes lengths consistent, from the outermost header inwards, and the checksum of an outer IPv4 header.
fn repair(ethertype: u16, packet: &mut [u8]) {
    let len = packet.len();
    let mut put = |at: usize, value: usize| {
        if let Some(field) = packet.get_mut(at..at + 2) {
            field.copy_from_slice(&(value as u16).to_be_bytes());
        }
    };
    if ethertype == 0x8864 {
        put(0, 0x1100);
        put(4, len.saturating_sub(6));
    } else {
        let udp = if ethertype == 0x0800 { 20 } else { 40 };
        put(if udp == 20 { 2 } else { 4 }, if udp == 20 { len } else { len.saturating_sub(40) });
        put(udp + 2, 2152);
        put(udp + 4, len.saturating_sub(udp));
        put(udp + 6, 0);
        put(udp + 10, len.saturating_sub(udp + 16));
    }
    let Some(inner) = peek(ethertype, packet).map(|tunnel| tunnel.header_len()) else { return };
    match packet.get(inner).map(|first| first >> 4) {
        Some(4) if len >= inner + 4 => {
            packet[inner + 2..inner + 4].copy_from_slice(&((len - inner) as u16).to_be_bytes());
        }
        Some(6) if len >= inner + 40 => {
            packet[inner + 4..inner + 6].copy_from_slice(&((len - inner - 40) as u16).to_be_bytes());
        }
        _ => {}
    }
    if ethertype == 0x0800 {
        packet[10..12].fill(0);
        let sum = Sum16BitWords::new().add_slice(&packet[..20]).ones_complement();
        packet[10..12].copy_from_slice(&sum.to_ne_bytes());
    }
}
