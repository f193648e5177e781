//! Fragments of TCP datagrams (RFC 791, section 3.2; RFC 8200, section 4.5) are put together, for boxes that
//! have to see whole segments, and cut again ([`fragment`]) where the datagram goes on.
//!
//! A datagram is put together only if its first fragment, which alone has the ports, belongs to a connection
//! that the caller names. All other fragments, those of a datagram that stays incomplete, and fragments that
//! overlap (RFC 5722) are given back unchanged: their ends judge them. An IPv6 datagram keeps its Fragment
//! header, as an atomic fragment (RFC 6946), and with it the identification.
//!
//! Left out: extension headers between the Fragment header and TCP.

use super::headers::{Layout, layout};
use super::wire;
use crate::packet::{FlowKey, Offload, Packet, Payload};
use crate::time::{Duration, Instant};
use etherparse::checksum::Sum16BitWords;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Time in which the fragments of a datagram arrive. Chosen: they are sent together; the ends themselves wait
/// for 30 s (Linux `ipfrag_time`), and get the fragments of incomplete datagrams late.
const HOLD_TIME: Duration = Duration::from_millis(100);
/// Incomplete datagrams at most. Chosen: more than reorderings in flight need.
const MAX_DATAGRAMS: usize = 64;
/// Bytes of fragments that wait at most. Chosen: 16 datagrams of the largest size.
const MAX_BYTES: usize = 1 << 20;
/// Longest datagram in bytes: the length field of IPv4 has 16 bits (RFC 791).
const MAX_DATAGRAM_BYTES: usize = 65_535;
/// The IP protocol number of TCP (IANA).
const TCP: u8 = 6;
/// ECN field: Congestion Experienced (RFC 3168, section 5).
const ECN_CE: u8 = 3;
/// The bit of an IPv4 option's type that says that each fragment has the option (RFC 791, section 3.1).
const COPIED: u8 = 0x80;

/// The data of the datagram that a fragment has: bytes `from..until`.
#[derive(Clone, Copy)]
struct Piece {
    id: Id,
    from: usize,
    until: usize,
    last: bool,
    data_at: usize,
}

/// The fragments of a datagram have the same.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Id {
    src: IpAddr,
    dst: IpAddr,
    identification: u32,
}

/// A datagram of which some fragments have arrived.
struct Partial<T> {
    id: Id,
    since: Instant,
    /// Empty for a datagram that is not put together.
    parts: Vec<(T, Packet, Piece)>,
    passes: bool,
}

/// Fragments that wait for the rest of their datagram, each with a tag of the caller.
pub struct Fragments<T> {
    /// The oldest first.
    partials: VecDeque<Partial<T>>,
    /// Fragments that go on unchanged.
    released: VecDeque<(T, Packet)>,
    /// Bytes of the waiting fragments.
    bytes: usize,
}

impl<T> Default for Fragments<T> {
    fn default() -> Self {
        Self { partials: VecDeque::new(), released: VecDeque::new(), bytes: 0 }
    }
}

impl<T> std::fmt::Debug for Fragments<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fragments").field("datagrams", &self.partials.len()).finish_non_exhaustive()
    }
}

/// Whether a device's datagram is a fragment of a TCP datagram.
pub fn is_fragment(packet: &Packet) -> bool {
    piece(packet).is_some()
}

fn piece(packet: &Packet) -> Option<Piece> {
    let Payload::Datagram(bytes) = &packet.payload else { return None };
    if !packet.ip.special || packet.tcp_header().is_some() {
        return None;
    }
    let Layout { transport_at, protocol, fragment_from: from, more_fragments, identification, .. } =
        layout(bytes)?;
    let len = bytes.len() - transport_at;
    let fits = protocol == TCP && len > 0 && (!more_fragments || len.is_multiple_of(8));
    let id = Id { src: packet.ip.src, dst: packet.ip.dst, identification };
    (fits && (from > 0 || more_fragments) && from + len <= MAX_DATAGRAM_BYTES).then_some(Piece {
        id,
        from,
        until: from + len,
        last: !more_fragments,
        data_at: transport_at,
    })
}

/// The connection of a first fragment, in the direction of the fragment.
fn flow_key(packet: &Packet, piece: &Piece) -> Option<FlowKey> {
    let Payload::Datagram(bytes) = &packet.payload else { return None };
    let port = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (src_port, dst_port) = (port(piece.data_at)?, port(piece.data_at + 2)?);
    Some(FlowKey { src: piece.id.src, dst: piece.id.dst, src_port, dst_port })
}

impl<T> Fragments<T> {
    /// A fragment arrives. `takes` says whether the datagrams of a connection, in the fragment's direction,
    /// are to be put together. Returns the datagram that the fragment completes, with the fragment's tag.
    /// Afterwards [`Fragments::pop`] has to be called until it returns `None`.
    pub fn insert(
        &mut self,
        now: Instant,
        tag: T,
        packet: Packet,
        takes: impl FnOnce(&T, &FlowKey) -> bool,
    ) -> Option<(T, Packet)> {
        let Some(piece) = piece(&packet) else {
            self.released.push_back((tag, packet));
            return None;
        };
        let at = self.partials.iter().position(|partial| partial.id == piece.id).unwrap_or_else(|| {
            if self.partials.len() >= MAX_DATAGRAMS || self.bytes >= MAX_BYTES {
                self.release_oldest();
            }
            self.partials.push_back(Partial { id: piece.id, since: now, parts: Vec::new(), passes: false });
            self.partials.len() - 1
        });
        let partial = &mut self.partials[at];
        let ours = |known: &Piece| known.from == piece.from && known.until == piece.until;
        if !partial.passes && partial.parts.iter().any(|(_, _, known)| ours(known)) {
            return None; // a duplicate
        }
        let takes = || flow_key(&packet, &piece).is_some_and(|key| takes(&tag, &key));
        partial.passes |= piece.from == 0 && !partial.passes && !takes();
        partial.passes |= partial.parts.iter().any(|(_, _, known)| piece.contradicts(known));
        self.bytes += packet.len as usize;
        partial.parts.push((tag, packet, piece));
        if partial.passes {
            self.release(at);
            return None;
        }
        if !is_complete(&partial.parts) {
            return None;
        }
        let mut parts = self.partials.remove(at)?.parts;
        self.bytes -= bytes(&parts);
        let whole = put_together(&parts);
        if whole.is_none() {
            self.released.extend(parts.drain(..).map(|(tag, packet, _)| (tag, packet)));
        }
        whole.zip(parts.pop()).map(|(whole, (tag, ..))| (tag, whole))
    }

    /// The next fragment that goes on unchanged; those of datagrams that are incomplete for too long are
    /// among them.
    pub fn pop(&mut self, now: Instant) -> Option<(T, Packet)> {
        while self.next_at().is_some_and(|at| at <= now) {
            self.release(0);
            self.partials.pop_front();
        }
        self.released.pop_front()
    }
    /// When [`Fragments::pop`] has to be called at the latest.
    pub fn next_at(&self) -> Option<Instant> {
        self.partials.front().map(|partial| partial.since + HOLD_TIME)
    }

    fn release_oldest(&mut self) {
        if !self.partials.is_empty() {
            self.release(0);
            self.partials.pop_front();
        }
    }
    /// Releases the waiting fragments of a datagram.
    fn release(&mut self, at: usize) {
        let parts = std::mem::take(&mut self.partials[at].parts);
        self.bytes -= bytes(&parts);
        self.released.extend(parts.into_iter().map(|(tag, packet, _)| (tag, packet)));
    }
}

impl Piece {
    /// Whether two fragments cannot be of the same datagram: they overlap, or one is behind the last.
    fn contradicts(&self, other: &Self) -> bool {
        let overlap = self.from < other.until && other.from < self.until;
        let behind = |one: &Self, two: &Self| one.last && (two.last || two.until > one.until);
        overlap || behind(self, other) || behind(other, self)
    }
}

fn bytes<T>(parts: &[(T, Packet, Piece)]) -> usize {
    parts.iter().map(|(_, packet, _)| packet.len as usize).sum()
}

/// Whether the fragments, which do not overlap, are all of their datagram.
fn is_complete<T>(parts: &[(T, Packet, Piece)]) -> bool {
    let end = parts.iter().find(|(_, _, piece)| piece.last).map(|(_, _, piece)| piece.until);
    end == Some(parts.iter().map(|(_, _, piece)| piece.until - piece.from).sum())
}

/// The datagram of all its fragments; `None` if it is longer than a datagram can be or no TCP segment.
fn put_together<T>(parts: &[(T, Packet, Piece)]) -> Option<Packet> {
    let mut order: Vec<_> = parts.iter().collect();
    order.sort_by_key(|(_, _, piece)| piece.from);
    let mut whole = Vec::new();
    for (_, packet, piece) in order {
        let Payload::Datagram(bytes) = &packet.payload else { return None };
        // The headers are those of the first fragment.
        whole.extend_from_slice(if piece.from == 0 { bytes } else { &bytes[piece.data_at..] });
    }
    if whole.len() > MAX_DATAGRAM_BYTES {
        return None;
    }
    set_fragment(&mut whole, 0, false);
    let mut packet = wire::parse_owned(whole).ok().filter(|packet| packet.tcp_header().is_some())?;
    if parts.iter().any(|(_, part, _)| part.ip.ecn() == ECN_CE) {
        packet.set_congestion_experienced(); // RFC 3168, section 5.3
    }
    let longest = parts.iter().map(|(_, part, _)| part.len).max()? as u16;
    packet.offload = Offload { segment: longest, reassembled: true, ..Offload::default() };
    Some(packet)
}

/// The fragments of a datagram that was put together, as long as the longest one was; any other packet alone.
pub fn fragment(packet: Packet) -> Vec<Packet> {
    let size = usize::from(packet.offload.segment);
    let Payload::Datagram(bytes) = &packet.payload else { return vec![packet] };
    let Some(layout) = layout(bytes).filter(|_| packet.offload.reassembled) else { return vec![packet] };
    let headers = layout.fragment_at.map_or(layout.transport_at, |at| at + 8);
    // At least one unit of 8 bytes, and less than an IPv4 datagram.
    let step = size.saturating_sub(headers).clamp(8, MAX_DATAGRAM_BYTES) & !7;
    let data = &bytes[headers..];
    let part = |from: usize| {
        let until = (from + step).min(data.len());
        let mut part = if from > 0 { later_headers(&bytes[..headers]) } else { bytes[..headers].to_vec() };
        part.extend_from_slice(&data[from..until]);
        set_fragment(&mut part, from, until < data.len());
        wire::parse_owned(part).ok()
    };
    let parts: Option<Vec<Packet>> = (0..data.len()).step_by(step).map(part).collect();
    parts.unwrap_or_else(|| vec![packet])
}

/// The headers of the fragments behind the first: IPv4 options that are not copied are left out.
fn later_headers(first: &[u8]) -> Vec<u8> {
    if first[0] >> 4 == 6 {
        return first.to_vec();
    }
    let mut headers = first[..20].to_vec();
    let mut list = &first[20..];
    while let [kind, rest @ ..] = list {
        let len = match (kind, rest) {
            (0, _) => break,
            (1, _) => 1,
            (_, [len, ..]) => usize::from(*len).clamp(2, list.len()),
            _ => break,
        };
        if kind & COPIED != 0 {
            headers.extend_from_slice(&list[..len]);
        }
        list = &list[len..];
    }
    headers.resize(headers.len().next_multiple_of(4), 0);
    headers[0] = 0x40 | (headers.len() / 4) as u8;
    headers
}

/// Writes the length and the place of a fragment into its headers. An IPv6 datagram has a Fragment header.
fn set_fragment(datagram: &mut [u8], from: usize, more: bool) {
    let (len, more) = (datagram.len() as u16, u16::from(more));
    if datagram[0] >> 4 == 6 {
        datagram[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        if let Some(at) = layout(datagram).and_then(|layout| layout.fragment_at) {
            datagram[at + 2..at + 4].copy_from_slice(&(from as u16 | more).to_be_bytes());
        }
        return;
    }
    datagram[2..4].copy_from_slice(&len.to_be_bytes());
    let kept = u16::from(datagram[6] & 0xc0) << 8; // DF and the reserved bit
    datagram[6..8].copy_from_slice(&(kept | more << 13 | (from / 8) as u16).to_be_bytes());
    let header = 4 * usize::from(datagram[0] & 15);
    datagram[10..12].fill(0);
    let sum = Sum16BitWords::new().add_slice(&datagram[..header]).ones_complement();
    datagram[10..12].copy_from_slice(&sum.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeqNumber;
    use crate::datagram::rewrite::{checksum_is_right, rewrite};
    use crate::test_support::{extended, segment};
    use std::net::Ipv6Addr;

    /// A TCP datagram that fragments of `size` bytes are made of.
    fn datagram(v6: bool, payload_len: u32, size: u16) -> Packet {
        let payload: Vec<u8> = (0..payload_len).map(|n| (n * 7) as u8).collect();
        let hosts = [1, 2].map(|host| IpAddr::from(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, host)));
        let own = segment().ports(80, 4000).seq(9).payload_len(payload_len);
        let own = if v6 { own.between(hosts[0], hosts[1]) } else { own };
        // An atomic fragment, and record route (not copied), respectively.
        let header: &[u8] = if v6 { &[6, 0, 0, 0, 1, 2, 3, 4] } else { &[7, 4, 4, 0] };
        let mut packet = extended(&own.datagram(&payload), FRAGMENT_OR_OPTION[usize::from(v6)], header);
        packet.offload = Offload { segment: size, reassembled: true, ..Offload::default() };
        packet
    }
    /// The numbers of an IPv6 Fragment header, and of no extension header.
    const FRAGMENT_OR_OPTION: [u8; 2] = [0, 44];

    fn key(packet: &Packet) -> FlowKey {
        packet.flow_key().expect("a segment")
    }

    #[test]
    fn fragments_in_any_order_give_the_datagram_and_it_gives_the_fragments() {
        for (v6, size) in [(false, 68), (false, 576), (true, 600), (true, 1280)] {
            let whole = datagram(v6, 1400, size);
            let parts = fragment(whole.clone());
            assert!(parts.len() > 1 && parts.iter().all(|part| part.len <= size.into() && is_fragment(part)));
            for rotation in 0..parts.len() {
                let mut fragments = Fragments::default();
                let mut order = parts.clone();
                order.rotate_left(rotation);
                order.insert(1, order[0].clone()); // a duplicate
                let mut result = None;
                for part in order {
                    assert_eq!(result, None);
                    result = fragments.insert(Instant::ZERO, (), part, |(), own| *own == key(&whole));
                }
                let (_, result) = result.expect("complete");
                assert_eq!((&result.payload, &result.transport), (&whole.payload, &whole.transport));
                assert!(checksum_is_right(&result));
                assert_eq!(fragment(result), parts);
                assert_eq!((fragments.pop(Instant::MAX), fragments.bytes), (None, 0));
            }
        }
    }

    #[test]
    fn a_changed_segment_leaves_as_fragments_with_a_right_checksum() {
        for v6 in [false, true] {
            let mut whole = datagram(v6, 1400, 900);
            let tcp = *whole.tcp_header().unwrap();
            rewrite(&mut whole, &crate::TcpHeader { ack: SeqNumber(77), ..tcp });
            let mut fragments = Fragments::default();
            let parts = fragment(whole).into_iter();
            let result =
                parts.filter_map(|part| fragments.insert(Instant::ZERO, (), part, |(), _| true)).last();
            let (_, result) = result.expect("complete");
            assert_eq!(result.tcp_header().unwrap().ack, SeqNumber(77));
            assert!(checksum_is_right(&result));
        }
    }

    #[test]
    fn fragments_of_other_connections_and_incomplete_datagrams_pass_unchanged() {
        let parts = fragment(datagram(false, 1400, 576));
        let mut fragments = Fragments::default();
        let released = |fragments: &mut Fragments<u8>, now| -> Vec<Packet> {
            std::iter::from_fn(|| fragments.pop(now)).map(|(_, packet)| packet).collect()
        };
        // The second ahead of the first: it waits until the ports are known.
        for (n, own) in [(1, vec![]), (0, vec![1, 0]), (2, vec![2])] {
            assert_eq!(fragments.insert(Instant::ZERO, 0, parts[n].clone(), |_, _| false), None);
            let own: Vec<Packet> = own.into_iter().map(|n: usize| parts[n].clone()).collect();
            assert_eq!(released(&mut fragments, Instant::ZERO), own);
        }
        let mut fragments = Fragments::default();
        assert_eq!(fragments.insert(Instant::ZERO, 0, parts[0].clone(), |_, _| true), None);
        assert_eq!(fragments.next_at(), Some(Instant::ZERO + HOLD_TIME));
        assert_eq!(released(&mut fragments, Instant::ZERO), []);
        assert_eq!(released(&mut fragments, Instant::ZERO + HOLD_TIME), [parts[0].clone()]);
        assert_eq!(fragments.bytes, 0);
    }

    #[test]
    fn fragments_that_overlap_pass_unchanged() {
        let parts = fragment(datagram(false, 1400, 576));
        let others = fragment(datagram(false, 1400, 600));
        let mut fragments = Fragments::default();
        for part in [&parts[0], &others[1], &parts[1], &parts[2]] {
            assert_eq!(fragments.insert(Instant::ZERO, (), part.clone(), |(), _| true), None);
        }
        let released: Vec<Packet> =
            std::iter::from_fn(|| fragments.pop(Instant::ZERO)).map(|(_, p)| p).collect();
        assert_eq!(released, [&parts[0], &others[1], &parts[1], &parts[2]].map(Packet::clone));
    }

    #[test]
    fn waiting_fragments_have_bounded_memory() {
        let mut fragments = Fragments::default();
        let mut all = 0;
        for n in 0..1000u16 {
            let mut raw = wire::emit(&fragment(datagram(false, 1400, 1200))[0]);
            raw[4..6].copy_from_slice(&n.to_be_bytes());
            assert_eq!(fragments.insert(Instant::ZERO, (), wire::parse(&raw).unwrap(), |(), _| true), None);
            while fragments.pop(Instant::ZERO).is_some() {
                all += 1;
            }
            assert!(fragments.partials.len() <= MAX_DATAGRAMS && fragments.bytes <= 2 * MAX_BYTES);
        }
        assert_eq!(all, 1000 - MAX_DATAGRAMS);
    }
}
