//! Segments from the server: acceptance tests (RFC 9293, section 3.10.7.4; RFC 5961; RFC 7323), then data to
//! the store and pure ACKs to the client.

use crate::accelerator::flow::Flow;
use crate::accelerator::flow::context::{Context, Verdict};
use crate::accelerator::flow::from_server::receive::DataSegment;
use paceline_net::rewrite;
use paceline_net::{Packet, TcpFlags, TcpHeader, Transport};

impl Flow {
    /// A segment from the server side without SYN.
    pub fn on_server(&mut self, cx: &mut Context<'_>, packet: Packet) -> Verdict {
        let Transport::Tcp(tcp) = packet.transport else { return Verdict::Pass(packet) };
        self.last_packet_at = cx.now;
        let Some(off) = self.connection.offset(tcp.seq, self.from_server.next()) else {
            return self.reject(cx);
        };
        if tcp.flags.contains(TcpFlags::RST) {
            return self.on_server_reset(cx, packet, off);
        }
        let fin = tcp.flags.contains(TcpFlags::FIN);
        let data = DataSegment { off, end: off + u64::from(tcp.payload_len), fin };
        let has_ack = tcp.flags.contains(TcpFlags::ACK);
        let is_old = self.from_server.fails_paws(cx.now, &self.connection, &tcp);
        if self.upload.is_offloaded() {
            let acceptable = has_ack && !is_old;
            if tcp.payload_len > 0 || fin {
                // The client's window is not known here, so only the exact next sequence number is accepted.
                if off != self.from_server.next() || !acceptable {
                    return self.on_data_while_offloaded(cx, packet, data, acceptable);
                }
                self.upload.end_offload(&tcp);
            } else if !acceptable || !self.upload.accepts_ack(tcp.ack) {
                return Verdict::Pass(packet); // most of the server's ACKs bypass the machine anyway
            }
        }
        self.upload.catch_up(&tcp);
        if !has_ack || !self.upload.accepts_ack(tcp.ack) {
            // The server acknowledges bytes that bypassed the machine; its data may bypass the machine as
            // well.
            if self.is_transparent() && has_ack && tcp.ack > self.upload.end() {
                return Verdict::Detach(packet);
            }
            return self.reject(cx);
        }
        if is_old {
            return self.reject(cx);
        }
        if off > self.from_server.edge() {
            self.from_server.note_beyond_edge(off);
            let (to_client, server) = self.sender();
            to_client.query_client(cx, &server);
        }
        if tcp.payload_len == 0 && !fin {
            return self.on_server_ack(cx, packet, off);
        }
        if tcp.payload_len <= 1 && off + 1 == self.from_server.next() && self.is_transparent() && !fin {
            self.from_server.note_probe_forwarded();
            return Verdict::Pass(packet);
        }
        self.take_server_header(cx, &tcp);
        self.upload.on_server_data();
        if !tcp.options.sack.is_empty() || tcp.flags.contains(TcpFlags::ECE) {
            let (to_client, mut server) = self.sender();
            to_client.emit_ack(cx, &mut server, tcp.options.sack, tcp.flags.contains(TcpFlags::ECE));
        }
        let (from_server, client) = self.receiver();
        from_server.on_data(cx, client, packet, data);
        Verdict::Absorbed
    }

    /// Data of the server that is not the next expected while the upload is offloaded. Old data is between
    /// the two ends. Data ahead of a gap may only be reordered: a few segments wait; more of them indicate a
    /// loss, which the ends repair.
    fn on_data_while_offloaded(
        &mut self,
        cx: &Context<'_>,
        packet: Packet,
        data: DataSegment,
        acceptable: bool,
    ) -> Verdict {
        if data.end <= self.from_server.next() || !acceptable {
            return Verdict::Pass(packet);
        }
        match self.from_server.hold_back(cx, packet, data.off, data.end) {
            Some(packet) => Verdict::Detach(packet),
            None => Verdict::Absorbed,
        }
    }

    /// An unacceptable segment: it changes no state, and is answered with an ACK as an endpoint would answer
    /// it.
    fn reject(&mut self, cx: &mut Context<'_>) -> Verdict {
        cx.stats.invalid += 1;
        self.emit_server_ack(cx);
        Verdict::Absorbed
    }
    pub(super) fn emit_server_ack(&mut self, cx: &mut Context<'_>) {
        let (from_server, client) = self.receiver();
        from_server.emit_ack(cx, client, None);
    }

    /// Takes over the acknowledgment, window and timestamps of an acceptable segment.
    fn take_server_header(&mut self, cx: &Context<'_>, tcp: &TcpHeader) {
        self.upload.on_server_ack(tcp);
        self.upload.note_window(u32::from(tcp.window) << self.connection.negotiated.server_shift);
        self.from_server.note_header(cx.now, &self.connection, tcp);
    }

    /// A segment without payload: it is forwarded to the client, unless it is a probe that the accelerator
    /// answers.
    fn on_server_ack(&mut self, cx: &mut Context<'_>, mut packet: Packet, off: u64) -> Verdict {
        let tcp = *packet.tcp_header().expect("it is a segment");
        self.take_server_header(cx, &tcp);
        if off < self.from_server.next() && !self.is_transparent() {
            // A keepalive, or a probe of the window that is advertised from here.
            self.emit_server_ack(cx);
            return Verdict::Absorbed;
        }
        self.upload.note_ack_to_client();
        let acked = self.from_server.acked();
        if off == acked || off + 1 == acked {
            // The server's next sequence number, or that of its probes.
            self.from_server.update_ts_recent(cx.now, &tcp);
        }
        if off < self.from_server.next() {
            self.from_server.note_probe_forwarded();
        }
        let readable = self.to_client.empty_segment_offset();
        if off > readable || tcp.flags.contains(TcpFlags::CWR) {
            // The client has not received that much: it would drop a segment ahead of its window, with the
            // ACK.
            let seq = if off > readable { self.connection.seq(readable) } else { tcp.seq };
            let cwr = if self.connection.negotiated.ecn { TcpFlags::CWR.0 } else { 0 };
            rewrite::rewrite(&mut packet, &TcpHeader { seq, flags: TcpFlags(tcp.flags.0 & !cwr), ..tcp });
        }
        Verdict::Pass(packet)
    }

    fn on_server_reset(&mut self, cx: &mut Context<'_>, packet: Packet, off: u64) -> Verdict {
        if !self.from_server.accepts_reset(off) {
            // A challenge ACK, which only the true server can answer (RFC 5961, section 3.2).
            return self.reject(cx);
        }
        if self.is_transparent() || self.to_client.una() >= self.from_server.next() {
            return Verdict::Ended(packet);
        }
        self.from_server.keep_reset(packet, cx.now + cx.config.reset_grace);
        Verdict::Absorbed
    }
}
