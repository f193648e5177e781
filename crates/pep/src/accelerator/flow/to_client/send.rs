//! The next segment to the client. The rate control paces and bounds; the client's window bounds as well,
//! except for the overshoot. Lost segments go first. A loss changes no rate here: the rate control is told,
//! and decides.

use crate::accelerator::config::AcceleratorConfig;
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::store::Cut;
use crate::accelerator::flow::to_client::emit::{DataFlags, emit_data, emit_empty};
use crate::accelerator::flow::to_client::overshoot::PastWindow;
use crate::accelerator::flow::to_client::path::DevicePath;
use crate::accelerator::flow::to_client::sacked::emit_sacked;
use crate::accelerator::flow::to_client::scoreboard::sent::Retransmission;
use crate::accelerator::flow::to_client::{SendOutcome, ToClient};
use crate::accelerator::flow::views::ServerState;
use crate::accelerator::rate::RateControl;
use paceline_net::{Duration, Instant, SackBlocks, TcpFlags};

impl ToClient {
    /// Sends one packet, lost segments first.
    pub fn send_next(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        path: DevicePath<'_>,
    ) -> SendOutcome {
        if self.is_unresponsive() && !self.send_now {
            return SendOutcome::Nothing;
        }
        let outage = self.is_in_outage(cx.now);
        let room = if self.send_now {
            u64::MAX
        } else if outage {
            // A segment counts as in flight until its ACK deadline. With as much in flight as the radio
            // delivers in that time, there is a segment to deliver whenever the outage ends.
            path.room_for(self.timers.ack_deadline(&self.rtt).age)
        } else {
            path.room()
        };
        match self.scoreboard.next_lost() {
            Some(lost) => self.retransmit(cx, server, room, outage, lost),
            None => self.send_new(cx, server, path, room),
        }
    }

    /// Sends all stored data that the client's window allows, lost segments first, regardless of the rate.
    pub fn send_remaining(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        path: DevicePath<'_>,
    ) {
        if self.is_unresponsive() {
            return;
        }
        while self.has_lost() || self.nxt < server.from_server.stream_end() {
            self.send_now = true;
            if !matches!(self.send_next(cx, server, path), SendOutcome::Sent { .. }) {
                return;
            }
        }
    }

    /// Whether an outage of a fading radio is likely under way: an ACK is overdue. Segments sent now may be
    /// lost, so no more are sent than the path holds and than the client accepts afterwards.
    fn is_in_outage(&self, now: Instant) -> bool {
        let overdue = || now >= self.timers.ack_deadline(&self.rtt).not_before;
        self.fading && self.has_outstanding() && overdue()
    }

    /// The right edge that sending obeys.
    fn limit(&self, cx: &Context<'_>) -> u64 {
        let (edge, size) = (self.window.edge(), self.window.size());
        // A client with a hole cannot free its buffer: the hole is repaired first.
        let has_hole = self.has_lost() || self.scoreboard.has_hole() || self.scoreboard.is_recovering();
        let refused = cx.past_window == PastWindow::Refused;
        if !cx.config.overshoot || refused || has_hole || self.is_in_outage(cx.now) {
            return edge;
        }
        let extra = if matches!(cx.config.control, RateControl::Paper(_)) {
            // As published: regardless of the window unless it is zero. Bounded by the useful window.
            u64::from(self.useful_window).saturating_sub(size)
        } else if cx.past_window == PastWindow::Taken {
            self.overshoot.extra(size)
        } else if self.overshoot.is_growing(size) && self.nxt <= edge {
            // The probe of a device of which nothing is known: the segment that has the edge.
            let segment = u64::from(self.segment);
            segment - (edge - self.nxt) % segment
        } else {
            0
        };
        edge + extra
    }

    fn retransmit(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        room: u64,
        outage: bool,
        lost: Retransmission,
    ) -> SendOutcome {
        let full = if lost.fin { 1 } else { lost.len.min(self.segment) };
        let len = if lost.off == self.una { self.black_hole.probe_len(full) } else { full };
        let end = lost.off + u64::from(len);
        // If everything below it is in flight, and losses come from outages, the segment arrives in order,
        // and the client's window has room for it.
        let limited = outage || !self.fading || !self.scoreboard.is_front_in_flight();
        if (self.window.is_closed() || limited && end > self.limit(cx)) && !self.send_now {
            return SendOutcome::Nothing;
        }
        if room < u64::from(len) {
            return SendOutcome::NoRoom;
        }
        self.send_now = false;
        self.scoreboard.on_retransmit(cx.now, len, end > self.window.edge());
        if len < full {
            self.black_hole.on_probe(len);
        }
        cx.stats.retransmissions += 1;
        let mut cut = if lost.fin { None } else { server.from_server.store().cut(lost.off, len, len, end) };
        // A retransmission is not ECN-capable (RFC 3168, section 6.1.5).
        cut.iter_mut().for_each(|cut| cut.mark.traffic_class &= !3);
        self.emit(cx, server, lost.off, cut, lost.fin)
    }

    fn send_new(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        path: DevicePath<'_>,
        room: u64,
    ) -> SendOutcome {
        let from_server = server.from_server;
        if self.window.is_closed() || self.nxt >= from_server.stream_end() {
            return SendOutcome::Nothing;
        }
        let segment = self.segment;
        let limit = self.limit(cx);
        let off = self.nxt;
        if from_server.is_fin(off) {
            if off >= limit && self.has_outstanding() {
                return SendOutcome::Nothing;
            }
            self.send_now = false;
            self.start_timer(cx.now);
            self.record_fin(cx.now);
            return self.emit(cx, server, off, None, true);
        }
        let most = if self.send_now { segment } else { self.burst(cx.config, path) };
        let store = from_server.store();
        let Some(mut cut) = store.cut(off, segment, most, limit) else { return SendOutcome::Nothing };
        if !cut.ends_packet && cut.len < segment && self.has_outstanding() {
            return SendOutcome::Nothing; // silly window avoidance (RFC 9293, section 3.8.6.2.1)
        }
        if room < u64::from(cut.len.min(segment)) {
            return SendOutcome::NoRoom;
        }
        if u64::from(cut.len) > room {
            let len = room as u32 / segment * segment;
            cut = store.cut(off, segment, len.max(segment), limit).unwrap_or(cut);
        }
        self.send_now = false;
        self.start_timer(cx.now);
        let age = store.arrived_at(off).map_or(Duration::ZERO, |at| cx.now.since(at));
        cx.stats.on_first_sent(age);
        self.age_us = u32::try_from(age.as_nanos() / 1000).unwrap_or(u32::MAX);
        let end = off + u64::from(cut.len);
        while self.nxt < end {
            let len = (end - self.nxt).min(u64::from(segment)) as u32;
            let past_edge = self.nxt + u64::from(len) > self.window.edge();
            self.scoreboard.on_send(cx.now, self.nxt, len, past_edge, false);
            self.nxt += u64::from(len);
            cx.stats.segments_sent += 1;
        }
        if self.nxt > self.window.edge() {
            self.overshoot.on_sent(cx.now);
        }
        let fin = from_server.is_fin(end);
        if fin {
            self.record_fin(cx.now);
        }
        self.emit(cx, server, off, Some(cut), fin)
    }

    /// Sends the segment at `off` that has the payload `cut`, if any, and the FIN.
    fn emit(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut ServerState<'_>,
        off: u64,
        cut: Option<Cut>,
        fin: bool,
    ) -> SendOutcome {
        let cwr = std::mem::take(&mut self.cwr_due);
        let bytes = emit_data(cx, server, self.segment, (off, cut), DataFlags { fin, cwr });
        SendOutcome::Sent { bytes }
    }
    /// Sends an ACK to the client that no data segment carries.
    pub fn emit_ack(&self, cx: &mut Context<'_>, server: &mut ServerState<'_>, sack: SackBlocks, ece: bool) {
        let flags = if ece { TcpFlags::ACK.with(TcpFlags::ECE) } else { TcpFlags::ACK };
        emit_empty(cx, server, self.empty_segment_offset(), flags, sack);
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
        emit_empty(cx, server, self.una - 1, TcpFlags::ACK, SackBlocks::default());
    }
    /// Sends all data beyond the first gap that the client's window allows, regardless of the rate.
    pub fn send_sacked(&self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        if !self.is_unresponsive() && server.connection.negotiated.sack {
            emit_sacked(cx, server, self.segment, self.window.edge());
        }
    }

    fn record_fin(&mut self, now: Instant) {
        self.scoreboard.on_send(now, self.nxt, 1, self.nxt >= self.window.edge(), true);
        self.nxt += 1;
    }

    /// Payload bytes of the largest packet that may be sent now.
    fn burst(&self, config: &AcceleratorConfig, path: DevicePath<'_>) -> u32 {
        let mut most = u64::from(path.burst(config.tick, self.segment)).min(config.super_packet.0);
        let (edge, una) = (self.window.edge(), self.una);
        if edge - una.min(edge) < u64::from(self.nxt.saturating_sub(una) as u32) {
            // Past the window the client may drop the packet: a smaller one costs less.
            most = most.min(self.window.size() / 4);
        }
        (most as u32).max(self.segment)
    }

    fn start_timer(&mut self, now: Instant) {
        if !self.has_outstanding() {
            self.timers.on_first_sent(now);
        }
    }
}
