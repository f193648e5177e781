//! Cutting a super-packet into its segments, as a sending device does (Linux: GSO).
//!
//! Every segment has the headers of the super-packet, including unknown options, urgent pointer and flow
//! label. FIN and PSH are on the last segment, CWR is on the first one, IPv4 identifications count up.

use super::rewrite::{header_len, leave_checksum};
use crate::packet::{Checksum, Offload, Packet, Parsed, Payload, TcpFlags, TcpHeader, Transport};
use etherparse::checksum::Sum16BitWords;

/// The segments of a super-packet, in order; any other packet alone. Their checksums are
/// [`Checksum::Partial`], as that of a super-packet.
pub fn split(packet: Packet) -> Vec<Packet> {
    let segment = packet.offload.super_segment();
    let (Transport::Tcp(tcp), Payload::Datagram(bytes)) = (&packet.transport, &packet.payload) else {
        return vec![packet];
    };
    let plain = bytes.len() == packet.len as usize && !packet.ip.special;
    let is_long = segment > 0 && tcp.payload_len > segment;
    if !plain || !is_long || packet.offload.checksum != Checksum::Partial {
        return vec![packet];
    }
    let offsets = (0..tcp.payload_len).step_by(segment as usize);
    offsets.map(|offset| cut(&packet, (tcp, bytes), offset, segment)).collect()
}

/// The segment that begins at `offset` of the payload.
fn cut(whole: &Packet, (tcp, bytes): (&TcpHeader, &[u8]), offset: u32, segment: u32) -> Packet {
    let (headers, at) = (header_len(whole), whole.ip.plain_len() as usize);
    let payload_len = segment.min(tcp.payload_len - offset);
    let (first, last) = (offset == 0, offset + payload_len == tcp.payload_len);
    let mut removed = TcpFlags(0);
    if !first {
        removed = removed.with(TcpFlags::CWR);
    }
    if !last {
        removed = removed.with(TcpFlags::FIN).with(TcpFlags::PSH);
    }
    let flags = TcpFlags(tcp.flags.0 & !removed.0);
    let seq = tcp.seq + offset;
    let from = headers + offset as usize;
    let mut own = [&bytes[..headers], &bytes[from..from + payload_len as usize]].concat();
    set_length(&mut own, offset / segment);
    own[at + 4..at + 8].copy_from_slice(&seq.0.to_be_bytes());
    own[at + 13] = flags.0 as u8;
    let mut packet: Packet = Parsed {
        ip: whole.ip,
        transport: Transport::Tcp(TcpHeader { seq, flags, payload_len, ..*tcp }),
        len: own.len() as u32,
        payload: Payload::Datagram(own.into()),
        offload: Offload::default(),
    }
    .into();
    leave_checksum(&mut packet);
    packet
}

/// Writes length and identification into the IP header of segment `number`.
fn set_length(datagram: &mut [u8], number: u32) {
    let len = datagram.len() as u16; // at most that of the super-packet
    if datagram[0] >> 4 == 6 {
        datagram[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        return;
    }
    let id = u16::from_be_bytes([datagram[4], datagram[5]]).wrapping_add(number as u16);
    datagram[2..4].copy_from_slice(&len.to_be_bytes());
    datagram[4..6].copy_from_slice(&id.to_be_bytes());
    datagram[10..12].fill(0);
    let sum = Sum16BitWords::new().add_slice(&datagram[..20]).ones_complement();
    datagram[10..12].copy_from_slice(&sum.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::rewrite::{self, Unparsed, checksum_is_right};
    use crate::{IpHeader, SeqNumber, TcpOptions, Timestamps, wire};

    fn whole(v6: bool, payload: &[u8], segment: u16) -> Packet {
        let (src, dst) = if v6 { ("fd00::1", "fd00::2") } else { ("10.0.0.1", "10.0.0.2") };
        let address = |text: &str| text.parse().unwrap();
        let (src, dst) = (address(src), address(dst));
        let ip = IpHeader { src, dst, traffic_class: 0x28, hop_limit: 61, special: false };
        let flags = [TcpFlags::ACK, TcpFlags::PSH, TcpFlags::FIN, TcpFlags::CWR];
        let tcp = TcpHeader {
            src_port: 5,
            dst_port: 80,
            seq: SeqNumber(u32::MAX - 1000),
            ack: SeqNumber(9),
            flags: flags.into_iter().fold(TcpFlags(0), TcpFlags::with),
            window: 77,
            options: TcpOptions { timestamps: Some(Timestamps { val: 7, ecr: 8 }), ..TcpOptions::default() },
            payload_len: payload.len() as u32,
        };
        let unparsed = Unparsed { flow_label: if v6 { 0xabcde } else { 0 }, ..Unparsed::default() };
        let mut packet = rewrite::segment(ip, tcp, unparsed, Checksum::Partial, [payload].into_iter());
        packet.offload.segment = segment;
        packet
    }

    /// The packet as a device sends it, with its checksum completed.
    fn sent(packet: &Packet) -> Packet {
        let Payload::Datagram(bytes) = &packet.payload else { panic!("it has bytes") };
        let (mut bytes, at) = (bytes.to_vec(), packet.ip.plain_len() as usize);
        let sum = Sum16BitWords::new().add_slice(&bytes[at..]).ones_complement();
        bytes[at + 16..at + 18].copy_from_slice(&sum.to_ne_bytes());
        wire::parse(&bytes).unwrap()
    }

    #[test]
    fn segments_are_those_that_a_device_would_send() {
        let payload: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        for v6 in [false, true] {
            let super_packet = whole(v6, &payload, 1448);
            let parts: Vec<Packet> = split(super_packet.clone()).iter().map(sent).collect();
            assert_eq!(parts.len(), 4);
            let (mut all, mut seq) = (Vec::new(), super_packet.tcp_header().unwrap().seq);
            for (n, part) in parts.iter().enumerate() {
                let tcp = part.tcp_header().unwrap();
                assert!(checksum_is_right(part), "segment {n}");
                assert_eq!((tcp.seq, part.ip), (seq, super_packet.ip));
                assert_eq!(tcp.flags.contains(TcpFlags::CWR), n == 0);
                assert_eq!(tcp.flags.contains(TcpFlags::FIN.with(TcpFlags::PSH)), n == 3);
                assert_eq!(tcp.options, super_packet.tcp_header().unwrap().options);
                assert_eq!(Unparsed::of(part), Unparsed::of(&super_packet));
                seq += tcp.payload_len;
                let Payload::Datagram(bytes) = &part.payload else { panic!("it has bytes") };
                all.extend_from_slice(&bytes[header_len(part)..]);
            }
            assert_eq!(all, payload);
        }
    }

    #[test]
    fn a_single_segment_is_not_changed() {
        for (len, segment) in [(1000, 1448), (1448, 1448), (5000, 0)] {
            let packet = whole(false, &vec![1; len], segment);
            assert_eq!(split(packet.clone()), [packet]);
        }
        let mut checked = whole(false, &[1; 5000], 1448);
        checked.offload.checksum = Checksum::Unverified;
        assert_eq!(split(checked.clone()).len(), 1, "a corrupt packet would get a right checksum");
    }
}
