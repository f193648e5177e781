//! Echo requests and their answers (ICMP, RFC 792; ICMPv6, RFC 4443) at a capture point.

use paceline_import::capture::encapsulation;
use paceline_import::capture::stream::Captured;
use std::collections::BTreeMap;

/// Types of echo request and answer in ICMP and ICMPv6.
const TYPES: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Protocol numbers of ICMP and ICMPv6 (IANA).
const PROTOCOLS: [u8; 2] = [1, 58];

/// Requests and answers.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    open: BTreeMap<(u16, u16), u64>,
    /// Times of requests and answers that passed, ns.
    pub pairs: Vec<(u64, u64)>,
    /// Requests.
    pub requests: u64,
}

impl Echoes {
    /// The next packet.
    pub fn on_packet(&mut self, packet: &Captured<'_>) {
        let Some(ip) = encapsulation::inner(packet) else { return };
        let (family, header) = if ip[0] >> 4 == 4 { (0, 4 * usize::from(ip[0] & 15)) } else { (1, 40) };
        let protocol = ip.get(if family == 0 { 9 } else { 6 });
        if protocol != Some(&PROTOCOLS[family]) {
            return;
        }
        let Some([kind, _, _, _, id1, id0, seq1, seq0]) = ip.get(header..header + 8) else { return };
        let key = (u16::from_be_bytes([*id1, *id0]), u16::from_be_bytes([*seq1, *seq0]));
        let (request, answer) = TYPES[family];
        if *kind == request {
            self.open.insert(key, packet.at_ns);
            self.requests += 1;
        } else if *kind == answer
            && let Some(at) = self.open.remove(&key)
        {
            self.pairs.push((at, packet.at_ns));
        }
    }
}
