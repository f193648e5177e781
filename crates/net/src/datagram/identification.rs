//! IPv4 identifications of made datagrams (RFC 6864): one number for each datagram and for each segment of a
//! super-packet, counted by source and destination from a secret start (Linux: `ip_select_ident_segs`).
//!
//! A datagram with DF is numbered too. Some routers clear DF and fragment; of datagrams with one number, the
//! receiver joins the fragments of different ones after a loss, and a checksum of 16 bits does not always
//! show it. Linux counts for each TCP socket; the counters here are shared by the connections of two hosts,
//! whose datagrams a receiver cannot tell apart, so that these never have the same number at one time.
//!
//! Left out: datagrams that pass, which keep the number of their sender.

use super::rewrite::header_len;
use crate::packet::{Packet, Parsed, Payload};
use etherparse::checksum::Sum16BitWords;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// Counters. Chosen: as many as Linux has at least (`ip_idents`, 2048). Pairs of hosts that share one have
/// different starts, and gaps in their numbers.
const COUNTERS: usize = 2048;

/// The counters, by source and destination.
#[derive(Clone, Debug)]
pub struct Identifications {
    counters: Box<[u16]>,
    secret: u64,
}

impl Identifications {
    /// Counters whose starts follow from the seed, which has to be secret.
    pub fn new(seed: u64) -> Self {
        Self { counters: vec![0; COUNTERS].into(), secret: seed }
    }
    /// Takes `count` numbers in a row for datagrams between these hosts; the first one.
    pub fn take(&mut self, src: IpAddr, dst: IpAddr, count: u16) -> u16 {
        // SipHash: the starts are visible, and the secret is that of other tables too.
        let mut hasher = DefaultHasher::new();
        (self.secret, src, dst).hash(&mut hasher);
        let hash = hasher.finish();
        let counter = &mut self.counters[hash as usize % COUNTERS];
        let first = counter.wrapping_add((hash >> 48) as u16);
        *counter = counter.wrapping_add(count);
        first
    }
    /// Numbers a datagram that [`super::rewrite`] has made, which leaves in segments of `segment` bytes of
    /// payload, or whole (0). Any other packet keeps its number.
    pub fn number(&mut self, packet: &mut Packet, segment: u32) {
        if !packet.offload.unnumbered {
            return;
        }
        let payload = packet.len.saturating_sub(header_len(packet) as u32);
        let segments = if segment > 0 { payload.div_ceil(segment).max(1) } else { 1 };
        let Parsed { ip, payload: Payload::Datagram(bytes), offload, .. } = &mut **packet else { return };
        offload.unnumbered = false;
        let id = self.take(ip.src, ip.dst, segments as u16);
        set(bytes, id);
    }
}

/// Writes an identification into an IPv4 header without options, and updates the header's checksum.
fn set(datagram: &mut [u8], id: u16) {
    datagram[4..6].copy_from_slice(&id.to_be_bytes());
    datagram[10..12].fill(0);
    let sum = Sum16BitWords::new().add_slice(&datagram[..20]).ones_complement();
    datagram[10..12].copy_from_slice(&sum.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::rewrite::{self, Unparsed, checksum_is_right};
    use crate::datagram::split::split;
    use crate::test_support::segment;
    use crate::{Checksum, TcpHeader, wire};

    fn made(v6: bool, payload: &[u8]) -> Packet {
        let plain = segment().build();
        let mut ip = plain.ip;
        if v6 {
            (ip.src, ip.dst) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
        }
        let tcp = TcpHeader { payload_len: payload.len() as u32, ..*plain.tcp_header().unwrap() };
        rewrite::segment(ip, tcp, Unparsed::default(), Checksum::Partial, [payload].into_iter())
    }
    fn id(packet: &Packet) -> u16 {
        let Payload::Datagram(bytes) = &packet.payload else { panic!("it has bytes") };
        u16::from_be_bytes([bytes[4], bytes[5]])
    }

    #[test]
    fn datagrams_and_segments_of_super_packets_have_numbers_in_a_row() {
        let mut ids = Identifications::new(1);
        let mut numbers = Vec::new();
        for (payload, segment) in [(100, 0), (5000, 1448), (0, 1448), (1448, 1448), (10, 0)] {
            let mut packet = made(false, &vec![7; payload]);
            packet.offload.segment = segment;
            ids.number(&mut packet, segment.into());
            assert!(checksum_is_right(&packet));
            numbers.extend(split(packet).iter().map(id));
        }
        let expected: Vec<u16> = (0..8).map(|n| numbers[0].wrapping_add(n)).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn starts_depend_on_hosts_and_seed_and_counters_wrap() {
        let start = |seed, host: u8| {
            let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 1, host].into());
            Identifications::new(seed).take(src, dst, 1)
        };
        let mut starts: Vec<u16> = (0..200).map(|n| start(u64::from(n) / 100, n % 100)).collect();
        starts.sort_unstable();
        starts.dedup();
        assert!(starts.len() > 190, "{} different starts of 200", starts.len());
        let (mut ids, hosts) = (Identifications::new(5), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
        let first = ids.take(hosts.0, hosts.1, u16::MAX);
        assert_eq!(ids.take(hosts.0, hosts.1, 1), first.wrapping_add(u16::MAX));
        assert_eq!(ids.take(hosts.0, hosts.1, 1), first, "65,536 numbers later");
    }

    #[test]
    fn datagrams_that_pass_and_ipv6_are_not_changed() {
        let mut ids = Identifications::new(1);
        for packet in [made(true, b"abc"), segment().datagram(b"abc"), segment().build()] {
            let mut numbered = packet.clone();
            ids.number(&mut numbered, 0);
            assert_eq!(numbered.payload, packet.payload);
        }
        let mut own = made(false, b"abc");
        ids.number(&mut own, 0);
        let Payload::Datagram(bytes) = &own.payload else { unreachable!() };
        assert!(!wire::parse(bytes).unwrap().offload.unnumbered, "a parsed packet has a number");
        let before = own.clone();
        ids.number(&mut own, 0);
        assert_eq!(own, before, "numbered once");
    }
}
