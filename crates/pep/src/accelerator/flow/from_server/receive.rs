//! Payload of the server's segments into the store (RFC 9293, section 3.10.7.4).

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::store::{Mark, Piece};
use crate::accelerator::flow::from_server::{FromServer, LARGEST_PACKET_BYTES};
use crate::accelerator::flow::views::ClientState;
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{IpHeader, Packet, Payload, TcpFlags, TcpHeader};

/// ECN field: Congestion Experienced (RFC 3168, section 5).
const ECN_CE: u8 = 3;
/// ECN field: ECN-Capable Transport, ECT(0).
const ECN_ECT0: u8 = 2;

/// A data segment of the server.
#[derive(Clone, Copy)]
pub(in crate::accelerator) struct DataSegment {
    /// Offset of the first payload byte.
    pub off: u64,
    /// End of the payload.
    pub end: u64,
    pub fin: bool,
}

impl FromServer {
    /// Stores the payload of an acceptable segment and acknowledges it, or makes an ACK due.
    pub fn on_data(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientState<'_>,
        packet: Packet,
        data: DataSegment,
    ) {
        let DataSegment { off, end, fin } = data;
        let tcp = *packet.tcp_header().expect("it is a segment");
        let una = client.to_client.una();
        let next = self.store.next();
        let known_end = self.fin().unwrap_or(u64::MAX);
        self.note_window_use(cx.now, end, client.to_client.segment());
        self.open_window(cx, client, data);
        // The client itself may have advertised more than the buffer.
        let buffer_end = una + 2 * cx.config.flow_buffer.0 + LARGEST_PACKET_BYTES;
        let accepted = self.edge.min(buffer_end).min(known_end);
        let (from, until) = (off.max(next), end.min(accepted).max(off.max(next)));
        // Data beyond a gap was not acknowledged. When buffers are full it is dropped for the data that fills
        // the gap.
        let makes_room = cx.buffers_full && from == next && self.store.forget_beyond();
        if cx.buffers_full && until > from && !makes_room {
            cx.stats.refused += 1;
            return;
        }
        if from > next && until > from && !self.store.has_room_beyond(cx.share) {
            cx.stats.refused += 1;
            return self.emit_ack(cx, client, None);
        }
        if off <= self.acked {
            self.update_ts_recent(cx.now, &tcp);
        }
        if client.connection.negotiated.ecn && packet.ip.ecn() == ECN_CE {
            self.echo_congestion = true;
        }
        if off > self.edge {
            cx.stats.invalid += 1;
            return self.emit_ack(cx, client, None);
        }
        let duplicate = (off < next && tcp.payload_len > 0).then(|| (off, end.min(next)));
        if tcp.flags.contains(TcpFlags::URG) && end > next {
            let pointer = u64::from(Unparsed::of(&packet).urgent);
            let start = self.urgent.as_ref().map_or(off, |urgent| urgent.0.min(off)).max(1);
            self.urgent = Some(Box::new((start, (off + pointer).max(end))));
        }
        if fin && end <= self.edge && end >= next && self.fin().is_none_or(|known| known == end) {
            self.fin_at = end;
        }
        let in_order = self.store_payload(cx, client, packet, &tcp, (off, from, until));
        // A retransmitted FIN is in order as well; it is answered at once, since the ACK of the first was
        // lost.
        let repeats = fin && tcp.payload_len == 0 && known_end == end;
        if in_order && !repeats {
            self.ack_due = true;
        } else {
            self.emit_ack(cx, client, duplicate);
        }
    }

    /// Stores the bytes `from..until` of a packet at `off`. Whether it advanced the stream and left no gap.
    fn store_payload(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientState<'_>,
        mut packet: Packet,
        tcp: &TcpHeader,
        (off, from, until): (u64, u64, u64),
    ) -> bool {
        let next = self.store.next();
        (self.traffic_class, self.hop_limit) = (packet.ip.traffic_class & !3, packet.ip.hop_limit);
        let unparsed = Unparsed::of(&packet);
        if matches!(packet.payload, Payload::Datagram(_)) {
            self.unparsed = Unparsed { urgent: 0, ..unparsed };
        }
        let mark = Mark {
            traffic_class: forwarded_class(&packet.ip, client.connection.negotiated.ecn),
            hop_limit: packet.ip.hop_limit,
            push: tcp.flags.contains(TcpFlags::PSH),
            urgent: if tcp.flags.contains(TcpFlags::URG) { unparsed.urgent } else { 0 },
        };
        let skip = match &packet.payload {
            Payload::Datagram(_) => rewrite::header_len(&packet) as u32,
            Payload::Virtual(_) => 0,
        };
        let payload = std::mem::replace(&mut packet.payload, Payload::Virtual(0));
        let timestamp = tcp.options.timestamps.map_or(0, |timestamps| timestamps.val);
        let (len, at, datagram) = (tcp.payload_len, cx.now, Piece::datagram(payload));
        let packet = Piece { off, len, skip, timestamp, at, mark, datagram };
        let stored = self.store.insert(packet, (from, until));
        cx.stats.bytes_in += stored.new;
        cx.stats.conflicts += u64::from(stored.conflict);
        if stored.new == 0 && tcp.payload_len > 0 {
            cx.stats.server_retransmissions += 1;
            self.ack_hold.end();
        }
        let advanced = self.store.next() > next;
        if advanced {
            let unsent = self.store.next().saturating_sub(client.to_client.nxt());
            let measured = cx.ahead.filter(|ahead| ahead.measured);
            let rtt = client.to_client.rtt().srtt();
            let late = measured.zip(rtt).map(|(ahead, rtt)| rtt + ahead.time_to_send(unsent));
            self.ack_hold.on_data(cx.now, unsent, cx.share, client.to_client.segment(), late);
        }
        let closes = tcp.flags.contains(TcpFlags::FIN) && self.fin() == Some(self.store.next());
        (advanced || closes && off >= next) && !self.store.has_gap()
    }

    /// Keeps a segment at `off..end` that arrived ahead of a gap while the upload is offloaded. Gives the
    /// packet back if it does not fit the window, the buffers or the queue.
    pub fn hold_back(&mut self, cx: &Context<'_>, packet: Packet, off: u64, end: u64) -> Option<Packet> {
        if off < self.store.next() || end > self.edge || cx.buffers_full || self.reorder_hold.is_full() {
            return Some(packet);
        }
        self.reorder_hold.insert(packet);
        None
    }
}

/// The class octet on the mobile segment. Congestion of the wired segment is echoed by the accelerator, so
/// the packet continues with the ECN field that the server sent.
fn forwarded_class(ip: &IpHeader, ecn: bool) -> u8 {
    if ecn && ip.ecn() == ECN_CE { ip.traffic_class & !3 | ECN_ECT0 } else { ip.traffic_class }
}
