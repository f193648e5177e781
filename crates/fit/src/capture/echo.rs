//! Echo requests and their answers (ICMP, RFC 792; ICMPv6, RFC 4443) at a capture point.

use paceline_import::capture::encapsulation;
use paceline_import::capture::stream::Captured;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Types of echo request and answer in ICMP and ICMPv6.
const TYPES: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Protocol numbers of ICMP and ICMPv6 (IANA).
const PROTOCOLS: [u8; 2] = [1, 58];

/// A request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// Time of the request, ns.
    pub at: u64,
    /// Time of the answer, ns.
    pub back: u64,
    /// The end that asked.
    pub by: IpAddr,
}

/// Requests and answers.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    open: BTreeMap<(u16, u16), u64>,
    /// Requests that were answered.
    pub pairs: Vec<Echo>,
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
            let by = if family == 0 { v4(ip) } else { v6(ip) };
            self.pairs.extend(by.map(|by| Echo { at, back: packet.at_ns, by }));
        }
    }
}

/// The destination of an answer, which is the end that asked.
fn v4(ip: &[u8]) -> Option<IpAddr> {
    Some(Ipv4Addr::from(*ip.get(16..20)?.first_chunk::<4>()?).into())
}

/// The same of IPv6.
fn v6(ip: &[u8]) -> Option<IpAddr> {
    Some(Ipv6Addr::from(*ip.get(24..40)?.first_chunk::<16>()?).into())
}
