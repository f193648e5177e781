//! TCP segments of a capture: the fields that the analysis needs, from packets that may be cut short.

use paceline_import::capture::encapsulation;
use paceline_import::capture::stream::Captured;
use paceline_net::{Instant, SackBlocks, SeqNumber, TcpFlags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Protocol number of TCP (IANA).
const TCP: u8 = 6;
/// Extension headers of IPv6 with a length in units of 8 bytes: hop-by-hop, routing, destination options
/// (RFC 8200 §4.1).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// Most extension headers that are read. Chosen: RFC 8200 §4.1 has each at most once, options twice.
const MAX_EXTENSIONS: usize = 8;
/// Bytes of a TCP header without options (RFC 9293 §3.1).
const PLAIN_TCP: usize = 20;

/// Offset basis and prime of FNV-1a with 64 bits (Fowler, Noll and Vo).
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
/// Prime of FNV-1a with 64 bits (Fowler, Noll and Vo).
const FNV_PRIME: u64 = 0x100_0000_01b3;

/// A segment as it passed the capture point.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Time since 1970, or since the start of a simulation.
    pub at: Instant,
    /// Sender.
    pub src: SocketAddr,
    /// Receiver.
    pub dst: SocketAddr,
    /// Identification of the IPv4 header, none in IPv6.
    pub identification: Option<u16>,
    /// Codepoint of ECN (RFC 3168 §5): 3 is a mark.
    pub ecn: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Sequence number.
    pub seq: SeqNumber,
    /// Acknowledgment number, if the segment has one.
    pub ack: Option<SeqNumber>,
    /// Control bits.
    pub flags: TcpFlags,
    /// Window field, not scaled.
    pub window: u16,
    /// Payload bytes on the link, of which fewer may be in the capture.
    pub len: u32,
    /// Options.
    pub options: Options,
}

/// The options that the analysis needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Shift of the window field (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
}

/// The content of a captured packet.
#[derive(Debug)]
pub enum Content {
    /// A TCP segment; whether options were cut off.
    Tcp(Box<Segment>, bool),
    /// A TCP segment of which less than the header without options was captured.
    CutTcp,
    /// No TCP, or a later fragment of a datagram.
    Other,
}

impl Segment {
    /// Whether all of these bits are set.
    pub fn has(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }
    /// A number that the copies of a mirrored packet share: FNV-1a (Fowler, Noll and Vo) of all fields that
    /// routers leave as they are.
    pub fn fingerprint(&self) -> u64 {
        let (val, ecr) = self.options.timestamps.unwrap_or_default();
        let fixed = [
            u32::from(self.identification.unwrap_or(0)) << 16 | u32::from(self.window),
            self.seq.0,
            self.ack.map_or(0, |ack| ack.0),
            u32::from(self.flags.0),
            self.len,
            val,
            ecr,
        ];
        let sack = self.options.sack.as_slice().iter().flat_map(|(left, right)| [left.0, right.0]);
        let words = fixed.into_iter().chain(sack).flat_map(u32::to_le_bytes);
        words.fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    }
}

/// Reads the innermost datagram of a packet.
pub fn content(captured: &Captured<'_>) -> Content {
    let Some(ip) = encapsulation::inner(captured) else { return Content::Other };
    let outer = captured.data.len() - ip.len();
    let on_link = (captured.len as usize).saturating_sub(outer);
    let header = if ip[0] >> 4 == 4 { ipv4(ip, on_link) } else { ipv6(ip, on_link) };
    let Some(header) = header else { return Content::Other };
    let tcp = ip.get(header.len..).unwrap_or_default();
    if tcp.len() < PLAIN_TCP {
        return Content::CutTcp;
    }
    let header_len = 4 * usize::from(tcp[12] >> 4);
    let Some(len) = header.payload.checked_sub(header_len).filter(|_| header_len >= PLAIN_TCP) else {
        return Content::Other;
    };
    let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let long = |at: usize| SeqNumber(u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]));
    let flags = TcpFlags(word(12) & 0x0fff);
    let captured_options = &tcp[PLAIN_TCP..header_len.min(tcp.len())];
    let segment = Segment {
        at: Instant::from_nanos(captured.at_ns),
        src: SocketAddr::new(header.src, word(0)),
        dst: SocketAddr::new(header.dst, word(2)),
        identification: header.identification,
        ecn: header.ecn,
        ttl: header.ttl,
        seq: long(4),
        ack: flags.contains(TcpFlags::ACK).then(|| long(8)),
        flags,
        window: word(14),
        len: len as u32,
        options: options(captured_options),
    };
    Content::Tcp(Box::new(segment), header_len > tcp.len())
}

/// The fields of an IP header in front of TCP.
struct Ip {
    src: IpAddr,
    dst: IpAddr,
    identification: Option<u16>,
    ecn: u8,
    ttl: u8,
    /// Bytes of the headers.
    len: usize,
    /// Bytes behind them on the link.
    payload: usize,
}

/// The bytes of a datagram: its stated length, or those on the link where a merged packet of more than 64 KiB
/// states none.
fn total(stated: usize, header: usize, on_link: usize) -> usize {
    if stated <= header { on_link } else { stated }
}

fn ipv4(ip: &[u8], on_link: usize) -> Option<Ip> {
    let fixed = ip.get(..20)?;
    let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    let len = 4 * usize::from(fixed[0] & 0x0f);
    let is_first_fragment = word(6) & 0x1fff == 0;
    (len >= 20 && fixed[9] == TCP && is_first_fragment).then(|| Ip {
        src: address(12).into(),
        dst: address(16).into(),
        identification: Some(word(4)),
        ecn: fixed[1] & 3,
        ttl: fixed[8],
        len,
        payload: total(usize::from(word(2)), len, on_link).saturating_sub(len),
    })
}

fn ipv6(ip: &[u8], on_link: usize) -> Option<Ip> {
    let fixed = ip.get(..40)?;
    let address = |at: usize| fixed[at..at + 16].first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes));
    let (mut next, mut len) = (fixed[6], 40);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            break;
        }
        let extension = ip.get(len..len + 2)?;
        (next, len) = (extension[0], len + 8 * (usize::from(extension[1]) + 1));
    }
    let stated = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    Some(Ip {
        src: address(8)?.into(),
        dst: address(24)?.into(),
        identification: None,
        ecn: fixed[1] >> 4 & 3,
        ttl: fixed[7],
        len,
        payload: total(stated, 40, on_link).saturating_sub(len),
    })
    .filter(|_| next == TCP)
}

/// Reads options until the end of the captured ones, or a malformed one.
fn options(mut bytes: &[u8]) -> Options {
    let mut options = Options::default();
    let long = |bytes: &[u8]| bytes.first_chunk::<4>().map_or(0, |four| u32::from_be_bytes(*four));
    while let [kind, rest @ ..] = bytes {
        match kind {
            0 => break,
            1 => bytes = rest,
            _ => {
                let Some(len) = rest.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else {
                    break;
                };
                let Some(value) = bytes.get(2..len) else { break };
                match (kind, value) {
                    (2, [high, low]) => options.mss = Some(u16::from_be_bytes([*high, *low])),
                    // RFC 7323 §2.3: at most 14.
                    (3, [shift]) => options.window_scale = Some((*shift).min(14)),
                    (4, []) => options.sack_permitted = true,
                    (5, blocks) => blocks.as_chunks::<8>().0.iter().for_each(|block| {
                        options.sack.push(SeqNumber(long(block)), SeqNumber(long(&block[4..])));
                    }),
                    (8, value) if value.len() == 8 => {
                        options.timestamps = Some((long(value), long(&value[4..])));
                    }
                    _ => {}
                }
                bytes = &bytes[len..];
            }
        }
    }
    options
}
