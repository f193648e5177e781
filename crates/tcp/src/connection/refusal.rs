//! The reset that answers a segment for which there is no connection, or which acknowledges something that
//! was never sent (RFC 9293 §3.5.2).

use paceline_net::{SeqNumber, TcpFlags, TcpHeader};

/// Sequence number, acknowledgment number and flags of the reset that answers `tcp`; `None` for a reset.
pub(super) fn refusal(tcp: &TcpHeader) -> Option<(SeqNumber, SeqNumber, TcpFlags)> {
    let has = |flag| tcp.flags.contains(flag);
    if has(TcpFlags::RST) {
        return None;
    }
    if has(TcpFlags::ACK) {
        return Some((tcp.ack, SeqNumber(0), TcpFlags::RST));
    }
    let control = u32::from(has(TcpFlags::SYN)) + u32::from(has(TcpFlags::FIN));
    Some((SeqNumber(0), tcp.seq + tcp.payload_len + control, TcpFlags::RST.with(TcpFlags::ACK)))
}
