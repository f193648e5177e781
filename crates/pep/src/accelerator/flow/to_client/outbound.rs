//! The sender towards the client: what goes next.
//!
//! The rate control paces and bounds; the client's window bounds as well, unless overshoot is on and the client
//! takes it. A lost segment is sent again without any change of rate: what is lost, and when nothing else would tell,
//! `recovery` says.

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::from_server::store::Cut;
use crate::accelerator::flow::{Context, Flow};
use crate::accelerator::machine::device::Device;
use crate::accelerator::rate::RateControl;
use crate::accelerator::{Side, Transmission};
use paceline_net::rewrite::{self, Unparsed};
use paceline_net::{
    Checksum, Instant, IpHeader, SackBlocks, SeqNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

/// Smaller path MTUs are not believed: Linux's floor for IPv4, RFC 8200's minimum.
const LEAST_MTU_V4: u32 = 552;
const LEAST_MTU_V6: u32 = 1280;

/// Rates are of payload, as they are measured; a packet without much of it counts for its header.
const LEAST_COST: u64 = 40;
/// Payload of less is copied: that costs less than to share it.
const LEAST_GATHERED: u32 = 512;
/// Payload in more parts is copied: what the kernel gathers for one packet is limited, and a part has a price.
const MOST_PARTS: usize = 64;

/// What came of a turn to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::accelerator) enum Turn {
    /// A packet left that counts for so many bytes.
    Sent { bytes: u64 },
    /// Too much is on its way already.
    NoRoom,
    /// There is nothing that may be sent.
    Nothing,
}

impl Flow {
    /// Sends one packet, what was lost first.
    pub fn send_next(&mut self, cx: &mut Context<'_>, device: &Device) -> Turn {
        if self.silent && !self.force {
            return Turn::Nothing; // until it answers
        }
        let fading = self.is_fading(cx.now);
        let room = if self.force {
            u64::MAX
        } else if fading {
            // What is sent counts as on its way until patience with it ends: as much as the radio takes in that time may be.
            // Then it has something to send whenever the fade ends.
            device.room_in(device.control.capacity_in(self.rtt.patience(self.heard_at).age))
        } else {
            device.room()
        };
        if let Some(repeat) = self.board.next_lost() {
            let whole = if repeat.fin { 1 } else { repeat.len.min(self.agreed.segment) };
            let len = if repeat.off == self.una { self.black_hole.cut(whole) } else { whole };
            let end = repeat.off + u64::from(len);
            // Everything below it is on its way: where losses are fades, it arrives in order, whatever the window was.
            let limited = fading || !self.fades || !self.board.is_front_on_its_way();
            if (self.client_window == 0 || limited && end > self.limit(cx)) && !self.force {
                return Turn::Nothing;
            }
            if room < u64::from(len) {
                return Turn::NoRoom;
            }
            self.force = false;
            self.board.on_repeat(cx.now, len, end > self.client_edge);
            if len < whole {
                self.black_hole.on_cut(len);
            }
            cx.stats.retransmissions += 1;
            let cut = if repeat.fin { None } else { self.store.cut(repeat.off, len, len, end) };
            return self.emit_data(cx, repeat.off, cut, repeat.fin);
        }
        self.send_new(cx, device, room)
    }

    /// Sends all that is held and that the client takes, what was lost first, regardless of the rate.
    pub fn send_rest(&mut self, cx: &mut Context<'_>, device: &Device) {
        if self.silent {
            return;
        }
        while self.board.has_lost() || self.has_unsent() {
            self.force = true;
            if !matches!(self.send_next(cx, device), Turn::Sent { .. }) {
                return;
            }
        }
    }

    /// Whether a fade is likely under way: what is sent is a guess, of which no more is made than the path holds, and of
    /// what the client is sure to take when it ends.
    fn is_fading(&self, now: Instant) -> bool {
        self.fades && self.is_waiting() && now >= self.rtt.patience(self.heard_at).from
    }

    /// The right edge that sending obeys.
    fn limit(&self, cx: &Context<'_>) -> u64 {
        if !cx.config.overshoot {
            return self.client_edge;
        }
        if self.is_fading(cx.now) {
            return self.client_edge;
        }
        let published = matches!(cx.config.control, RateControl::Paper(_));
        let paused = !published && self.overshoot.is_paused(cx.now);
        if self.board.has_lost() || paused {
            return self.client_edge; // behind a hole a reader, however quick, has no room: it is repaired first
        }
        if let Some(end) = self.board.sacked_end().filter(|_| self.board.is_front_on_its_way()) {
            // Every repair is on its way. Where all that is lost is lost in fades, what is sent after one finds the
            // window where they will have left it.
            let repaired = if self.fades { end + self.client_window.max(self.useful_window) } else { 0 };
            return self.client_edge.max(repaired);
        } else if self.board.has_hole() || self.board.is_recovering() {
            return self.client_edge;
        }
        let extra = if published {
            // As published, whatever the window, unless it is zero; but not past what is of use.
            self.useful_window.saturating_sub(self.client_window)
        } else {
            self.overshoot.extra(cx.now, self.client_window)
        };
        self.client_edge + extra
    }

    fn send_new(&mut self, cx: &mut Context<'_>, device: &Device, room: u64) -> Turn {
        if self.client_window == 0 || !self.has_unsent() {
            return Turn::Nothing;
        }
        let segment = self.agreed.segment;
        let limit = self.limit(cx);
        if Some(self.nxt) == self.fin {
            if self.nxt >= limit && self.is_waiting() {
                return Turn::Nothing;
            }
            self.force = false;
            self.start_timer(cx.now);
            self.board.on_send(cx.now, self.nxt, 1, self.nxt >= self.client_edge, true);
            let off = self.nxt;
            self.nxt += 1;
            return self.emit_data(cx, off, None, true);
        }
        let most = if self.force { segment } else { self.burst(cx.config, device) };
        let Some(mut cut) = self.store.cut(self.nxt, segment, most, limit) else { return Turn::Nothing };
        if !cut.whole && cut.len < segment && self.is_waiting() {
            return Turn::Nothing; // no silly window (RFC 9293, section 3.8.6.2.1)
        }
        if room < u64::from(cut.len.min(segment)) {
            return Turn::NoRoom;
        }
        if u64::from(cut.len) > room {
            let len = room as u32 / segment * segment;
            cut = self.store.cut(self.nxt, segment, len.max(segment), limit).unwrap_or(cut);
        }
        self.force = false;
        self.start_timer(cx.now);
        let off = self.nxt;
        let end = off + u64::from(cut.len);
        while self.nxt < end {
            let len = (end - self.nxt).min(u64::from(segment)) as u32;
            let beyond = self.nxt + u64::from(len) > self.client_edge;
            self.board.on_send(cx.now, self.nxt, len, beyond, false);
            self.nxt += u64::from(len);
            cx.stats.segments_sent += 1;
        }
        let fin = self.fin == Some(end);
        if fin {
            self.board.on_send(cx.now, end, 1, end >= self.client_edge, true);
            self.nxt += 1;
        }
        self.emit_data(cx, off, Some(cut), fin)
    }

    /// Payload bytes of the largest packet that may leave now.
    fn burst(&self, config: &AcceleratorConfig, device: &Device) -> u32 {
        let segment = self.agreed.segment;
        let mut most = u64::from(device.burst(config.tick, segment)).min(config.super_packet.0);
        if self.client_edge - self.una.min(self.client_edge)
            < u64::from(self.nxt.saturating_sub(self.una) as u32)
        {
            // Beyond the window a drop should cost little.
            most = most.min(self.client_window / 4);
        }
        (most as u32).max(segment)
    }

    fn start_timer(&mut self, now: Instant) {
        if !self.is_waiting() {
            self.timer_base = now;
            self.heard_at = now;
        }
    }

    fn emit_data(&mut self, cx: &mut Context<'_>, off: u64, cut: Option<Cut>, fin: bool) -> Turn {
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
        let mut ip = self.server_ip();
        if let Some(mark) = mark {
            (ip.traffic_class, ip.hop_limit) = (mark.traffic_class, mark.hop_limit);
        }
        let tcp = TcpHeader { payload_len: len, ..self.server_header(off, flags) };
        let unparsed = Unparsed { urgent: mark.map_or(0, |mark| mark.urgent), flow_label: self.flow_label };
        let gathers = cx.config.gather && len >= LEAST_GATHERED;
        let body = if gathers { self.store.share(off, len, MOST_PARTS) } else { None };
        let packet = match (&body, cut.and_then(|cut| self.store.read(off, cut.len))) {
            (Some(_), _) => rewrite::headers(ip, tcp, unparsed),
            (None, Some(parts)) => {
                let partial = cx.config.partial_checksums;
                let checksum = if partial { Checksum::Partial } else { Checksum::Unverified };
                rewrite::segment(ip, tcp, unparsed, checksum, parts)
            }
            (None, None) => self.build(ip, tcp, unparsed),
        };
        self.news = false;
        let segment = if len > self.agreed.segment { self.agreed.segment } else { 0 };
        let body = body.unwrap_or_default();
        cx.out.push_back(Transmission { side: Side::Mobile, packet, segment, body });
        Turn::Sent { bytes: u64::from(len).max(LEAST_COST) }
    }

    fn server_ip(&self) -> IpHeader {
        let hop_limit = self.server_hop_limit;
        IpHeader { src: self.key.src, dst: self.key.dst, traffic_class: 0, hop_limit, special: false }
    }
    fn server_header(&self, off: u64, flags: TcpFlags) -> TcpHeader {
        let timestamps = Timestamps { val: self.server_timestamp, ecr: self.server_echo };
        let timestamps = self.agreed.timestamps.then_some(timestamps);
        TcpHeader {
            src_port: self.key.src_port,
            dst_port: self.key.dst_port,
            seq: self.seq(off),
            ack: self.uplink.una,
            flags,
            window: self.uplink.window,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
            payload_len: 0,
        }
    }

    /// An empty segment in the server's name: news for the client that no data carries.
    pub fn emit_client_ack(&mut self, cx: &mut Context<'_>, sack: SackBlocks, ece: bool) {
        let flags = if ece { TcpFlags::ACK.with(TcpFlags::ECE) } else { TcpFlags::ACK };
        self.emit_empty(cx, self.readable(), flags, sack);
        self.news = false;
    }
    /// Where an empty segment stands for the client to read it (RFC 9293, section 3.10.7.4): behind all that it was sent, which
    /// arrives ahead. Not where its window takes no further segment: what was sent past that is dropped, and this would be.
    pub fn readable(&self) -> u64 {
        if self.client_window < u64::from(self.agreed.segment) {
            self.nxt.min(self.client_edge).max(self.una)
        } else {
            self.nxt
        }
    }
    pub fn emit_empty(&mut self, cx: &mut Context<'_>, off: u64, flags: TcpFlags, sack: SackBlocks) {
        let mut tcp = self.server_header(off, flags);
        tcp.options.sack = sack;
        let unparsed = Unparsed { urgent: 0, flow_label: self.flow_label };
        let packet = self.build(self.server_ip(), tcp, unparsed);
        cx.out.push_back(Transmission::whole(Side::Mobile, packet));
    }

    /// A packet of at most `mtu` bytes fits on the way to the client (RFC 1191, RFC 8201): what is larger is cut
    /// and sent again. Believed only if it quotes something that is on its way.
    pub fn on_packet_too_big(&mut self, seq: SeqNumber, mtu: u32) -> bool {
        let quoted = self.offset(seq, self.una).is_some_and(|off| self.una <= off && off < self.nxt);
        let v4 = self.key.src.is_ipv4();
        let headers = if v4 { 40 } else { 60 } + self.option_bytes();
        let segment = mtu.max(if v4 { LEAST_MTU_V4 } else { LEAST_MTU_V6 }) - headers;
        if !quoted || segment >= self.agreed.segment {
            return false;
        }
        self.shorten(segment);
        true
    }
    /// Bytes of TCP's options and payload in a full segment.
    pub fn longest(&self) -> u32 {
        self.agreed.segment + self.option_bytes()
    }
    fn option_bytes(&self) -> u32 {
        if self.agreed.timestamps { 12 } else { 0 }
    }
    /// No segment has more: what other connections have found out of the path.
    pub fn limit_to(&mut self, longest: u32) {
        self.agreed.segment = self.agreed.segment.min(longest - self.option_bytes());
    }
    /// No segment is longer from now on.
    pub fn shorten(&mut self, segment: u32) {
        self.agreed.segment = segment;
        self.board.lose_larger(segment);
    }
}
