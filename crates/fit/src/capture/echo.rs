//! Requests and their answers at a capture point: echo requests (ICMP, RFC 792; ICMPv6, RFC 4443), and single
//! datagrams of UDP that alternate, as of DNS and of probes.

use paceline_import::capture::encapsulation;
use paceline_import::capture::stream::Captured;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Types of echo request and answer in ICMP (RFC 792) and ICMPv6 (RFC 4443 §4.1 and §4.2).
const TYPES: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Protocol numbers of ICMP, ICMPv6 and UDP (IANA).
const ICMP: [u8; 2] = [1, 58];
const UDP: u8 = 17;
/// Share of the packets of a UDP flow that are pairs of request and answer. Chosen: calls and QUIC have far
/// fewer.
const ALTERNATING: f64 = 0.9;

/// A request and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// Time of the request, ns.
    pub at: u64,
    /// Time of the answer, ns.
    pub back: u64,
    /// The end that asked.
    pub by: IpAddr,
    /// The end that answered.
    pub of: IpAddr,
}

/// A UDP flow: the packets, the pairs among them, and the last packet, if it can be a request.
#[derive(Clone, Debug, Default)]
struct Datagrams {
    packets: u64,
    pairs: Vec<Echo>,
    open: Option<(IpAddr, u64)>,
}

/// Requests and answers.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    open: BTreeMap<(u16, u16), u64>,
    answered: Vec<Echo>,
    flows: BTreeMap<(SocketAddr, SocketAddr), Datagrams>,
}

impl Echoes {
    /// The requests that were answered, in order.
    pub fn pairs(&self) -> Vec<Echo> {
        let mut pairs = self.answered.clone();
        let alternate =
            |flow: &&Datagrams| 2.0 * flow.pairs.len() as f64 >= ALTERNATING * flow.packets as f64;
        pairs.extend(self.flows.values().filter(alternate).flat_map(|flow| &flow.pairs));
        pairs.sort_by_key(|echo| echo.at);
        pairs
    }
    /// The next packet.
    pub fn on_packet(&mut self, packet: &Captured<'_>) {
        let Some(ip) = encapsulation::inner(packet) else { return };
        let (family, header) = if ip[0] >> 4 == 4 { (0, 4 * usize::from(ip[0] & 15)) } else { (1, 40) };
        let protocol = ip.get(if family == 0 { 9 } else { 6 }).copied();
        let ends = if family == 0 { v4(ip) } else { v6(ip) };
        let (Some(ends), Some(head)) = (ends, ip.get(header..header + 8)) else { return };
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        if protocol == Some(UDP) {
            let [from, to] = [SocketAddr::new(ends[0], word(0)), SocketAddr::new(ends[1], word(2))];
            self.on_datagram(packet.at_ns, from, to);
        } else if protocol == Some(ICMP[family]) {
            let (request, answer) = TYPES[family];
            let key = (word(4), word(6));
            if head[0] == request {
                self.open.insert(key, packet.at_ns);
            } else if head[0] == answer
                && let Some(at) = self.open.remove(&key)
            {
                self.answered.push(Echo { at, back: packet.at_ns, by: ends[1], of: ends[0] });
            }
        }
    }
    fn on_datagram(&mut self, at: u64, from: SocketAddr, to: SocketAddr) {
        let flow = self.flows.entry((from.min(to), from.max(to))).or_default();
        flow.packets += 1;
        match flow.open.take() {
            Some((by, asked)) if by == to.ip() => {
                flow.pairs.push(Echo { at: asked, back: at, by, of: from.ip() });
            }
            _ => flow.open = Some((from.ip(), at)),
        }
    }
}

/// Source and destination.
fn v4(ip: &[u8]) -> Option<[IpAddr; 2]> {
    let address = |at: usize| Some(IpAddr::from(Ipv4Addr::from(*ip.get(at..)?.first_chunk::<4>()?)));
    Some([address(12)?, address(16)?])
}

/// The same of IPv6.
fn v6(ip: &[u8]) -> Option<[IpAddr; 2]> {
    let address = |at: usize| Some(IpAddr::from(Ipv6Addr::from(*ip.get(at..)?.first_chunk::<16>()?)));
    Some([address(8)?, address(24)?])
}
