//! Packets to the client in the server's name.

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::ServerHeader;
use crate::accelerator::flow::from_server::store::Cut;
use crate::accelerator::flow::to_client::{SendOutcome, ToClient};
use crate::accelerator::flow::views::ServerState;
use crate::accelerator::{Side, Transmission};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{Checksum, IpHeader, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// Least bytes that a packet counts for in pacing: its headers. Rates are of payload, as they are measured.
const MIN_PACED_BYTES: u64 = 40;
/// Shorter payload is copied. Chosen: a copy of that length costs less than a shared slice.
const MIN_GATHERED_BYTES: u32 = 512;
/// Payload in more slices is copied. Chosen: the kernel limits the slices of one packet, and each has a cost.
const MAX_SLICES: usize = 64;

impl ToClient {
    /// Sends the segment at `off` that has the payload `cut`, if any, and the FIN.
    pub(super) fn emit_data(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        off: u64,
        cut: Option<Cut>,
        fin: bool,
    ) -> SendOutcome {
        let mark = cut.map(|cut| cut.mark);
        let len = cut.map_or(0, |cut| cut.len);
        let mut flags = TcpFlags::ACK;
        let set = |flags: &mut TcpFlags, flag, condition| {
            if condition {
                *flags = flags.with(flag);
            }
        };
        set(&mut flags, TcpFlags::PSH, mark.is_some_and(|mark| mark.push));
        set(&mut flags, TcpFlags::URG, mark.is_some_and(|mark| mark.urgent > 0));
        set(&mut flags, TcpFlags::FIN, fin);
        set(&mut flags, TcpFlags::CWR, std::mem::take(&mut self.cwr_due));
        let mut ip = ip_header(server);
        if let Some(mark) = mark {
            (ip.traffic_class, ip.hop_limit) = (mark.traffic_class, mark.hop_limit);
        }
        let tcp = TcpHeader { payload_len: len, ..tcp_header(server, off, flags) };
        let urgent = mark.map_or(0, |mark| mark.urgent);
        let unparsed = Unparsed { urgent, ..server.from_server.header().unparsed };
        let gathers = cx.config.gather && len >= MIN_GATHERED_BYTES;
        let store = server.from_server.store();
        let body = if gathers { store.share(off, len, MAX_SLICES) } else { None };
        let packet = match (&body, cut.and_then(|cut| store.read(off, cut.len))) {
            (Some(_), _) => rewrite::headers(ip, tcp, unparsed),
            (None, Some(parts)) => {
                let partial = cx.config.partial_checksums;
                let checksum = if partial { Checksum::Partial } else { Checksum::Unverified };
                rewrite::segment(ip, tcp, unparsed, checksum, parts)
            }
            (None, None) => server.connection.empty_segment(ip, tcp, unparsed),
        };
        server.upload.note_ack_to_client();
        let segment = if len > self.segment { self.segment } else { 0 };
        let body = body.unwrap_or_default();
        cx.out.push_back(Transmission { side: Side::Mobile, packet, segment, body });
        SendOutcome::Sent { bytes: u64::from(len).max(MIN_PACED_BYTES) }
    }

    /// Sends an ACK to the client that no data segment carries.
    pub fn emit_ack(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        sack: SackBlocks,
        ece: bool,
    ) {
        let flags = if ece { TcpFlags::ACK.with(TcpFlags::ECE) } else { TcpFlags::ACK };
        self.emit_empty(cx, server, self.empty_segment_offset(), flags, sack);
        server.upload.note_ack_to_client();
    }
    /// The offset of an empty segment that the client accepts (RFC 9293, section 3.10.7.4): after all sent
    /// data, which arrives ahead of it; but not past a window with less room than a segment, where the client
    /// drops data and would drop this.
    pub fn empty_segment_offset(&self) -> u64 {
        if self.window.size() < u64::from(self.segment) {
            self.nxt.min(self.window.edge()).max(self.una)
        } else {
            self.nxt
        }
    }
    /// Sends a segment one below the client's next expected number, which the client answers with an ACK,
    /// like a keepalive.
    pub fn emit_probe(&self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        self.emit_empty(cx, server, self.una - 1, TcpFlags::ACK, SackBlocks::default());
    }
    fn emit_empty(
        &self,
        cx: &mut Context<'_>,
        server: &ServerState<'_>,
        off: u64,
        flags: TcpFlags,
        sack: SackBlocks,
    ) {
        let mut tcp = tcp_header(server, off, flags);
        tcp.options.sack = sack;
        let unparsed = server.from_server.header().unparsed;
        let packet = server.connection.empty_segment(ip_header(server), tcp, unparsed);
        cx.out.push_back(Transmission::whole(Side::Mobile, packet));
    }
}

pub(super) fn ip_header(server: &ServerState<'_>) -> IpHeader {
    let key = &server.connection.key;
    let ServerHeader { traffic_class, hop_limit, .. } = server.from_server.header();
    IpHeader { src: key.src, dst: key.dst, traffic_class, hop_limit, special: false }
}

pub(super) fn tcp_header(server: &ServerState<'_>, off: u64, flags: TcpFlags) -> TcpHeader {
    let ServerState { connection, from_server, upload } = server;
    let header = from_server.header();
    let timestamps = Timestamps { val: header.timestamp, ecr: header.timestamp_echo };
    let timestamps = connection.negotiated.timestamps.then_some(timestamps);
    TcpHeader {
        src_port: connection.key.src_port,
        dst_port: connection.key.dst_port,
        seq: connection.seq(off),
        ack: upload.acked(),
        flags,
        window: upload.window(),
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        payload_len: 0,
    }
}
