//! Segments from the client: acceptance tests (RFC 9293, RFC 5961, RFC 7323), then their ACKs to the sending
//! side. Empty ACKs end here. Data, FIN and reset are forwarded with the acknowledgment that the server has
//! seen from here.

use crate::accelerator::flow::Flow;
use crate::accelerator::flow::context::{Context, Verdict};
use crate::accelerator::flow::doubtful_reset::{Doubt, DoubtfulReset};
use crate::accelerator::flow::to_client::acks::ClientAck;
use crate::accelerator::flow::to_client::overshoot::PastWindow;
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use paceline_net::rewrite;
use paceline_net::{Packet, TcpFlags, TcpHeader, Timestamps, Transport};

/// Answers to probes in a row that acknowledge unseen data before they are accepted. Chosen: one injected
/// number must not suffice.
const MIN_UNSEEN_DATA_ACKS: u8 = 2;
/// An acknowledgment at most this far below the last is acceptable (RFC 5961, section 5.2), in bytes. Chosen:
/// the least, for configurations whose buffers are smaller than clients' windows.
const MIN_ACK_RANGE_BYTES: u64 = 1 << 20;

impl Flow {
    /// A segment from the mobile side without SYN. The second value is the effect of its ACK.
    pub fn on_client(&mut self, cx: &mut Context<'_>, packet: Packet) -> (Verdict, Delivery) {
        let none = Delivery::default();
        let Transport::Tcp(tcp) = packet.transport else { return (Verdict::Pass(packet), none) };
        self.last_packet_at = cx.now;
        if tcp.flags.contains(TcpFlags::RST) {
            return (self.on_client_reset(cx, packet, &tcp), none);
        }
        let carries = tcp.payload_len > 0 || tcp.flags.intersects(TcpFlags::FIN.with(TcpFlags::URG));
        let una = self.to_client.una();
        let ack = self.connection.offset(tcp.ack, una).filter(|_| tcp.flags.contains(TcpFlags::ACK));
        let range = cx.share.max(MIN_ACK_RANGE_BYTES);
        let is_old = || self.upload.fails_paws(cx.now, &self.connection, &tcp);
        let plausible = self.upload.accepts_seq(tcp.seq) && !is_old();
        let Some(mut ack) = ack.filter(|ack| plausible && *ack + range >= una) else {
            return (self.on_implausible(cx, packet, &tcp, ack, carries), none);
        };
        if ack > self.to_client.nxt() {
            if !self.is_transparent() && !self.has_unseen_data(cx, ack, range) {
                // The data was never sent: an optimistic ACK, which is ignored.
                cx.stats.optimistic_acks += 1;
                return (Self::leave_to_server(cx, packet, carries), none);
            }
            let next = self.from_server.next();
            if ack >= next && !self.from_server.has_pending_reset() {
                return (Verdict::Detach(packet), none);
            }
            // Sending continues from there.
            ack = self.to_client.skip_to(ack.min(next));
        }
        let keepalive = self.upload.is_keepalive(&tcp);
        let unconfirmed = self.upload.is_unconfirmed();
        self.upload.on_client(cx.now, &packet, &tcp);
        if self.connection.negotiated.timestamps {
            self.from_server.note_client_timestamp(cx.now, self.upload.timestamp());
        }
        self.doubtful_reset = None;
        let was_unresponsive = self.to_client.on_response(cx.now);
        let Self { connection, from_server, to_client, .. } = self;
        let delivery = to_client.on_ack(cx, connection, from_server, ClientAck { tcp: &tcp, ack, carries });
        let (from_server, client) = self.receiver();
        from_server.schedule_ack(cx, client);
        if was_unresponsive {
            self.to_client.probe_after_silence(cx.now, &self.from_server);
        }
        let answers_probe = self.from_server.take_probe_forwarded();
        let forward = carries || keepalive || answers_probe || unconfirmed;
        (self.forward_or_absorb(cx, packet, forward), delivery)
    }

    /// A segment that no endpoint would accept, as far as is known here.
    fn on_implausible(
        &mut self,
        cx: &mut Context<'_>,
        packet: Packet,
        tcp: &TcpHeader,
        ack: Option<u64>,
        carries: bool,
    ) -> Verdict {
        if self.upload.is_offloaded() {
            // Data segments bypass the machine. Expected here are a FIN, and segments without data: window
            // and keepalive probes.
            let expected = self.upload.note_offloaded_fin(tcp)
                || !carries && ack.is_some_and(|ack| ack <= self.to_client.nxt());
            return if expected { Verdict::Pass(packet) } else { Verdict::Detach(packet) };
        }
        if ack.is_some() {
            self.upload.note_claim(tcp);
        }
        cx.stats.invalid += 1;
        Self::leave_to_server(cx, packet, carries)
    }

    /// Whether an acknowledgment of data that was never sent from here is accepted. When packets have
    /// bypassed the machine, the client may have data of the server that is not here, and all that was
    /// acknowledged in its name: the accelerator is not needed any more. Against injected numbers, the
    /// acknowledgment must be within a window or near an offset at which the server itself has sent, and the
    /// client must repeat it in answer to probes.
    fn has_unseen_data(&mut self, cx: &Context<'_>, ack: u64, range: u64) -> bool {
        let probed = self.to_client.awaits_probe_response();
        let near_server = self.from_server.beyond_edge_at().abs_diff(ack) <= range;
        let window = self.to_client.window().edge().max(self.from_server.next() + range);
        if ack > window && !near_server {
            return false;
        }
        let answers = self.upload.count_unseen_data_ack(probed);
        cx.unseen_packets || answers >= MIN_UNSEEN_DATA_ACKS
    }

    fn on_client_reset(&mut self, cx: &mut Context<'_>, packet: Packet, tcp: &TcpHeader) -> Verdict {
        let seq = tcp.seq;
        let by_router = !tcp.flags.contains(TcpFlags::ACK) && !self.upload.has_fin();
        if by_router && self.upload.accepts_reset(seq) && self.to_client.was_past_window_used(cx.now) {
            self.doubt_reset(cx, packet);
            return Verdict::Absorbed;
        }
        // After an offload the client's sequence number is not known here: the server judges the reset. If
        // nothing is stored, the connection continues without the accelerator should the server reject it.
        let unknown = self.upload.is_offloaded() || self.upload.is_unconfirmed();
        if self.upload.accepts_reset(seq) || unknown && self.is_transparent() {
            return Verdict::Ended(packet);
        }
        // Not the exact number: the server will challenge it (RFC 5961, section 3.2).
        cx.stats.invalid += 1;
        Verdict::Pass(packet)
    }

    /// A reset that follows data past the client's window: no more is sent past it, and a probe shows whether
    /// the client is alive.
    fn doubt_reset(&mut self, cx: &mut Context<'_>, packet: Packet) {
        cx.past_window = PastWindow::Refused;
        if self.doubtful_reset.is_some() {
            return;
        }
        cx.stats.overshoot_drops += 1;
        let wait = self.to_client.rtt().base_rto();
        self.doubtful_reset = Some(DoubtfulReset::new(cx.now, packet, wait));
        let (to_client, server) = self.sender();
        to_client.on_doubtful_reset(cx, &server);
    }
    /// The timer of a doubtful reset. Returns the reset if it is the client's.
    pub(super) fn on_doubtful_reset_timer(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let reset = self.doubtful_reset.take_if(|reset| reset.next_at() <= cx.now)?;
        let (rest, doubt) = reset.on_timer(cx.now, self.to_client.rtt().base_rto());
        self.doubtful_reset = rest;
        match doubt {
            Doubt::Over(packet) => Some(packet),
            Doubt::Probe => {
                let (to_client, server) = self.sender();
                to_client.emit_probe(cx, &server);
                None
            }
        }
    }

    /// The server judges an unacceptable segment as it is: with the acknowledgment number from here it would
    /// accept injected data (RFC 5961, section 5.2).
    fn leave_to_server(cx: &mut Context<'_>, packet: Packet, carries: bool) -> Verdict {
        if carries {
            return Verdict::Pass(packet);
        }
        cx.stats.acks_absorbed += 1;
        Verdict::Absorbed
    }

    /// Forwards a segment with the numbers that the server has seen from here, or ends it.
    fn forward_or_absorb(&mut self, cx: &mut Context<'_>, mut packet: Packet, forward: bool) -> Verdict {
        let Some(tcp) = packet.tcp_header().copied() else { return Verdict::Pass(packet) };
        if !forward {
            cx.stats.acks_absorbed += 1;
            return Verdict::Absorbed;
        }
        // A server (Linux) grows its receive window by the round trip that the TSecr of data shows. So data
        // keeps the client's TSecr, and an ACK of the bytes that have just arrived here goes ahead of it.
        let has_data = tcp.payload_len > 0;
        let (from_server, client) = self.receiver();
        if has_data && from_server.ack_is_useful(cx, client) {
            from_server.emit_ack(cx, client, None);
        }
        let window = from_server.advance_ack(cx, client);
        let connection = client.connection;
        let ecn = if connection.negotiated.ecn { TcpFlags::ECE.0 } else { 0 };
        let ece = if from_server.is_echoing_congestion() { TcpFlags::ECE.0 } else { 0 };
        let ack = connection.seq(from_server.acked());
        let mut new = TcpHeader { ack, window, flags: TcpFlags(tcp.flags.0 & !ecn | ece), ..tcp };
        let ts_recent = from_server.ts_recent();
        let echo = |own: Timestamps| if has_data { own } else { Timestamps { ecr: ts_recent, ..own } };
        new.options.timestamps = tcp.options.timestamps.map(echo);
        new.options.sack = from_server.sack_blocks(client, None);
        rewrite::rewrite(&mut packet, &new);
        Verdict::Pass(packet)
    }
}
