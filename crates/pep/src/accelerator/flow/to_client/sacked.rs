//! Data beyond a gap when a connection is no longer accelerated. They are in SACK blocks that the server has,
//! which sends them again only after a timeout (RFC 2018, section 8). The client gets them here, and confirms
//! them by its own SACK blocks.

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::store::PartBeyond;
use crate::accelerator::flow::to_client::emit::{ip_header, tcp_header};
use crate::accelerator::flow::views::ServerState;
use crate::accelerator::{Side, Transmission};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{Checksum, TcpFlags, TcpHeader};

/// Sends the data beyond the first gap up to the right edge of the client's window, in segments of `segment`
/// bytes.
pub(super) fn emit_sacked(cx: &mut Context<'_>, server: &ServerState<'_>, segment: u32, edge: u64) {
    for part in server.from_server.store().parts_beyond(segment) {
        let PartBeyond { off, len, mark, bytes } = part;
        if off + u64::from(len) > edge {
            return; // the client would drop it
        }
        let flags = if mark.push { TcpFlags::ACK.with(TcpFlags::PSH) } else { TcpFlags::ACK };
        let mut ip = ip_header(server);
        (ip.traffic_class, ip.hop_limit) = (mark.traffic_class, mark.hop_limit);
        let tcp = TcpHeader { payload_len: len, ..tcp_header(server, off, flags) };
        let unparsed = Unparsed { urgent: 0, ..server.from_server.header().unparsed };
        let packet = match bytes {
            Some(bytes) => {
                let partial = cx.config.partial_checksums;
                let checksum = if partial { Checksum::Partial } else { Checksum::Unverified };
                rewrite::segment(ip, tcp, unparsed, checksum, std::iter::once(bytes))
            }
            None => server.connection.empty_segment(ip, tcp, unparsed),
        };
        cx.out.push_back(Transmission::whole(Side::Mobile, packet));
    }
}
