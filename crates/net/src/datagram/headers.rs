//! The headers between the start of a datagram and its transport header: IPv4 options (RFC 791) and IPv6
//! extension headers (RFC 8200).
//!
//! Left out: the Authentication Header (RFC 4302), whose datagrams nobody on the path may change.

/// IPv6 Hop-by-Hop Options (IANA, protocol numbers).
const HOP_BY_HOP: u8 = 0;
/// IPv6 Routing header (IANA, protocol numbers).
const ROUTING: u8 = 43;
/// IPv6 Fragment header (IANA, protocol numbers).
const FRAGMENT: u8 = 44;
/// IPv6 Destination Options (IANA, protocol numbers).
const DESTINATION: u8 = 60;
/// Extension headers that are read. Chosen: each kind once and Destination Options twice, as RFC 8200,
/// section 4.1, recommends, and some more. The same bound as in `bpf/datagram.h`.
const MAX_EXTENSIONS: usize = 8;

/// Where the parts of a datagram are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Byte offset of the transport header; in a fragment, of the fragment's data.
    pub transport_at: usize,
    /// IP protocol number of the transport header.
    pub protocol: u8,
    /// Byte offset of an IPv6 Fragment header.
    pub fragment_at: Option<usize>,
    /// Bytes of the datagram's data ahead of this fragment; 0 if it is none.
    pub fragment_from: usize,
    /// Further fragments follow.
    pub more_fragments: bool,
    /// Identification of the datagram; 0 for IPv6 without a Fragment header.
    pub identification: u32,
}

/// Reads the layout of a datagram; `None` if it is malformed or has more extension headers than are read.
pub(super) fn layout(datagram: &[u8]) -> Option<Layout> {
    let word = |at: usize| Some(u16::from_be_bytes([*datagram.get(at)?, *datagram.get(at + 1)?]));
    if datagram.first()? >> 4 == 4 {
        let (len, field) = (4 * usize::from(datagram[0] & 15), word(6)?);
        return (20..=datagram.len()).contains(&len).then_some(Layout {
            transport_at: len,
            protocol: *datagram.get(9)?,
            fragment_at: None,
            fragment_from: 8 * usize::from(field & 0x1fff),
            more_fragments: field & 0x2000 != 0,
            identification: word(4)?.into(),
        });
    }
    let (mut at, mut protocol, mut fragment) = (40, *datagram.get(6)?, None);
    for _ in 0..MAX_EXTENSIONS {
        let next = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION => at + 8 + 8 * usize::from(*datagram.get(at + 1)?),
            FRAGMENT => at + 8,
            _ => break,
        };
        let number = protocol;
        protocol = *datagram.get(at)?;
        if number == FRAGMENT {
            let identification = u32::from(word(at + 4)?) << 16 | u32::from(word(at + 6)?);
            fragment = Some((at, word(at + 2)?, identification));
        }
        at = next;
        if fragment.is_some_and(|(_, field, _)| field & 0xfff8 != 0) {
            break; // data follow, no header
        }
    }
    let (fragment_at, field, identification) =
        fragment.map_or((None, 0, 0), |(at, field, id)| (Some(at), field, id));
    (at <= datagram.len()).then_some(Layout {
        transport_at: at,
        protocol,
        fragment_at,
        fragment_from: usize::from(field & 0xfff8),
        more_fragments: field & 1 != 0,
        identification,
    })
}
