//! The receiver towards the server (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323, RFC 2018, RFC 2883, RFC 3168):
//! what is accepted, and what is acknowledged before the client has it.
//!
//! Acknowledged early is what is contiguous, verified and held, within the exposure cap. Not acknowledged early: a
//! FIN and the last packet ahead of it, urgent data and what follows it, and anything while the accelerator is being
//! stopped, the handshake is not complete, the client is silent or has not been heard since it rested.

use crate::accelerator::flow::from_server::paws::is_newer;
use crate::accelerator::flow::from_server::store::Mark;
use crate::accelerator::flow::{Context, Fate, Flow, PendingReset};
use crate::accelerator::{Side, Transmission};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Instant, IpHeader, Packet, Payload, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Transport,
};

/// Payload of a super-packet at most.
pub(in crate::accelerator) const LARGEST_PACKET: u64 = 1 << 16;
/// The window towards the server is told again when it can grow by this share.
const UPDATE_SHARE: u64 = 4;

impl Flow {
    /// A segment from the server side without SYN.
    pub fn on_server(&mut self, cx: &mut Context<'_>, packet: Packet) -> Fate {
        let Transport::Tcp(tcp) = packet.transport else { return Fate::Pass(packet) };
        self.seen_at = cx.now;
        let Some(off) = self.offset(tcp.seq, self.store.next()) else {
            return self.refuse(cx);
        };
        if tcp.flags.contains(TcpFlags::RST) {
            return self.on_server_reset(cx, packet, off);
        }
        let fin = tcp.flags.contains(TcpFlags::FIN);
        if self.uplink.resting {
            let acceptable = tcp.flags.contains(TcpFlags::ACK) && !self.is_old(cx.now, &tcp);
            if tcp.payload_len > 0 || fin {
                // Believed is what stands exactly where its stream goes on: nothing else tells it from injected segments.
                if off != self.store.next() || !acceptable {
                    return self.while_resting(
                        cx,
                        packet,
                        (off, off + u64::from(tcp.payload_len)),
                        acceptable,
                    );
                }
                self.uplink.resume(&tcp);
            } else if !acceptable || !self.uplink.accepts_ack(tcp.ack) {
                return Fate::Pass(packet); // others like it go past
            }
        }
        self.uplink.catch_up(&tcp);
        if !tcp.flags.contains(TcpFlags::ACK) || !self.uplink.accepts_ack(tcp.ack) {
            // What the server acknowledges went past us: so may everything.
            if self.is_quiet() && tcp.flags.contains(TcpFlags::ACK) && tcp.ack > self.uplink.next {
                return Fate::Detach(packet);
            }
            return self.refuse(cx);
        }
        if self.is_old(cx.now, &tcp) {
            return self.refuse(cx);
        }
        if off > self.edge {
            self.on_far_server(cx, off);
        }
        if tcp.payload_len == 0 && !fin {
            return self.on_server_ack(cx, packet, off);
        }
        if tcp.payload_len <= 1 && off + 1 == self.store.next() && self.is_quiet() && !fin {
            self.probe_passed = true;
            return Fate::Pass(packet);
        }
        self.hear_server(cx.now, &tcp);
        self.uplink.on_server_data();
        self.on_data(cx, packet, off, fin)
    }

    /// The server stands where it could not by what it was told here: packets have gone past us, or this is injected. The
    /// client is asked, and tells which if it says that it stands there as well.
    fn on_far_server(&mut self, cx: &mut Context<'_>, off: u64) {
        self.server_at = off;
        let answered = self.heard_at >= self.asked_at;
        if answered || cx.now.since(self.asked_at) > self.rtt.base() {
            self.asked_at = cx.now;
            self.emit_empty(cx, self.una - 1, TcpFlags::ACK, SackBlocks::default());
        }
    }

    /// Data of the server that do not stand where its stream goes on. What the client has, or would not take, is
    /// between the two. What is ahead may have been overtaken by what is missing, so a few packets wait for it; more of
    /// them tell of a loss (as duplicates do in RFC 5681), which the ends repair.
    fn while_resting(
        &mut self,
        cx: &Context<'_>,
        packet: Packet,
        (off, end): (u64, u64),
        acceptable: bool,
    ) -> Fate {
        let next = self.store.next();
        if end <= next || !acceptable {
            return Fate::Pass(packet);
        }
        if off < next || end > self.edge || cx.full || self.ahead.is_full() {
            return Fate::Detach(packet);
        }
        self.ahead.insert(packet);
        Fate::Absorbed
    }

    /// Nothing in it is believed; an endpoint would answer with where it stands.
    fn refuse(&mut self, cx: &mut Context<'_>) -> Fate {
        cx.stats.invalid += 1;
        self.emit_server_ack(cx, None);
        Fate::Absorbed
    }

    /// The acknowledgment part of an acceptable segment.
    fn hear_server(&mut self, now: Instant, tcp: &TcpHeader) {
        self.news |= self.uplink.on_server_ack(tcp);
        self.uplink.note_window(u32::from(tcp.window) << self.agreed.server_shift);
        if let Some(timestamps) = tcp.options.timestamps.filter(|_| self.agreed.timestamps)
            && (is_newer(timestamps, self.server_timestamp)
                || self.uplink.renewed.is_forgotten(now, Side::Server))
        {
            self.server_timestamp = timestamps.val;
            self.server_echo = timestamps.ecr;
        }
        if self.agreed.ecn && tcp.flags.contains(TcpFlags::CWR) {
            self.echo_congestion = false;
        }
    }

    /// A segment without payload: for the client, unless it asks what we have to answer.
    fn on_server_ack(&mut self, cx: &mut Context<'_>, mut packet: Packet, off: u64) -> Fate {
        let tcp = *packet.tcp_header().expect("it is a segment");
        if off < self.store.next() && !self.is_quiet() {
            // A keepalive or a probe of the window that we advertise.
            self.hear_server(cx.now, &tcp);
            self.emit_server_ack(cx, None);
            return Fate::Absorbed;
        }
        self.hear_server(cx.now, &tcp);
        self.news = false;
        if off == self.acked || off + 1 == self.acked {
            self.renew(cx.now, &tcp); // where a server stands, and where it probes
        }
        self.probe_passed |= off < self.store.next();
        let readable = self.readable();
        if off > readable || tcp.flags.contains(TcpFlags::CWR) {
            // The client has not come that far: ahead of its window it would not even read the acknowledgment.
            let seq = if off > readable { self.seq(readable) } else { tcp.seq };
            let cwr = if self.agreed.ecn { TcpFlags::CWR.0 } else { 0 };
            rewrite::rewrite(&mut packet, &TcpHeader { seq, flags: TcpFlags(tcp.flags.0 & !cwr), ..tcp });
        }
        Fate::Pass(packet)
    }

    fn on_data(&mut self, cx: &mut Context<'_>, packet: Packet, off: u64, fin: bool) -> Fate {
        let tcp = *packet.tcp_header().expect("it is a segment");
        if !tcp.options.sack.is_empty() || tcp.flags.contains(TcpFlags::ECE) {
            self.emit_client_ack(cx, tcp.options.sack, tcp.flags.contains(TcpFlags::ECE));
        }
        let next = self.store.next();
        let end = off + u64::from(tcp.payload_len);
        let known_end = self.fin.unwrap_or(u64::MAX);
        // The client itself may have promised more than we keep.
        let accepted = self.edge.min(self.una + 2 * cx.config.flow_buffer.0 + LARGEST_PACKET).min(known_end);
        let (from, until) = (off.max(next), end.min(accepted).max(off.max(next)));
        // What lies beyond a gap was not acknowledged: it makes room for what fills the gap.
        let makes_room = cx.full && from == next && self.store.forget_beyond();
        if cx.full && until > from && !makes_room {
            cx.stats.refused += 1;
            return Fate::Absorbed;
        }
        if off <= self.acked {
            self.renew(cx.now, &tcp);
        }
        if self.agreed.ecn && packet.ip.ecn() == 3 {
            self.echo_congestion = true;
        }
        if off > self.edge {
            cx.stats.invalid += 1;
            self.emit_server_ack(cx, None);
            return Fate::Absorbed;
        }
        let duplicate = (off < next && tcp.payload_len > 0).then(|| (off, end.min(next)));
        if tcp.flags.contains(TcpFlags::URG) && end > next {
            let pointer = u64::from(Unparsed::of(&packet).urgent);
            let start = self.urgent.as_ref().map_or(off, |urgent| urgent.0.min(off)).max(1);
            self.urgent = Some(Box::new((start, (off + pointer).max(end))));
        }
        if fin && end <= self.edge && end >= next && self.fin.is_none_or(|known| known == end) {
            self.fin = Some(end);
        }
        let in_order = self.keep(cx, packet, &tcp, (off, from, until));
        // A FIN again, though it stands where the stream goes on: its acknowledgment was lost.
        let repeats = fin && tcp.payload_len == 0 && known_end == end;
        if in_order && !repeats {
            self.ack_due = true;
        } else {
            self.emit_server_ack(cx, duplicate);
        }
        Fate::Absorbed
    }

    /// Stores `from..until` of the packet; whether it came in order and brought something.
    fn keep(
        &mut self,
        cx: &mut Context<'_>,
        mut packet: Packet,
        tcp: &TcpHeader,
        (off, from, until): (u64, u64, u64),
    ) -> bool {
        let next = self.store.next();
        self.server_hop_limit = packet.ip.hop_limit;
        let unparsed = Unparsed::of(&packet);
        if packet.ip.src.is_ipv6() {
            self.flow_label = unparsed.flow_label;
        }
        let mark = Mark {
            traffic_class: self.forwarded_class(&packet.ip),
            hop_limit: packet.ip.hop_limit,
            push: tcp.flags.contains(TcpFlags::PSH),
            urgent: if tcp.flags.contains(TcpFlags::URG) { unparsed.urgent } else { 0 },
        };
        let skip = match &packet.payload {
            Payload::Datagram(_) => rewrite::header_len(&packet) as u32,
            Payload::Virtual(_) => 0,
        };
        let payload = std::mem::replace(&mut packet.payload, Payload::Virtual(0));
        let stored = self.store.insert((off, tcp.payload_len, skip), (from, until), mark, payload);
        cx.stats.bytes_in += stored.new;
        cx.stats.conflicts += u64::from(stored.conflict);
        if stored.new == 0 && tcp.payload_len > 0 {
            cx.stats.server_retransmissions += 1;
        }
        let advanced = self.store.next() > next;
        let closes = tcp.flags.contains(TcpFlags::FIN) && self.fin == Some(self.store.next());
        (advanced || closes && off >= next) && self.store.beyond().next().is_none()
    }

    /// What may be acknowledged to the server now.
    fn ack_target(&self, cx: &Context<'_>) -> u64 {
        let mut target = self.acked.max(self.una);
        if cx.early && self.is_heard(cx) && !self.is_silent(cx) {
            // More than today's share may have been promised while others were idle. It is taken, but not acknowledged early:
            // so the server waits, and the buffer lasts for all.
            let mut early =
                self.store.next().min(self.una + cx.config.exposure.0).min(self.promised_edge(cx));
            if self.fin.is_some() {
                early = early.min(self.store.tail());
            }
            if let Some(urgent) = &self.urgent {
                early = early.min(urgent.0);
            }
            target = target.max(early);
        }
        target
    }

    /// Whether the client has told what may be said in its name.
    fn is_heard(&self, cx: &Context<'_>) -> bool {
        self.complete && !self.uplink.uncertain && !self.is_clock_forgotten(cx.now)
    }
    /// Whether the client owes an answer for too long.
    pub fn is_silent(&self, cx: &Context<'_>) -> bool {
        self.is_waiting() && cx.now.since(self.heard_at) > cx.config.silence
    }

    /// Moves what the server is told to what it may be told; returns the window field.
    pub fn advance_ack(&mut self, cx: &mut Context<'_>) -> u16 {
        let target = self.ack_target(cx);
        if target > self.acked.max(self.una) {
            cx.stats.early_acks += 1;
        }
        self.acked = target;
        let shift = self.agreed.client_shift;
        let wanted = self.wanted_edge(cx);
        let size = |edge: u64| edge.saturating_sub(self.acked);
        // Rounding by the shift never takes back what was promised.
        let least = size(self.edge).div_ceil(1 << shift);
        let field = (size(wanted) >> shift).max(least).min(65_535);
        self.edge = self.edge.max(self.acked + (field << shift));
        self.ack_due = false;
        field as u16
    }

    fn wanted_edge(&self, cx: &Context<'_>) -> u64 {
        if !cx.early {
            // Being stopped: what is held has to run empty, so the server is let on no further than what is under way to
            // the client allows, and no further than the client itself would.
            self.client_edge.min(self.nxt + self.under_way()).max(self.edge)
        } else if cx.tight || !self.is_heard(cx) {
            self.edge
        } else {
            self.promised_edge(cx).max(self.edge)
        }
    }
    /// How far the server may be ahead of the client, as things are now.
    fn promised_edge(&self, cx: &Context<'_>) -> u64 {
        self.una + self.board.sacked_bytes().min(cx.share) + cx.share
    }

    /// Whether the window that the server sees should be told anew.
    fn window_update_due(&self, cx: &Context<'_>) -> bool {
        let growth = self.wanted_edge(cx).saturating_sub(self.edge);
        let seen = self.edge.saturating_sub(self.acked);
        // More than the field can say is no growth.
        let most = (65_535u64 << self.agreed.client_shift).saturating_sub(seen);
        let growth = growth.min(most);
        let segment = u64::from(self.agreed.segment);
        seen < segment && growth >= segment
            || growth >= (cx.share / UPDATE_SHARE).min(most.max(segment)).max(segment) && seen < cx.share / 2
    }

    /// Tells the server what has become due: called when a batch of packets has been handled.
    pub fn flush_server_ack(&mut self, cx: &mut Context<'_>) {
        if self.is_ack_due(cx) {
            self.emit_server_ack(cx, None);
        }
        self.ack_due = false;
    }
    /// Whether there is something to tell the server.
    pub fn is_ack_due(&self, cx: &Context<'_>) -> bool {
        self.ack_target(cx) > self.acked || self.window_update_due(cx)
    }

    /// An acknowledgment in the client's name, with SACK blocks for what is missing here.
    pub fn emit_server_ack(&mut self, cx: &mut Context<'_>, duplicate: Option<(u64, u64)>) {
        if self.is_clock_forgotten(cx.now) {
            return;
        }
        let window = self.advance_ack(cx);
        let sack = self.sack_blocks(duplicate);
        let ece = if self.echo_congestion { TcpFlags::ECE } else { TcpFlags(0) };
        let tcp = TcpHeader {
            src_port: self.key.dst_port,
            dst_port: self.key.src_port,
            seq: self.uplink.readable(self.agreed.server_shift),
            ack: self.seq(self.acked),
            flags: TcpFlags::ACK.with(ece),
            window,
            options: TcpOptions { timestamps: self.client_timestamps(), sack, ..TcpOptions::default() },
            payload_len: 0,
        };
        let ip = IpHeader {
            src: self.key.dst,
            dst: self.key.src,
            traffic_class: self.uplink.traffic_class,
            hop_limit: self.uplink.hop_limit,
            special: false,
        };
        cx.stats.acks_sent += 1;
        let unparsed = Unparsed { urgent: 0, flow_label: self.uplink.flow_label };
        let packet = self.build(ip, tcp, unparsed);
        cx.out.push_back(Transmission::whole(Side::Server, packet));
    }

    /// A duplicate first (RFC 2883), then what is held beyond gaps, the highest first.
    pub fn sack_blocks(&self, duplicate: Option<(u64, u64)>) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.agreed.sack {
            return blocks;
        }
        let room = if self.agreed.timestamps { 3 } else { 4 };
        if let Some((left, right)) = duplicate.filter(|(left, right)| left < right && *right <= self.acked) {
            blocks.push(self.seq(left), self.seq(right));
        }
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (left, right) in self.store.beyond() {
            match joined.last_mut() {
                Some(last) if last.1 == left => last.1 = right,
                _ => joined.push((left, right)),
            }
        }
        for (left, right) in joined.into_iter().rev().take(room - blocks.len()) {
            blocks.push(self.seq(left), self.seq(right));
        }
        blocks
    }

    fn on_server_reset(&mut self, cx: &mut Context<'_>, packet: Packet, off: u64) -> Fate {
        let exact = [self.store.next(), self.stream_end(), self.acked].contains(&off);
        if !exact {
            // RFC 5961, section 3.2: a challenge, which only the true server can answer.
            return self.refuse(cx);
        }
        if self.is_quiet() || self.una >= self.store.next() {
            return Fate::Over(packet);
        }
        if self.reset.is_none() {
            let until = cx.now + cx.config.reset_grace;
            self.reset = Some(Box::new(PendingReset { packet, until }));
        }
        Fate::Absorbed
    }

    /// The class octet on the mobile segment: congestion of the wired one is echoed by us, so that the packet goes on
    /// as it was sent.
    fn forwarded_class(&self, ip: &IpHeader) -> u8 {
        if self.agreed.ecn && ip.ecn() == 3 { ip.traffic_class & !3 | 2 } else { ip.traffic_class }
    }

    /// The server's reset, numbered so that the client takes it.
    pub fn release_reset(&mut self) -> Option<Packet> {
        let PendingReset { mut packet, .. } = *self.reset.take()?;
        let tcp = *packet.tcp_header()?;
        rewrite::rewrite(&mut packet, &TcpHeader { seq: self.seq(self.una), ..tcp });
        Some(packet)
    }
}
