//! The maximum segment size that a SYN announces (RFC 9293, section 3.7.1): the payload of the largest
//! datagram that its sender takes, less the fixed headers of IP and TCP (RFC 6691, section 2). A middlebox in
//! front of a link with a smaller MTU lowers the value, so that neither end sends datagrams that do not fit.
//!
//! The kernel program's form is `bpf/clamp.h` of the gateway. Left out: a SYN without the option announces
//! 536 bytes (RFC 879), which is not changed.

use super::rewrite::{fold, header_len, sum_without_checksum, transport_at};
use crate::packet::{Checksum, Packet, Parsed, Payload, TcpFlags, Transport};

/// Bytes of a TCP header without options (RFC 9293, section 3.1).
pub const TCP_LEN: u16 = 20;
/// Bytes of an IPv4 header without options (RFC 791).
pub const IPV4_LEN: u16 = 20;
/// Bytes of an IPv6 header without extension headers (RFC 8200).
pub const IPV6_LEN: u16 = 40;

/// Lowers the maximum segment size of a device's SYN to `most`, and tells whether the packet has changed.
/// Smaller values, and other packets, stay as they are. The checksum is updated by the difference (RFC 1624).
pub fn clamp(packet: &mut Packet, most: u16) -> bool {
    if packet.tcp_header().is_none_or(|tcp| !tcp.flags.contains(TcpFlags::SYN)) {
        return false;
    }
    let (at, headers) = (transport_at(packet), header_len(packet));
    let Parsed { transport, payload, offload, .. } = &mut **packet;
    let (Transport::Tcp(tcp), Payload::Datagram(bytes)) = (transport, payload) else { return false };
    tcp.options.mss = tcp.options.mss.map(|mss| mss.min(most));
    // The parsed header has one option at most, and none of a malformed list; an endpoint may read others.
    let header = &mut bytes[at..headers];
    let before = sum_without_checksum(header);
    let changed = clamp_options(&mut header[usize::from(TCP_LEN)..], most);
    if changed && offload.checksum != Checksum::Partial {
        let after = sum_without_checksum(header);
        let old = u16::from_be_bytes([header[16], header[17]]);
        let sum = fold(u32::from(!old) + u32::from(!before) + u32::from(after));
        header[16..18].copy_from_slice(&(!sum).to_be_bytes());
    }
    changed
}

fn clamp_options(mut list: &mut [u8], most: u16) -> bool {
    let mut changed = false;
    while let Some(&kind) = list.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => list.get(1).map_or(0, |len| usize::from(*len)),
        };
        if len == 0 || len > list.len() {
            break;
        }
        let (option, rest) = std::mem::take(&mut list).split_at_mut(len);
        list = rest;
        if (kind, len) == (2, 4) && u16::from_be_bytes([option[2], option[3]]) > most {
            option[2..4].copy_from_slice(&most.to_be_bytes());
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::rewrite::{checksum_is_right, complete_checksum, leave_checksum};
    use crate::datagram::wire::{emit, parse};
    use crate::test_support::{extended, segment};
    use std::net::IpAddr;

    const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

    fn packet(v6: bool, flags: TcpFlags, mss: Option<u16>) -> Packet {
        let address = |text: &str| -> IpAddr { text.parse().unwrap() };
        let own = segment().flags(flags).with(|tcp| {
            tcp.options.mss = mss;
            tcp.options.window_scale = Some(7);
        });
        let own = if v6 { own.between(address("2001:db8::1"), address("2001:db8::2")) } else { own };
        parse(&emit(&own.datagram(&[]))).unwrap()
    }
    fn mss(packet: &Packet) -> Option<u16> {
        packet.tcp_header().unwrap().options.mss
    }

    #[test]
    fn the_mss_of_syn_and_syn_ack_is_lowered_with_a_right_checksum() {
        for v6 in [false, true] {
            for flags in [TcpFlags::SYN, SYN_ACK] {
                let mut changed = packet(v6, flags, Some(1460));
                assert!(clamp(&mut changed, 1360));
                assert_eq!(mss(&changed), Some(1360));
                assert!(checksum_is_right(&changed));
                assert_eq!(parse(&emit(&changed)).unwrap(), changed);
            }
        }
    }

    #[test]
    fn the_mss_is_never_raised_and_other_packets_stay_as_they_are() {
        for (flags, announced) in [
            (TcpFlags::SYN, Some(1360)),
            (TcpFlags::SYN, Some(536)),
            (TcpFlags::SYN, None),
            (TcpFlags::ACK, Some(1460)),
        ] {
            let before = packet(false, flags, announced);
            let mut after = before.clone();
            assert!(!clamp(&mut after, 1360));
            assert_eq!(after, before);
        }
    }

    #[test]
    fn options_and_extension_headers_are_passed_over() {
        for (v6, number, header) in [(false, 0, &[148, 4, 0, 0][..]), (true, 60, &[6, 0, 1, 4, 0, 0, 0, 0])] {
            let mut special = extended(&packet(v6, TcpFlags::SYN, Some(1460)), number, header);
            assert!(clamp(&mut special, 1200));
            let expected = extended(&packet(v6, TcpFlags::SYN, Some(1200)), number, header);
            assert_eq!(emit(&special), emit(&expected));
        }
    }

    #[test]
    fn an_option_at_an_odd_offset_and_a_repeated_one_are_lowered() {
        for list in [[1, 2, 4, 5, 180, 1, 1, 0], [2, 4, 5, 180, 2, 4, 5, 180]] {
            let mut raw = emit(&packet(false, TcpFlags::SYN, Some(1460)));
            raw[40..48].copy_from_slice(&list);
            raw[36..38].fill(0);
            let mut before = parse(&raw).unwrap();
            // The field holds a right checksum of the list.
            leave_checksum(&mut before);
            complete_checksum(&mut before);
            assert!(checksum_is_right(&before));
            assert!(clamp(&mut before, 1360) && checksum_is_right(&before));
            let bytes = emit(&before);
            assert!(!bytes[40..48].windows(2).any(|pair| pair == [5, 180]), "{bytes:?}");
        }
    }

    #[test]
    fn a_corrupt_datagram_stays_corrupt_and_a_partial_checksum_partial() {
        let mut corrupt = packet(false, TcpFlags::SYN, Some(1460));
        let Payload::Datagram(bytes) = &mut corrupt.payload else { unreachable!() };
        bytes[25] ^= 0x10;
        assert!(clamp(&mut corrupt, 1360) && !checksum_is_right(&corrupt));
        let mut partial = packet(true, TcpFlags::SYN, Some(1460));
        leave_checksum(&mut partial);
        assert!(clamp(&mut partial, 1360));
        complete_checksum(&mut partial);
        assert!(checksum_is_right(&partial));
    }
}
