//! The reactions to the timers of the sending side: loss detection, tail probes, retransmission timeouts,
//! probes of a closed window; and SACKed data that the client has discarded. `timers` has when they are due.

use crate::accelerator::flow::context::Context;
use crate::accelerator::flow::from_server::FromServer;
use crate::accelerator::flow::to_client::ToClient;
use crate::accelerator::flow::to_client::sack_check::Change;
use crate::accelerator::flow::views::ServerState;
use paceline_net::{Duration, Instant};

/// Ambiguous ACKs in a row after which retransmissions count as needed. Chosen: a radio whose ACKs never
/// answer the first copy would else repair only one segment each round trip.
const MAX_AMBIGUOUS_ACKS: u8 = 16;
/// Unanswered timeouts above which the client may have discarded SACKed data. Chosen: two retransmissions
/// may be lost.
const RENEGING_TIMEOUTS: u8 = 2;
/// Time for which a SACKed first segment may stay unacknowledged: the least of Linux's
/// `tcp_check_sack_reneging`, and a part of the round-trip time.
const MIN_RENEGING_DELAY: Duration = Duration::from_millis(10);
const RENEGING_RTT_DIVISOR: u64 = 16;

impl ToClient {
    /// Whether only the client's window prevents sending.
    fn is_persisting(&self, stream_end: u64) -> bool {
        !self.has_outstanding() && self.nxt < stream_end
            || self.window.is_closed() && self.has_outstanding() && self.has_lost()
    }
    /// The next tail probe or timeout.
    fn probe_or_timeout_at(&self) -> Instant {
        let timeout = self.timers.timeout_at(&self.rtt);
        let may = self.uses_sack()
            && !self.is_unresponsive()
            && !self.has_lost()
            && self.scoreboard.in_flight() > 0;
        let lone = self.nxt - self.una <= u64::from(self.segment);
        let probe = if may { self.timers.tail_probe_at(&self.rtt, lone, self.fading) } else { None };
        probe.map_or(timeout, |at| at.min(timeout))
    }

    /// The next deadline of these timers; [`Instant::MAX`] for none.
    pub fn deadline(&self, stream_end: u64) -> Instant {
        let at = if self.is_persisting(stream_end) {
            self.timers.persist_at(&self.rtt)
        } else if self.has_outstanding() {
            self.probe_or_timeout_at()
        } else {
            Instant::MAX
        };
        at.min(self.reorder_at).min(self.reneging_at)
    }

    /// Marks segments as lost and sets the timer of the next detection.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let has_deadline = self.fading && !self.is_unresponsive() && !self.timers.is_stalled(now, &self.rtt);
        let deadline = has_deadline.then(|| self.timers.ack_deadline(&self.rtt));
        let again = self.scoreboard.detect_losses(now, self.rtt.min_and_srtt(), self.segment, deadline);
        if self.fading {
            self.scoreboard.lose_from(self.window.edge());
        }
        self.reorder_at = again.unwrap_or(Instant::MAX);
    }

    /// The first segment has changed. If the client has SACKed it, and does not acknowledge it, then the
    /// client has discarded SACKed data. A forged ACK may look like that, and to mark the data as lost takes
    /// time for each segment: so the mark waits for a timer, which expires once in a timeout at most.
    pub(super) fn check_reneging(&mut self, now: Instant) {
        if !self.scoreboard.has_reneged() {
            self.reneging_at = Instant::MAX;
        } else if self.sack_check.on_ack_inside_block(self.uses_sack()) == Change::ToNewReno {
            self.scoreboard.forget_sack();
            self.reneging_at = Instant::MAX;
        } else if self.reneging_at == Instant::MAX {
            let part = self.rtt.srtt().unwrap_or_default() / RENEGING_RTT_DIVISOR;
            let again = (self.reneged_at > Instant::ZERO).then(|| self.reneged_at + self.rtt.rto());
            self.reneging_at = (now + part.max(MIN_RENEGING_DELAY)).max(again.unwrap_or(now));
        }
    }
    fn on_reneging_timer(&mut self, now: Instant) {
        self.reneging_at = Instant::MAX;
        if self.scoreboard.has_reneged() {
            self.reneged_at = now;
            self.scoreboard.lose_sacked();
            self.on_reneging();
        }
    }

    /// Handles the timers that are due. Returns false if the client has been unresponsive for
    /// [`crate::accelerator::AcceleratorConfig::give_up`].
    pub fn on_timeout(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) -> bool {
        if self.reorder_at <= cx.now {
            self.detect_losses(cx.now);
        }
        if self.reneging_at <= cx.now {
            self.on_reneging_timer(cx.now);
        }
        if self.is_persisting(server.from_server.stream_end()) {
            return self.on_persist_timer(cx, server);
        }
        if !self.has_outstanding() || self.probe_or_timeout_at() > cx.now {
            return true;
        }
        self.timers.check_response(cx.now, &self.rtt, self.fading);
        if self.timers.timeout_at(&self.rtt) <= cx.now {
            if self.timers.gives_up(cx.now, cx.config.give_up, false) {
                return false;
            }
            self.on_retransmission_timeout(cx, server.from_server);
        } else {
            cx.stats.tail_probes += 1;
            self.send_probe(cx.now, server.from_server);
        }
        true
    }

    fn on_persist_timer(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) -> bool {
        if self.timers.persist_at(&self.rtt) > cx.now {
            return true;
        }
        if self.timers.gives_up(cx.now, cx.config.give_up, true) {
            return false;
        }
        self.timers.on_window_probe(cx.now);
        self.rtt.on_window_probe();
        cx.stats.window_probes += 1;
        self.emit_probe(cx, server);
        true
    }

    /// Probes the client's state with an empty segment, unless an earlier probe may still be answered. The
    /// server has sent beyond every window that was advertised here: either packets bypassed the machine or
    /// the segment was injected, and the client's acknowledgment shows which.
    pub fn query_client(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        let probed = self.timers.is_probed();
        if !probed || cx.now.since(self.timers.last_probe_at()) > self.rtt.base_rto() {
            self.timers.on_probe(cx.now);
            self.emit_probe(cx, server);
        }
    }

    /// Whether a reset may answer data past the client's window: such data was sent in the last two timeouts.
    pub fn was_past_window_used(&self, now: Instant) -> bool {
        self.overshoot.was_used(now, self.rtt.base_rto() * 2)
    }
    /// A reset may be a router's answer to data past the window, which then has not arrived. The client's
    /// answer to a probe shows that it is alive.
    pub fn on_doubtful_reset(&mut self, cx: &mut Context<'_>, server: &ServerState<'_>) {
        self.overshoot.stop();
        self.scoreboard.lose_past_edge();
        self.emit_probe(cx, server);
    }

    /// A plausible segment of the client arrived. Returns whether the client was unresponsive before.
    pub fn on_response(&mut self, now: Instant) -> bool {
        self.rtt.on_response();
        self.timers.on_response(now)
    }
    /// The client was unresponsive and has sent a segment: outstanding data is probed at once, and without
    /// backoff.
    pub fn probe_after_silence(&mut self, now: Instant, from_server: &FromServer) {
        if self.has_outstanding() {
            self.rtt.on_progress();
            self.timers.restart(now);
            self.send_probe(now, from_server);
        }
    }

    /// Sends one segment at once, new data if possible: its ACK shows as much as that of a retransmission,
    /// and it is not spurious if nothing was lost.
    fn send_probe(&mut self, now: Instant, from_server: &FromServer) {
        self.send_now = true;
        self.timers.on_probe(now);
        if !self.can_probe_with_new_data(from_server) {
            self.suspect_first(from_server);
        }
    }
    /// Marks the first segment as lost. If it was merely late, all others are late as well: new data after it
    /// shows which (F-RTO, RFC 5682), unless there is none.
    fn suspect_first(&mut self, from_server: &FromServer) {
        let most = if self.can_probe_with_new_data(from_server) { MAX_AMBIGUOUS_ACKS } else { 1 };
        let has_unsent = self.nxt < from_server.stream_end();
        let certain = self.fading || self.ambiguous_acks >= most || !has_unsent;
        self.scoreboard.lose_first(self.uses_sack() && !certain);
    }
    /// Whether there is new data within the client's window.
    fn can_probe_with_new_data(&self, from_server: &FromServer) -> bool {
        let cut = || from_server.store().cut(self.nxt, self.segment, self.segment, self.window.edge());
        !self.window.is_closed() && cut().is_some()
    }
    /// Whether retransmissions of this connection count as answered without ambiguity: F-RTO is not used.
    pub(super) fn is_frto_off(&self, has_unsent: bool) -> bool {
        self.fading || !self.uses_sack() || self.ambiguous_acks >= MAX_AMBIGUOUS_ACKS || !has_unsent
    }

    fn on_retransmission_timeout(&mut self, cx: &mut Context<'_>, from_server: &FromServer) {
        cx.stats.timeouts += 1;
        self.rtt.on_timeout();
        self.black_hole.on_timeout();
        self.timers.on_timeout(cx.now);
        self.scoreboard.on_timeout();
        if self.scoreboard.front_past_edge_sent_at().is_some() {
            self.scoreboard.lose_past_edge();
            if !self.fading {
                self.on_past_window_drop(cx);
            }
        }
        let unanswered = self.rtt.unanswered() > RENEGING_TIMEOUTS && self.scoreboard.has_hole();
        if self.scoreboard.has_reneged() {
            self.on_reneging();
        } else if unanswered {
            self.scoreboard.lose_all();
        } else if self.fading || !self.scoreboard.lose_flight() {
            // On fading radios the rest of the flight has its ACK deadline.
            self.suspect_first(from_server);
        }
        self.send_now = true;
    }
}
