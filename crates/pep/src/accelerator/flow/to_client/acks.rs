//! ACKs of the client (RFC 9293, section 3.10.7.4; RFC 2018; RFC 2883; RFC 5681): delivered data leaves the
//! scoreboard and the store, losses are detected.

use crate::accelerator::flow::connection::Connection;
use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::to_client::ToClient;
use crate::accelerator::flow::to_client::overshoot::{PastWindow, Progress};
use crate::accelerator::flow::to_client::rtt::RttBounds;
use crate::accelerator::flow::to_client::sack_check::{Blocks, Change};
use crate::accelerator::flow::to_client::scoreboard::delivery::Delivery;
use crate::accelerator::rate::RateControl;
use paceline_net::{Duration, Instant, TcpFlags, TcpHeader};

/// Duplicate ACKs that indicate a drop past the client's window (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u8 = 3;
/// Segments by which the client's window may grow at an ACK that is a duplicate. Linux, which tunes the
/// window by as much for each segment that arrives (`tcp_grow_window`).
const TUNING_SEGMENTS: u64 = 2;
/// Segments past the client's window that one ACK shows to be lost, from which they were probably dropped for
/// that. Chosen: all of them are dropped at once; a radio loses one or two.
const CLIENT_DROP_SEGMENTS: u64 = 3;

/// An acknowledgment of the client.
#[derive(Clone, Copy)]
pub(in crate::accelerator) struct ClientAck<'a> {
    pub tcp: &'a TcpHeader,
    /// The offset up to which it acknowledges.
    pub ack: u64,
    /// The segment has payload, FIN or URG: it is no duplicate ACK.
    pub carries: bool,
}

impl ToClient {
    /// An acceptable ACK of the client.
    pub fn on_ack(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        from_server: &mut FromServer,
        client_ack: ClientAck<'_>,
    ) -> Delivery {
        let ClientAck { tcp, ack, carries } = client_ack;
        let size = u64::from(tcp.window) << connection.negotiated.client_shift;
        let advances = ack > self.una;
        let duplicate = ack == self.una && !carries && self.has_outstanding();
        let was_closed = self.window.is_closed();
        let edge = self.window.edge();
        let change = self.window.update(self.una, ack, size, tcp.seq);
        if change.opens && (was_closed || !self.has_outstanding()) {
            self.timers.restart(cx.now);
        }
        let blocks = self.sack_blocks(cx.now, connection, tcp, ack);
        let una = self.una.max(ack);
        let bounds = self.rtt_bounds(from_server);
        let ranges = blocks.ranges.iter().flatten().copied();
        let mut delivery = self.scoreboard.on_ack(cx.now, una, ranges, &bounds);
        delivery.opened = self.window.edge().saturating_sub(edge);
        let payload = |off: u64| off.min(from_server.next());
        cx.stats.bytes_delivered += payload(una) - payload(self.una);
        let acked = una - self.una;
        self.una = una;
        from_server.release(cx.now, una);
        if let Some(rtt) = delivery.rtt {
            self.rtt.on_sample(rtt);
            self.ambiguous_acks = 0;
        }
        if delivery.bytes > 0 {
            self.timers.restart(cx.now);
        }
        if delivery.bytes > 0 || change.opens {
            self.timers.on_progress(cx.now);
            self.rtt.on_progress();
        }
        self.ambiguous_acks = self.ambiguous_acks.saturating_add(u8::from(delivery.ambiguous));
        self.send_now |= advances && self.scoreboard.is_recovering() && self.scoreboard.is_front_lost();
        if delivery.ambiguous && self.has_outstanding() {
            self.send_now = true; // new data if there is any: its ACK is unambiguous (RFC 5682)
        }
        let dsack = blocks.has_dsack;
        let bare = duplicate && !dsack && delivery.bytes == 0 && (change.same_size || change.advances);
        if dsack {
            self.scoreboard.on_dsack(cx.now, self.una);
            delivery.spurious += u64::from(self.segment);
        }
        if let Some(segment) = self.black_hole.on_delivery(delivery.longest, advances) {
            self.shorten(segment);
            delivery.black_hole = true;
            cx.stats.black_holes += 1;
        }
        if advances {
            self.check_reneging(cx.now);
        }
        if connection.negotiated.ecn && tcp.flags.contains(TcpFlags::ECE) && self.una > self.cwr_until {
            // Congestion on the mobile segment is answered once a flight, and hidden from the server.
            self.cwr_until = self.nxt;
            self.cwr_due = true;
            delivery.marked = true;
        }
        if advances {
            self.duplicates = 0;
            self.sack_check.on_progress();
            let (una, nxt, useful) = (self.una, self.nxt, self.useful_window.into());
            let known = cx.past_window == PastWindow::Taken;
            self.overshoot.on_progress(known, Progress { una, nxt, acked, window: size, useful });
        } else if bare {
            // A client that reads opens its window by more than one that tunes its buffer.
            let updates_window = delivery.opened > TUNING_SEGMENTS * u64::from(self.segment);
            delivery.bytes += self.on_bare_duplicate(cx, updates_window);
        }
        self.detect_losses(cx.now);
        self.scoreboard.take_losses(&mut delivery);
        self.judge_past_window(cx, &delivery);
        delivery
    }

    /// Draws the conclusions from an ACK on data past the window.
    fn judge_past_window(&mut self, cx: &mut Context<'_>, delivery: &Delivery) {
        let lost = delivery.lost_beyond_window;
        if delivery.lost + lost > 0 && self.nxt > self.window.edge() {
            self.overshoot.stop();
        }
        let dropped = !self.fading && lost >= CLIENT_DROP_SEGMENTS * u64::from(self.segment);
        match cx.past_window {
            PastWindow::Unknown if lost > 0 => self.on_past_window_drop(cx),
            PastWindow::Unknown if delivery.past_window => cx.past_window = PastWindow::Taken,
            PastWindow::Taken if dropped => self.on_past_window_drop(cx),
            _ => {}
        }
    }
    /// The client, or a firewall ahead of it, dropped segments past the window.
    pub(super) fn on_past_window_drop(&mut self, cx: &mut Context<'_>) {
        self.overshoot.stop();
        cx.stats.overshoot_drops += 1;
        // The published control sends past the window until that is zero.
        if !matches!(cx.config.control, RateControl::Paper(_)) {
            cx.past_window = PastWindow::Refused;
        }
    }

    /// The SACK blocks of an acknowledgment of `ack`, if they can be used.
    fn sack_blocks(&mut self, now: Instant, connection: &Connection, tcp: &TcpHeader, ack: u64) -> Blocks {
        if !connection.negotiated.sack || self.sack_check.is_wrong() {
            return Blocks::default();
        }
        let blocks = Blocks::new(connection, tcp, ack, self.una, self.nxt);
        let change = self.sack_check.on_blocks(&blocks, self.uses_sack());
        self.change_recovery(now, change);
        if self.uses_sack() { blocks } else { blocks.without_ranges() }
    }
    /// Changes the detection of losses. Returns the bytes that earlier duplicate ACKs report as arrived.
    fn change_recovery(&mut self, now: Instant, change: Change) -> u64 {
        match change {
            Change::None => 0,
            Change::ToSack => {
                self.scoreboard.resume_sack();
                0
            }
            Change::ToNewReno => {
                self.scoreboard.end_sack();
                (0..self.duplicates.min(DUPLICATE_THRESHOLD)).map(|_| self.on_newreno_duplicate(now)).sum()
            }
        }
    }
    /// The client has acknowledged up to data that a block reported, and not that data: either it has
    /// discarded it, or the block was wrong.
    pub(super) fn on_reneging(&mut self) {
        if self.sack_check.on_contradiction(self.uses_sack()) == Change::ToNewReno {
            self.scoreboard.end_sack();
        }
    }

    fn rtt_bounds(&self, from_server: &FromServer) -> RttBounds {
        let has_unsent = self.nxt < from_server.stream_end();
        let if_fading = |time: Duration| if self.fading { time } else { Duration::ZERO };
        let frto_off = self.is_frto_off(has_unsent);
        RttBounds {
            min: self.rtt.min(),
            shortest: if_fading(self.rtt.srtt().unwrap_or_default() / 2),
            longest: if frto_off { Duration::MAX } else { self.rtt.base_rto() },
            first_copy: if_fading(self.timers.ack_deadline(&self.rtt).age),
        }
    }

    /// A duplicate ACK that reports nothing else. Without SACK it says that some segment has arrived; returns
    /// the bytes.
    fn on_bare_duplicate(&mut self, cx: &mut Context<'_>, updates_window: bool) -> u64 {
        self.duplicates = self.duplicates.saturating_add(1);
        cx.stats.duplicates_suppressed += 1;
        if self.fading && self.uses_sack() {
            self.scoreboard.on_spurious(cx.now);
        }
        // If the client had accepted the first segment, an ACK from after its arrival would cover it. A
        // window update of a slow reader looks the same, but comes alone.
        let arrival = self.rtt.srtt().unwrap_or_default() * 7 / 8;
        let sent_at = self.scoreboard.front_past_edge_sent_at();
        let overdue = sent_at.is_some_and(|at| cx.now.since(at) >= arrival);
        // Not on fading radios, where a duplicate ACK answers a spurious retransmission. Not with a hole,
        // which is repaired together with everything that was dropped behind it.
        let hole = self.scoreboard.has_hole();
        let dropped = overdue && !self.fading && !hole && self.duplicates >= DUPLICATE_THRESHOLD - 1;
        let lost = if dropped { self.scoreboard.lose_past_edge() } else { 0 };
        if lost > 0 {
            self.on_past_window_drop(cx);
            self.scoreboard.lose_first(false);
            return 0;
        }
        if !self.uses_sack() {
            return self.on_newreno_duplicate(cx.now);
        }
        if hole || updates_window {
            return 0;
        }
        // An answer to a retransmission or a probe needs no block.
        let repeats = self.scoreboard.may_answer_repetition(self.timers.last_probe_at());
        let change = self.sack_check.on_bare_duplicate(repeats);
        self.change_recovery(cx.now, change)
    }
    fn on_newreno_duplicate(&mut self, now: Instant) -> u64 {
        let srtt = self.rtt.srtt().unwrap_or_default();
        let (arrived, lost) = self.scoreboard.on_bare_duplicate(now, self.segment, srtt * 2);
        self.send_now |= lost;
        arrived
    }
}
