use super::*;
use crate::rng::Stream;

/// An IPv4 or IPv6 datagram of this length.
fn inner(v6: bool, len: usize, fill: u8) -> Vec<u8> {
    let mut bytes = vec![fill; len];
    if v6 {
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
    } else {
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    }
    bytes
}

/// A G-PDU with these flags and extension headers (the last octet of each is the type of the next one).
fn gpdu(v6: bool, checksum: bool, (flags, extensions): (u8, &[u8]), datagram: &[u8]) -> Vec<u8> {
    let mut gtp = vec![0x30 | flags, 255, 0, 0, 0xde, 0xad, 0xbe, 0xef];
    if flags != 0 {
        gtp.extend([0x12, 0x34, 0x56, if flags & 4 != 0 && !extensions.is_empty() { 0x85 } else { 0 }]);
        gtp.extend(extensions);
    }
    let len = gtp.len() - 8 + datagram.len();
    gtp[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    let udp_len = ((8 + gtp.len() + datagram.len()) as u16).to_be_bytes();
    let mut packet = if v6 {
        [&[0x60, 0, 0, 7][..], &udp_len, &[17, 64], &[0xfd; 32]].concat()
    } else {
        let total = ((28 + gtp.len() + datagram.len()) as u16).to_be_bytes();
        let mut ip =
            [&[0x45, 0x28][..], &total, &[0x77, 0x88, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
        let sum = Sum16BitWords::new().add_slice(&ip).ones_complement();
        ip[10..12].copy_from_slice(&sum.to_ne_bytes());
        ip
    };
    let udp = packet.len();
    packet.extend([8, 104, 8, 104, udp_len[0], udp_len[1], 0, 0]);
    packet.extend(gtp);
    packet.extend(datagram);
    if checksum {
        let sum = pseudo_header(&packet, udp, packet.len() - udp).add_slice(&packet[udp..]).ones_complement();
        packet[udp + 6..udp + 8].copy_from_slice(&if sum == 0 { [0xff; 2] } else { sum.to_ne_bytes() });
    }
    packet
}

fn inside(packet: &[u8]) -> Option<(Tunnel, usize)> {
    match parse(0x0800, packet, true) {
        Parsed::Inside(tunnel, end) => Some((tunnel, end)),
        _ => None,
    }
}

/// A PDU session container with the QFI 9 (TS 38.415), and an unknown extension header behind it.
const CONTAINERS: [&[u8]; 3] = [&[], &[1, 0x10, 9, 0], &[1, 0x10, 9, 0xc9, 2, 1, 2, 3, 4, 5, 6, 0]];

#[test]
fn untouched_packets_leave_with_the_same_bytes() {
    for v6 in [false, true] {
        for checksum in [false, true] {
            for flags in 0..8 {
                for extensions in CONTAINERS.iter().filter(|list| list.is_empty() || flags & 4 != 0) {
                    for inner_v6 in [false, true] {
                        let datagram = inner(inner_v6, 91, flags);
                        let packet = gpdu(v6, checksum, (flags, extensions), &datagram);
                        // Ethernet pads short frames.
                        let padded = [&packet[..], &[0; 3]].concat();
                        let (tunnel, end) = inside(&padded).expect("it is a G-PDU");
                        assert_eq!((end, &packet[tunnel.header_len()..end]), (packet.len(), &datagram[..]));
                        assert_eq!([tunnel.emit(&datagram, None).unwrap(), datagram].concat(), packet);
                        let restored = Tunnel::restore(0x0800, tunnel.as_bytes(), checksum);
                        assert_eq!(restored.as_ref(), Some(&tunnel));
                    }
                }
            }
        }
    }
}

#[test]
fn own_packets_have_no_sequence_number_and_keep_the_flow_identifier() {
    for (flags, shorter) in [(0, 0), (2, 4), (3, 0), (6, 0)] {
        let extensions = if flags & 4 != 0 { CONTAINERS[1] } else { &[] };
        let packet = gpdu(false, true, (flags, extensions), &inner(false, 60, 1));
        let (tunnel, _) = inside(&packet).unwrap();
        let datagram = inner(true, 1_200, 5);
        let own = [tunnel.emit(&datagram, Some(7)).unwrap(), datagram.clone()].concat();
        let (again, end) = inside(&own).expect("lengths and checksums are right");
        assert_eq!((again.header_len(), end), (tunnel.header_len() - shorter, own.len()));
        assert_eq!(own[28] & 2, 0);
        assert_eq!(own[32..36], [0xde, 0xad, 0xbe, 0xef]);
        assert!(flags & 4 == 0 || own[40..44] == [1, 0x10, 9, 0]);
        assert_eq!(again.endpoint(), tunnel.endpoint());
    }
}

#[test]
fn corrupt_and_other_packets_are_not_taken_apart() {
    let datagram = inner(false, 80, 3);
    let good = gpdu(false, true, (6, CONTAINERS[1]), &datagram);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x11;
        assert!(inside(&bad).is_none(), "byte {at}");
    }
    (0..good.len()).for_each(|len| assert!(inside(&good[..len]).is_none()));
    let other = |at: usize, value: u8| {
        let mut packet = gpdu(false, false, (0, &[]), &datagram);
        packet[at] = value;
        inside(&packet).is_none()
    };
    // Echo request, error indication, end marker; another port; version 2; GTP'.
    assert!(
        [(29, 1), (29, 26), (29, 254), (23, 105), (28, 0x50), (28, 0x20)]
            .iter()
            .all(|(at, to)| other(*at, *to))
    );
    // An extension header of length 0, and one that does not end.
    assert!(inside(&gpdu(false, false, (4, &[0, 0, 0, 0]), &datagram)).is_none());
    assert!(inside(&gpdu(false, false, (4, &[200, 0, 0, 0]), &datagram)).is_none());
    assert!(matches!(parse(0x0800, &inner(false, 60, 6), true), Parsed::Plain));
}

#[test]
fn sessions_of_pppoe_are_taken_apart() {
    for (v6, protocol) in [(false, 0x21), (true, 0x57)] {
        let datagram = inner(v6, 70, 2);
        let packet = [&[0x11, 0, 0, 7, 0, 72, 0, protocol][..], &datagram].concat();
        let Parsed::Inside(tunnel, end) = parse(PPPOE_SESSION, &packet, true) else { panic!("not parsed") };
        assert_eq!((tunnel.header_len(), end), (8, packet.len()));
        assert_eq!(tunnel.emit(&datagram, Some(7)).unwrap(), packet[..8]);
        let longer = inner(v6, 1_400, 2);
        assert_eq!(tunnel.emit(&longer, None).unwrap()[4..6], 1_402_u16.to_be_bytes());
        // Link control (0xc021), discovery, another version.
        for (at, value) in [(6, 0xc0), (1, 9), (0, 0x21), (7, if v6 { 0x21 } else { 0x57 })] {
            let mut other = packet.clone();
            other[at] = value;
            assert!(matches!(parse(PPPOE_SESSION, &other, true), Parsed::Malformed), "{at}");
        }
    }
}

#[test]
fn random_packets_are_parsed_without_panic_and_emitted_unchanged() {
    let mut stream = Stream::new(23, "tunnels");
    let mut below = |limit: u64| stream.below(limit) as usize;
    let mut taken = 0;
    for _ in 0..50_000 {
        let extensions = CONTAINERS[below(3)];
        let flags = if extensions.is_empty() { below(4) as u8 } else { 4 | below(8) as u8 };
        let datagram = inner(below(2) == 1, 60 + below(100), below(256) as u8);
        let mut packet = gpdu(below(2) == 1, below(2) == 1, (flags, extensions), &datagram);
        for _ in 0..below(3) {
            let at = below(packet.len() as u64);
            packet[at] ^= 1 << below(8);
        }
        packet.truncate(packet.len() - if below(8) == 0 { below(40) } else { 0 });
        if let Some((tunnel, end)) = inside(&packet) {
            let datagram = &packet[tunnel.header_len()..end];
            assert_eq!([&tunnel.emit(datagram, None).unwrap(), datagram].concat(), packet[..end]);
            taken += 1;
        }
    }
    assert!(taken > 10_000, "{taken}");
}
