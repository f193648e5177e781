//! Packets to the client in the server's name.

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::ServerHeader;
use crate::accelerator::flow::from_server::store::Cut;
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

/// Flags of a data segment beside those of its data.
pub(super) struct DataFlags {
    pub fin: bool,
    /// The answer to the client's ECE.
    pub cwr: bool,
}

/// Sends the segment at an offset that has this payload, if any; it is cut into segments of `segment` bytes.
/// Returns the bytes that it counts for.
pub(super) fn emit_data(
    cx: &mut Context<'_>,
    server: &mut ServerState<'_>,
    segment: u32,
    (off, cut): (u64, Option<Cut>),
    DataFlags { fin, cwr }: DataFlags,
) -> u64 {
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
    set(&mut flags, TcpFlags::CWR, cwr);
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
    let segment = if len > segment { segment } else { 0 };
    let body = body.unwrap_or_default();
    cx.out.push_back(Transmission { side: Side::Mobile, packet, segment, body });
    u64::from(len).max(MIN_PACED_BYTES)
}
/// Sends a segment without data at this offset.
pub(super) fn emit_empty(
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
